/** What the values of the board's keys hold: postings, and what is kept beside them. */
import { decode, encode } from '../../../core/codec.ts'
import { asError, InvalidPosting } from '../../../core/errors.ts'
import type { Failure } from '../../../core/failure.ts'
import { parseFailure } from '../../../core/read-failure.ts'
import type { Cancellation, Entity, StoredJob, TrashedEntry, TrashReason, UnreadableJob } from '../../backend.ts'
import { decodePosting, encodePosting, type Posting, readSizedPosting } from '../../model/posting.ts'
import { parseMetadata } from '../entity-metadata.ts'
import { toOrder } from './layout.ts'

/** As large as a posting may be on ZooKeeper: what is posted here can be posted there. */
export const MAX_POSTING_BYTES = 507_903

const ENCODING = 'msgpack'
const TRASH_FORMAT = 1
/** A failure is cut to this in the trash; its stack is the first to go. */
const MAX_FAILURE_LENGTH = 8 * 1024

export interface StoredPosting {
  readonly bytes: Uint8Array
}

/** Attempts and a failure join a posting later: only the post itself is limited. @throws PayloadTooLarge */
export function encodePostingWithin(posting: Posting, { limit = Number.POSITIVE_INFINITY } = {}): Uint8Array {
  return encodePosting(posting, { encoding: ENCODING, limit })
}

/** Undefined where either is missing: a posting without a row is somebody's who has just put it there by hand. */
export function parseStoredJob(id: string, row: unknown, bytes: unknown): StoredJob | UnreadableJob | undefined {
  if (!(row instanceof Uint8Array) || !(bytes instanceof Uint8Array)) return undefined
  const { revision, postedAt, writtenAt } = parseRow(decodeText(row))
  try {
    return { id, ...readSizedPosting(bytes, ENCODING), revision, postedAt, writtenAt, order: toOrder(id) }
  } catch (error) {
    const cause = asError(error)
    return {
      id,
      error: new InvalidPosting(`${id} ${cause.message}; it is not claimed here, remove it`, { cause }),
      bytes: bytes.length,
    }
  }
}

/** `revision:posted:written:…`; read for every job, so without a list of its parts. */
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

/** @throws InvalidPosting */
export function decodeTrash(id: string, value: Uint8Array): TrashedEntry {
  const colon = value.indexOf(58)
  const at = new Date(Number(decodeText(value.subarray(0, colon))))
  const { who, reason, posting, failure } = decodeFields(value.subarray(colon + 1))
  if (!(posting instanceof Uint8Array) || typeof who !== 'string' || typeof reason !== 'string' || Number.isNaN(+at))
    throw new InvalidPosting(`trash entry ${id} is unreadable`)
  const entry = { id, revision: 0, posting: decodePosting(posting, ENCODING), who, at, reason }
  const read = parseFailure(failure)
  return read ? { ...entry, failure: read } : entry
}

export function encodeCancellation({ who, reason }: Cancellation): Uint8Array {
  return encode({ who, reason }, ENCODING)
}

export function decodeCancellation(value: Uint8Array): Cancellation {
  const { who, reason } = decodeFields(value)
  const text = (given: unknown, unknown: string) => (typeof given === 'string' ? given : unknown)
  return { who: text(who, 'somebody'), reason: text(reason, 'cancelled') }
}

export function encodeEntity(entity: Entity): Uint8Array {
  return encode(entity, ENCODING)
}

/** Undefined for what is no entity of ours. */
export function decodeEntity(value: Uint8Array): Entity | undefined {
  // Behind the owner and the instance, which is JSON and may hold colons of its own.
  for (let at = value.indexOf(58); at >= 0; at = value.indexOf(58, at + 1)) {
    const { kind, name, instance, metadata } = decodeFields(value.subarray(at + 1))
    if (typeof kind === 'string' && typeof name === 'string' && typeof instance === 'string')
      return { kind, name, instance, metadata: parseMetadata(metadata) }
  }
  return undefined
}

/** Who holds the claim, of a value `owner:who`. */
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
