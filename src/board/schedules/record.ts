/**
 * The record of a schedule on the board: everything by which any process can decide what is due, and post it, without the code that
 * declared the schedule. Times are milliseconds since 1970, on the board's clock.
 */
import { NIL } from 'uuid'
import { InvalidPosting, JobboardError } from '../../core/errors.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { AtSpec, CalendarSpec, CronSpec, EverySpec, ScheduleSpec, SpecBounds } from '../../schedule/index.ts'
import { MAX_LISTED_ATTEMPTS } from '../model/attempts.ts'
import { checkPosting } from '../model/posting/check-posting.ts'
import { POSTING_FORMAT, type Posting } from '../model/posting/posting.ts'
import { sealIfLarge } from '../model/sealed.ts'
import {
  anything,
  count,
  exactly,
  fieldsOf,
  isCount,
  listOf,
  mapOf,
  optional,
  type Parser,
  parseStored,
  text,
  where,
  which,
} from '../model/stored.ts'
import type { RecordKind } from '../records/record-store.ts'
import { type SchedulePolicies, toPolicies } from './policies.ts'

/** The reason why a time was not run. */
export type SkipReason = 'missed' | 'overlap' | 'paused' | 'refused'

/** The template for the jobs of a schedule. */
export type JobTemplate = Pick<Posting, 'name' | 'details' | 'priority' | 'maxAttempts'> &
  Pick<
    Partial<Posting>,
    | 'queue'
    | 'resources'
    | 'limits'
    | 'expiresAfter'
    | 'deadline'
    | 'onOwnerLost'
    | 'backOff'
    | 'resultTtl'
    | 'explicit'
  >

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
  /** Set for a schedule that a program declares when it starts; absent for a schedule that was put at run time. */
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
  /** The number of jobs in a row that were trashed because they failed; 0 after a job that did not. */
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

/** The format of records whose jobs may fail more often than earlier releases count: to these they would be invalid. */
const FORMAT_WITH_MANY_ATTEMPTS = 2
/** The format of records whose jobs are in a queue: earlier releases would post them without it. */
const FORMAT_WITH_QUEUE = 3
const FORMAT = 1
/** The number of firings that a record keeps. */
const RECENT_FIRINGS = 10

/** Schedules as records of a board. */
export const SCHEDULES: RecordKind<ScheduleRecord> = {
  ...{ name: 'schedule', format: FORMAT_WITH_QUEUE },
  formatOf: ({ job }) => {
    if (job.queue !== undefined) return FORMAT_WITH_QUEUE
    return job.maxAttempts > MAX_LISTED_ATTEMPTS ? FORMAT_WITH_MANY_ATTEMPTS : FORMAT
  },
  parse: (value, id, recordBytes) => sealStore(parseSchedule(value, id), recordBytes),
}

/** Keeps a large store encoded: a conductor has all schedules in memory, and needs a store only when a time has come. */
function sealStore(record: ScheduleRecord, recordBytes: number): ScheduleRecord {
  const details = sealIfLarge(record.job.details, { kept: ['flow', 'version'], recordBytes })
  return details === record.job.details ? record : { ...record, job: { ...record.job, details } }
}

/** Returns the newest firings, at most {@link RECENT_FIRINGS}. */
export function withRecent(firings: readonly Firing[], { recent }: Pick<ScheduleRecord, 'recent'>): readonly Firing[] {
  return [...firings, ...recent].slice(0, RECENT_FIRINGS)
}

/** The last time that a schedule can have: rules end soon after 2100, and a jitter has at most 100 years. */
const MAX_TIME_MS = Date.UTC(2300, 0)
/** The maximum number of firings that are read: later releases may keep more than {@link RECENT_FIRINGS}. */
const MAX_READ_FIRINGS = 100

