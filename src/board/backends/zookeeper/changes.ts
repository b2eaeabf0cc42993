/** Changes of the board, which arrive as events of one recursive watch, and changes of single jobs. */
import type { Watch, WatchEvent } from '../../../zookeeper/index.ts'
import type { BackendChanges, JobStatus } from '../../contract/index.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { applyEvents, forgetChanges, reportGap, type ZooKeeperComponents } from './parts/components.ts'
import { translateErrors } from './store/reader.ts'

export class ZooKeeperChanges implements BackendChanges {
  readonly #board: BoardHandle
  /** The watch of the board while changes are reported. */
  #watch: Watch | undefined

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async subscribe(): Promise<void> {
    const { uri, zookeeper, layout, components } = this.#board
    const what = `subscribing to ${uri}`
    const handler = {
      events: (batch: readonly WatchEvent[]) => applyEvents(batch, components),
      // The session reports the gap, before anything can be claimed in it.
      gap: () => undefined,
    }
    const watching = zookeeper.watch(layout.path, { mode: 'recursive' }, handler)
    this.#watch = await translateErrors(what, () => watching)
    reportGap(components)
    try {
      await translateErrors(what, () => components.gate.read())
    } catch (error) {
      // Or the next attempt would watch twice, and every change be counted twice.
      await this.unsubscribe()
      throw error
    }
    components.scan.start()
  }

  async unsubscribe(): Promise<void> {
    const { componentsIfOpen } = this.#board
    if (componentsIfOpen) {
      componentsIfOpen.scan.stop()
      // Without events these components would keep what has changed since.
      forgetChanges(componentsIfOpen)
    }
    const watch = this.#watch
    this.#watch = undefined
    await watch?.remove().catch(() => undefined)
  }

  /** Reports the gap of a new connection. If the board is subscribed, the watch is armed: from now on every change is reported. */
  reportGap(components: ZooKeeperComponents): void {
    if (this.#watch) reportGap(components)
    else components.sink.gap()
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    return translateErrors(`following jobs of ${this.#board.uri}`, () => this.#board.components.followed.follow(ids))
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    this.#board.componentsIfOpen?.followed.unfollow(ids)
  }

  /**
   * Resolves when all changes up to the call are received: watch events of a session arrive before later answers, such
   * as the answer to the sync.
   */
  async barrier(): Promise<void> {
    const { uri, zookeeper, layout, components } = this.#board
    await translateErrors(`sync of ${uri}`, () => zookeeper.sync(layout.path))
    await Promise.all([components.releases.whenSettled(), components.gate.whenSettled()])
  }
}
