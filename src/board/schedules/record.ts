/**
 * The record of a schedule on the board: everything by which any process can decide what is due, and post it, without the code that
 * declared the schedule. Times are milliseconds since 1970, on the board's clock.
 */
import { InvalidPosting } from '../../core/errors.ts'
import type { ScheduleSpec } from '../../schedule/index.ts'
import type { Posting } from '../model/posting.ts'
import type { RecordKind } from '../records/record-store.ts'

export const CATCH_UPS = ['none', 'latest', 'all'] as const
/** The times that are caught up (posted afterwards), of those that passed while no conductor was running. */
export type CatchUp = (typeof CATCH_UPS)[number]

export const OVERLAPS = ['skip', 'queueOne', 'queueAll', 'cancelPrevious', 'allow'] as const
/** The policy for a job that is due while an earlier one of the schedule is still on the board. */
export type Overlap = (typeof OVERLAPS)[number]

/** The reason why a time was not run. */
export type SkipReason = 'missed' | 'overlap' | 'paused' | 'refused'

/** The template for the jobs of a schedule. */
export type JobTemplate = Pick<Posting, 'name' | 'details' | 'priority' | 'size' | 'maxAttempts'> &
  Pick<Partial<Posting>, 'resources' | 'limits' | 'expiresAfter' | 'deadline' | 'onOwnerLost' | 'backOff'>

export interface SchedulePolicies {
  readonly catchUp: CatchUp
  /** The maximum lateness of a time that is caught up; absent for the default of its {@link CatchUp}. */
  readonly windowMs?: number
  /** The maximum number of times that are caught up at once, with `all`. */
  readonly max: number
  readonly overlap: Overlap
  /** The maximum random delay of a job after its nominal time. */
  readonly jitterMs: number
  /** The number of jobs after which the schedule ends. */
  readonly times?: number
  /** The number of jobs in a row that were trashed because they failed, after which the schedule is paused. */
  readonly pauseAfterFailures?: number
}

/** The outcome at one time, or at several times in a row that were skipped for one reason. */
export interface Firing {
  readonly nominal: number
  /** The time of the decision. */
  readonly at: number
  readonly why: 'time' | 'manual' | 'backfill'
  /** The job that was posted. */
  readonly uuid?: string
  readonly skipped?: SkipReason
  /** The number of times that were skipped; 1 if absent. */
  readonly count?: number
  /** The reason why the board refused the job. */
  readonly error?: string
}

export interface ScheduleRecord {
  readonly spec: ScheduleSpec
  readonly job: JobTemplate
  readonly policies: SchedulePolicies
  readonly tenant?: string
  /** Set for a schedule that a program declares when it starts; absent for one that was put at run time. */
  readonly declared?: { readonly owner: string; readonly version: number; readonly digest: string }
  /** Distinguishes the schedule from an earlier one of the same id. */
  readonly createdAt: number
  readonly paused?: { readonly since: number; readonly by: string; readonly reason?: string }
  /** The last nominal time that was decided: what is before it is never looked at again. */
  readonly cursor: number
  /** The next time: what the rule says, and when the job is posted, which is later where there is a jitter. */
  readonly next?: { readonly nominal: number; readonly at: number }
  /** The job whose end decides the next time, with `from: 'completion'`. */
  readonly awaits?: string
  readonly counts: ScheduleCounts
  /** The number of jobs in a row that were trashed because they failed; 0 after one that did not. */
  readonly failuresInRow: number
  /** The newest first. */
  readonly recent: readonly Firing[]
  /** The newest job that was posted because its time had come: {@link recent} may be full of skipped times. */
  readonly last?: { readonly nominal: number; readonly uuid: string }
}

/** The counters of a schedule since its creation. */
export interface ScheduleCounts {
  /** The jobs that were posted because their time had come. */
  readonly fired: number
  /** The number of jobs that were posted more than a minute after their time and the jitter. */
  readonly late: number
  readonly manual: number
  readonly backfilled: number
  /** The times that were not run, by the reason. */
  readonly skipped: Readonly<Partial<Record<SkipReason, number>>>
}

export const NO_COUNTS: ScheduleCounts = { fired: 0, late: 0, manual: 0, backfilled: 0, skipped: {} }

/** The owner of schedules whose declaration names none: another owner may take them over. */
export const DEFAULT_OWNER = 'default'

const FORMAT = 1
/** The number of firings that a record keeps. */
const RECENT_FIRINGS = 10

/** Schedules as records of a board. */
export const SCHEDULES: RecordKind<ScheduleRecord> = { name: 'schedule', format: FORMAT, parse: parseSchedule }

/** Returns the newest firings, without those that are too many. */
export function withRecent(firings: readonly Firing[], { recent }: Pick<ScheduleRecord, 'recent'>): readonly Firing[] {
  return [...firings, ...recent].slice(0, RECENT_FIRINGS)
}

/** Checks what another release, or somebody by hand, may have written. @throws InvalidPosting */
function parseSchedule(value: unknown, id: string): ScheduleRecord {
  const { spec, job, policies, createdAt, cursor, counts, recent, failuresInRow = 0 } = Object(value)
  const { fired, late, manual, backfilled, skipped } = Object(counts)
  const isComplete =
    [spec, job, policies, counts, skipped].every((part) => typeof part === 'object' && part !== null) &&
    [createdAt, cursor, failuresInRow, policies.max, policies.jitterMs].every(Number.isFinite) &&
    [fired, late, manual, backfilled].every(Number.isFinite) &&
    Array.isArray(recent) &&
    CATCH_UPS.includes(policies.catchUp) &&
    OVERLAPS.includes(policies.overlap) &&
    typeof job.name === 'string' &&
    typeof Object(job.details).flow === 'string'
  if (!isComplete) throw new InvalidPosting(`schedule ${id} has an incomplete record: remove it, then put it again`)
  return { ...(value as ScheduleRecord), failuresInRow }
}

/** Returns whether the schedule has posted as many jobs as it may. */
export function isOver({ counts, policies: { times } }: Pick<ScheduleRecord, 'counts' | 'policies'>): boolean {
  return times !== undefined && counts.fired >= times
}
