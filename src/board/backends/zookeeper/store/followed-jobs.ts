/**
 * The jobs that are followed one by one, while the board as a whole is not watched: three persistent watches for each job, on its
 * posting, its lock and its cancel request. They stay armed on every connection, so after a gap only the status is read again.
 */
import type { Watch, WatchEvent, ZooKeeper } from '../../../../zookeeper/index.ts'
import type { BoardChange, JobStatus } from '../../../contract/index.ts'
import type { ZooKeeperLayout } from './layout.ts'
import type { ZooKeeperReader } from './reader.ts'

export interface FollowedJobNodesOptions {
  readonly zookeeper: Pick<ZooKeeper, 'watch' | 'exists' | 'sync'>
  readonly layout: ZooKeeperLayout
  readonly reader: Pick<ZooKeeperReader, 'isTrashed'>
  readonly onChanges: (changes: readonly BoardChange[]) => void
}

export class FollowedJobNodes {
  readonly #options: FollowedJobNodesOptions
  readonly #watches = new Map<string, Promise<readonly Watch[]>>()

  constructor(options: FollowedJobNodesOptions) {
    this.#options = options
  }

  /** Watches these jobs, and returns their status as the leader knew it at the call or later. One round trip; two if a job has left the board. */
  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    const { zookeeper, layout } = this.#options
    // Requests of a session are answered in their order: what is read after the sync is as new as the call.
    const synced = zookeeper.sync(layout.path)
    const statuses = ids.map((id) => this.#follow(id))
    const [, found] = await Promise.all([synced, Promise.all(statuses)])
    return found
  }

  unfollow(ids: readonly string[]): void {
    for (const id of ids) {
      const watching = this.#watches.get(id)
      this.#watches.delete(id)
      // Without a connection the server has forgotten the watches anyway.
      watching?.then((watches) => Promise.all(watches.map((watch) => watch.remove()))).catch(() => undefined)
    }
  }

  async #follow(id: string): Promise<JobStatus> {
    const { zookeeper, layout, reader } = this.#options
    const watching = this.#watches.get(id) ?? this.#watch(id)
    const [posting, lock, cancel] = await Promise.all([
      zookeeper.exists(layout.posting(id)),
      zookeeper.exists(layout.lock(id)),
      zookeeper.exists(layout.cancel(id)),
      watching,
    ])
    if (posting) return { claimed: lock !== undefined, cancelled: cancel !== undefined, revision: posting.version }
    this.unfollow([id])
    return (await reader.isTrashed(id)) ? 'trashed' : 'gone'
  }

  #watch(id: string): Promise<readonly Watch[]> {
    const { zookeeper, layout } = this.#options
    const handler = {
      events: (batch: readonly WatchEvent[]) => this.#onEvents(id, batch),
      // The session reports the gap.
      gap: () => undefined,
    }
    const paths = [layout.posting(id), layout.lock(id), layout.cancel(id)]
    const watching = Promise.all(paths.map((path) => zookeeper.watch(path, { mode: 'persistent' }, handler)))
    this.#watches.set(id, watching)
    watching.catch(() => {
      if (this.#watches.get(id) === watching) this.#watches.delete(id)
    })
    return watching
  }

  #onEvents(id: string, batch: readonly WatchEvent[]): void {
    const { layout, onChanges } = this.#options
    const changes = layout.toChanges(batch)
    if (this.#watches.has(id) && changes.length > 0) onChanges(changes)
  }
}
