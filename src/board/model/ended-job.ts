/**
 * The history of a board: a record of each of the jobs that ended last, written in the transaction that ends the job. It answers what was done,
 * by whom and how long it took, and it is how a dependency on a job that has ended is known to be met.
 */
import { decodeWeighed, encodePlain, toFields } from '../../core/codec.ts'
import { defined } from '../../core/options.ts'
import type { Posting } from './posting.ts'

/** A job that has ended. Times are in milliseconds since 1970, by the board's clock as the owner knows it. */
export interface EndedJob {
  readonly uuid: string
  readonly name: string
  readonly flow?: string
  readonly outcome: 'COMPLETE' | 'TRASHED'
  /** The owner that ended it. */
  readonly who: string
  /** The number of its runs. */
  readonly runs: number
  readonly postedAt: number
  /** The begin of its last run; absent for a job that never ran. */
  readonly startedAt?: number
  readonly endedAt: number
  /** The reason why the job is in the trash. */
  readonly reason?: string
  /** The results of its flow, if they are kept on the board: see `kept-results.ts`. */
  readonly results?: Uint8Array
}

/** Returns the record of a job that ends. @param end.postedAt undefined where it is not known */
export function toEndedJobRecord(
  { uuid, name, details: { flow }, runs, attempts }: Posting,
  end: Pick<EndedJob, 'outcome' | 'who' | 'endedAt'> & {
    readonly postedAt: number | undefined
    readonly reason?: string
    readonly results?: Uint8Array
  },
): EndedJob {
  const { outcome, who, endedAt, postedAt = endedAt, reason, results } = end
  const startedAt = attempts.at(-1)?.at.getTime()
  return { uuid, name, outcome, who, runs, postedAt, endedAt, ...defined({ flow, startedAt, reason, results }) }
}

/** The record that the end of a job adds to the history, and how many jobs the history keeps; older ones may be removed. */
export interface HistoryEntry {
  readonly job: EndedJob
  readonly keep: number
}

/** The maximum memory of a decoded job of the history, in bytes. */
const MAX_MEMORY = 1_024 * 1_024
const MAX_REASON_LENGTH = 500

export function encodeEndedJob(job: EndedJob): Uint8Array {
  const { reason } = job
  return encodePlain(reason === undefined ? job : { ...job, reason: reason.slice(0, MAX_REASON_LENGTH) }, 'msgpack')
}

/** Decodes a job of the history; undefined for bytes that are none. */
export function decodeEndedJob(bytes: Uint8Array): EndedJob | undefined {
  try {
    return toEndedJob(toFields(decodeWeighed(bytes, 'msgpack', { most: MAX_MEMORY }).value) ?? {})
  } catch {
    return undefined
  }
}

/** Returns the fields as a job of the history; undefined if they are none. */
export function toEndedJob(fields: Readonly<Record<string, unknown>>): EndedJob | undefined {
  const { uuid, name, flow, outcome, who, runs, postedAt, startedAt, endedAt, reason, results } = fields
  if (typeof uuid !== 'string' || typeof name !== 'string' || typeof who !== 'string') return undefined
  if (outcome !== 'COMPLETE' && outcome !== 'TRASHED') return undefined
  if (typeof runs !== 'number' || typeof postedAt !== 'number' || typeof endedAt !== 'number') return undefined
  return {
    ...{ uuid, name, outcome, who, runs, postedAt, endedAt },
    ...(typeof flow === 'string' ? { flow } : {}),
    ...(typeof startedAt === 'number' ? { startedAt } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(results instanceof Uint8Array ? { results } : {}),
  }
}
