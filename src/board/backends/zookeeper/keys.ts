/** Keys, by which a job replaces a waiting job. `store/key-nodes.ts` has the znodes. */
import { Unclaimable } from '../../../core/errors.ts'
import type { ZooKeeperError } from '../../../zookeeper/index.ts'
import type { BackendKeys, Replaced, ReplaceRequest } from '../../contract/index.ts'
import { withParts } from './commit/parts.ts'
import { keyStep, replaceStep } from './commit/transactions.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { isKeyTaken, toClaimError, toJobName, touchedJob, touchedKey } from './parts/posting-parts.ts'

export class ZooKeeperKeys implements BackendKeys {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async replace({ id, revision, keyRevision, posting, window }: ReplaceRequest): Promise<Replaced> {
    const { layout, committer } = this.#board
    const { postings } = this.#board.components
    const what = `replacement of ${toJobName(posting)}`
    const bytes = postings.encodePosted(posting)
    const { key: name = '' } = posting
    const key = keyStep(layout, {
      ...{ name, takenOverAt: keyRevision },
      bytes: postings.toKeyRecord(posting, window === undefined ? undefined : { id, ms: window }),
    })
    const replaced: Replaced = { revision: revision + 1, bytes: postings.toCounted(bytes) }
    const transaction = {
      ...{ what, touches: [touchedJob(id), touchedKey(name)] },
      steps: [replaceStep(layout, id, { revision, bytes }), key],
      onCommitted: () => replaced,
      onRecovered: () => replaced,
      onRefused: toClaimError.bind(undefined, what),
    }
    // The key belongs to the job as long as the key has this revision.
    const keyPart = {
      steps: [key],
      onRefused: (error: ZooKeeperError) =>
        isKeyTaken(error) ? new Unclaimable(`${what}: its key was changed`) : undefined,
    }
    return committer.commit<Replaced>(withParts(transaction, [keyPart]))
  }
}
