/**
 * The runs of a conductor: each from its claim until its job is settled and none of its code executes any more.
 *
 * A slot stays taken until then: a task that ignores its signal continues although its job was given back.
 */
import type { Claim, Job, JobBoard, Limits } from '../../board/index.ts'
import { followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { AbortFlag } from '../../core/async/abort-flag.ts'
import { runInExecution } from '../../core/async/execution.ts'
import type { HeldBackWrite } from '../../core/async/held-back-write.ts'
import { Cancelled, UnsupportedCapability } from '../../core/errors.ts'
import { describeError, describeFailure, type Failure, type TooManyRequests, toErrorType } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import { backoffDelay, sleep } from '../../core/time.ts'
import { parseTraceContext, type Span } from '../../core/tracing.ts'
import type { Telemetry } from '../../telemetry/index.ts'
import { decide, type OnFailure, type RunEnding, type Verdict } from './decide.ts'
import type { DisclosurePolicy } from './disclosure.ts'
import { type JobRun, type JobRunContext, runJob, toRunEnding } from './job-run.ts'
import { askDeciders, type ErrorHandler, toDeciders, UNCHANGED } from './on-error.ts'
import { consumeWithRecord, type Settled, settle } from './settle.ts'

/** A job was claimed and its flow is about to run. */
export interface RunStarted {
  /** The board of the job. */
  readonly board: JobBoard
  readonly job: Job
  readonly run: number
}

/** A run is over; `settled` is the result for the job. */
export interface RunSettled extends RunStarted {
  readonly settled: Settled
  readonly failure?: Failure
}

export interface RunsOptions extends JobRunContext {
  readonly board: JobBoard
  readonly limits: Pick<Limits, 'pushBack' | 'take' | 'isSupported'>
  readonly onFailure: OnFailure
  /** Decide what becomes of jobs that fail, before `posting.retry` of their flow. */
  readonly errorHandlers: readonly ErrorHandler[]
  /** The policy for reasons and failures on the board. */
  readonly disclosure: DisclosurePolicy
  readonly log: Logger
  /** The receiver of the spans of the runs. */
  readonly telemetry?: Telemetry | undefined
  /** Fires when no more runs may begin. */
  readonly draining: AbortSignal
  readonly onStarted: (event: RunStarted) => void
  readonly onSettled: (event: RunSettled) => void
  /** Called when no code of a run of this job executes any more. */
  readonly onEnded: (uuid: string) => void
  /** Called when a run has ended, with the reason if it has found the logbooks away. */
  readonly onStorage: (fault: string | undefined) => void
  readonly onError: (error: unknown) => void
}

/** The longest time, in milliseconds, that a fenced job is held before it is given back. */
const MAX_FENCED_PAUSE_MS = 30_000

export class Runs {
  readonly #options: RunsOptions
  /** The runs of this process whose code may still be executing, by job. A UUID that was posted twice can have two. */
  readonly #running = new Map<string, Set<Promise<void>>>()
  #size = 0
  /** The runs that are not settled yet. A run whose task ignores its signal leaves this set when its job is given back. */
  readonly #unsettled = new Set<Promise<unknown>>()
  /** The jobs of the runs that are settled and whose code still executes. */
  readonly #unended = new Set<{ readonly uuid: string }>()

  constructor(options: RunsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#size
  }

  get uuids(): string[] {
    return [...this.#running.keys()]
  }

  /** The jobs that were given back or lost, and whose tasks still execute and keep their slots. */
  get unended(): string[] {
    return [...this.#unended].map(({ uuid }) => uuid)
  }

  has(uuid: string): boolean {
    return this.#running.has(uuid)
  }

  begin(claim: Claim): void {
    const { uuid } = claim.job
    const left = { uuid }
    const settled = this.#runAndSettle(claim).catch(async (error: unknown) => {
      this.#options.onError(error)
      // A claim that is never settled would block its job for as long as this process lives.
      await claim[Symbol.asyncDispose]().catch(this.#options.onError)
      return { idle: Promise.resolve() }
    })
    this.#unsettled.add(settled)
    const over = settled
      .then(({ idle }) => {
        this.#unsettled.delete(settled)
        this.#unended.add(left)
        return idle
      })
      .finally(() => {
        this.#unended.delete(left)
        this.#forget(uuid, over)
        this.#options.onEnded(uuid)
      })
    this.#size += 1
    this.#running.set(uuid, (this.#running.get(uuid) ?? new Set()).add(over))
  }

  /** Resolves when no code of the present runs executes any more. */
  async whenIdle(): Promise<void> {
    await Promise.all([...this.#running.values()].flatMap((runs) => [...runs]))
  }

  /** Resolves when all present runs are settled. The code of a task that ignores its signal may still execute. */
  async whenSettled(): Promise<void> {
    await Promise.all(this.#unsettled)
  }

  #forget(uuid: string, over: Promise<void>): void {
    const runs = this.#running.get(uuid)
    runs?.delete(over)
    if (runs?.size === 0) this.#running.delete(uuid)
    this.#size -= 1
  }

  /** Runs a job and settles it. `idle` resolves when the code of the run has ended, too. */
  async #runAndSettle(claim: Claim): Promise<{ idle: Promise<void> }> {
    const { job, run } = claim
    const { board, onStarted, onError, leave, disclosure, clock, flows, errorHandlers } = this.#options
    onStarted({ board, job, run })
    const span = this.#startSpan(claim)
    const ran = await this.#run(claim, span)
    const { idle, refused } = ran
    // Before the job is given back: no other job of the key starts in between.
    if (refused.length > 0) await this.#pushBack(claim, refused)
    const { ending, consumed } = await this.#record(claim, ran)
    const decided = decide(ending, this.#options)
    let change = UNCHANGED
    if ('failure' in decided) {
      const deciders = toDeciders(errorHandlers, flows.find(job.details))
      change = await askDeciders(decided, { deciders, job, run, stop: [claim.stops.lost], clock, failed: onError })
    }
    const verdict = change(decided)
    if (ending.kind === 'fenced') await this.#delayAbandon(claim)
    const disclosed = change(disclosure.decide(ending, this.#options))
    const settled = consumed ?? (await settle(claim, disclosed, { onError, leave, disclosure }))
    endSpan(span, { settled, disclosed })
    this.#report(claim, { verdict, settled, span })
    return { idle }
  }

  /**
   * Sends the write that was held back: with the settlement if the flow succeeded, otherwise alone, also if the board or the logbook refuses both
   * together. Returns how the run has ended after this, and the result for the job if the job is settled.
   */
  async #record(
    claim: Claim,
    { ending, heldBack }: Pick<JobRun, 'ending' | 'heldBack'>,
  ): Promise<{ readonly ending: RunEnding; readonly consumed?: Settled | undefined }> {
    if (!heldBack || ending.kind === 'lost') return { ending }
    if (ending.kind === 'flow' && ending.state === 'SUCCESS') {
      const consumed = await consumeWithRecord(claim, { results: ending.results, record: heldBack })
      if (consumed) return { ending, consumed }
    }
    return { ending: (await this.#sendHeldBack(claim, heldBack)) ?? ending }
  }

  /** Sends the write that was held back alone. Returns how the run has ended instead, if the logbook refuses it. */
  async #sendHeldBack(claim: Claim, heldBack: HeldBackWrite): Promise<RunEnding | undefined> {
    // As the writes of the flow: they do not go on when the claim is lost, or when the conductor leaves the job.
    using stop = followSignals([claim.stops.lost, this.#options.leave])
    try {
      await rejectOnAbort(heldBack.send(), stop)
      return undefined
    } catch (error) {
      const refused = toRunEnding(error, claim)
      if (refused.kind === 'storage-away') this.#options.onStorage(refused.error.message)
      return refused
    }
  }

  /** Starts the span of a run; undefined where nothing is traced. */
  #startSpan({ job, run, posting }: Claim): Span | undefined {
    const { telemetry, board } = this.#options
    if (!telemetry?.tracer) return undefined
    const { flow } = job.details
    const posted = parseTraceContext(posting)
    return telemetry.tracer.startRun({ board: board.uri, flow, uuid: job.uuid, run, posted })
  }

  /** Pushes back the keys that tasks have named. The job is given back in any case. */
  async #pushBack({ job, stops }: Claim, refused: readonly TooManyRequests[]): Promise<void> {
    const { limits, onError } = this.#options
    for (const { key, retryAfter, message } of refused) {
      if (key === undefined || retryAfter === 0) continue
      const pushing = limits.pushBack(key, { for: retryAfter, reason: `${message} (${job})` })
      await rejectOnAbort(pushing, stops.lost).catch((error: unknown) => {
        if (!(error instanceof UnsupportedCapability)) onError(error)
      })
    }
  }

  async #run(claim: Claim, span: Span | undefined): Promise<JobRun> {
    if (this.#options.draining.aborted) return { ending: { kind: 'shutdown' }, idle: Promise.resolve(), refused: [] }
    const fault = new AbortFlag()
    const { job, run: number } = claim
    // A rejection with the reason of a signal that stops the run is not a failure of the job.
    const { suspend, leave } = this.#options
    const stops = [claim.stops.lost, claim.stops.cancelled, suspend, leave]
    const fail = (error: Error) => {
      if (!stops.some(({ aborted, reason }) => aborted && reason === error)) fault.abort(error)
    }
    const work = { job: job.uuid, name: job.name, run: number, fail }
    const run = await runInExecution(work, () => runJob(claim, { context: this.#options, faultStop: fault, span }))
    this.#options.onStorage(run.ending.kind === 'storage-away' ? run.ending.error.message : undefined)
    return run
  }

  /**
   * Waits before a fenced job is given back, longer each time. Two jobs of one UUID, posted twice after a lost answer,
   * fence each other; without the pause they would take the flow from each other forever before a task can end.
   */
  async #delayAbandon(claim: Claim): Promise<void> {
    const returned = claim.job.attempts.filter((attempt) => attempt.ended === 'returned').length
    using signal = followSignals([claim.stops.lost, this.#options.suspend])
    await sleep(backoffDelay(returned + 1, { first: 500, max: MAX_FENCED_PAUSE_MS }), signal).catch(() => undefined)
  }

  #report(
    { job, run, stops: { lost } }: Claim,
    {
      verdict,
      settled,
      span,
    }: { readonly verdict: Verdict; readonly settled: Settled; readonly span: Span | undefined },
  ): void {
    const { board, log } = this.#options
    const failure = 'failure' in verdict ? verdict.failure : undefined
    const { flow } = job.details
    const facts = {
      job: job.uuid,
      name: job.name,
      ...defined({ flow }),
      run,
      ...span?.logFields,
      ...verdictReason(verdict),
    }
    if (settled === 'unknown') log.warn(facts, 'it is unknown whether the job was settled; if not, it runs again')
    else if (settled === 'lost')
      log.warn({ ...facts, ...(lost.aborted ? { because: describeError(lost.reason) } : {}) }, 'job lost')
    else if (failure && settled === 'abandoned') log.warn(facts, 'job failed, and will run again')
    else if ('added' in verdict && settled === 'abandoned')
      log.warn(facts, 'job is given back: its posting lacked what its flow declares, which was added')
    else if (failure || 'rests' in verdict) log.warn(facts, `job ${settled}`)
    else log.info(facts, `job ${settled}`)
    this.#options.onSettled({ board, job, run, settled, ...defined({ failure }) })
  }
}

/** Returns how a run ended, in one word. */
export function toOutcome({ settled, failure }: Pick<RunSettled, 'settled' | 'failure'>): string {
  if (settled === 'consumed') return 'done'
  if (settled === 'lost' || settled === 'unknown') return 'lost'
  if (failure?.code === Cancelled.code) return 'cancelled'
  if (settled === 'trashed') return 'trashed'
  return failure ? 'failed' : 'returned'
}

/** Ends the span of a run. It says no more of a failure than the board does. */
function endSpan(
  span: Span | undefined,
  { settled, disclosed }: { readonly settled: Settled; readonly disclosed: Verdict },
): void {
  if (!span) return
  const failure = 'failure' in disclosed ? disclosed.failure : undefined
  const outcome = toOutcome({ settled, ...defined({ failure }) })
  span.end({ outcome, errorType: failure && toErrorType(failure), message: verdictReason(disclosed).because })
}

/** Returns the reason for the log. */
function verdictReason(verdict: Verdict): { readonly because?: string } {
  if ('failure' in verdict) return { because: describeFailure(verdict.failure) }
  return 'reason' in verdict ? { because: verdict.reason } : {}
}
