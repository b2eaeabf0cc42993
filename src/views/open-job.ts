/** A job on the board: the run that owns it, why it waits, and what is read of one job. */
import type { Attempt, Cancellation, Job, JobBoard, WaitingFor } from '../board/index.ts'
import { defined } from '../core/options.ts'

/** The reason why a job is not run. */
export interface WaitingView {
  readonly kind: WaitingFor['kind']
  /** The reason for people. */
  readonly text: string
  readonly until?: Date
  /** The key of the limit, or the name of the resource. */
  readonly key?: string
  /** The uuids of jobs that are in the way; at most ten. */
  readonly jobs?: readonly string[]
  readonly flow?: string
  /** The queue that no conductor serves. */
  readonly queue?: string
}

/** The most jobs that a reason names. */
const MAX_JOBS = 10

export function waitingView(reason: WaitingFor): WaitingView {
  const { kind, text } = reason
  switch (reason.kind) {
    case 'delay':
      return { kind, text, until: reason.until }
    case 'job':
      return { kind, text, jobs: toUuids(reason.jobs) }
    case 'resource':
      return { kind, text, key: reason.resource, ...(reason.job ? { jobs: [reason.job.uuid] } : {}) }
    case 'limit': {
      const { key, until, job } = reason
      return { kind, text, key, ...defined({ until, jobs: job && [job.uuid] }) }
    }
    case 'flow':
    case 'disabled':
      return { kind, text, flow: reason.flow }
    case 'queue':
      return { kind, text, queue: reason.queue }
    case 'suspect':
      return { kind, text, jobs: toUuids(reason.holders) }
    case 'pause':
    case 'refusal':
      return { kind, text }
  }
}

function toUuids(jobs: readonly { readonly uuid: string }[]): string[] {
  return jobs.slice(0, MAX_JOBS).map(({ uuid }) => uuid)
}

/** Returns the run that owns a claimed job now; undefined if its claim has not been read yet. */
export function currentRun({ attempts }: { readonly attempts: readonly Attempt[] }): Attempt | undefined {
  const newest = attempts.at(-1)
  return newest?.ended === undefined ? newest : undefined
}

/** Returns the limits of a job without the limit of its flow, which every job has. */
export function ownLimits({ limits, details }: Pick<Job, 'limits' | 'details'>): Job['limits'] {
  return limits.filter((limit) => limit.key !== `flow/${details.flow}`)
}

/** What is read of one job on the board, besides its posting. */
export interface OpenJobReads<R> {
  readonly isClaimed: boolean
  readonly cancellation: Cancellation | undefined
  /** The record of the job in its logbook. */
  readonly record: R | undefined
  /** The uuids of the jobs that are run after it. */
  readonly dependents: readonly string[]
  /** The reason why the job is not run, if it has no owner. */
  readonly waits: WaitingFor | undefined
}

/**
 * Reads what a report of one job on the board has besides its posting. Returns undefined if the job has left the board meanwhile.
 *
 * @param options.record the read of its record in the logbooks, which has begun: the job must still be on the board when it ends
 */
export async function readOpenJob<R>(
  job: Job,
  options: { readonly board: JobBoard; readonly record: Promise<R | undefined> },
): Promise<OpenJobReads<R> | undefined> {
  const { board } = options
  const [cancellation, record, dependents] = await Promise.all([
    job.cancelRequested ? board.cancellation(job) : undefined,
    options.record,
    board.dependencies(job).then(
      ({ dependents }) => dependents.map(({ uuid }) => uuid),
      () => [],
    ),
  ])
  if (job.state !== 'UNCLAIMED' && job.state !== 'CLAIMED') return undefined
  const isClaimed = job.state === 'CLAIMED'
  const waits = isClaimed ? undefined : await board.waitingFor(job).catch(() => undefined)
  return { isClaimed, cancellation, record, dependents, waits }
}
