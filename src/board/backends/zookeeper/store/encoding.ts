/** The records in the board's znodes, except postings. */
import { decode, type Encoding, encode } from '../../../../core/codec.ts'
import { IncompatibleVersion, InvalidPosting, isDate } from '../../../../core/errors.ts'
import { type Failure, parseFailure } from '../../../../core/failure.ts'
import type { Cancellation, Entity, TrashedEntry } from '../../../contract/index.ts'
import { metadataReader } from '../../../model/entity-metadata.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { isJob } from './layout.ts'

const BOARD_FORMAT = 1
const TRASH_FORMAT = 1
/** The maximum length of a failure in the trash. A longer one loses its stack first. */
const MAX_FAILURE_LENGTH = 8 * 1024

/** The record at the root of a board, written once. It is JSON on every board, because it says how to read the rest. */
export interface BoardRecord {
  readonly format: number
  readonly encoding: Encoding
  /** Whether TaskFlow's services use the board too. This is so if and only if the encoding is JSON. */
  readonly shared: boolean
}

export const NEW_BOARD: BoardRecord = { format: BOARD_FORMAT, encoding: 'msgpack', shared: false }
export const SHARED_BOARD: BoardRecord = { format: BOARD_FORMAT, encoding: 'json', shared: true }

export function encodeBoardRecord({ shared, ...record }: BoardRecord): Uint8Array {
  return encode(shared ? { ...record, shared } : record, 'json')
}

/**
 * Decodes the board record. @throws IncompatibleVersion for a path that holds something else, a board of a newer release,
 * or a board that is not complete
 */
export function decodeBoardRecord(bytes: Uint8Array | null, path: string): BoardRecord {
  const record = bytes && bytes.length > 0 ? decodeFields(() => decode(bytes, 'json')) : {}
  const { format, encoding, unfinished } = record
  const newer = typeof format === 'number' && format > BOARD_FORMAT
  const known = encoding === 'msgpack' || encoding === 'json'
  if (typeof format !== 'number' || !(known || newer)) {
    throw new IncompatibleVersion(
      `${path} exists and is not a jobboard board; choose a path that does not exist, or the path of a board`,
    )
  }
  if (newer || !known) {
    throw new IncompatibleVersion(
      `board ${path} has format ${format}, and this release supports format ${BOARD_FORMAT}; upgrade jobboard`,
    )
  }
  // Written by the C client's boards of former releases: folders or the gate may be missing.
  if (unfinished)
    throw new IncompatibleVersion(
      `board ${path} was not created to its end by a former release; delete the path, and open it again`,
    )
  return { format, encoding, shared: encoding === 'json' }
}

/** The record in the gate of every board. */
export interface GateRecord {
  readonly paused: boolean
  /**
   * The number that is added to the zxid of a claim to get its fence: see `fence-base.ts`. 0 on a board without claims.
   */
  readonly fenceBase: bigint
  /** The revision of the limits: each change of a record by which claims are limited increases it. 0 if there never was one. */
  readonly limits: number
  /** The reason why the base cannot be read. As long as it is set no claim is granted, and the gate is not written. */
  readonly damage?: string
}

export const OPEN_GATE: GateRecord = { paused: false, fenceBase: 0n, limits: 0 }

/** Matches a fence base: at most 20 digits, without leading zeros. */
const DECIMAL_PATTERN = /^[1-9]\d{0,19}$/

/** Encodes the gate, as JSON on every board. */
export function encodeGate({ paused, fenceBase, limits }: Omit<GateRecord, 'damage'>): Uint8Array {
  // A string, because JSON numbers are exact only up to 2^53.
  return encode(
    { paused, ...(fenceBase === 0n ? {} : { fenceBase: String(fenceBase) }), ...(limits === 0 ? {} : { limits }) },
    'json',
  )
}

/**
 * Decodes the gate. A gate that is empty, or has neither field, is open and has no base yet. Any other gate without a
 * readable base may have had one: a base that is computed again could repeat fences.
 */
export function decodeGate(bytes: Uint8Array | null): GateRecord {
  if (!bytes || bytes.length === 0) return OPEN_GATE
  let record: unknown
  try {
    record = decode(bytes, 'json')
  } catch {
    return { ...OPEN_GATE, damage: 'it is not JSON' }
  }
  if (typeof record !== 'object' || record === null || Array.isArray(record))
    return { ...OPEN_GATE, damage: 'it is not a JSON object' }
  const { paused, fenceBase, limits }: { readonly [K in keyof GateRecord]?: unknown } = record
  const gate = { paused: paused === true, fenceBase: 0n, limits: Number.isSafeInteger(limits) ? Number(limits) : 0 }
  if (fenceBase === undefined) return gate
  if (typeof fenceBase === 'string' && DECIMAL_PATTERN.test(fenceBase)) return { ...gate, fenceBase: BigInt(fenceBase) }
  return { ...gate, damage: 'its fenceBase is not a quoted number of at most 20 digits' }
}

