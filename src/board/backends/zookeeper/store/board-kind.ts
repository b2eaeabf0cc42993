/**
 * The differences between a board that only this library uses and a board that is shared with TaskFlow
 * (`taskflow/shared-board.ts`): which records are written and how they are read, which operations lock a job, and which changes
 * are reported at once. The board's record names its kind; the reader and the writer receive the kind.
 */
import { decode, type Encoding, encode } from '../../../../core/codec.ts'
import { InvalidPosting } from '../../../../core/errors.ts'
import { type Op, op } from '../../../../zookeeper/index.ts'
import type { BoardChange, TrashedEntry, TrashReason } from '../../../contract/index.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import {
  encodePosting,
  type PostingLimit,
  readSizedPosting,
  type SizedPosting,
} from '../../../model/posting/posting-codec.ts'
import { decodeFields, encodeTrashFields, parseTrashedEntry } from './encoding.ts'

export interface BoardKind {
  /** The encoding of all records except postings and trash entries. */
  readonly encoding: Encoding
  /** Whether TaskFlow's services post and claim on the board, too. */
  readonly shared: boolean
  /** Encodes a posting. @throws PayloadTooLarge; InvalidArgument for details that the encoding cannot hold */
  encodePosting(posting: Posting, options: PostingLimit): Uint8Array
  /** Decodes a posting. @throws InvalidPosting */
  decodePosting(bytes: Uint8Array): SizedPosting
  /** Encodes a trash entry. @throws PayloadTooLarge */
  encodeTrash(entry: TrashRecord, options: PostingLimit): Uint8Array
  /** Decodes a trash entry. @throws InvalidPosting */
  decodeTrash(at: TrashPosition, bytes: Uint8Array | null): TrashedEntry
  /** Returns the operations by which a claim creates its lock. */
  lockOps(path: string, lock: Uint8Array): readonly Op[]
  /** Returns the operation by which the end of a claim deletes its lock. */
  unlockOp(path: string): Op
  /** Returns the filter for the changes of an open board. */
  filterReleases(options: ReleaseFilterOptions): ReleaseFilter
}

/** The content of a trash entry. */
export type TrashRecord = TrashReason & { readonly posting: Posting; readonly who: string; readonly at: Date }

export type TrashPosition = Pick<TrashedEntry, 'id' | 'revision'>

export interface ReleaseFilterOptions {
  /** Sends a request to the server. When it is answered, all earlier changes have been received. */
  readonly sync: () => Promise<unknown>
  /** Receives the confirmed releases: the job was abandoned, or its owner is dead. */
  readonly onReleased: (changes: readonly BoardChange[]) => void
}

/** A filter that holds back releases until they are confirmed. */
export interface ReleaseFilter {
  /** Returns the changes that are confirmed now. Unconfirmed releases are reported later. */
  confirmed(changes: readonly BoardChange[]): readonly BoardChange[]
  /** Forgets all unconfirmed releases after a gap: the listing that follows shows the current state. */
  clear(): void
  /** Resolves when every release that was unconfirmed at the call is confirmed or discarded. */
  whenSettled(): Promise<void>
}

const ENCODING = 'msgpack'

/** The kind of a board that only this library uses. */
export const ownBoard: BoardKind = {
  encoding: ENCODING,
  shared: false,
  encodePosting: (posting, limit) => encodePosting(posting, { ...limit, encoding: ENCODING }),
  decodePosting: (bytes) => readSizedPosting(bytes, ENCODING),
  encodeTrash: (entry, options) =>
    encode({ ...encodeTrashFields(entry), posting: ownBoard.encodePosting(entry.posting, options) }, ENCODING),
  decodeTrash: (at, bytes) => {
    const { posting, ...fields } = bytes ? decodeFields(() => decode(bytes, ENCODING)) : {}
    return parseTrashedEntry(at, fields, () => {
      if (posting instanceof Uint8Array) return ownBoard.decodePosting(posting).posting
      throw new InvalidPosting(`trash entry ${at.id} is unreadable`)
    })
  },
  lockOps: (path, lock) => [{ type: 'create', path, data: lock, ephemeral: true, isUnread: true }],
  unlockOp: (path) => op.delete(path),
  filterReleases: () => ({
    confirmed: (changes) => changes,
    clear: () => undefined,
    whenSettled: () => Promise.resolve(),
  }),
}
