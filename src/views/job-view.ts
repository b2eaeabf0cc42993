/**
 * Jobs as plain data, for the command line and the dashboard. `--json` prints views unchanged; tables and rows of the API are made from them. A
 * view names the keys of a store and omits the values, which may be secret.
 */
import type { Attempt, Job, OmittedAttempts, PostedJob, Priority, Resources, TrashedJob } from '../board/index.ts'
import { DEFAULT_QUEUE } from '../core/job-names.ts'
import { defined } from '../core/options.ts'
import type { Redactor } from '../core/redaction.ts'
import type { JobState } from '../core/states.ts'
import type { JobSettings } from './job-settings.ts'
import { type FailureView, failureView, type LogbookView } from './logbook-view.ts'
import { currentRun, ownLimits, type WaitingView } from './open-job.ts'

/** The requester of a cancellation, and the reason. */
export interface CancellationView {
  readonly who: string
  readonly reason: string
}

export interface WorkView {
  /** The name of the flow; a posting may have none. */
  readonly flow?: string
  readonly version?: string
  /** The schedule that has posted the job, and the time for which it did. */
  readonly schedule?: { readonly id: string; readonly nominal: Date; readonly why: 'time' | 'manual' | 'backfill' }
}

/** What every list shows of a job on the board. */
export interface JobFacts extends WorkView {
  readonly uuid: string
  readonly name: string
  readonly priority: Priority
  /** The queue; absent for the default one. */
  readonly queue?: string
  readonly runs: number
  readonly maxAttempts: number
}

export interface JobView extends JobFacts {
  readonly state: JobState
  /** Whether a cancellation is requested. */
  readonly cancelRequested?: true
  readonly owner?: string
  readonly postedAt?: Date
  /** The settings of its flow that count in place of options of its posting; only the report of a job has them. */
  readonly settings?: JobSettings
}

export interface TrashView extends WorkView {
  readonly uuid: string
  readonly name: string
  readonly state: 'TRASHED'
  /** The queue; absent for the default one. */
  readonly queue?: string
  readonly by: string
  readonly at: Date
  readonly reason: string
  /** Present if the job was not started in time. */
  readonly expired?: true
  readonly failure?: FailureView
}

/** The properties of a job that only its report has. */
export interface JobDetails {
  readonly cancellation?: CancellationView
  readonly storeKeys: readonly string[]
  readonly attempts: readonly Attempt[]
  /** The number of attempts that have failed. */
  readonly failedAttempts: number
  /** The numbers of the attempts that are not listed, by how they ended; the first two attempts and the last eight are listed. */
  readonly omittedAttempts?: OmittedAttempts
}

/** The fields of a posting that lists omit; a field with its default is absent. */
export interface PostingView {
  /** The reference of the job: its uuid and its id in the backend. */
  readonly ref: string
  readonly key?: string
  /** The end of the window of the key. */
  readonly keyTakenUntil?: Date
  readonly postedBy?: string
  readonly resources?: Resources
  readonly limits?: Job['limits']
  readonly delayedUntil?: Date
  readonly expiresAt?: Date
  /** The maximum duration of a run, in milliseconds. */
  readonly deadline?: number
  readonly resultTtl?: number
  readonly backOff?: NonNullable<Job['backOff']>
  readonly onOwnerLost?: 'fail'
  /** The jobs after which it is run. */
  readonly after?: Job['after']
  /** The uuid of the batch that counts it. */
  readonly batch?: string
  /** The uuids of the jobs that are run after it. */
  readonly dependents?: readonly string[]
  /** The reason why the job is not run. */
  readonly waitingFor?: WaitingView
}

export function postingView(job: Job): PostingView {
  const { ref, key, keyTakenUntil, postedBy, delayedUntil, expiresAt, deadline, resultTtl, backOff, batch } = job
  const { resources, after, onOwnerLost } = job
  const limits = ownLimits(job)
  return defined({
    ...{ ref, key, keyTakenUntil, postedBy, delayedUntil, expiresAt, deadline, resultTtl, backOff, batch },
    resources: Object.keys(resources).length > 0 ? resources : undefined,
    limits: limits.length > 0 ? limits : undefined,
    after: after.length > 0 ? after : undefined,
    onOwnerLost: onOwnerLost === 'fail' ? onOwnerLost : undefined,
  })
}

/** A job with all its known data. */
export interface JobReport {
  /** The job on the board, or in its trash; absent if it has left both. */
  readonly job?: ((JobView & PostingView) | TrashView) & JobDetails
  /** Null if no run has begun yet; absent if no logbooks are named. */
  readonly logbook?: LogbookView | null
}

