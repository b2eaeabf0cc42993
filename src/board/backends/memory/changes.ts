/** The changes of a memory board, which are reported as they happen. */
import type { BackendChanges, BoardChange, JobStatus } from '../../contract/index.ts'
import type { JobSteps } from './jobs.ts'
import type { SignalSteps } from './signals.ts'
import type { MemoryBoard } from './store/board.ts'
import type { ChangeListeners } from './store/change-listeners.ts'

interface Steps {
  readonly jobs: JobSteps
  readonly signals: SignalSteps
  readonly changes: ChangeListeners
}

export class MemoryChanges implements BackendChanges {
  readonly #board: MemoryBoard<Steps>
  readonly #followed = new Set<string>()

  constructor(board: MemoryBoard<Steps>) {
    this.#board = board
  }

  async subscribe(): Promise<void> {
    const { sink } = this.#board.requireOpen()
    const { changes, signals } = this.#board.steps
    const listener = {
      changes: (batch: readonly BoardChange[]) => sink.changes(batch),
      paused: (paused: boolean) => sink.paused(paused),
    }
    this.#board.watch('changes', () => changes.add(listener))
    sink.gap()
    sink.paused(signals.paused)
  }

  async unsubscribe(): Promise<void> {
    this.#board.unwatch('changes')
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    const { jobs } = this.#board.steps
    const statuses = ids.map((id) => jobs.status(id))
    for (const [index, id] of ids.entries()) if (typeof statuses[index] === 'object') this.#followed.add(id)
    if (this.#followed.size > 0) this.#board.watch('followed', () => this.#reportFollowed())
    return statuses
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    this.#forget(ids)
  }

  /** Resolves at once: changes are reported as they happen. */
  async barrier(): Promise<void> {
    this.#board.requireOpen()
  }

  #forget(ids: readonly string[]): void {
    for (const id of ids) this.#followed.delete(id)
    if (this.#followed.size === 0) this.#board.unwatch('followed')
  }

  /** Begins to report changes of jobs that are followed; returns the function that ends it. */
  #reportFollowed(): () => void {
    const { sink } = this.#board.requireOpen()
    const end = this.#board.steps.changes.add({
      changes: (batch) => {
        const followed = batch.filter(({ id }) => this.#followed.has(id))
        if (followed.length > 0) sink.followed(followed)
        for (const { kind, id } of followed) if (kind === 'gone') this.#forget([id])
      },
    })
    return () => {
      end()
      this.#followed.clear()
    }
  }
}
