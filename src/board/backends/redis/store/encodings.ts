/** Encodes and decodes the values of the board's keys: postings, trash entries, cancellations and entities. */
import { decode, encode } from '../../../../core/codec.ts'
import { asError, InvalidPosting } from '../../../../core/errors.ts'
import { type Failure, parseFailure } from '../../../../core/failure.ts'
import { isTime } from '../../../../core/time.ts'
import type {
  Cancellation,
  Entity,
  StoredJob,
  TrashedEntry,
  TrashReason,
  UnreadableJob,
} from '../../../contract/index.ts'
import { metadataReader } from '../../../model/entity-metadata.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { decodePosting, encodePosting, readSizedPosting } from '../../../model/posting/posting-codec.ts'
import { checkRow } from '../../../model/stored.ts'
import { toOrder } from './layout.ts'

const ENCODING = 'msgpack'
const TRASH_FORMAT = 1
/** The largest failure in the trash, in bytes of JSON; a longer one loses its stack first. */
const MAX_FAILURE_LENGTH = 8 * 1024

/**
 * Encodes a posting. Only the post itself has a limit: attempts and a failure are added later.
 *
 * @throws PayloadTooLarge
 */
export function encodePostingWithin(posting: Posting, { limit = Number.POSITIVE_INFINITY } = {}): Uint8Array {
  return encodePosting(posting, { encoding: ENCODING, limit })
}

/**
 * Parses a stored job. Returns undefined if the row or the posting is missing: a posting without a row was added by hand.
 *
 * @param read.waits whether the job waits for others
 */
export function parseStoredJob(
  id: string,
  { row, bytes, waits }: { readonly row: unknown; readonly bytes: unknown; readonly waits: boolean },
): StoredJob | UnreadableJob | undefined {
  if (typeof row !== 'string' || !(bytes instanceof Uint8Array)) return undefined
  try {
    const { revision, postedAt, writtenAt } = checkRow(parseRow(row))
    const stored = { id, ...readSizedPosting(bytes, ENCODING), revision, postedAt, writtenAt, order: toOrder(id) }
    return waits ? { ...stored, waits: true } : stored
  } catch (error) {
    const cause = asError(error)
    return {
      id,
      error: new InvalidPosting(`${id} ${cause.message}; it is not claimed here, remove it`, { cause }),
      bytes: bytes.length,
    }
  }
}

/** Parses `revision:posted:written:…`. It is called for every job, so it allocates no list of parts. */
function parseRow(row: string): Pick<StoredJob, 'revision' | 'postedAt' | 'writtenAt'> {
  const first = row.indexOf(':')
  const second = row.indexOf(':', first + 1)
  const third = row.indexOf(':', second + 1)
  return {
    revision: Number(row.slice(0, first)),
    postedAt: Number(row.slice(first + 1, second)),
    writtenAt: Number(row.slice(second + 1, third)),
  }
}

export function encodeTrash(entry: TrashReason & { readonly posting: Posting; readonly who: string }): Uint8Array {
  const { posting, who, reason, failure } = entry
  const record = { format: TRASH_FORMAT, who, reason, posting: encodePostingWithin(posting) }
  return encode(failure ? { ...record, failure: truncateFailure(failure) } : record, ENCODING)
}

/** Decodes an entry of the trash. @throws InvalidPosting */
export function decodeTrash(id: string, value: Uint8Array): TrashedEntry {
  const colon = value.indexOf(58)
  const at = Number(decodeText(value.subarray(0, colon)))
  const { who, reason, posting, failure } = decodeFields(value.subarray(colon + 1))
  if (!(posting instanceof Uint8Array) || typeof who !== 'string' || typeof reason !== 'string' || !isTime(at))
    throw new InvalidPosting(`trash entry ${id} is unreadable`)
  const entry = { id, revision: 0, posting: decodePosting(posting, ENCODING), who, at: new Date(at), reason }
  const read = parseFailure(failure)
  return read ? { ...entry, failure: read } : entry
}

export function encodeCancellation({ who, reason }: Cancellation): Uint8Array {
  return encode({ who, reason }, ENCODING)
}

export function decodeCancellation(value: Uint8Array): Cancellation {
  const { who, reason } = decodeFields(value)
  const text = (value: unknown, unknown: string) => (typeof value === 'string' ? value : unknown)
  return { who: text(who, 'an unknown owner'), reason: text(reason, 'cancelled') }
}

export function encodeEntity(entity: Entity): Uint8Array {
  return encode(entity, ENCODING)
}

/** Decodes an entity; returns undefined for a value that is not one. */
export function decodeEntity(value: Uint8Array, readMetadata = metadataReader()): Entity | undefined {
  // The entity follows the owner and the instance; the instance is JSON and may contain colons.
  for (let at = value.indexOf(58); at >= 0; at = value.indexOf(58, at + 1)) {
    const { kind, name, instance, metadata } = decodeFields(value.subarray(at + 1))
    if (typeof kind === 'string' && typeof name === 'string' && typeof instance === 'string')
      return { kind, name, instance, metadata: readMetadata(metadata) }
  }
  return undefined
}

/** Returns the name of the claim's owner from a value `owner:who`. */
export function parseHolder(value: Uint8Array): string {
  const text = decodeText(value)
  return text.slice(text.indexOf(':') + 1)
}

export function decodeText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function truncateFailure(failure: Failure): Failure {
  if (encode(failure, 'json').length <= MAX_FAILURE_LENGTH) return failure
  const { stack: _, causes: __, ...rest } = failure
  return { ...rest, message: rest.message.slice(0, MAX_FAILURE_LENGTH / 4) }
}

function decodeFields(bytes: Uint8Array): Record<string, unknown> {
  try {
    return Object(decode(bytes, ENCODING)) as Record<string, unknown>
  } catch {
    return {}
  }
}
