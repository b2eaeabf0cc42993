/**
 * A board that is shared with TaskFlow's services in Python. Its records are JSON: everything in them that this library does
 * not change stays as it was written; its locks are distinguished by their revision; and a lock that is deleted alone is not
 * reported before it is known what became of the job.
 */
import { decode, encode } from '../../../../core/codec.ts'
import { InvalidPosting } from '../../../../core/errors.ts'
import { op } from '../../../../zookeeper/index.ts'
import type { BoardKind } from '../store/board-kind.ts'
import { decodeFields, encodeTrashFields, parseTrashedEntry } from '../store/encoding.ts'
import { decodeSharedPosting, decodeText, encodeSharedPosting, sliceFields } from './shared-posting.ts'
import { UnconfirmedReleases } from './unconfirmed-releases.ts'

/**
 * The revision of this library's locks. TaskFlow's locks have revision 0, and TaskFlow deletes its own locks at that
 * revision. So neither side can delete a lock that the other has created since: an owner that comes too late is refused.
 */
const LOCK_VERSION = 1

export const sharedBoard: BoardKind = {
  encoding: 'json',
  shared: true,
  encodePosting: encodeSharedPosting,
  decodePosting: decodeSharedPosting,
  encodeTrash: (entry, options) => {
    const posting = decodeText(encodeSharedPosting(entry.posting, options))
    // The posting is inserted as text, so that it stays exactly the same.
    return Buffer.from(`{"posting":${posting},${decodeText(encode(encodeTrashFields(entry), 'json')).slice(1)}`)
  },
  decodeTrash: (at, bytes) => {
    const { posting, ...fields } = bytes ? decodeFields(() => decode(bytes, 'json')) : {}
    const text = bytes && posting ? sliceFields(decodeText(bytes)).get('posting') : undefined
    return parseTrashedEntry(at, fields, () => {
      if (text !== undefined) return decodeSharedPosting(Buffer.from(text)).posting
      throw new InvalidPosting(`trash entry ${at.id} is unreadable`)
    })
  },
  lockOps: (path, lock) => [
    op.create(path, lock, { ephemeral: true }),
    op.setData(path, lock, { version: LOCK_VERSION - 1 }),
  ],
  unlockOp: (path) => op.delete(path, { version: LOCK_VERSION }),
  filterReleases: (options) => new UnconfirmedReleases(options),
}
