/**
 * The history of a board: a record of each of the jobs that ended last, written in the transaction that ends the job. It answers what was done,
 * by whom and how long it took, and it is how a dependency on a job that has ended is known to be met.
 *
 * A record may have the results of the job (`keepResults` of a flow), so that any process can read them without the logbooks. A board keeps small
 * results: larger ones belong in a logbook, a file or an object store, and the job returns where they are.
 */

import { decodeWeighed, encode, encodePlain, toFields } from '../../core/codec.ts'
import { describeError } from '../../core/failure.ts'
import { defined } from '../../core/options.ts'
import { cutText } from '../../core/texts.ts'
import { isTime } from '../../core/time.ts'
import type { Posting } from './posting/posting.ts'
import { DEFAULT_QUEUE } from './queues.ts'
import { isCount } from './stored.ts'

/** A job that has ended. Times are in milliseconds since 1970, by the board's clock as the owner knows it. */
export interface EndedJob {
  readonly uuid: string
  readonly name: string
  readonly flow?: string
  readonly version?: string
  /** The queue in which it ended; absent for the default one, and where a former release has written the record. */
  readonly queue?: string
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
  /** The newest of the runs before the last one, the oldest first; absent where the job ran once. */
  readonly earlier?: readonly EarlierRun[]
  /** The results of its flow, if they are kept on the board, as {@link encodeKeptResults} has encoded them. */
  readonly results?: Uint8Array
  /** The time from which the results are not read any more; absent for results that are read for as long as the history has the job. */
  readonly resultsUntil?: number
}

/** A run before the last one. Without `ended`, its owner was lost. */
export interface EarlierRun {
  readonly who: string
  readonly at: number
  readonly ended?: 'failed' | 'returned'
  readonly reason?: string
}

/** The start of the reason of a cancelled job in the trash. */
export const CANCELLED_BY = 'cancelled by'

/** Returns whether a job in the trash was cancelled, by the reason that it has there. */
export function isCancellation(trashReason: string): boolean {
  return trashReason.startsWith(`${CANCELLED_BY} `)
}

/** Returns the record of a job that ends. @param end.postedAt undefined where it is not known */
export function toEndedJobRecord(
  { uuid, name, queue, details, runs, attempts, resultTtl }: Posting,
  end: Pick<EndedJob, 'outcome' | 'who' | 'endedAt'> & {
    readonly postedAt: number | undefined
    readonly reason?: string | undefined
    readonly results?: Uint8Array | undefined
  },
): EndedJob {
  const { outcome, who, endedAt, postedAt = endedAt, reason, results } = end
  const { flow, version } = details
  type Mutable = { -readonly [K in keyof EndedJob]: EndedJob[K] }
  const record: Mutable = { uuid, name, outcome, who, runs, postedAt, endedAt }
  if (flow !== undefined) record.flow = flow
  if (typeof version === 'string') record.version = version
  if (queue !== undefined && queue !== DEFAULT_QUEUE) record.queue = queue
  const newest = attempts.at(-1)
  if (newest) record.startedAt = newest.at.getTime()
  if (reason !== undefined) record.reason = reason
  if (attempts.length > 1) {
    const listed = attempts.slice(0, -1).filter(({ omitted }) => !omitted)
    record.earlier = listed.slice(-MAX_EARLIER_RUNS).map(toEarlierRun)
  }
  if (!results || resultTtl === 0) return record
  record.results = results
  if (resultTtl !== undefined) record.resultsUntil = endedAt + resultTtl
  return record
}

function toEarlierRun({ who, at, ended, reason }: Posting['attempts'][number]): EarlierRun {
  return { who, at: at.getTime(), ...defined({ ended, reason: reason?.slice(0, MAX_RUN_REASON_LENGTH) }) }
}

/** The record that the end of a job adds to the history, and how many jobs the history keeps; older ones may be removed. */
export interface HistoryEntry {
  readonly job: EndedJob
  readonly keep: number
}

/** The maximum memory of a decoded job of the history, in bytes. */
const MAX_MEMORY = 1_024 * 1_024
const MAX_REASON_LENGTH = 500
const MAX_EARLIER_RUNS = 10
const MAX_RUN_REASON_LENGTH = 200

