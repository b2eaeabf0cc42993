/** Makes the jobs of a schedule. */
import { v5 } from 'uuid'
import { encodePlain } from '../../core/codec.ts'
import type { ScheduledRun } from '../../flow/index.ts'
import type { PostRequest } from '../contract/index.ts'
import { checkPosting } from '../model/posting/check-posting.ts'
import { type Details, toFormat } from '../model/posting/posting.ts'
import { isCount, isDuration } from '../model/stored.ts'
import type { FlowRules } from '../settings/rules.ts'
import type { ScheduleRecord } from './record.ts'

/** The namespace of the uuids of scheduled jobs. */
const NAMESPACE = 'b0a5a3f4-6d0c-4a55-9c52-1f7d2e0a9b11'

/** The reason why a scheduled job was posted: the field `schedule` of its details. Times are texts of ISO 8601. */
export interface ScheduledDetails {
  /** The id of the schedule. */
  readonly id: string
  /** The time that the rule names, whenever the job was posted. */
  readonly nominal: string
  /** The nominal time of the previous job. */
  readonly previous?: string
  /** The milliseconds by which it was posted later than its nominal time. */
  readonly lateMs: number
  /** The number of times just before it that were not run. */
  readonly missed?: number
  /** Set for a job that a caller has triggered. */
  readonly manual?: true
  /** Set for a job of a backfill. */
  readonly backfill?: true
  readonly tenant?: string
}

/** Reads why a job was posted from its details; undefined for a job that no schedule has posted. */
export function toScheduledRun({ schedule }: Details): ScheduledRun | undefined {
  const { id, nominal, previous, lateMs, missed, manual, backfill, tenant }: Partial<ScheduledDetails> =
    Object(schedule)
  // The application may have a field of this name with another meaning.
  if (typeof id !== 'string' || typeof nominal !== 'string' || Number.isNaN(Date.parse(nominal))) return undefined
  return {
    ...{
      id,
      nominal: new Date(nominal),
      lateMs: isDuration(lateMs) ? lateMs : 0,
      missed: isCount(missed) ? missed : 0,
    },
    ...{ manual: manual === true, backfill: backfill === true },
    ...(typeof previous === 'string' && !Number.isNaN(Date.parse(previous)) ? { previous: new Date(previous) } : {}),
    ...(typeof tenant === 'string' ? { tenant } : {}),
  }
}

export interface ScheduledPost {
  /** The settings of flows. */
  readonly settings: FlowRules
  readonly nominal: number
  readonly now: number
  readonly why: 'time' | 'manual' | 'backfill'
  /** The number of times just before it that were not run. */
  readonly missed?: number
  /** Replaces parts of the store. */
  readonly store?: object
  /** The key that the job takes; absent for none. */
  readonly key?: string | undefined
  /** Distinguishes jobs that were posted for the same nominal time on purpose. */
  readonly salt?: string
}

/** The bytes of jobs that one write posts: with the records they fit into one request of every server. */
const MAX_BYTES_PER_WRITE = 400_000
/** The fields of a job that its template does not have. */
const BYTES_PER_JOB = 1_000
const MAX_POSTS_PER_WRITE = 100

/** Returns how many jobs of the schedule fit into one write. */
export function postsPerWrite({ job }: Pick<ScheduleRecord, 'job'>): number {
  const bytes = BYTES_PER_JOB + encodePlain(job, 'msgpack').length
  return Math.min(MAX_POSTS_PER_WRITE, Math.max(1, Math.floor(MAX_BYTES_PER_WRITE / bytes)))
}

/** Returns the key that at most one job of the schedule has. */
export function scheduleKey(id: string): string {
  return `schedule/${id}`
}

/** Returns the key of the one job that may wait while another runs, with `queueOne`. */
export function queuedKey(id: string): string {
  // No id can make this the key of another schedule.
  return `schedule-next/${id}`
}

/**
 * Returns the job for one nominal time. Its uuid follows from the schedule and that time: every process posts the same job.
 *
 * @throws InvalidPosting where the record has a job that cannot be posted
 */
export function toScheduledPost(id: string, record: ScheduleRecord, post: ScheduledPost): PostRequest {
  const { job, tenant, createdAt, policies } = record
  const { nominal, now, why, missed = 0, key, salt = '' } = post
  const previous = record.last?.nominal
  const schedule: ScheduledDetails = {
    id,
    nominal: new Date(nominal).toISOString(),
    ...(previous === undefined ? {} : { previous: new Date(previous).toISOString() }),
    lateMs: Math.max(0, now - nominal),
    ...(missed > 0 ? { missed } : {}),
    ...(why === 'manual' ? { manual: true as const } : {}),
    ...(why === 'backfill' ? { backfill: true as const } : {}),
    ...(tenant === undefined ? {} : { tenant }),
  }
  const { resources, ...template } = post.settings.withPosted(job)
  const posting = {
    ...template,
    details: { ...job.details, store: { ...job.details.store, ...post.store }, schedule },
    uuid: v5([id, createdAt, why, nominal, salt].join('\n'), NAMESPACE),
    ...(key === undefined ? {} : { key }),
    ...(policies.overlap === 'allow' ? resources && { resources } : { resources: withScheduleResource(id, resources) }),
    format: toFormat(template),
    runs: 0,
    attempts: [],
  }
  return { posting: checkPosting(posting) }
}

/** Adds a resource that every job of the schedule takes alone: two of them never run at once, whichever way they were posted. */
function withScheduleResource(id: string, { exclusive = [], shared = [] }: ScheduleRecord['job']['resources'] = {}) {
  return { exclusive: [...exclusive, scheduleKey(id)], ...(shared.length > 0 ? { shared } : {}) }
}
