/**
 * A run of a job, from the claim to the end of its flow. Acquires the flow in the logbook, runs it with an engine,
 * and reports the result; other modules decide and settle.
 */
import type { Claim, Job, Limits } from '../../board/index.ts'
import { type FlowRules, missingDeclarations, toBatchRun, toDeclared, toScheduledRun } from '../../board/internal.ts'
import { abortAfter, followSignals, openOrAbort, rejectOnAbort } from '../../core/async/abort.ts'
import { AbortFlag, type Stoppable } from '../../core/async/abort-flag.ts'
import type { HeldBackWrite } from '../../core/async/held-back-write.ts'
import {
  type Cancelled,
  ChildUnavailable,
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
import { failureOf, type TooManyRequests } from '../../core/failure.ts'
import { type Logger, lazyChildLog } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import type { AlarmClock, Duration } from '../../core/time.ts'
import type { Span } from '../../core/tracing.ts'
import { newUuid } from '../../core/uuid.ts'
import { type AtomIsolator, Engine } from '../../engine/index.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { AcquireRequest, FlowLog, Persistence } from '../../persistence/index.ts'
import type { KnownFlows } from '../claiming/known-flows.ts'
import type { ServiceContext } from '../services/define.ts'
import type { OpenServices, RunServices } from '../services/open.ts'
import { toBookRequest } from './book-owner.ts'
import type { RunEnding } from './decide.ts'
import { dependenciesOf, type EndReader } from './dependencies.ts'
import { keptOf, toKeptResults } from './kept-results.ts'
import { toRunningJob } from './running-job.ts'
import type { TaskWatch } from './task-watch.ts'
import { type JobStopWatch, jobStopWatch, type StopIgnored } from './unstopped-jobs.ts'

export interface JobRunContext {
  readonly flows: KnownFlows
  /** The id of the board whose jobs are run; recorded in the logbooks that are made for them. */
  readonly boardId: string
  /** The place of the logbooks that the board can write in the transaction that settles a job; undefined if there is none. */
  readonly recordedPlace: string | undefined
  readonly persistence: Persistence
  /** The limits of the board, whose tokens tasks take. */
  readonly limits: Pick<Limits, 'take' | 'isSupported'>
  /** Returns the settings of flows on the board. */
  readonly flowRules: () => FlowRules
  /** Called with the age in milliseconds at which the logbook of a job is to be removed, where its posting says so. */
  readonly onBookAge: (age: number) => void
  /** Reads how jobs ended after which others are run. */
  readonly readEnds: EndReader
  /** Makes the object that tasks find as `ctx.services`. */
  readonly services: Pick<OpenServices, 'shared' | 'forRun'>
  /** Runs isolated tasks. */
  readonly isolator: AtomIsolator | undefined
  /** The clock of deadlines and pauses. */
  readonly clock: AlarmClock
  readonly log: Logger
  /** The number of tasks of one flow that run at once. */
  readonly flowConcurrency: number
  /** The deadline of jobs that have none. */
  readonly defaultDeadline?: Duration | undefined
  /** Fires when flows must be suspended, in the second stage of a stop. */
  readonly suspend: Stoppable
  /** Fires when tasks that ignore their signal are not waited for any more. */
  readonly leave: Stoppable
  readonly tasks: TaskWatch
  readonly onStopIgnored: (event: StopIgnored) => void
  readonly onProgress: (event: RunProgressed) => void
}

/** What belongs to one run, beside what all runs of a conductor share. */
interface OwnRunOptions {
  readonly context: JobRunContext
  /** Fires, with the error, when code of this job has failed outside of every task's promise. */
  readonly faultStop: Stoppable
  /** The span of the run, if it is traced. */
  readonly span: Span | undefined
}

/** A progress report of a task. */
export interface RunProgressed {
  readonly job: Job
  readonly run: number
  readonly task: string
  /** The progress from 0 to 1. */
  readonly progress: number
  /** The text of the report, if it had one. */
  readonly message?: string
}

export interface JobRun {
  readonly ending: RunEnding
  /** The refusals of other systems that the tasks have reported. */
  readonly refused: readonly TooManyRequests[]
  /** The write of the end of the flow, if it was held back. The caller sends it with the settlement of the job, or alone before the settlement. */
  readonly heldBack?: HeldBackWrite | undefined
  /** Resolves when no code of the run executes any more: a task may continue after its signal fired. */
  readonly idle: Promise<void>
}

/** Runs the flow of a claimed job. Never rejects. */
export async function runJob(claim: Claim, options: OwnRunOptions): Promise<JobRun> {
  const { context, faultStop } = options
  // No code of the flow runs yet: a stop does not wait for logbooks or a schema that do not answer.
  const early = followSignals([claim.stops.lost, faultStop, context.suspend])
  try {
    const resolved = await resolveFlow(claim, options, early)
    if ('kind' in resolved) return endedRun(resolved)
    let heldBack: HeldBackWrite | undefined
    const holdBack = (write: HeldBackWrite) => {
      if (write.place === context.recordedPlace) heldBack = write
      return heldBack !== undefined
    }
    const request = toAcquireRequest(claim, { flow: resolved.flow, context, holdBack })
    const log = await openOrAbort(early, acquire(context.persistence, request))
    try {
      assertOwnLogbook(claim, { posted: resolved.flow.name, recorded: log.flow.name })
      const { flow, store } = resolved
      const { ending, refused, idle } = await runClaimedFlow(claim, { flow, store, log }, options)
      return { ending, refused, idle, heldBack }
    } finally {
      await log[Symbol.asyncDispose]()
    }
  } catch (error) {
    return endedRun(toStopEnding(error, { claim, faultStop }))
  } finally {
    early[Symbol.dispose]()
  }
}

interface ResolvedFlow {
  readonly flow: AnyFlow
  readonly store: Readonly<Record<string, unknown>>
}

/** Returns the flow with its inputs, or the end of a run that cannot begin. Never rejects. */
async function resolveFlow(
  claim: Claim,
  { context, faultStop }: OwnRunOptions,
  early: Stoppable,
): Promise<ResolvedFlow | RunEnding> {
  try {
    const resolved = await rejectOnAbort(context.flows.resolve(claim.job.details), early)
    return checkDeclarations(claim, resolved) ?? resolved
  } catch (error) {
    if (early.aborted) return toStopEnding(early.reason, { claim, faultStop })
    // A schema is user code: its errors are no faults of the posting, so `checkStore` changes them.
    return error instanceof JobboardError ? { kind: 'unworkable', error } : { kind: 'defect', error }
  }
}

interface LogRequest {
  readonly flow: AnyFlow
  readonly context: JobRunContext
  readonly holdBack: (write: HeldBackWrite) => boolean
}

function toAcquireRequest(claim: Claim, { flow, context, holdBack }: LogRequest): AcquireRequest {
  const { job, run } = claim
  const { boardId, services } = context
  return {
    book: toBookRequest(job.book, { boardId, flow: toKept(claim, { flow, context }) }),
    flow: { uuid: job.uuid, name: flow.name, version: flow.version },
    run,
    claim: newUuid(),
    settledOn: boardId,
    // Services may take long to be made, and meanwhile the logbook shows that the flow is pending.
    beginsAtOnce: services.forRun === undefined,
    holdBack,
  }
}

/** Returns what is kept of a job, by the settings that its flow has now. */
function toKept(
  { postingWithSettings }: Claim,
  { flow, context }: Pick<LogRequest, 'flow' | 'context'>,
): ReturnType<typeof keptOf> {
  const { resultTtl } = postingWithSettings
  const kept = keptOf(flow, { rules: context.flowRules(), resultTtl })
  if (resultTtl !== undefined) context.onBookAge(resultTtl)
  return kept
}

/** The number of times that a job is given back with added resources or limits: a new release may declare others. */
const MAX_AMENDMENTS = 8

/**
 * Returns the end of a run that must not begin, because the posting lacks resources or limits that the flow declares: the job was posted
 * without the flow's code, or by a release that declared others.
 */
function checkDeclarations(
  { posting }: Claim,
  { flow, store }: { readonly flow: AnyFlow; readonly store: Readonly<Record<string, unknown>> },
): RunEnding | undefined {
  let declared: ReturnType<typeof toDeclared>
  try {
    declared = toDeclared(flow, store)
  } catch (error) {
    // The functions are user code, as a schema is.
    return { kind: 'defect', error }
  }
  try {
    const added = missingDeclarations(posting, declared)
    if (!added) return undefined
    const { amended = 0 } = posting
    if (amended < MAX_AMENDMENTS) return { kind: 'undeclared', added }
    throw new InvalidPosting(
      `flow ${flow.name} declares other resources or limits at each claim: its posting functions must depend on nothing but the store`,
    )
  } catch (error) {
    return error instanceof InvalidPosting ? { kind: 'unworkable', error } : { kind: 'defect', error }
  }
}

/** The signals that stop the code of a run. */
interface RunSignals extends Disposable {
  /** Fires when the claim is lost, code outside of tasks has failed, or tasks that ignore their signal are not waited for any more. */
  readonly stop: Stoppable
  /** Fires when the job is cancelled, or its deadline has passed. */
  readonly cancel: Stoppable
  readonly watch: JobStopWatch
}

/** Follows the signals of a run until the result is disposed. */
function followRunSignals(
  { stops, job, run, postingWithSettings }: Claim,
  { context, faultStop }: OwnRunOptions,
): RunSignals {
  const { leave, tasks, clock, defaultDeadline, onStopIgnored } = context
  const stop = followSignals([stops.lost, faultStop, leave])
  // A deadline is enforced even if a task ignores its signal: the job is given back as failed, and the engine writes no more.
  const watch = jobStopWatch({ job, run, clock, onStopIgnored, giveBack: (reason) => stop.abort(reason) })
  const running = () => tasks.executing(job.uuid)
  const held: Disposable[] = [stop, watch(stops.cancelled, { running })]
  let cancel: Stoppable = stops.cancelled
  const deadline = postingWithSettings.deadline ?? defaultDeadline
  if (deadline !== undefined) {
    const limit = new AbortFlag()
    const late = (time: string) => new Timeout(`${job}: not done within ${time}`)
    const either = followSignals([stops.cancelled, limit])
    cancel = either
    // The two signals are watched separately: a deadline is enforced also after a cancellation.
    held.push(abortAfter(limit, deadline, late, clock), either, watch(limit, { running }))
  }
  const dispose = () => {
    for (const each of held) each[Symbol.dispose]()
  }
  return { stop, cancel, watch, [Symbol.dispose]: dispose }
}

/** Runs the flow of a claim, and follows its signals until the run has ended. Not async: see {@link attempt}. */
function runClaimedFlow(
  claim: Claim,
  what: ResolvedFlow & { readonly log: FlowLog },
  options: OwnRunOptions,
): Promise<JobRun> {
  const { context, faultStop, span } = options
  const signals = followRunSignals(claim, options)
  const running = runWithSignals(claim, what, { context, faultStop, span, signals })
  return running.finally(() => signals[Symbol.dispose]())
}

async function runWithSignals(
  claim: Claim,
  what: ResolvedFlow & { readonly log: FlowLog },
  { context, faultStop, span, signals }: OwnRunOptions & { readonly signals: RunSignals },
): Promise<JobRun> {
  const { stop, cancel, watch } = signals
  const { job } = claim
  const { tasks, persistence } = context
  const refused: TooManyRequests[] = []
  const { fence } = claim
  const runningJob = toRunningJob(job)
  const schedule = toScheduledRun(job.details)
  const batch = toBatchRun(job)
  const { shared, forRun } = context.services
  let services: RunServices | undefined
  if (forRun) {
    const facts = { fence, job: runningJob, schedule, batch, run: claim.run }
    const made = await makeRunServices(forRun, { ...facts, stop: [stop, context.suspend], span })
    if ('value' in made) services = made.value
    // This is an error of user code, like the error of a task: whatever its class is, it says nothing about the claim or the logbooks.
    else if ('error' in made) return endedRun({ kind: 'defect', error: made.error })
    else return endedRun(toStopEnding(made.stopped, { claim, faultStop }))
  }
  // Written out field by field: an object that is made by two spreads has a shape of its own in each run, which makes every access to it slow.
  const engine = new Engine({
    flow: what.flow,
    store: what.store,
    log: what.log,
    onTooManyRequests: (error) => refused.push(error),
    signals: { stop, suspend: context.suspend, cancel },
    assertOwner: () => claim.assertHeld(),
    context: {
      fence,
      job: runningJob,
      schedule,
      batch,
      limits: context.limits.isSupported ? context.limits : undefined,
      dependencies: dependenciesOf(job, context),
    },
    services: services ? services.services : shared,
    isolator: context.isolator,
    logger: lazyChildLog(context.log, { job: job.uuid }),
    concurrency: context.flowConcurrency,
    clock: context.clock,
    span,
    onProgress: ({ atom: task, progress, message }) =>
      context.onProgress({ job, run: claim.run, task, progress, ...defined({ message }) }),
    performing: (task, how, ownLimit) => {
      const end = tasks.begin({ job: job.uuid, name: job.name, task }, how)
      if (!ownLimit) return end
      // This signal also fires for the signals of the run. They are watched above, or the run is over: only the task's own deadline counts here.
      const watching = watch(ownLimit, { running: () => [task], onlyDeadline: true })
      return () => {
        end()
        watching[Symbol.dispose]()
      }
    },
  })
  // The services are closed only when no code of the flow executes any more.
  const whenIdle = () => (services ? engine.idle.then(() => services[Symbol.asyncDispose]()) : engine.idle)
  try {
    const { state, results, failures, revertFailures } = await engine.run()
    if (claim.stops.lost.aborted) return { ending: { kind: 'lost' }, refused: [], idle: whenIdle() }
    const cancelled = claim.stops.cancelled.aborted ? (claim.stops.cancelled.reason as Cancelled) : undefined
    const stopReason = cancel.aborted ? [failureOf(cancel.reason)] : []
    const why = failures.length > 0 ? failures : stopReason
    const place = { book: job.book.uuid, flow: job.uuid }
    const kept =
      state === 'SUCCESS'
        ? toKeptResults(toKept(claim, { flow: what.flow, context }), { results, place, persistence })
        : undefined
    const putOff = state === 'SUSPENDED' ? longestOf(refused) : undefined
    const ending = { kind: 'flow', state, failures: why, revertFailures, cancelled, putOff, results: kept } as const
    return { ending, refused, idle: whenIdle() }
  } catch (error) {
    return { ending: toStopEnding(error, { claim, faultStop }), idle: whenIdle(), refused }
  }
}

type ServicesOutcome =
  | { readonly value: RunServices }
  | { readonly error: unknown }
  /** The reason of the signal. */
  | { readonly stopped: unknown }

/**
 * Makes the services of a run; gives up when one of the signals fires. Never rejects. A cancellation and a deadline do not stop it, because the engine
 * needs services to undo what a former run has done; each service has a time limit of its own.
 */
async function makeRunServices(
  forRun: NonNullable<OpenServices['forRun']>,
  {
    stop,
    span,
    ...facts
  }: Omit<ServiceContext, 'signal'> & { readonly stop: readonly Stoppable[]; readonly span: Span | undefined },
): Promise<ServicesOutcome> {
  using making = followSignals(stop)
  const make = () => forRun({ ...facts, signal: making.signal })
  try {
    return { value: await (span ? span.within(make) : make()) }
  } catch (error) {
    return making.aborted ? { stopped: making.reason } : { error }
  }
}

/** Acquires the flow. A persistence that was closed while the conductor runs counts as away; the job is not charged. */
async function acquire(persistence: Persistence, request: AcquireRequest): Promise<FlowLog> {
  try {
    return await persistence.acquire(request)
  } catch (error) {
    if (!(error instanceof InvalidState)) throw error
    throw new StorageFailure(`the logbooks at ${persistence.uri}: ${error.message}`, { cause: error, retryable: true })
  }
}

/**
 * Checks that the logbook belongs to this flow. A UUID that was posted twice, for two flows, has one logbook: a SUCCESS in it would be the SUCCESS of
 * the other flow.
 *
 * @throws InvalidPosting
 */
function assertOwnLogbook({ job }: Claim, flows: { posted: string; recorded: string }): void {
  const { posted, recorded } = flows
  if (posted === recorded) return
  throw new InvalidPosting(
    `${job}: it names flow ${posted}, but the logbook of this uuid belongs to flow ${recorded}; post it with another uuid`,
  )
}

function endedRun(ending: RunEnding): JobRun {
  return { ending, idle: Promise.resolve(), refused: [] }
}

function longestOf(refused: readonly TooManyRequests[]): TooManyRequests | undefined {
  return refused.toSorted((a, b) => a.retryAfter - b.retryAfter).at(-1)
}

/** Returns the end of a run that a signal may have stopped: the reason of `faultStop` is an error of user code, whatever class it has. */
function toStopEnding(
  reason: unknown,
  { claim, faultStop }: { readonly claim: Claim; readonly faultStop: Stoppable },
): RunEnding {
  const isFault = faultStop.aborted && faultStop.reason === reason && !claim.stops.lost.aborted
  return isFault ? { kind: 'defect', error: reason } : toRunEnding(reason, claim)
}

/** Returns how a run ended because of an error of the board or of the logbooks, or because of the reason of a signal. */
export function toRunEnding(error: unknown, claim: Claim): RunEnding {
  if (claim.stops.lost.aborted) return { kind: 'lost' }
  if (error instanceof ShuttingDown) return { kind: 'shutdown' }
  if (error instanceof InvalidPosting) return { kind: 'unworkable', error }
  if (error instanceof Fenced) return { kind: 'fenced', newestRun: error.newestRun }
  if (error instanceof ClaimLost) return { kind: 'fenced', newestRun: undefined }
  // The logbook was written by a newer release, or with a key that is missing here. A conductor that can read it can
  // continue the job.
  if (error instanceof IncompatibleVersion || error instanceof SealedLogbook) return { kind: 'illegible', error }
  if (error instanceof ChildUnavailable) return { kind: 'no-child', error }
  if (error instanceof StorageFailure && error.retryable) return { kind: 'storage-away', error }
  return { kind: 'defect', error }
}
