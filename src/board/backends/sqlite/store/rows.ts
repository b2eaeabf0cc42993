/** Parses rows of the tables into the types of `Backend`, and encodes what becomes a row before its transaction begins. */
import { decode } from '../../../../core/codec.ts'
import { InvalidPosting, messageOf } from '../../../../core/errors.ts'
import { parseFailure } from '../../../../core/failure.ts'
import { decodeText, encodeText } from '../../../../core/texts.ts'
import { isTime } from '../../../../core/time.ts'
import type { Row } from '../../../../sqlite/index.ts'
import type {
  Entity,
  JobSummary,
  PostRequest,
  QueueKey,
  StoredJob,
  TrashedEntry,
  UnreadableJob,
} from '../../../contract/index.ts'
import { PRIORITIES } from '../../../model/claim-order.ts'
import { encodeEndedJob, type HistoryEntry } from '../../../model/ended-job.ts'
import { metadataReader } from '../../../model/entity-metadata.ts'
import type { BatchStatus, StoredBatch } from '../../../model/job-batch.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import {
  decodePosting,
  encodePosting,
  MAX_POSTING_BYTES,
  readSizedPosting,
} from '../../../model/posting/posting-codec.ts'
import { DEFAULT_QUEUE } from '../../../model/queues.ts'
import { checkRow } from '../../../model/stored.ts'

/** A posting with its bytes: it is encoded before its transaction begins. */
export interface EncodedPost {
  readonly request: PostRequest
  readonly bytes: Uint8Array
}

/** @throws PayloadTooLarge, InvalidArgument */
export function encodePost(request: PostRequest): EncodedPost {
  return { request, bytes: encodeWithinLimit(request.posting) }
}

/** Encodes a posting of a job that is posted or replaced. @throws PayloadTooLarge, InvalidArgument */
export function encodeWithinLimit(posting: Posting): Uint8Array {
  return encodePosting(posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES })
}

/** Encodes a posting that may have grown: attempts and a failure are added to it later. @throws InvalidArgument */
export function encodeUnlimited(posting: Posting): Uint8Array {
  return encodePosting(posting, { encoding: 'msgpack', limit: Number.POSITIVE_INFINITY })
}

/** A job of the history, encoded. */
export interface EncodedEntry {
  readonly uuid: string
  readonly bytes: Uint8Array
  /** The number of jobs that the history keeps. */
  readonly keep: number
}

/** @throws InvalidArgument */
export function encodeHistory({ job, keep }: HistoryEntry): EncodedEntry {
  return { uuid: encodeText(job.uuid), bytes: encodeEndedJob(job), keep }
}

/** The due time of a job that waits for others. */
export const NEVER = Number.POSITIVE_INFINITY

/** Returns the id of a job by its number. */
export function jobId(number: unknown): string {
  return `job${String(number).padStart(10, '0')}`
}

/** Returns the number of a job; 0, which no job has, for an id that is not one of this board. */
export function jobNumber(id: string): number {
  const number = Number(id.slice('job'.length))
  return Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** Returns the place of a job, from a row with `id`, `rank`, `due_at` and `queue`. */
export function toQueueKey({ id, rank, due_at: due, queue }: Row): QueueKey {
  const priority = PRIORITIES[Number(rank)] ?? 'NORMAL'
  const at = { id: jobId(id), priority, order: BigInt(Number(id)), dueAt: Number(due) }
  return typeof queue === 'string' ? { ...at, queue: decodeText(queue) } : at
}

/** Returns the column `queue` of a job: null for the default queue. */
export function toQueueColumn(queue: string = DEFAULT_QUEUE): string | null {
  return queue === DEFAULT_QUEUE ? null : encodeText(queue)
}

/** The columns of {@link toSummary}. */
export const SUMMARY_COLUMNS = 'id, rank, due_at, session, cancelled_by, queue'

export function toSummary(row: Row): JobSummary {
  return { ...toQueueKey(row), claimed: row['session'] !== null, cancelled: row['cancelled_by'] !== null }
}

/** The posting of a job, wherever it is. */
export const BODY = 'coalesce(body, (SELECT body FROM bodies WHERE job = jobs.id)) AS body'

/** The size of a posting from which it has a row of its own, in bytes: about half a page of the file. */
export const LARGE_BODY_BYTES = 2_048

/** The columns of {@link toStoredJob}. */
export const STORED_COLUMNS = `id, ${BODY}, life, revision, posted_at, written_at, due_when_ready`

export function toStoredJob(row: Row): StoredJob | UnreadableJob {
  const id = jobId(row['id'])
  try {
    return {
      id,
      ...readSizedPosting(readBytes(row, 'body') ?? new Uint8Array(), 'msgpack', readBytes(row, 'life')),
      ...checkRow({
        revision: Number(row['revision']),
        postedAt: Number(row['posted_at']),
        writtenAt: Number(row['written_at']),
      }),
      order: BigInt(Number(row['id'])),
      ...(row['due_when_ready'] === null ? {} : { waits: true }),
    }
  } catch (cause) {
    const message = `${id} ${messageOf(cause)}; it is not claimed here, remove it`
    return { id, error: new InvalidPosting(message, { cause }), bytes: readBytes(row, 'body')?.length ?? 0 }
  }
}

/** @throws InvalidPosting for an entry that cannot be read */
export function toTrashedEntry(row: Row): TrashedEntry {
  const id = jobId(row['id'])
  const failure = parseFailure(tryDecode(readBytes(row, 'failure')))
  const at = Number(row['at'])
  if (!isTime(at)) throw new InvalidPosting(`trash entry ${id} has no valid time`)
  return {
    id,
    revision: 0,
    posting: decodePosting(readBytes(row, 'body') ?? new Uint8Array(), 'msgpack', readBytes(row, 'life')),
    who: readText(row, 'who'),
    at: new Date(at),
    reason: readText(row, 'reason'),
    ...(failure ? { failure } : {}),
  }
}

export function toEntity(row: Row, readMetadata = metadataReader()): Entity {
  return {
    ...{ kind: readText(row, 'kind'), name: readText(row, 'name'), instance: readText(row, 'instance') },
    metadata: readMetadata(tryDecode(readBytes(row, 'metadata'))),
  }
}

export function toBatchStatus(row: Row): BatchStatus {
  const { cancelled_by: who, cancel_reason: reason, ended_at: endedAt } = row
  return {
    ...{ sealed: row['sealed'] === 1, generation: Number(row['generation']) },
    ...(endedAt === null ? {} : { endedAt: Number(endedAt) }),
    ...(who === null ? {} : { cancelled: { who: decodeText(String(who)), reason: decodeText(String(reason)) } }),
  }
}

export function toStoredBatch(row: Row): StoredBatch {
  const [total, open, failed] = [Number(row['total']), Number(row['open']), Number(row['failed'])]
  return {
    ...{ uuid: readText(row, 'uuid'), bytes: readBytes(row, 'definition') ?? new Uint8Array(), ...toBatchStatus(row) },
    ...{ total, open, failed, done: total - open - failed },
  }
}

export function readText(row: Row, column: string): string {
  return decodeText(String(row[column]))
}

export function readBytes(row: Row, column: string): Uint8Array | undefined {
  const value = row[column]
  return value instanceof Uint8Array ? value : undefined
}

/** Decodes a value, or returns a text instead: an unreadable value must not hide the other rows. */
function tryDecode(bytes: Uint8Array | undefined): unknown {
  try {
    return bytes && decode(bytes, 'msgpack')
  } catch {
    return 'a value that cannot be read'
  }
}
