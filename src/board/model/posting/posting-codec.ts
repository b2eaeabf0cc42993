/** Encodes and decodes postings, and counts the memory that they take: any client can write any bytes, and dozens of postings are read at once. */
import { decodeWeighed, type Encoding, encodePlain, MAX_MEMORY_PER_BYTE, toFields, weigh } from '../../../core/codec.ts'
import { InvalidPosting, InvalidState, messageOf, PayloadTooLarge } from '../../../core/errors.ts'
import { shareOfHeap } from '../../../core/memory-size.ts'
import { defined } from '../../../core/options.ts'
import { shortenText } from '../../../core/texts.ts'
import { dropFields, isDropped, isWorthSealing, sealFields } from '../sealed.ts'
import { checkPosting } from './check-posting.ts'
import type { Posting } from './posting.ts'

/**
 * The maximum size of a posting when it is posted, on every board: half a frame of ZooKeeper, less the rest of the request.
 * Attempts and a failure are added later, so every job that can be posted can be claimed and trashed.
 */
export const MAX_POSTING_BYTES = 507_903

/** The maximum memory of a decoded posting, in bytes, independent of its encoded size. */
const MAX_MEMORY_BYTES = 16 * 1_024 * 1_024

/**
 * The memory that a posting may take in addition to the typical amount for its size, in bytes: 250 KB of empty objects would
 * take 16 MB, and dozens of postings are read at once.
 */
const MAX_GROWTH_BYTES = 4 * 1_024 * 1_024

/** The memory that reading allows in addition to posting, in bytes: claims add attempts, and must not make a job unreadable. */
const ATTEMPTS_MEMORY_BYTES = 1_024 * 1_024

/** The bytes of memory that an encoded byte of a typical posting takes. */
const TYPICAL_MEMORY_PER_BYTE = 8

/** The details that a view always keeps: processes read them also for jobs that they neither claim nor show. */
const KEPT_DETAILS = ['flow', 'version', 'schedule', 'endedBatch'] as const

/** The memory that a posting without its details takes, in bytes: most take less. */
const DROPPED_BYTES = 2_048

/** The postings in a view may take the heap divided by this number, by default. */
const WINDOW_PARTS = 8

/** Returns how much memory the postings in a view may take by default, in bytes. */
export function defaultWindowBytes(): number {
  return shareOfHeap(WINDOW_PARTS)
}

/** The maximum size of an encoded posting. */
export interface PostingLimit {
  readonly limit: number
  /** The settings on which the limit depends, for errors. */
  readonly setting?: string
}

/** Encodes a posting. @throws PayloadTooLarge */
export function encodePosting(posting: Posting, options: PostingLimit & { readonly encoding: Encoding }): Uint8Array {
  if (isDropped(posting.details))
    throw new InvalidState(`job ${posting.uuid} (${posting.name}): a posting without its details must not be written`)
  const bytes = encodePlain(posting, options.encoding)
  if (bytes.length > options.limit) {
    const setting = options.setting === undefined ? '' : ` (${options.setting})`
    throw new PayloadTooLarge(
      `job ${posting.uuid} (${posting.name}) has ${bytes.length} bytes, at most ${options.limit} are allowed on this board${setting}; ` +
        'store large data elsewhere and post a reference to it',
    )
  }
  // A posting that could not be decoded again must not be posted.
  if (bytes.length * MAX_MEMORY_PER_BYTE > maxMemory(bytes)) assertMemoryLimit(posting, bytes, options.encoding)
  return bytes
}

/** Returns the maximum memory of an encoded posting when it is posted, in bytes. */
function maxMemory({ length }: Uint8Array): number {
  return Math.min(MAX_MEMORY_BYTES, TYPICAL_MEMORY_PER_BYTE * length + MAX_GROWTH_BYTES)
}

function assertMemoryLimit(posting: Posting, bytes: Uint8Array, encoding: Encoding): void {
  try {
    weigh(bytes, encoding, maxMemory(bytes))
  } catch (cause) {
    const why = messageOf(cause)
    throw new PayloadTooLarge(`job ${posting.uuid} (${posting.name}) ${why}`, { cause })
  }
}

/** A posting and its counted size. */
export interface SizedPosting {
  readonly posting: Posting
  /** The memory that the posting takes, in bytes. */
  readonly bytes: number
}

/**
 * Reads a posting.
 *
 * @param life the fields that claims have changed since the post, as {@link encodeLife} wrote them
 * @throws InvalidPosting whatever the bytes are
 */
