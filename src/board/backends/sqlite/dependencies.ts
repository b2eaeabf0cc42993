/** The dependencies between jobs of a board that are not met. */
import { encodeText } from '../../../core/texts.ts'
import { type BackendDependencies, type KnownDependencies, MAX_SHOWN_DEPENDENCIES } from '../../contract/index.ts'
import { cascadeCancellation, type Dependency } from '../../model/dependencies.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext, ChangeLog } from './store/change-log.ts'
import { jobId, jobNumber, NEVER } from './store/rows.ts'

/** The end of a job in the trash. */
type FailedJob = Parameters<typeof cascadeCancellation>[0]

export class DependencySteps {
  readonly #context: BoardContext
  readonly #changes: ChangeLog

  constructor(context: BoardContext, changes: ChangeLog) {
    this.#context = context
    this.#changes = changes
  }

  /** Returns the ids of jobs that have left the board. */
  findGone(after: readonly Dependency[]): readonly string[] {
    const { db, board } = this.#context
    return after.flatMap(({ id }) =>
      db.get('SELECT 1 FROM jobs WHERE id = ? AND board = ?', jobNumber(id), board) ? [] : [id],
    )
  }

  add(job: number, after: readonly Dependency[]): void {
    const sql = 'INSERT OR IGNORE INTO dependencies (job, waits_for, settled) VALUES (?, ?, ?)'
    for (const { id, on } of after) this.#context.db.run(sql, job, jobNumber(id), Number(on === 'settled'))
  }

  /** Removes the dependencies of a job, which is run without them. */
  removeOf(job: number): void {
    this.#context.db.run('DELETE FROM dependencies WHERE job = ?', job)
  }

  /**
   * Frees or cancels the jobs that depend on a job which has ended.
   *
   * @param failed absent for a job that is done
   * @returns the numbers of the jobs that were cancelled
   */
  end(job: number, failed: FailedJob | undefined): number[] {
    const { db } = this.#context
    this.removeOf(job)
    const dependents = db.all('SELECT job, settled FROM dependencies WHERE waits_for = ? ORDER BY job', job)
    if (dependents.length === 0) return []
    db.run('DELETE FROM dependencies WHERE waits_for = ?', job)
    return dependents.flatMap((row) => {
      const dependent = Number(row['job'])
      if (failed && row['settled'] === 0) return this.#cancel(dependent, failed) ? [dependent] : []
      this.#freeIfReady(dependent)
      return []
    })
  }

  /** Cancels a job. A job that never ran is doomed: it is never claimed. @returns false if it was cancelled before */
  #cancel(job: number, failed: FailedJob): boolean {
    const { db } = this.#context
    this.removeOf(job)
    const { who, reason } = cascadeCancellation(failed)
    const isChanged = db.run(
      `UPDATE jobs SET cancelled_by = ?, cancel_reason = ?, due_at = 0, due_when_ready = iif(ran = 0, ?, NULL)
        WHERE id = ? AND cancelled_by IS NULL`,
      ...[encodeText(who), encodeText(reason), NEVER, job],
    )
    if (isChanged > 0) this.#changes.add('cancelled', job)
    return isChanged > 0
  }

  #freeIfReady(job: number): void {
    const { db } = this.#context
    if (db.get('SELECT 1 FROM dependencies WHERE job = ?', job)) return
    const isWaiting = 'id = ? AND due_when_ready IS NOT NULL'
    if (db.run(`UPDATE jobs SET due_at = due_when_ready, due_when_ready = NULL WHERE ${isWaiting}`, job) === 0) return
    const row = db.get('SELECT rank, due_at, queue FROM jobs WHERE id = ?', job)
    const queue = typeof row?.['queue'] === 'string' ? row['queue'] : null
    this.#changes.addPlaced('ready', job, { rank: Number(row?.['rank']), due: Number(row?.['due_at']), queue })
  }

  /** Returns the ids of the jobs for which a job waits, and the ids of the jobs that wait for it. */
  of(id: string): KnownDependencies {
    const list = (known: string, wanted: string) =>
      this.#context.db
        .all(
          `SELECT ${wanted} AS id FROM dependencies WHERE ${known} = ? LIMIT ?`,
          jobNumber(id),
          MAX_SHOWN_DEPENDENCIES,
        )
        .map((row) => jobId(row['id']))
    return { waitsFor: list('job', 'waits_for'), dependents: list('waits_for', 'job') }
  }
}

export class SqliteDependencies implements BackendDependencies {
  readonly #board: SqliteBoard<{ readonly dependencies: DependencySteps }>

  constructor(board: SqliteBoard<{ readonly dependencies: DependencySteps }>) {
    this.#board = board
  }

  async of(id: string): Promise<KnownDependencies> {
    return this.#board.read(({ dependencies }) => dependencies.of(id))
  }
}