export function encodeCancellation(cancellation: Cancellation, encoding: Encoding): Uint8Array {
  const { who, reason } = cancellation
  return encode({ who, reason }, encoding)
}

/** Decodes a cancel request. A request with unreadable content is still a cancel request. */
export function decodeCancellation(bytes: Uint8Array | null, encoding: Encoding): Cancellation {
  const { who, reason } = bytes && bytes.length > 0 ? decodeFields(() => decode(bytes, encoding)) : {}
  const text = (value: unknown, unknown: string) => (typeof value === 'string' ? value : unknown)
  return { who: text(who, 'an unknown owner'), reason: text(reason, 'cancelled') }
}

/** The record in the znode of a key. */
export interface KeyRecord {
  readonly uuid: string
  /** The window of the key and the job that has it; the window counts from the last write of the znode. */
  readonly window?: { readonly id: string; readonly ms: number }
}

export function encodeKey({ uuid, window }: KeyRecord, encoding: Encoding): Uint8Array {
  return encode(window ? { uuid, job: window.id, for: window.ms } : { uuid }, encoding)
}

/** Decodes a key; without a uuid where it has none. */
export function decodeKey(bytes: Uint8Array | null, encoding: Encoding): Partial<KeyRecord> {
  const { uuid, job, for: ms } = bytes && bytes.length > 0 ? decodeFields(() => decode(bytes, encoding)) : {}
  if (typeof uuid !== 'string') return {}
  const hasWindow = typeof job === 'string' && isJob(job) && typeof ms === 'number' && ms > 0
  return hasWindow ? { uuid, window: { id: job, ms } } : { uuid }
}

export function encodeLock(who: string, encoding: Encoding): Uint8Array {
  return encode({ owner: who }, encoding)
}

/**
 * Returns the owner in a lock, or undefined if it has none. It is a claim nevertheless: no other client can create the
 * znode.
 */
export function decodeLock(bytes: Uint8Array | null, encoding: Encoding): string | undefined {
  const { owner } = bytes && bytes.length > 0 ? decodeFields(() => decode(bytes, encoding)) : {}
  return typeof owner === 'string' ? owner : undefined
}

/** Returns the fields of a trash entry, except its posting. */
export function encodeTrashFields({
  who,
  at,
  reason,
  failure,
}: Omit<TrashedEntry, 'id' | 'revision' | 'posting'>): object {
  return { format: TRASH_FORMAT, who, at, reason, ...(failure ? { failure: truncateFailure(failure) } : {}) }
}

/** Parses the fields of a trash entry; the posting is decoded last. @throws InvalidPosting when the entry is unreadable */
export function parseTrashedEntry(
  { id, revision }: Pick<TrashedEntry, 'id' | 'revision'>,
  { who, at, reason, failure }: Readonly<Record<string, unknown>>,
  decodePosting: () => Posting,
): TrashedEntry {
  const date = new Date(isDate(at) || typeof at === 'string' ? at : Number.NaN)
  if (typeof who !== 'string' || Number.isNaN(date.getTime()) || typeof reason !== 'string')
    throw new InvalidPosting(`trash entry ${id} is unreadable`)
  const entry = { id, revision, posting: decodePosting(), who, at: date, reason }
  const read = parseFailure(failure)
  return read ? { ...entry, failure: read } : entry
}

export function encodeEntity(entity: Entity, encoding: Encoding): Uint8Array {
  return encode(entity, encoding)
}

/** Decodes an entity, or returns undefined for anything else. */
export function decodeEntity(
  bytes: Uint8Array | null,
  encoding: Encoding,
  readMetadata = metadataReader(),
): Entity | undefined {
  const { kind, name, instance, metadata } = bytes ? decodeFields(() => decode(bytes, encoding)) : {}
  if (typeof kind !== 'string' || typeof name !== 'string' || typeof instance !== 'string') return undefined
  return { kind, name, instance, metadata: readMetadata(metadata) }
}

function truncateFailure(failure: Failure): Failure {
  if (encode(failure, 'json').length <= MAX_FAILURE_LENGTH) return failure
  const { stack: _, causes: __, ...rest } = failure
  return { ...rest, message: rest.message.slice(0, MAX_FAILURE_LENGTH / 4) }
}

/** Returns the fields of a record; none where it cannot be decoded. */
export function decodeFields(read: () => unknown): Record<string, unknown> {
  try {
    return Object(read()) as Record<string, unknown>
  } catch {
    return {}
  }
}