export function readSizedPosting(bytes: Uint8Array, encoding: Encoding, life?: Uint8Array): SizedPosting {
  const { record, memory } = decodeRaw(bytes, encoding)
  const size = { memory, bytes: bytes.length }
  if (!life) return toSized(checkPosting(record), size)
  const { runs: _, attempts: __, delay: ___, ...rest } = record
  return toSized(checkPosting({ ...rest, ...decodeRaw(life, encoding).record }), size)
}

/** Keeps the details encoded where they take much memory. */
function toSized(posting: Posting, size: { readonly memory: number; readonly bytes: number }): SizedPosting {
  if (!isWorthSealing(size)) return { posting, bytes: Math.max(size.bytes, size.memory) }
  const { details, ...others } = posting
  const memory = weigh(encodePlain(others, 'msgpack'), 'msgpack', Number.POSITIVE_INFINITY)
  const { sealed, bytes } = sealFields(details, { kept: KEPT_DETAILS })
  return { posting: { ...posting, details: sealed }, bytes: memory + bytes }
}

/**
 * Returns the job without its details, for a view that has no room for them: a caller that needs the details reads the posting again.
 * Returns the job itself if this would save no memory.
 */
export function dropDetails<T extends SizedPosting>(job: T): T {
  const { posting, bytes } = job
  if (bytes <= DROPPED_BYTES || isDropped(posting.details)) return job
  return { ...job, posting: { ...posting, details: dropFields(posting.details, { kept: KEPT_DETAILS }) } }
}

/** Returns whether the details of a job were dropped, because the view had no room for them. */
export function hasDroppedDetails({ posting, bytes }: SizedPosting): boolean {
  return bytes > DROPPED_BYTES && isDropped(posting.details)
}

/** Returns the memory that a job takes in a view, in bytes. */
export function toKeptBytes(job: SizedPosting): number {
  return hasDroppedDetails(job) ? DROPPED_BYTES : job.bytes
}

/** Reads a posting as {@link readSizedPosting} does. @throws InvalidPosting whatever the bytes are */
export function decodePosting(bytes: Uint8Array, encoding: Encoding, life?: Uint8Array): Posting {
  return readSizedPosting(bytes, encoding, life).posting
}

/** Returns the memory that an encoded posting takes once it is decoded, in bytes; the encoded size where the bytes are not a posting. */
export function toCountedBytes(bytes: Uint8Array, encoding: Encoding): number {
  try {
    return Math.max(bytes.length, weigh(bytes, encoding, Number.POSITIVE_INFINITY))
  } catch {
    return bytes.length
  }
}

/** Encodes the fields that change with each claim, for a board that stores them separately. */
export function encodeLife(posting: Posting, encoding: Encoding): Uint8Array {
  const { runs, attempts, delay, queue, amended, resources, limits, replacedAfter, keyFor, expiresAfter } = posting
  // The resources and limits differ from the posted ones only where some were added.
  const added = amended === undefined ? {} : defined({ amended, resources, limits })
  // A restoration changes them, where another post had replaced the first one.
  const times = replacedAfter === undefined ? {} : defined({ replacedAfter, keyFor, expiresAfter })
  // The field `runs` must be the first one: functions of Postgres boards read it there.
  return encodePlain({ runs, attempts, ...defined({ queue, delay }), ...added, ...times }, encoding)
}

/**
 * Returns whether {@link encodeLife} returns the same bytes for two postings: jobs that are claimed together share their first attempt. Compares no contents, so
 * it may return false although the bytes are the same.
 */
export function haveSameLife(one: Posting, other: Posting): boolean {
  const isFirst = ({ attempts, delay, amended, replacedAfter }: Posting) =>
    attempts.length === 1 && delay === undefined && amended === undefined && replacedAfter === undefined
  const isSame = one.attempts[0] === other.attempts[0] && one.runs === other.runs && one.queue === other.queue
  return isSame && isFirst(one) && isFirst(other)
}

function decodeRaw(bytes: Uint8Array, encoding: Encoding): { record: Record<string, unknown>; memory: number } {
  let value: unknown
  let memory: number
  try {
    ;({ value, memory } = decodeWeighed(bytes, encoding, { most: maxMemory(bytes) + ATTEMPTS_MEMORY_BYTES }))
  } catch (cause) {
    const why = messageOf(cause)
    throw new InvalidPosting(`is not a ${encoding} record: ${shortenText(why)}`, { cause })
  }
  const record = toFields(value)
  if (record) return { record, memory }
  throw new InvalidPosting(`is not a ${encoding} record of a job`)
}
