/** The trash. */

import { Duplicate, isError } from '../../../core/errors.ts'
import { BadVersion, NodeExists, NoNode, type ZooKeeperError } from '../../../zookeeper/index.ts'
import type {
  BackendRestoreOptions,
  BackendTrash,
  DiscardRequest,
  RestoreOutcome,
  TrashedEntry,
  TrashListing,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import { AGAIN, type Again, untilDone, withParts } from './commit/parts.ts'
import type { RefusedStep, Transaction } from './commit/transaction.ts'
import { discardSteps, purgeSteps } from './commit/transactions.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { toClaimError, toJobName, touchedJob, touchedKey } from './parts/posting-parts.ts'
import { translateErrors } from './store/reader.ts'

export class ZooKeeperTrash implements BackendTrash {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    const { layout } = this.#board
    const { kind, postings, ending, lateCancellations } = this.#board.components
    const { id, posting, at = new Date() } = discarded
    const what = `removal of ${toJobName(posting)}`
    const entry = kind.encodeTrash({ ...discarded, at }, postings.limit)
    const transaction: Transaction<undefined> = {
      ...effectOnly(what),
      steps: discardSteps(layout, id, { ...discarded, entry }),
      touches: posting.key === undefined ? [touchedJob(id)] : [touchedJob(id), touchedKey(posting.key)],
      onRefused: (error, step) => alreadyTrashedError(what, id, error, step) ?? toClaimError(what, error, step),
    }
    const discarding = () => ending.end(discarded, transaction)
    return discarded.cancelRequested ? discarding() : lateCancellations.removeAfterEnd(id, discarding)
  }

  async restore(
    entry: TrashedEntry,
    posting: Posting,
    { after = [] }: BackendRestoreOptions = {},
  ): Promise<RestoreOutcome> {
    const { layout, committer } = this.#board
    const { postings, batches } = this.#board.components
    const what = `restoration of ${toJobName(posting)}`
    const bytes = postings.encode(posting)
    const { batch } = posting
    let takeOver: number | undefined
    return untilDone<RestoreOutcome>(async () => {
      const opening = batch === undefined ? undefined : await batches.openRestored(batch, posting, entry)
      const created = postings.create<RestoreOutcome>({
        ...{ posting, bytes, after, takeOver },
        onGone: (gone) => ({ restored: false, gone }),
        onKeyTaken: async () => {
          takeOver = await this.#freeRevision(what, posting.key, entry)
          return AGAIN
        },
      })
      const transaction: Transaction<RestoreOutcome | Again> = {
        what,
        steps: [...purgeSteps(layout, entry), ...created.steps, ...(opening?.steps ?? [])],
        touches: [touchedJob(entry.id)],
        onCommitted: () => ({ restored: true }),
        onRecovered: () => ({ restored: true }),
        onRefused: (error) => notInTrashError(what, error),
      }
      return committer.commit(withParts(transaction, [...created.parts, opening]))
    })
  }

  /** Returns the revision at which the key can be taken over; undefined if it can be created. @throws Duplicate if it is taken */
  async #freeRevision(what: string, key: string | undefined, entry: TrashedEntry): Promise<number | undefined> {
    const holder = key === undefined ? undefined : await this.#board.components.keys.find(what, key)
    // Its own window does not keep a job in the trash.
    const isOwn = holder?.state === 'window' && holder.id === entry.id
    if (holder && holder.state !== 'free' && !isOwn) throw refusalError(what, { why: 'key' })
    return holder?.revision
  }

  async purge({ id, revision, posting }: TrashedEntry): Promise<void> {
    const { layout, committer } = this.#board
    const what = `purge of ${toJobName(posting)}`
    await committer.commit<undefined>({
      ...effectOnly(what),
      steps: purgeSteps(layout, { id, revision }),
      touches: [touchedJob(id)],
      onRefused: (error) => notInTrashError(what, error),
    })
  }

  async *list(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const { reader, sink } = this.#board.components
    const what = `reading the trash of ${this.#board.uri}`
    const index = await translateErrors(what, async () => {
      await this.#sync()
      return reader.trashIndex()
    })
    for (const page of pagesOf(selectTrash(index, listing, ({ id }) => id)))
      for (const entry of await translateErrors(what, () => reader.trashPage(page)))
        if (isError(entry)) sink.error(entry)
        else yield entry
  }

  async entry(id: string): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${id} in the trash`, () => this.#board.components.reader.trashedEntry(id))
  }

  async find(uuid: string): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${uuid} in the trash`, async () => {
      await this.#sync()
      return this.#board.components.reader.findTrashed(uuid)
    })
  }

  /** Resolves when the server of this connection has applied everything that was trashed before the call: it may be behind the leader. */
  async #sync(): Promise<void> {
    await this.#board.zookeeper.sync(this.#board.layout.path)
  }
}

/** Returns the fields of a transaction that has an effect and no result. */
function effectOnly(what: string): Pick<Transaction<undefined>, 'what' | 'onCommitted' | 'onRecovered'> {
  return { what, onCommitted: () => undefined, onRecovered: () => undefined }
}

/**
 * Returns Duplicate if the trash already holds an entry of this job. The first step of such a transaction checks that
 * the posting exists, so the entry does not come from another client that trashed the job a moment before.
 */
function alreadyTrashedError(
  what: string,
  id: string,
  cause: ZooKeeperError,
  step: RefusedStep,
): Duplicate | undefined {
  const isInTrash = step !== 'guard' && step?.subject === 'trash' && cause instanceof NodeExists
  return isInTrash
    ? new Duplicate(`${what}: the trash already holds ${id}; remove one of the two`, { cause })
    : undefined
}

/** Returns the error for a refused restore or purge. */
function notInTrashError(what: string, cause: ZooKeeperError): Error {
  const gone = cause instanceof NoNode || cause instanceof BadVersion
  return gone ? refusalError(what, { why: 'not in trash' }, cause) : cause
}
