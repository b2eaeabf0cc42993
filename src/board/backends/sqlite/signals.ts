/** Requests to cancel a job, and the pause of the board. */
import { encodeText } from '../../../core/texts.ts'
import type { BackendSignals, Cancellation, CancelRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { DependencySteps } from './dependencies.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext, ChangeLog } from './store/change-log.ts'
import type { JobRows } from './store/job-rows.ts'
import { jobNumber, readText } from './store/rows.ts'

export interface SignalsOptions {
  readonly context: BoardContext
  readonly rows: JobRows
  readonly changes: ChangeLog
  readonly dependencies: DependencySteps
}

export class SignalSteps {
  readonly #options: SignalsOptions

  constructor(options: SignalsOptions) {
    this.#options = options
  }

  /** Pauses or resumes the board. */
  setPaused(paused: boolean): void {
    const { context, changes } = this.#options
    context.db.run('UPDATE boards SET paused = ? WHERE id = ?', Number(paused), context.board)
    changes.addGate(paused ? 'paused' : 'resumed')
  }

  /** Requests to cancel a job, which is due at once from then on and waits for no other. The first request is kept. @throws NotFound */
  cancel({ id, job: name, who, reason }: CancelRequest): void {
    const { context, rows, changes, dependencies } = this.#options
    const row = rows.find(id)
    if (!row) throw refusalError(name, { why: 'gone' })
    if (row['cancelled_by'] !== null) return
    const job = Number(row['id'])
    const sql = 'UPDATE jobs SET cancelled_by = ?, cancel_reason = ?, due_at = 0, due_when_ready = NULL WHERE id = ?'
    context.db.run(sql, encodeText(who), encodeText(reason), job)
    dependencies.removeOf(job)
    changes.add('cancelled', job)
  }

  cancellation(id: string): Cancellation | undefined {
    const { db, board } = this.#options.context
    const sql = `SELECT cancelled_by AS who, cancel_reason AS reason FROM jobs WHERE id = ? AND board = ?
      AND cancelled_by IS NOT NULL`
    const row = db.get(sql, jobNumber(id), board)
    return row && { who: readText(row, 'who'), reason: readText(row, 'reason') }
  }
}

export class SqliteSignals implements BackendSignals {
  readonly #board: SqliteBoard<{ readonly signals: SignalSteps }>

  constructor(board: SqliteBoard<{ readonly signals: SignalSteps }>) {
    this.#board = board
  }

  async cancel(request: CancelRequest): Promise<void> {
    return this.#board.step(({ signals }) => signals.cancel(request))
  }

  async setPaused(paused: boolean): Promise<void> {
    return this.#board.step(({ signals }) => signals.setPaused(paused))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return this.#board.read(({ signals }) => signals.cancellation(id))
  }
}
