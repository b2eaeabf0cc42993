/**
 * What the command line shows of things, as plain data: `--json` prints it as it is, tables are made from it. Of a store
 * there are the names of its keys only, because its values are people's secrets.
 */
import type { Attempt, Job, Priority, Size, TrashedJob } from '../../board/index.ts'
import type { Failure } from '../../core/failure.ts'
import type { Redactor } from '../../core/redaction.ts'
import type { AtomState, FlowState, JobState } from '../../core/states.ts'
import type { AtomDetail, FlowDetail, LogBook } from '../../persistence/index.ts'
import { measureLastRun, measureWholeRun, type RunDuration } from './duration.ts'

/** Who has asked for a job to be given up, and why. */
export interface CancellationView {
  readonly who: string
  readonly reason: string
}

export interface WorkView {
  /** The flow that runs it; a posting may name none. */
  readonly flow?: string
  readonly version?: string
}

export interface JobView extends WorkView {
  readonly uuid: string
  readonly name: string
  readonly state: JobState
  /** Somebody has asked for it to be given up. */
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
  readonly failure?: FailureView
}

export interface AtomView extends RunDuration {
  readonly name: string
  readonly kind: AtomDetail['kind']
  readonly state: AtomState
  /** Of a task that says how far it is, from 0 to 1. */
  readonly progress?: number
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

/** What only the report of one job shows, not a list. */
export interface JobDetails {
  readonly cancellation?: CancellationView
  readonly storeKeys: readonly string[]
  readonly attempts: readonly Attempt[]
}

/** One job with all that can be told about it. */
export interface JobReport {
  /** On the board, or in its trash; absent where it has left both. */
  readonly job?: (JobView | TrashView) & JobDetails
  /** Null where no run has begun yet; absent where nobody said where logbooks are. */
  readonly logbook?: LogbookView | null
}

/**
 * The job as one reading of its posting has it; undefined once it has left the board. A claim that the posting does not
 * tell of came after it was read: with the owner of one moment and the runs of another, the job would never have been so.
 */
export function jobView(job: Job): JobView | undefined {
  if (job.state !== 'UNCLAIMED' && job.state !== 'CLAIMED') return undefined
  const newest = job.attempts.at(-1)
  const claimed = job.state === 'CLAIMED' && newest !== undefined && newest.ended === undefined
  return toJobView(job, claimed ? { state: 'CLAIMED', owner: newest.who } : { state: 'UNCLAIMED' })
}

/** A job that was posted just now, whatever has become of it since. */
export function postedView(job: Job): JobView {
  return toJobView(job, { state: job.state })
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
    ...(failure ? { failure: failureView(failure, redaction) } : {}),
  }
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
  const took = measureWholeRun(flow.states, { over: FINISHED_STATES.includes(state) })
  return { uuid: book.uuid, name: book.name, flow: name, version, state, run, createdAt, updatedAt, ...took, atoms }
}

const FINISHED_STATES: readonly FlowState[] = ['SUCCESS', 'REVERTED', 'FAILURE']

function atomView(
  { name, kind, state, states, meta, updatedAt, failure, revertFailure }: AtomDetail,
  redaction: Redactor,
): AtomView {
  return {
    name,
    kind,
    state,
    updatedAt,
    ...(typeof meta['progress'] === 'number' ? { progress: meta['progress'] } : {}),
    ...measureLastRun(states),
    ...(failure ? { failure: failureView(failure, redaction) } : {}),
    ...(revertFailure ? { revertFailure: failureView(revertFailure, redaction) } : {}),
  }
}

/** Anybody may have written a posting: what is no text is not shown as one. */
function workView({ details }: Job | TrashedJob): WorkView {
  const { flow, version }: { flow?: unknown; version?: unknown } = details
  return {
    ...(typeof flow === 'string' ? { flow } : {}),
    ...(typeof version === 'string' ? { version } : {}),
  }
}

/** Without the stack, which is long and about our insides. */
export function failureView(failure: Failure, redaction: Redactor): FailureView {
  // It was read from a logbook or the trash, which others write, too: one that is malformed must not hide the rest.
  const { name, message, code, causes }: { readonly [K in keyof Failure]?: unknown } = Object(failure)
  return {
    name: String(name),
    message: redaction.text(String(message)),
    ...(code === undefined ? {} : { code: String(code) }),
    ...(Array.isArray(causes) ? { causes: causes.map((cause) => failureView(cause, redaction)) } : {}),
  }
}