export function encodeEndedJob(job: EndedJob): Uint8Array {
  const { reason } = job
  return encodePlain(reason === undefined ? job : { ...job, reason: cutText(reason, MAX_REASON_LENGTH) }, 'msgpack')
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
  const { uuid, name, flow, version, queue, outcome, who, runs, postedAt, startedAt, endedAt } = fields
  const { reason, earlier, results, resultsUntil } = fields
  if (typeof uuid !== 'string' || typeof name !== 'string' || typeof who !== 'string') return undefined
  if (outcome !== 'COMPLETE' && outcome !== 'TRASHED') return undefined
  if (!isCount(runs) || !isTime(postedAt) || !isTime(endedAt)) return undefined
  return {
    ...{ uuid, name, outcome, who, runs, postedAt, endedAt },
    ...(typeof flow === 'string' ? { flow } : {}),
    ...(typeof version === 'string' ? { version } : {}),
    ...(typeof queue === 'string' ? { queue } : {}),
    ...(isTime(startedAt) ? { startedAt } : {}),
    ...(Array.isArray(earlier) && earlier.every(isEarlierRun) ? { earlier } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(results instanceof Uint8Array ? { results } : {}),
    ...(isTime(resultsUntil) ? { resultsUntil } : {}),
  }
}

function isEarlierRun(value: unknown): value is EarlierRun {
  const { who, at, ended, reason } = toFields(value) ?? {}
  const isKnown = ended === undefined || ended === 'failed' || ended === 'returned'
  const isText = reason === undefined || typeof reason === 'string'
  return typeof who === 'string' && isTime(at) && isKnown && isText
}

// --- Results that are kept with the end ----------------------------------------------------------------------------------

/** The longest results that are kept, encoded, in bytes. */
export const MAX_KEPT_RESULTS = 65_536
/** The maximum memory of decoded results, in bytes. */
const MAX_RESULTS_MEMORY = 4 * 1_024 * 1_024

/**
 * The kept results: as they are, sealed by the codecs of the logbooks (`by` names them), or the reason why they could not be kept. The flow has
 * succeeded in each case.
 */
export type KeptResults =
  | { readonly values: Readonly<Record<string, unknown>> }
  | { readonly sealed: { readonly by: readonly string[]; readonly bytes: Uint8Array } }
  | { readonly notKept: string }

/** Encodes results for the history. Never throws: what cannot be kept is replaced by the reason. */
export function encodeKeptResults(kept: KeptResults): Uint8Array {
  try {
    const bytes = encode(kept, 'msgpack')
    if (bytes.length <= MAX_KEPT_RESULTS) return bytes
    return encodePlain({ notKept: `they have ${bytes.length} bytes, and a board keeps ${MAX_KEPT_RESULTS}` }, 'msgpack')
  } catch (error) {
    return encodePlain({ notKept: describeError(error) }, 'msgpack')
  }
}

/** Returns the results that a job of the history has kept; undefined if it was to keep none. @param now the time of the board's clock */
export function keptResultsOf(
  { results, resultsUntil }: Pick<EndedJob, 'results' | 'resultsUntil'>,
  { now }: { readonly now: number },
): KeptResults | undefined {
  if (!results) return undefined
  if (resultsUntil === undefined || now < resultsUntil) return decodeKeptResults(results)
  return { notKept: `they were kept until ${new Date(resultsUntil).toISOString()} (resultTtl)` }
}

/** Decodes kept results; damaged bytes count as not kept. */
export function decodeKeptResults(bytes: Uint8Array): KeptResults {
  try {
    const fields = toFields(decodeWeighed(bytes, 'msgpack', { most: MAX_RESULTS_MEMORY }).value) ?? {}
    const values = toFields(fields['values'])
    if (values) return { values }
    const sealed = toFields(fields['sealed'])
    const { by, bytes: secret } = sealed ?? {}
    if (Array.isArray(by) && by.every((name) => typeof name === 'string') && secret instanceof Uint8Array)
      return { sealed: { by, bytes: secret } }
    return { notKept: typeof fields['notKept'] === 'string' ? fields['notKept'] : 'their record is damaged' }
  } catch (error) {
    return { notKept: `their record is damaged: ${describeError(error)}` }
  }
}
