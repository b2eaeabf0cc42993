/**
 * One run of one job: from the claim to how it ended. Acquires the flow in the logbook, lets an engine run it, and says
 * what happened; deciding and settling come after.
 */

import type { Claim, Job } from '../../board/index.ts'
import type { AlarmClock } from '../../core/alarm-clock.ts'
import { abortAfter, followSignals, openOrAbort, rejectOnAbort } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/stop.ts'
import {
  type Cancelled,
  ClaimLost,
  Fenced,
  IncompatibleVersion,
  InvalidPosting,
  InvalidState,
  JobboardError,
  SealedLogbook,
  ShuttingDown,
  StorageFailure,
  Timeout,
} from '../../core/errors.ts'
import { failureOf } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { newUuid } from '../../core/uuid.ts'
import { Engine } from '../../engine/index.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { AcquireRequest, FlowLog, Persistence } from '../../persistence/index.ts'
import type { KnownFlows } from '../claiming/known-flows.ts'
import { toBookRequest } from './book-owner.ts'
import type { RunEnding } from './decide.ts'
import type { TaskWatch } from './task-watch.ts'
import { type StopIgnored, watchStop } from './unstopped-jobs.ts'

export interface JobRunContext {
  readonly flows: KnownFlows
  /** Of the board whose jobs are run; kept in the logbooks that are made for them. */
  readonly boardId: string
  readonly persistence: Persistence
  /** What tasks find as `ctx.services`. */
  readonly services: unknown
  /** What deadlines and pauses go by. */
  readonly clock: AlarmClock
  readonly log: Logger
  /** How many tasks of one flow run at once. */
  readonly flowConcurrency: number
  /** Fires when flows have to rest, in the second stage of a shutdown. */
  readonly suspend: AbortSignal
  /** Fires when even tasks that do not heed their signal are not waited for any more. */
  readonly leave: AbortSignal
  /** Fires when code of this job has failed outside of every task's promise, with the error. */
  readonly faultStop?: Stoppable
  readonly tasks: TaskWatch
  readonly onStopIgnored: (unheeded: StopIgnored) => void
  readonly onProgress: (progressed: RunProgressed) => void
}

/** A task of a job has said how far it is. */
export interface RunProgressed {
  readonly job: Job
  readonly run: number
  readonly task: string
  /** From 0 to 1. */
  readonly progress: number
}

export interface JobRun {
  readonly ending: RunEnding
  /** Resolves when no code of the run is executing any more: a task may go on after its signal fired. */
  readonly idle: Promise<void>
}

/** Never rejects. */
export async function runJob(claim: Claim, context: JobRunContext): Promise<JobRun> {
  // Nothing of the flow runs yet: what does not answer, logbooks or a schema, is not waited for when it has to stop.
  using early = followSignals([claim.stops.lost, context.faultStop, context.suspend])
  let resolved: Awaited<ReturnType<KnownFlows['resolve']>>
  try {
    resolved = await rejectOnAbort(context.flows.resolve(claim.job.details), early)
  } catch (error) {
    if (early.aborted) return endedRun(toRunEnding(early.reason, claim))
    // A schema is somebody's code: what it throws, and does not say, is no fault of the posting.
    if (error instanceof JobboardError) return endedRun({ kind: 'unworkable', error })
    return endedRun({ kind: 'defect', error })
  }
  try {
    const request = {
      book: toBookRequest(claim.job.book, context),
      flow: { uuid: claim.job.uuid, name: resolved.flow.name, version: resolved.flow.version },
      run: claim.run,
      claim: newUuid(),
    }
    await using log = await openOrAbort(early, acquire(context.persistence, request))
    assertOwnLogbook(claim, { posted: resolved.flow.name, recorded: log.flow.name })
    return await runClaimedFlow(claim, { ...resolved, log }, context)
  } catch (error) {
    return endedRun(toRunEnding(error, claim))
  }
}

async function runClaimedFlow(
  claim: Claim,
  what: { flow: AnyFlow; store: Readonly<Record<string, unknown>>; log: FlowLog },
  context: JobRunContext,
): Promise<JobRun> {
  using stop = followSignals([claim.stops.lost, context.faultStop, context.leave])
  using cancel = followSignals([claim.stops.cancelled])
  const { job } = claim
  const late = (time: string) => new Timeout(`${job}: not done within ${time}`)
  using _deadline = abortAfter(cancel, job.deadline, late, context.clock)
  const { tasks, clock, onStopIgnored } = context
  using _watch = watchStop({ job, run: claim.run, stop: cancel, tasks, clock, onStopIgnored })
  const engine = new Engine({
    ...what,
    signals: { stop, suspend: context.suspend, cancel },
    assertOwner: () => claim.assertHeld(),
    context: { fence: claim.fence, job: { uuid: job.uuid, name: job.name } },
    services: context.services,
    logger: context.log.child({ job: job.uuid }),
    concurrency: context.flowConcurrency,
    clock: context.clock,
    performing: (task, how) => tasks.begin({ job: job.uuid, name: job.name, task }, how),
  })
  engine.on('progress', ({ atom: task, progress }) => context.onProgress({ job, run: claim.run, task, progress }))
  try {
    const { state, failures, revertFailures } = await engine.run()
    if (claim.stops.lost.aborted) return endedRun({ kind: 'lost' })
    const cancelled = claim.stops.cancelled.aborted ? { cancelled: claim.stops.cancelled.reason as Cancelled } : {}
    const late = cancel.aborted ? [failureOf(cancel.reason)] : []
    const why = failures.length > 0 ? failures : late
    return endedRun({ kind: 'flow', state, failures: why, revertFailures, ...cancelled })
  } catch (error) {
    return { ending: toRunEnding(error, claim), idle: engine.idle }
  }
}

/** A persistence that was closed under the conductor is away; no job is to blame for it. */
async function acquire(persistence: Persistence, request: AcquireRequest): Promise<FlowLog> {
  try {
    return await persistence.acquire(request)
  } catch (error) {
    if (!(error instanceof InvalidState)) throw error
    throw new StorageFailure(`the logbooks at ${persistence.uri}: ${error.message}`, { cause: error, retryable: true })
  }
}

/**
 * A uuid that was posted twice, for two flows, has one logbook: where it says SUCCESS, that was the other's.
 *
 * @throws InvalidPosting
 */
function assertOwnLogbook({ job }: Claim, flows: { posted: string; recorded: string }): void {
  const { posted, recorded } = flows
  if (posted === recorded) return
  throw new InvalidPosting(
    `${job}: it names flow ${posted}, but the logbook of this uuid is one of flow ${recorded}; post it with a uuid of its own`,
  )
}

function endedRun(ending: RunEnding): JobRun {
  return { ending, idle: Promise.resolve() }
}

function toRunEnding(error: unknown, claim: Claim): RunEnding {
  if (claim.stops.lost.aborted) return { kind: 'lost' }
  if (error instanceof ShuttingDown) return { kind: 'shutdown' }
  if (error instanceof InvalidPosting) return { kind: 'unworkable', error }
  if (error instanceof Fenced) return { kind: 'fenced', newestRun: error.newestRun }
  if (error instanceof ClaimLost) return { kind: 'fenced', newestRun: undefined }
  // Written by a newer release, or with a key that is not here. Whoever is able to read it can go on; others go on with others.
  if (error instanceof IncompatibleVersion || error instanceof SealedLogbook) return { kind: 'illegible', error }
  if (error instanceof StorageFailure && error.retryable) return { kind: 'storage-away', error }
  return { kind: 'defect', error }
}
