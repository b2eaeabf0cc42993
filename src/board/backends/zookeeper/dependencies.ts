/** The dependencies between jobs. `parts/dependency-parts.ts` has the znodes, and what they add to transactions. */
import { op } from '../../../zookeeper/index.ts'
import { type BackendDependencies, type KnownDependencies, MAX_SHOWN_DEPENDENCIES } from '../../contract/index.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { toDependent } from './parts/dependency-parts.ts'
import { translateErrors } from './store/reader.ts'

export class ZooKeeperDependencies implements BackendDependencies {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async of(id: string): Promise<KnownDependencies> {
    const { zookeeper, layout } = this.#board
    const { results } = await translateErrors(`reading the dependencies of ${id}`, () =>
      zookeeper.multiRead([op.getChildren(layout.wait(id)), op.getChildren(layout.posting(id))]),
    )
    const [waits, dependents] = results.map(({ names = [] }) => names.slice(0, MAX_SHOWN_DEPENDENCIES))
    return { waitsFor: waits ?? [], dependents: (dependents ?? []).map((name) => toDependent(name).id) }
  }
}
