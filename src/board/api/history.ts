/** Reads which jobs have ended, for users. */
import { InvalidArgument } from '../../core/errors.ts'
import { parseReference } from '../../core/job-names.ts'
import { assertOptions } from '../../core/options.ts'
import { toDate } from '../../core/time.ts'
import type { Backend } from '../contract/index.ts'
import type { Attempt } from '../model/attempts.ts'
import { isCancellation, type EndedJob as StoredEndedJob } from '../model/ended-job.ts'
import { queueOf } from '../model/queues.ts'
import { assertUuid } from './options.ts'

/** The part of the history to read. */
export interface HistoryOptions {
  /** The number of jobs, the newest ones; 100 by default, at most 10,000. */
  readonly limit?: number
}

/** A job that has ended, as the history of the board keeps it. */
export interface EndedJob {
  readonly uuid: string
  readonly name: string
  readonly flow: string | undefined
  /** The version of the flow that the job was posted for; undefined for any. */
  readonly version: string | undefined
  /** The queue in which it ended; `default` also for a job that a release without queues in the history has ended. */
  readonly queue: string
  /** COMPLETE: done. TRASHED: moved to the trash; it may have been restored since. */
  readonly outcome: 'COMPLETE' | 'TRASHED'
  /** The owner that ended it. */
  readonly who: string
  /** The number of its runs. */
  readonly runs: number
  readonly postedAt: Date
  /** The begin of its last run; undefined for a job that never ran. */
  readonly startedAt: Date | undefined
  readonly endedAt: Date
  /** The reason why the job is in the trash. */
  readonly reason: string | undefined
  /** Whether the job was cancelled. */
  readonly cancelled: boolean
  /** The runs before the last one: the newest ten at most. If a run has no `ended`, its owner was lost. */
  readonly earlierRuns: readonly Attempt[]
}

const DEFAULT_LIMIT = 100
/** The most entries that a board returns at once. */
export const MAX_HISTORY = 10_000

/** @throws InvalidArgument, NotConnected */
export async function readHistory(
  options: HistoryOptions,
  backend: Pick<Backend, 'history'>,
): Promise<readonly EndedJob[]> {
  assertOptions(options, { limit: true }, 'history')
  const { limit = DEFAULT_LIMIT } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_HISTORY)
    throw new InvalidArgument(`history: limit must be a whole number from 1 to ${MAX_HISTORY}, got ${String(limit)}`)
  return (await backend.history.newest({ limit })).map(toEndedJob)
}

/** Reads how a job ended last; returns undefined if the history does not have it. @throws InvalidArgument, NotConnected */
export async function readEndedJob(uuid: string, backend: Pick<Backend, 'history'>): Promise<EndedJob | undefined> {
  assertUuid(uuid)
  const [found] = await backend.history.find([parseReference(uuid).uuid])
  return found && toEndedJob(found)
}

/** Returns an ended job as users get it. */
export function toEndedJob({ flow, version, startedAt, reason, earlier = [], ...job }: StoredEndedJob): EndedJob {
  const { uuid, name, outcome, who, runs, postedAt, endedAt } = job
  return {
    ...{ uuid, name, flow, version, queue: queueOf(job), outcome, who, runs, reason },
    cancelled: reason !== undefined && isCancellation(reason),
    postedAt: toDate(postedAt),
    startedAt: startedAt === undefined ? undefined : toDate(startedAt),
    endedAt: toDate(endedAt),
    earlierRuns: earlier.map(({ at, ...run }) => ({ ...run, at: toDate(at) })),
  }
}
