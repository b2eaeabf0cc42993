/** Requests to cancel a job of a memory board, and the pause of the board. */
import type { BackendSignals, Cancellation, CancelRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { MemoryBoard } from './store/board.ts'
import type { ChangeListeners } from './store/change-listeners.ts'
import type { JobRows } from './store/rows.ts'

export interface SignalsOptions {
  readonly rows: JobRows
  readonly changes: ChangeListeners
}

export class SignalSteps {
  readonly #options: SignalsOptions
  #paused = false

  constructor(options: SignalsOptions) {
    this.#options = options
  }

  get paused(): boolean {
    return this.#paused
  }

  setPaused(paused: boolean): void {
    this.#paused = paused
    this.#options.changes.notifyPaused(paused)
  }

  /** Requests to cancel a job. The first request is kept. @throws NotFound */
  cancel({ id, job, who, reason }: CancelRequest): void {
    const row = this.#options.rows.find(id)
    if (!row) throw refusalError(job, { why: 'gone' })
    if (row.cancellation) return
    row.cancellation = { who, reason }
    this.#options.changes.notify({ kind: 'cancelled', id })
  }

  cancellation(id: string): Cancellation | undefined {
    return this.#options.rows.find(id)?.cancellation
  }
}

export class MemorySignals implements BackendSignals {
  readonly #board: MemoryBoard<{ readonly signals: SignalSteps }>

  constructor(board: MemoryBoard<{ readonly signals: SignalSteps }>) {
    this.#board = board
  }

  async cancel(request: CancelRequest): Promise<void> {
    this.#board.steps.signals.cancel(request)
  }

  async setPaused(paused: boolean): Promise<void> {
    this.#board.steps.signals.setPaused(paused)
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return this.#board.steps.signals.cancellation(id)
  }
}
