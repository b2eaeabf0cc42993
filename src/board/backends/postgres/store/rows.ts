/** Reads and writes what rows of the board's tables have in common: the numbers of jobs, digests of texts, postings, and encoded values. */
import { createHash } from 'node:crypto'
import { decode } from '../../../../core/codec.ts'
import type { Row } from '../../../../postgres/index.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { decodePosting } from '../../../model/posting/posting-codec.ts'

/** Returns the id of a job by its number. */
export function jobId(number: number | string): string {
  return `job${String(number).padStart(10, '0')}`
}

export function jobNumber(id: string): number {
  return Number(id.slice('job'.length))
}

/** Returns the numbers of jobs for a query: 0, which no job has, for an id that Postgres would refuse, as users may send one. */
export function jobNumbers(ids: readonly string[]): number[] {
  return ids.map(jobNumber).map((number) => (isJobNumber(number) ? number : 0))
}

/** Returns whether a number is a valid number of a job. In a row made by hand, it may be negative, missing or too large to be exact. */
export function isJobNumber(number: unknown): number is number {
  return Number.isSafeInteger(number) && Number(number) > 0
}

/** Returns a digest of texts of any length and content, short enough for an index; different texts have different digests. */
export function textDigest(...texts: readonly string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(texts)).digest()
}

/** @throws InvalidPosting */
export function parsePosting(row: Row): Posting {
  return decodePosting(readBytes(row, 'body') ?? new Uint8Array(), 'msgpack', readBytes(row, 'life'))
}

/** Decodes a value, or returns a text instead: an unreadable value must not hide the other rows. */
export function tryDecode(bytes: Uint8Array | undefined): unknown {
  try {
    return bytes && decode(bytes, 'msgpack')
  } catch {
    return 'a record that cannot be read'
  }
}

export function readBytes(row: Row, column: string): Uint8Array | undefined {
  const value = row[column]
  return value instanceof Uint8Array ? value : undefined
}
