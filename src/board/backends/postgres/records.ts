/** Parses rows of the board's tables into the types of `Backend`. */
import { createHash } from 'node:crypto'
import { decode } from '../../../core/codec.ts'
import { InvalidPosting, messageOf } from '../../../core/errors.ts'
import { parseFailure } from '../../../core/failure.ts'
import { isTime } from '../../../core/time.ts'
import { decodeText, type Row } from '../../../postgres/index.ts'
import type { Entity, StoredJob, TrashedEntry, UnreadableJob } from '../../contract/index.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import { decodePosting, type Posting, readSizedPosting } from '../../model/posting.ts'
import { checkRow } from '../../model/stored.ts'

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

/** Returns whether a number is a valid number of a job. A row made by hand may have one that is negative, missing or too large to be exact. */
export function isJobNumber(number: unknown): number is number {
  return Number.isSafeInteger(number) && Number(number) > 0
}

/** Returns a digest of texts of any length and content, short enough for an index; different texts have different digests. */
export function textDigest(...texts: readonly string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(texts)).digest()
}

/** Columns that {@link parseStoredJob} reads; `at` as milliseconds since 1970. */
export const STORED_COLUMNS = `id, body, life, revision, due_when_ready IS NOT NULL AS waits, extract(epoch FROM posted_at)::float8 * 1000::float8 AS posted_at,
  extract(epoch FROM written_at)::float8 * 1000::float8 AS written_at`

export function parseStoredJob(row: Row): StoredJob | UnreadableJob {
  const id = jobId(String(row['id']))
  try {
    return {
      id,
      ...readSizedPosting(readBytes(row, 'body') ?? new Uint8Array(), 'msgpack', readBytes(row, 'life')),
      ...checkRow({
        revision: Number(row['revision']),
        postedAt: Number(row['posted_at']),
        writtenAt: Number(row['written_at']),
      }),
      order: BigInt(String(row['id'])),
      ...(row['waits'] === true ? { waits: true } : {}),
    }
  } catch (cause) {
    const message = `${id} ${messageOf(cause)}; it is not claimed here, remove it`
    return { id, error: new InvalidPosting(message, { cause }), bytes: readBytes(row, 'body')?.length ?? 0 }
  }
}

/** @throws InvalidPosting */
export function parseTrashedEntry(row: Row): TrashedEntry {
  const failure = parseFailure(tryDecode(readBytes(row, 'failure')))
  const at = Number(row['at'])
  if (!isTime(at)) throw new InvalidPosting(`trash entry ${jobId(String(row['id']))} is unreadable`)
  return {
    id: jobId(String(row['id'])),
    revision: 0,
    posting: parsePosting(row),
    who: decodeText(String(row['who'])),
    at: new Date(at),
    reason: decodeText(String(row['reason'])),
    ...(failure ? { failure } : {}),
  }
}

/** Parses the row of an entity. */
export function parseEntity(row: Row, readMetadata = metadataReader()): Entity {
  return {
    kind: decodeText(String(row['kind'])),
    name: decodeText(String(row['name'])),
    instance: String(row['instance']),
    metadata: readMetadata(tryDecode(readBytes(row, 'metadata'))),
  }
}

/** @throws InvalidPosting */
export function parsePosting(row: Row): Posting {
  return decodePosting(readBytes(row, 'body') ?? new Uint8Array(), 'msgpack', readBytes(row, 'life'))
}

/** Decodes a record, or returns a text instead: an unreadable record must not hide the other rows. */
function tryDecode(bytes: Uint8Array | undefined): unknown {
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
