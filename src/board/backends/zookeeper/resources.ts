/** Resources: `store/resource-nodes.ts` has their folders. */
import type { BackendResources, OrphanedClaim } from '../../contract/index.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { translateErrors } from './store/reader.ts'
import { freeOrphans } from './store/sweep.ts'

export class ZooKeeperResources implements BackendResources {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async freeOrphans(left: OrphanedClaim): Promise<void> {
    const { limits } = this.#board.components
    const slots = limits.slotsOf(left.id)
    limits.free(left.id)
    await translateErrors(`releasing the orphaned claim of job ${left.posting.uuid}`, () =>
      freeOrphans(this.#board, { ...left, slots }),
    )
  }

  async holder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }
}