const time = where((value): value is number => typeof value === 'number' && value >= 0 && value <= MAX_TIME_MS)
const bound = where((value): value is string | Date => typeof value === 'string' || value instanceof Date)
const duration = where(isDuration)
const specFields = {
  ...{ cron: optional(text), every: optional(duration), rrule: optional(text), at: optional(bound) },
  ...{ from: optional(exactly('epoch', 'completion')), offset: optional(duration), zone: optional(text) },
  ...{ start: optional(bound), end: optional(bound), exclude: optional(listOf(excluded)) },
}
/** Checks the fields that texts and comparisons of specs use. Whether the rule itself is valid is known when its times are computed. */
const oneRule = which(
  fieldsOf<SpecFields>(specFields),
  (fields) => ['cron', 'every', 'rrule', 'at'].filter((kind) => kind in fields).length === 1,
) as Parser<ScheduleSpec>
/** Refuses a field that this release does not know: it may exclude times, which this release would run. */
const knownSpec = which(anything, (value) =>
  Object.keys(Object(value)).every((name) => Object.hasOwn(specFields, name)),
)
const spec: Parser<ScheduleSpec> = (value) => oneRule(knownSpec(value))
/** Refuses a nominal time after its due time: the schedule would leave out the times before it. */
const next = which(fieldsOf({ nominal: time, at: time }), ({ nominal, at }) => nominal <= at)
const skipReason = exactly<SkipReason>('missed', 'overlap', 'paused', 'refused')
const firing = fieldsOf<Firing>({
  ...{ nominal: time, at: time, why: exactly('time', 'manual', 'backfill'), uuid: optional(text) },
  ...{ skipped: optional(skipReason), count: optional(count), error: optional(text) },
})
const SCHEDULE = fieldsOf<Omit<ScheduleRecord, 'job' | 'policies' | 'failuresInRow'>>({
  spec,
  tenant: optional(text),
  declared: optional(fieldsOf({ owner: text, version: count, digest: text })),
  createdAt: time,
  paused: optional(fieldsOf<NonNullable<ScheduleRecord['paused']>>({ since: time, by: text, reason: optional(text) })),
  cursor: time,
  next: optional(next),
  awaits: optional(text),
  counts: fieldsOf({ fired: count, late: count, manual: count, backfilled: count, skipped: mapOf(count) }),
  recent: listOf(firing, { most: MAX_READ_FIRINGS }),
  last: optional(fieldsOf({ nominal: time, uuid: text })),
})

/**
 * Parses a record that any client may have written. Its policies have the ranges of a declaration, and its job can be posted.
 *
 * @throws InvalidPosting
 */
function parseSchedule(value: unknown, id: string): ScheduleRecord {
  const record = parseStored(value, SCHEDULE, `schedule ${id}`)
  const { policies, job, failuresInRow = 0 } = Object(value)
  const { windowMs: window, jitterMs: jitter, max, catchUp, overlap, times, pauseAfterFailures } = Object(policies)
  try {
    if (typeof jitter !== 'number' || !isCount(failuresInRow))
      throw new InvalidPosting('policies.jitterMs or failuresInRow is not valid')
    if (typeof Object(Object(job).details).flow !== 'string') throw new InvalidPosting('its job has no flow')
    const { uuid: _, format: __, runs: ___, attempts: ____, ...template } = checkPosting({ ...job, ...NO_RUNS })
    const options = { window, jitter, max, catchUp, overlap, times, pauseAfterFailures }
    return { ...record, failuresInRow, job: template, policies: toPolicies(record.spec, options, 'its policies') }
  } catch (cause) {
    if (!(cause instanceof JobboardError)) throw cause
    throw new InvalidPosting(`schedule ${id} cannot be read: ${cause.message}; remove it, then put it again`, { cause })
  }
}

/** The fields of a posting that a template of jobs lacks. */
const NO_RUNS = { uuid: NIL, format: POSTING_FORMAT, runs: 0, attempts: [] }

interface SpecFields extends Partial<CronSpec & EverySpec & CalendarSpec & AtSpec>, SpecBounds {}

function excluded(value: unknown): string | CronSpec | CalendarSpec {
  if (typeof value === 'string') return value
  const rule = fieldsOf({ cron: optional(text), rrule: optional(text), zone: optional(text) })
  return rule(value) as CronSpec | CalendarSpec
}

function isDuration(value: unknown): value is Duration {
  try {
    return toMilliseconds(value as Duration, '') >= 0
  } catch {
    return false
  }
}

/** Returns whether the schedule has posted as many jobs as it may. */
export function isOver({ counts, policies: { times } }: Pick<ScheduleRecord, 'counts' | 'policies'>): boolean {
  return times !== undefined && counts.fired >= times
}
