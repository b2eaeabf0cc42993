/** Reads which jobs have ended, for users. */
import { InvalidArgument, UnsupportedCapability } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import type { Backend } from '../backend.ts'
import type { EndedJob as StoredEndedJob } from '../model/ended-job.ts'

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
}

const DEFAULT_LIMIT = 100
/** The most entries that a board returns at once. */
export const MAX_HISTORY = 10_000

/** @throws InvalidArgument, UnsupportedCapability, NotConnected */
export async function readHistory(
  options: HistoryOptions,
  backend: Pick<Backend, 'history' | 'uri'>,
): Promise<readonly EndedJob[]> {
  assertOptions(options, { limit: true }, 'history')
  const { limit = DEFAULT_LIMIT } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_HISTORY)
    throw new InvalidArgument(`history: limit must be a whole number from 1 to ${MAX_HISTORY}, got ${String(limit)}`)
  if (!backend.history)
    throw new UnsupportedCapability(`board ${backend.uri} keeps no history`, { capability: 'history' })
  return (await backend.history({ limit })).map(toEndedJob)
}

export function toEndedJob({ flow, startedAt, reason, ...job }: StoredEndedJob): EndedJob {
  const { uuid, name, outcome, who, runs, postedAt, endedAt } = job
  return {
    ...{ uuid, name, flow, outcome, who, runs, reason },
    postedAt: new Date(postedAt),
    startedAt: startedAt === undefined ? undefined : new Date(startedAt),
    endedAt: new Date(endedAt),
  }
}
