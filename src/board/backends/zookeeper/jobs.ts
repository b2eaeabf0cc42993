/** Jobs on the board: posted, listed and read. */

import { attempt } from '../../../core/result.ts'
import type {
  BackendJobs,
  BoardListing,
  KeyTaken,
  Posted,
  PostRequest,
  StoredJob,
  UnclaimedJobs,
  UnreadableJob,
} from '../../contract/index.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { AGAIN, type Again, untilDone, withParts } from './commit/parts.ts'
import type { Transaction } from './commit/transaction.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { PlainPost } from './parts/plain-transactions.ts'
import { toJobName } from './parts/posting-parts.ts'
import type { KeyHolder } from './store/key-nodes.ts'
import { listBoard, listUnclaimed, translateErrors } from './store/reader.ts'

export class ZooKeeperJobs implements BackendJobs {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  post(request: PostRequest): Promise<Posted> {
    const { posting, after = [] } = request
    const isPlain = posting.key === undefined && posting.batch === undefined && after.length === 0
    return isPlain ? this.#postPlain(posting) : this.#postWithParts(request)
  }

  readonly #postPlain = (posting: Posting): Promise<Posted> =>
    attempt(() => this.#board.committer.commit(new PlainPost(this.#board, posting, this.#postPlain)))

  async #postWithParts(request: PostRequest): Promise<Posted> {
    const { committer } = this.#board
    const { postings, batches, dependencies, keys } = this.#board.components
    const { posting, after = [] } = request
    const { uuid, batch, key } = posting
    const what = `post of ${toJobName(posting)}`
    let { takeOver } = request
    const examineKey = async (): Promise<Posted | Again> => {
      const holder = key === undefined ? undefined : await keys.find(what, key)
      if (holder && holder.state !== 'free' && holder.revision !== takeOver) return toKeyTaken(holder)
      // Without a holder, the key was deleted since: there is nothing to take over any more.
      takeOver = holder?.revision
      return AGAIN
    }
    return untilDone<Posted>(async () => {
      const gone = dependencies.findGone(after)
      if (gone.length > 0) return { created: false, gone }
      // A job without a batch is sent in this turn of the event loop: a close waits for what is under way.
      const opening =
        batch === undefined
          ? undefined
          : await batches.openPosted(batch, { ...request, changed: { answer: examineKey } })
      const bytes = postings.encodePosted(posting)
      const { path, steps, parts } = postings.create<Posted>({
        ...{ posting, bytes, after, takeOver },
        onGone: (left) => ({ created: false, gone: left }),
        onKeyTaken: examineKey,
      })
      const sent = { uuid, path, bytes: postings.toCounted(bytes) }
      const transaction: Transaction<Posted | Again> = {
        ...{ what, steps: opening ? [...steps, ...opening.steps] : steps, touches: [] },
        onCommitted: ({ zxid, results: [created] }) =>
          postings.toPosted(sent, created && 'path' in created ? created.path : undefined, zxid),
        onRecovered: ({ zxid }) => postings.recoverPosted(sent, zxid),
        onRefused: (error) => error,
      }
      return committer.commit(withParts(transaction, opening ? [...parts, opening] : parts))
    })
  }

  async list(): Promise<BoardListing> {
    const { uri, zookeeper, layout } = this.#board
    const { scan } = this.#board.components
    const listing = await translateErrors(`listing ${uri}`, () => listBoard(zookeeper, layout))
    scan.setBaseline(listing.counts)
    return listing
  }

  async listUnclaimed(): Promise<UnclaimedJobs> {
    const { uri, zookeeper, layout } = this.#board
    // On a board where all processes poll, no other call starts the idle work.
    this.#board.components.scan.startWork()
    return translateErrors(`listing ${uri}`, () => listUnclaimed(zookeeper, layout))
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    const { uri } = this.#board
    const { reader, sink } = this.#board.components
    const found = await translateErrors(`reading ${uri}`, () => reader.read(ids))
    // The event that says how the job ended may be lost; then the job would be taken for consumed. If the event
    // arrived, this repeats it.
    const gone = ids.filter((_, index) => found[index] === undefined)
    const trashed = await translateErrors(`reading ${uri}`, () => reader.readTrashedIds(gone))
    if (trashed.length > 0) sink.changes(trashed.map((id) => ({ kind: 'trashed', id })))
    return this.#withWaits(found)
  }

  /** Adds which of the jobs wait for others; sends no request for jobs without dependencies. */
  async #withWaits<T extends StoredJob | UnreadableJob | undefined>(found: T[]): Promise<(T | StoredJob)[]> {
    const dependent = found.flatMap((job) => (job && 'posting' in job && job.posting.after ? [job.id] : []))
    if (dependent.length === 0) return found
    const { waits } = this.#board.components
    const waiting = await translateErrors(`reading ${this.#board.uri}`, () => waits.findWaiting(dependent))
    return found.map((job) => (job && 'posting' in job && waiting.has(job.id) ? { ...job, waits: true } : job))
  }
}

function toKeyTaken({ uuid, revision, state, id }: KeyHolder): KeyTaken {
  return {
    ...{ created: false, revision },
    ...(uuid === undefined ? {} : { uuid }),
    ...(state === 'window' && id !== undefined ? { inWindowOf: id } : {}),
  }
}