/**
 * Returns the job as one read of its posting shows it; undefined if it has left the board. A claim made after that read is not shown: its owner
 * would not match the runs.
 */
export function jobView(job: Job): JobView | undefined {
  if (job.state !== 'UNCLAIMED' && job.state !== 'CLAIMED') return undefined
  const run = job.state === 'CLAIMED' ? currentRun(job) : undefined
  return toJobView(job, run ? { state: 'CLAIMED', owner: run.who } : { state: 'UNCLAIMED' })
}

/** The outcome of a post. */
export interface PostView {
  readonly created: boolean
  /** Why nothing was created. */
  readonly because?: NonNullable<PostedJob['because']>
  /** Present if the posting of a job that waits was replaced. */
  readonly replaced?: true
}

/** Returns the view of a job that was just posted, whatever has happened to it since. */
export function postedView(job: PostedJob): JobView & PostView {
  return { ...toJobView(job, { state: job.state }), ...postView(job) }
}

export function postView({ created, because, replaced }: PostedJob): PostView {
  return { created, ...defined({ because }), ...(replaced ? { replaced: true } : {}) }
}

function toJobView(job: Job, state: Pick<JobView, 'state' | 'owner'>): JobView {
  const { uuid, name, ...facts } = jobFacts(job)
  const { postedAt, cancelRequested } = job
  const asked = cancelRequested ? { cancelRequested } : {}
  return { uuid, name, ...state, ...asked, ...facts, ...(postedAt ? { postedAt } : {}) }
}

export function jobFacts(
  posting: Omit<JobFacts, keyof WorkView | 'queue'> & Pick<Job, 'details'> & { readonly queue?: string },
): JobFacts {
  const { uuid, name, priority, queue, runs, maxAttempts } = posting
  return { uuid, name, ...workView(posting), priority, ...otherQueue(queue), runs, maxAttempts }
}

/** Returns the queue as a property, unless it is the default one: lists of a board without queues have no such property. */
export function otherQueue(queue: string = DEFAULT_QUEUE): { readonly queue?: string } {
  return queue === DEFAULT_QUEUE ? {} : { queue }
}

export function trashView(job: TrashedJob, redaction: Redactor): TrashView {
  const { uuid, name, queue, who, at, reason, failure } = job
  return {
    uuid,
    name,
    state: 'TRASHED',
    ...workView(job),
    ...otherQueue(queue),
    by: who,
    at,
    reason: redaction.text(reason),
    ...(job.expired ? { expired: true } : {}),
    ...(failure ? { failure: failureView(failure, redaction) } : {}),
  }
}

/** Returns the view of a trashed job in a report. */
export function trashReport(job: TrashedJob, redaction: Redactor): TrashView & JobDetails {
  return { ...trashView(job, redaction), ...toJobDetails(job, redaction) }
}

export function cancellationView({ who, reason }: CancellationView, redaction: Redactor): CancellationView {
  return { who, reason: redaction.text(reason) }
}

export function toJobDetails(job: Job | TrashedJob, redaction: Redactor): JobDetails {
  const attempts = job.attempts.map((attempt) => {
    return attempt.reason === undefined ? attempt : { ...attempt, reason: redaction.text(attempt.reason) }
  })
  const { failedAttempts, omittedAttempts } = job
  return { storeKeys: Object.keys(job.details.store ?? {}), attempts, failedAttempts, ...defined({ omittedAttempts }) }
}

/** Returns the flow and its version. Any client may have written the posting: values that are not text are omitted. */
export function workView({ details }: Pick<Job, 'details'>): WorkView {
  const { flow, version }: { flow?: unknown; version?: unknown } = details
  return {
    ...(typeof flow === 'string' ? { flow } : {}),
    ...(typeof version === 'string' ? { version } : {}),
    ...scheduleView(details),
  }
}

/** Returns the schedule that posted the job. It is parsed here, because the module that writes the field also loads the calendar code. */
function scheduleView({ schedule }: Job['details']): Pick<WorkView, 'schedule'> {
  const { id, nominal, manual, backfill } = Object(schedule)
  if (typeof id !== 'string' || typeof nominal !== 'string' || Number.isNaN(Date.parse(nominal))) return {}
  return {
    schedule: {
      id,
      nominal: new Date(nominal),
      why: manual === true ? 'manual' : backfill === true ? 'backfill' : 'time',
    },
  }
}
