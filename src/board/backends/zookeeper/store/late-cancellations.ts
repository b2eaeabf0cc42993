/**
 * Removes cancel requests that were made while the job ended.
 *
 * The transaction that ends a job takes its cancel request with it where there is one. A request that another board makes
 * after the transaction was composed, and before it is applied, would stay: nobody can ask anything of a job that has left. A
 * watch event reaches a client before any later answer, so when the end is answered every such request is known. Where the
 * connection breaks in between, the sweep removes the request.
 */
import { type ZooKeeperDriver, ZooKeeperError } from '../../../../zookeeper/index.ts'
import type { BoardChange } from '../../../backend.ts'
import type { Layout } from './layout.ts'

export interface LateCancellationsOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'delete'>
  readonly layout: Layout
}

export class LateCancellations {
  readonly #options: LateCancellationsOptions
  readonly #endingJobs = new Map<string, { requested: boolean }>()

  constructor(options: LateCancellationsOptions) {
    this.#options = options
  }

  /** Calls `end`, which takes the job off the board, and then removes a request that was made meanwhile. */
  async removeAfterEnd(id: string, end: () => Promise<void>): Promise<void> {
    const watched = { requested: false }
    this.#endingJobs.set(id, watched)
    try {
      await end()
    } finally {
      if (this.#endingJobs.get(id) === watched) this.#endingJobs.delete(id)
    }
    if (watched.requested) await this.#remove(id)
  }

  changed(batch: readonly BoardChange[]): void {
    if (this.#endingJobs.size === 0) return
    for (const { id, kind } of batch) {
      const watched = kind === 'cancelled' ? this.#endingJobs.get(id) : undefined
      if (watched) watched.requested = true
    }
  }

  /** The job has ended, whatever becomes of this. */
  async #remove(id: string): Promise<void> {
    const { zookeeper, layout } = this.#options
    await zookeeper.delete(layout.cancel(id)).catch((error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
    })
  }
}
