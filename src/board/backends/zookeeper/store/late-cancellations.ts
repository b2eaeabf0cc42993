/**
 * Removes cancel requests that were created while the job ended.
 *
 * The transaction that ends a job also deletes a known cancel request. A request that another board creates after the
 * transaction was composed and before it is applied would stay, although a job that has left cannot be cancelled. A
 * watch event reaches a client before any later answer, so every such request is known when the end is answered. If the
 * connection breaks in between, the sweep removes the request.
 */
import { type ZooKeeper, ZooKeeperError } from '../../../../zookeeper/index.ts'
import type { BoardChange } from '../../../contract/index.ts'
import type { ZooKeeperLayout } from './layout.ts'

export interface LateCancellationsOptions {
  readonly zookeeper: Pick<ZooKeeper, 'delete'>
  readonly layout: ZooKeeperLayout
}

/** A job whose end is under way. */
export interface EndingJob {
  readonly id: string
  /** Whether a cancel request was created since the transaction was composed. */
  isCancelled: boolean
}

export class LateCancellations {
  readonly #options: LateCancellationsOptions
  readonly #endingJobs = new Map<string, EndingJob>()

  constructor(options: LateCancellationsOptions) {
    this.#options = options
  }

  /**
   * Calls `end`, which removes the job from the board, and then removes a cancel request that was created meanwhile.
   *
   * @param end never throws synchronously; it may reject
   */
  async removeAfterEnd(id: string, end: () => Promise<void>): Promise<void> {
    const ending: EndingJob = { id, isCancelled: false }
    this.watch(ending)
    try {
      await end()
    } finally {
      this.unwatch(ending)
    }
    if (ending.isCancelled) await this.remove(id)
  }

  /** Watches a job from now until {@link unwatch}: a cancel request is noted in it. */
  watch(ending: EndingJob): void {
    this.#endingJobs.set(ending.id, ending)
  }

  unwatch(ending: EndingJob): void {
    if (this.#endingJobs.get(ending.id) === ending) this.#endingJobs.delete(ending.id)
  }

  /** Applies changes of the board: notes cancel requests of jobs that are ending. */
  changed(batch: readonly BoardChange[]): void {
    if (this.#endingJobs.size === 0) return
    for (const { id, kind } of batch) {
      const ending = kind === 'cancelled' ? this.#endingJobs.get(id) : undefined
      if (ending) ending.isCancelled = true
    }
  }

  /** Deletes the request and ignores failures: the job has ended in any case. */
  async remove(id: string): Promise<void> {
    const { zookeeper, layout } = this.#options
    await zookeeper.delete(layout.cancel(id)).catch((error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
    })
  }
}
