/**
 * Records: small named values on a board, such as schedules, limits and outlines of flows. A backend does not know what a record means. It
 * changes records by compare-and-set, and in the same transaction posts jobs: so what a record says and what was posted for it always
 * agree, without a leader.
 */

import { decodeWeighed, encodePlain, toFields } from '../../core/codec.ts'
import { IncompatibleVersion, InvalidArgument, InvalidPosting, PayloadTooLarge } from '../../core/errors.ts'
import { ILL_FORMED } from '../../core/texts.ts'

/** The greatest size of an encoded record: together with a posting of the greatest size it fits into one request of every server. */
export const MAX_RECORD_BYTES = 262_144
/** The greatest number of records, and of posts, that one write changes. */
export const MAX_WRITE_ITEMS = 100
/** The greatest length of an id: it is a part of every request about the record. */
export const MAX_RECORD_ID_LENGTH = 512

export interface RecordName {
  /** The kind of the record: `schedule`, `limit`. */
  readonly kind: string
  /** Unique among the records of its kind. */
  readonly id: string
}

/** The kinds of the records by which claims are decided: a change of one gives the board another revision of its limits. */
export const LIMIT_KINDS = ['limit', 'limit-hold', 'flow-setting'] as const

/** Returns whether the changes include one of {@link LIMIT_KINDS}. */
export function changesLimits(changes: readonly RecordName[]): boolean {
  return changes.some(({ kind }) => LIMIT_KINDS.some((limiting) => limiting === kind))
}

/** A record as a backend stores it. */
export interface StoredRecord extends RecordName {
  /** Changes with every change of the record, and never returns: also not when the record is removed and created again. */
  readonly revision: number
  readonly bytes: Uint8Array
}

/** A change of one record, which is refused if the record is at another revision. */
export interface RecordChange extends RecordName {
  /** The revision that the record must have; undefined if it must not exist. */
  readonly revision: number | undefined
  /** The new value; undefined removes the record. */
  readonly bytes: Uint8Array | undefined
}

const KIND_PATTERN = /^[a-z][a-z0-9-]{0,31}$/

/** @throws InvalidArgument for a name that boards cannot store */
export function assertRecordName({ kind, id }: RecordName): void {
  if (!KIND_PATTERN.test(kind))
    throw new InvalidArgument(`the kind of a record must be up to 32 small letters, digits and hyphens, got '${kind}'`)
  if (typeof id !== 'string' || id === '' || id.length > MAX_RECORD_ID_LENGTH)
    throw new InvalidArgument(`the id of a ${kind} must be a text of 1 to ${MAX_RECORD_ID_LENGTH} characters`)
  if (!id.isWellFormed()) throw new InvalidArgument(`the id of a ${kind} ${ILL_FORMED}`)
}

/**
 * Encodes the value of a record, with the format of its kind.
 *
 * @throws InvalidArgument for a value that is not plain data; PayloadTooLarge
 */
export function encodeRecord(
  value: object,
  {
    kind,
    id,
    format,
    maxBytes = MAX_RECORD_BYTES,
  }: RecordName & { readonly format: number; readonly maxBytes?: number },
): Uint8Array {
  const bytes = encodePlain({ format, value }, 'msgpack')
  if (bytes.length <= maxBytes) return bytes
  throw new PayloadTooLarge(`${kind} ${id} has ${bytes.length} bytes, more than the ${maxBytes} that a board stores`)
}

/**
 * Decodes the value of a record.
 *
 * @throws IncompatibleVersion for a format that a newer release has written; InvalidPosting for anything else that is not such a record
 */
export function decodeRecord(
  bytes: Uint8Array,
  { kind, id, format }: RecordName & { readonly format: number },
): unknown {
  let fields: Readonly<Record<string, unknown>> | undefined
  try {
    fields = toFields(decodeWeighed(bytes, 'msgpack', { most: MAX_RECORD_MEMORY }).value)
  } catch (cause) {
    throw new InvalidPosting(`${kind} ${id} is not a record`, { cause })
  }
  const found = fields?.['format']
  if (typeof found !== 'number') throw new InvalidPosting(`${kind} ${id} is not a record`)
  if (found > format)
    throw new IncompatibleVersion(
      `${kind} ${id} has format ${found}, this release reads formats up to ${format}; upgrade jobboard`,
    )
  return fields?.['value']
}

/** The memory that a decoded record may take, in bytes. */
const MAX_RECORD_MEMORY = 16 * MAX_RECORD_BYTES

/** @throws InvalidArgument for a request that no backend carries out */
export function assertWrite({
  changes,
  posts,
}: {
  readonly changes: readonly RecordChange[]
  readonly posts: readonly unknown[]
}): void {
  if (changes.length > MAX_WRITE_ITEMS || posts.length > MAX_WRITE_ITEMS)
    throw new InvalidArgument(`a write changes at most ${MAX_WRITE_ITEMS} records, and posts as many jobs`)
  const names = new Set<string>()
  for (const change of changes) {
    assertRecordName(change)
    const name = `${change.kind}/${change.id}`
    if (names.has(name)) throw new InvalidArgument(`a write changes ${change.kind} ${change.id} twice`)
    names.add(name)
  }
}

/** Returns the name of a write for messages: `change of schedule nightly, post of job UUID (report)`. */
export function describeWrite({
  changes,
  posts,
}: {
  readonly changes: readonly RecordName[]
  readonly posts: readonly { readonly posting: { readonly uuid: string; readonly name: string } }[]
}): string {
  const [change] = changes
  const [post] = posts
  const others = posts.length > 1 ? ` and ${posts.length - 1} more` : ''
  const parts = [
    ...(change ? [`change of ${change.kind} ${change.id}`] : []),
    ...(post ? [`post of job ${post.posting.uuid} (${post.posting.name})${others}`] : []),
  ]
  return parts.join(', ')
}
