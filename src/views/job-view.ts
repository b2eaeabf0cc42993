/**
 * Jobs, attempts and logbooks as plain data, for the command line and the dashboard: `--json` prints them unchanged, tables are made from
 * them. A view has only the names of the keys of a store, because its values may be secret.
 */
import type { Attempt, Job, PostedJob, Priority, Resources, Size, TrashedJob, WaitingFor } from '../board/index.ts'
import { type Failure, parseFailure } from '../core/failure.ts'
import { defined } from '../core/options.ts'
import type { Redactor } from '../core/redaction.ts'
import { type AtomState, type FlowState, isFinished, type JobState } from '../core/states.ts'
import type { AtomDetail, FlowDetail, LogBook } from '../persistence/index.ts'
import { measureLastRun, measureWholeRun, type RunDuration } from './duration.ts'

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

export interface JobView extends WorkView {
  readonly uuid: string
  readonly name: string
  readonly state: JobState
  /** Whether a cancellation is requested. */
  readonly cancelRequested?: true
  readonly owner?: string
  readonly priority: Priority
  readonly size: Size
  readonly runs: number
  readonly maxAttempts: number
  readonly postedAt?: Date
}

export interface FailureView {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly causes?: readonly FailureView[]
}

export interface TrashView extends WorkView {
  readonly uuid: string
  readonly name: string
  readonly state: 'TRASHED'
  readonly by: string
  readonly at: Date
  readonly reason: string
  /** Present if the job was not started in time. */
  readonly expired?: true
  readonly failure?: FailureView
}

export interface AtomView extends RunDuration {
  readonly name: string
  readonly kind: AtomDetail['kind']
  readonly state: AtomState
  /** The progress from 0 to 1 of a task that reports it. */
  readonly progress?: number
  /** The text of its last progress report. */
  readonly message?: string
  readonly updatedAt: Date
  readonly failure?: FailureView
  readonly revertFailure?: FailureView
}

export interface LogbookView extends RunDuration {
  readonly uuid: string
  readonly name: string
  readonly flow: string
  readonly version: string
  readonly state: FlowState
  readonly run: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly atoms: readonly AtomView[]
}

/** The properties in the report of one job that a list does not have. */
export interface JobDetails {
  readonly cancellation?: CancellationView
  readonly storeKeys: readonly string[]
  readonly attempts: readonly Attempt[]
}

/** The fields of a posting that lists do not show; each property is absent where the job has the default. */
export interface PostingView {
  /** The reference of the job, which has the board's own id of it. */
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
  readonly backOff?: NonNullable<Job['backOff']>
  readonly onOwnerLost?: 'fail'
  /** The jobs after which it is run. */
  readonly after?: Job['after']
  /** The uuid of the batch that counts it. */
  readonly batch?: string
  /** The uuids of the jobs that are run after it. */
  readonly dependents?: readonly string[]
  /** The reason why the job is not run. */
  readonly waitingFor?: Pick<WaitingFor, 'kind' | 'text'>
}

export function postingView(job: Job): PostingView {
  const {
    ref,
    key,
    keyTakenUntil,
    postedBy,
    resources,
    delayedUntil,
    expiresAt,
    deadline,
    backOff,
    onOwnerLost,
    after,
    batch,
  } = job
  // Every job has the limit of its flow.
  const limits = job.limits.filter((limit) => limit.key !== `flow/${job.details.flow}`)
  const hasResources = Object.keys(resources).length > 0
  return {
    ...defined({ ref, key, keyTakenUntil, postedBy, delayedUntil, expiresAt, deadline, backOff, batch }),
    ...(hasResources ? { resources } : {}),
    ...(limits.length > 0 ? { limits } : {}),
    ...(after.length > 0 ? { after } : {}),
    ...(onOwnerLost === 'fail' ? { onOwnerLost } : {}),
  }
}

/** A job with all its known data. */
export interface JobReport {
  /** The job on the board, or in its trash; absent if it has left both. */
  readonly job?: ((JobView & PostingView) | TrashView) & JobDetails
  /** Null if no run has begun yet; absent if no logbooks are named. */
  readonly logbook?: LogbookView | null
}

/**
 * Returns the job as one read of its posting shows it; undefined once it has left the board. A claim that is not in the
 * posting was made after that read: a view with the owner of one moment and the runs of another would show a state that
 * never existed.
 */
export function jobView(job: Job): JobView | undefined {
  if (job.state !== 'UNCLAIMED' && job.state !== 'CLAIMED') return undefined
  const newest = job.attempts.at(-1)
  const claimed = job.state === 'CLAIMED' && newest !== undefined && newest.ended === undefined
  return toJobView(job, claimed ? { state: 'CLAIMED', owner: newest.who } : { state: 'UNCLAIMED' })
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
  const { uuid, name, priority, size, runs, maxAttempts, postedAt } = job
  const facts = { priority, size, runs, maxAttempts, ...(postedAt ? { postedAt } : {}) }
  const asked = job.cancelRequested ? { cancelRequested: true as const } : {}
  return { uuid, name, ...state, ...asked, ...workView(job), ...facts }
}

export function trashView(job: TrashedJob, redaction: Redactor): TrashView {
  const { uuid, name, who, at, reason, failure } = job
  return {
    uuid,
    name,
    state: 'TRASHED',
    ...workView(job),
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
  return { storeKeys: Object.keys(job.details.store ?? {}), attempts }
}

export function logbookView(book: LogBook, flow: FlowDetail, redaction: Redactor): LogbookView {
  const { name, version, state, run, createdAt, updatedAt } = flow
  const atoms = flow.atoms.map((atom) => atomView(atom, redaction))
  const took = measureWholeRun(flow.states, { over: isFinished(state) })
  return { uuid: book.uuid, name: book.name, flow: name, version, state, run, createdAt, updatedAt, ...took, atoms }
}

function atomView(
  { name, kind, state, states, meta, updatedAt, progressMessage, failure, revertFailure }: AtomDetail,
  redaction: Redactor,
): AtomView {
  return {
    name,
    kind,
    state,
    updatedAt,
    ...(typeof meta['progress'] === 'number' ? { progress: meta['progress'] } : {}),
    ...(progressMessage === undefined ? {} : { message: redaction.text(progressMessage) }),
    ...measureLastRun(states),
    ...(failure ? { failure: failureView(failure, redaction) } : {}),
    ...(revertFailure ? { revertFailure: failureView(revertFailure, redaction) } : {}),
  }
}

/** Returns the flow and its version. Any client may have written the posting: values that are no text are omitted. */
export function workView({ details }: Pick<Job, 'details'>): WorkView {
  const { flow, version }: { flow?: unknown; version?: unknown } = details
  return {
    ...(typeof flow === 'string' ? { flow } : {}),
    ...(typeof version === 'string' ? { version } : {}),
    ...scheduleView(details),
  }
}

/** Reads it here: the module that writes the field loads the calculator of schedules, too. */
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

/** Returns a failure without the stack, which is long and shows internals. */
export function failureView(failure: Failure, redaction: Redactor): FailureView {
  // The failure was read from a logbook or the trash, which others write, too: a malformed one must not hide the rest.
  return toFailureView(parseFailure(failure) ?? { name: 'Error', message: 'a failure that cannot be read' }, redaction)
}

function toFailureView({ name, message, code, causes }: Failure, redaction: Redactor): FailureView {
  return {
    name,
    message: redaction.text(message),
    ...(code === undefined ? {} : { code }),
    ...(causes ? { causes: causes.map((cause) => toFailureView(cause, redaction)) } : {}),
  }
}
