/**
 * A conductor: claims jobs up to its number of slots, runs their flows, and settles them.
 *
 *     starting → busy ⇄ idle → draining → aborting → stopped
 *
 * - **busy, idle**: one loop claims for all slots, never more than are free. While the logbooks are away it claims nothing.
 * - **draining** (the first stage of a stop): nothing is claimed any more; what runs may finish, for `drainTimeout`.
 * - **aborting** (the second): tasks are told by their signal, flows are suspended in their logbook, and their jobs go
 *   back uncharged. A task that does not heed its signal is left behind after `abortTimeout`; it can write nothing more.
 *
 * A slot stays taken until the code of its run has really ended, and a job whose former run still executes here is not
 * claimed here: a task that ignores its signal must not get a second copy of itself beside it.
 */
import { hostname } from 'node:os'
import type { Claim, Job, JobBoard, Posting } from '../board/index.ts'
import { abortAfter, type FollowingSignal, followSignals, sharedController, unlessAborted } from '../core/abort.ts'
import { Condition } from '../core/condition.ts'
import { ShuttingDown } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { describeFailure, type Failure } from '../core/failure.ts'
import { keepAlive } from '../core/keep-alive.ts'
import { Lifecycle } from '../core/lifecycle.ts'
import { backoff, milliseconds, sleep } from '../core/time.ts'
import type { Persistence } from '../persistence/index.ts'
import { decide, type Verdict } from './decide.ts'
import { type JobRun, runJob } from './job-run.ts'
import type { KnownFlows } from './known-flows.ts'
import type { ConductorSettings } from './options.ts'
import { retain } from './retention.ts'
import { type Settled, settle } from './settle.ts'
import { UnknownFlows } from './unknown-flows.ts'

export interface ConductorParts extends ConductorSettings {
  readonly name: string
  readonly board: JobBoard
  readonly persistence: Persistence
  readonly flows: KnownFlows
  readonly services: unknown
  /** What was opened for this conductor, in the order in which it is closed at the end of a stop. */
  readonly owned: readonly AsyncDisposable[]
}

export interface ConductorEvents {
  /** A job was claimed and its flow is about to run. */
  started: { readonly job: Job; readonly run: number }
  /** Its run is over, and this is what became of the job. */
  settled: { readonly job: Job; readonly run: number; readonly settled: Settled; readonly failure?: Failure }
  /** Something failed that no job can be blamed for, or a listener threw. */
  error: { readonly error: Error }
}

const EVENTS: Readonly<Record<keyof ConductorEvents, true>> = { started: true, settled: true, error: true }

export type ConductorState = 'starting' | 'busy' | 'idle' | 'draining' | 'aborting' | 'stopped'

const LONGEST_PAUSE = 30_000

const LOOK_AGAIN = new ShuttingDown('a run has ended: look at the queue again')

export class Conductor implements AsyncDisposable {
  readonly name: string
  readonly #parts: ConductorParts
  readonly #lifecycle: Lifecycle
  readonly #events: Emitter<ConductorEvents>
  /** By job: every run of this process whose code may still be executing. */
  readonly #running = new Map<string, Promise<void>>()
  /** What is being settled: short, unlike the code of a task that does not heed its signal. */
  readonly #settling = new Set<Promise<unknown>>()
  /** Jobs on the board that were left alone because a former run of theirs still executes here. */
  readonly #leftAlone = new Set<string>()
  readonly #unknownFlows: UnknownFlows
  readonly #slotFreed = new Condition()
  readonly #draining = sharedController()
  readonly #suspend = sharedController()
  readonly #leave = sharedController()
  #lookAgain: FollowingSignal | undefined
  #storageFailures = 0
  #entity: AsyncDisposable | undefined
  #alive: Disposable | undefined
  #loop: Promise<void> = Promise.resolve()
  #retaining: Promise<void> = Promise.resolve()

  /** @internal Use `startConductor`. */
  constructor(parts: ConductorParts) {
    this.name = parts.name
    this.#parts = parts
    this.#lifecycle = new Lifecycle(`conductor ${parts.name}`)
    this.#unknownFlows = new UnknownFlows(parts)
    const listenerThrew = (error: unknown, event: keyof ConductorEvents) => {
      parts.log.error({ err: error, event }, 'a listener threw')
    }
    this.#events = new Emitter(listenerThrew, { events: EVENTS })
  }

  get state(): ConductorState {
    if (this.#lifecycle.state === 'new' || this.#lifecycle.state === 'starting') return 'starting'
    if (this.#lifecycle.state === 'stopped') return 'stopped'
    if (this.#suspend.signal.aborted) return 'aborting'
    if (this.#draining.signal.aborted) return 'draining'
    return this.#running.size > 0 ? 'busy' : 'idle'
  }

  /** How many jobs it runs now. */
  get running(): number {
    return this.#running.size
  }

  /** Resolves when it has stopped. */
  get stopped(): Promise<void> {
    return this.#lifecycle.stopped
  }

  /** Calls `listener` at each event, until the function returned is called. A listener that throws harms nobody. */
  on<E extends keyof ConductorEvents>(event: E, listener: (event: ConductorEvents[E]) => unknown): () => void {
    return this.#events.on(event, listener)
  }

  /** @internal Registers on the board and begins to claim. @throws Duplicate when a living conductor bears the name */
  start(): Promise<void> {
    return this.#lifecycle.start(
      async () => {
        const { board, persistence, flows, concurrency, log } = this.#parts
        const metadata = { host: hostname(), pid: process.pid, flows: flows.names, concurrency, startedAt: new Date() }
        this.#entity = await board.registerEntity({ kind: 'conductor', name: this.name, metadata })
        this.#alive = keepAlive()
        this.#loop = this.#claimAndRun()
        this.#retaining = this.#retain()
        const places = { board: board.uri, persistence: persistence.uri }
        log.info({ conductor: this.name, ...places, flows: flows.names, concurrency }, 'conductor started')
      },
      async () => this.#draining.abort(),
    )
  }

  /** Drains, then aborts what has not finished in `drainTimeout`; idempotent. Resolves when nothing of it runs. */
  stop(): Promise<void> {
    this.#draining.abort(new ShuttingDown(`conductor ${this.name} is stopping`))
    return this.#lifecycle.stop(async () => {
      using _alive = this.#alive
      const { drainTimeout, abortTimeout, owned, log } = this.#parts
      log.info({ conductor: this.name, running: this.running }, 'conductor draining')
      await Promise.all([this.#loop, this.#retaining])
      await this.#allOver({ within: milliseconds(drainTimeout, 'drainTimeout'), unless: this.#suspend.signal })
      this.abort()
      await this.#allOver({ within: milliseconds(abortTimeout, 'abortTimeout') })
      this.#leave.abort(new ShuttingDown(`conductor ${this.name} has stopped`))
      await Promise.all(this.#settling)
      await this.#unregister()
      for (const opened of owned) await opened[Symbol.asyncDispose]()
      log.info({ conductor: this.name, leftBehind: this.running }, 'conductor stopped')
    })
  }

  /** Goes on to the second stage of a stop at once: tasks are told to stop, their jobs go back to the board. */
  abort(): void {
    this.#draining.abort(new ShuttingDown(`conductor ${this.name} is stopping`))
    if (this.#suspend.signal.aborted) return
    if (this.running > 0) this.#parts.log.warn({ conductor: this.name, running: this.running }, 'conductor aborting')
    this.#suspend.abort(
      new ShuttingDown(`conductor ${this.name} is stopping: stop now, the job goes back to the board`),
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  // --- Claiming ---------------------------------------------------------------------------------------------------

  async #claimAndRun(): Promise<void> {
    const signal = this.#draining.signal
    for (let failures = 0; !signal.aborted; ) {
      try {
        await this.#untilReady(signal)
        for (const claim of await this.#claimNext(signal)) this.#dispatch(claim)
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        failures += 1
        this.#failed(error)
        await sleep(backoff(failures, { first: 100, max: LONGEST_PAUSE }), { signal }).catch(() => undefined)
      }
    }
  }

  async #retain(): Promise<void> {
    const { removeLogbooksAfter: age, ...parts } = this.#parts
    if (age !== undefined)
      await retain({ ...parts, age: milliseconds(age, 'removeLogbooksAfter') }, this.#draining.signal)
  }

  /** A slot is free, and the logbooks are not known to be away. */
  async #untilReady(signal: AbortSignal): Promise<void> {
    if (this.#storageFailures > 0) {
      await sleep(backoff(this.#storageFailures, { first: 200, max: LONGEST_PAUSE }), { signal })
    }
    while (this.#running.size >= this.#parts.concurrency) await this.#slotFreed.wait({ signal })
  }

  /** Empty when a run has ended here meanwhile, and with it a reason to leave its job alone. */
  async #claimNext(signal: AbortSignal): Promise<Claim[]> {
    const max = this.#parts.concurrency - this.#running.size
    const accept = (posting: Posting) => this.#accepts(posting)
    using look = followSignals([signal])
    this.#lookAgain = look
    try {
      return await this.#parts.board.claimNext({ max, accept, signal: look.signal })
    } catch (error) {
      if (error === LOOK_AGAIN && !signal.aborted) return []
      throw error
    } finally {
      this.#lookAgain = undefined
    }
  }

  #accepts(posting: Posting): boolean {
    if (this.#running.has(posting.uuid)) {
      this.#leftAlone.add(posting.uuid)
      return false
    }
    if (this.#parts.flows.accepts(posting.details, this.#parts.board)) return true
    // Only a job of TaskFlow's is refused without naming a flow: that is no news.
    if (posting.details.flow !== undefined) this.#unknownFlows.met(posting)
    return false
  }

  #runOver(uuid: string): void {
    this.#running.delete(uuid)
    this.#slotFreed.notify()
    if (this.#leftAlone.delete(uuid)) this.#lookAgain?.abort(LOOK_AGAIN)
  }

  // --- Running ----------------------------------------------------------------------------------------------------

  #dispatch(claim: Claim): void {
    const { uuid } = claim.job
    const settled = this.#runAndSettle(claim).catch((error: unknown) => {
      this.#failed(error)
      return { idle: Promise.resolve() }
    })
    this.#settling.add(settled)
    const over = settled
      .then(({ idle }) => {
        this.#settling.delete(settled)
        return idle
      })
      .finally(() => this.#runOver(uuid))
    this.#running.set(uuid, over)
  }

  /** `idle` resolves when the code of the run has ended, too. */
  async #runAndSettle(claim: Claim): Promise<{ idle: Promise<void> }> {
    const { job, run } = claim
    this.#events.emit('started', { job, run })
    const { ending, idle } = await this.#run(claim)
    const verdict = decide(ending, this.#parts)
    if (ending.kind === 'fenced') await this.#standBack(claim)
    const settled = await settle(claim, verdict, { failed: (error) => this.#failed(error), leave: this.#leave.signal })
    this.#report(claim, verdict, settled)
    return { idle }
  }

  async #run(claim: Claim): Promise<JobRun> {
    if (this.#draining.signal.aborted) return { ending: { kind: 'shutdown' }, idle: Promise.resolve() }
    const run = await runJob(claim, { ...this.#parts, suspend: this.#suspend.signal, leave: this.#leave.signal })
    this.#storageFailures = run.ending.kind === 'storage-away' ? this.#storageFailures + 1 : 0
    return run
  }

  /**
   * Two jobs of one uuid, posted twice after a lost answer, fence each other. Whoever is fenced waits before it gives the
   * job back, longer each time, or the two would take the flow from each other for ever before a task can end.
   */
  async #standBack(claim: Claim): Promise<void> {
    const returned = claim.job.attempts.filter((attempt) => attempt.ended === 'returned').length
    using signal = followSignals([claim.lost, this.#suspend.signal])
    await sleep(backoff(returned + 1, { first: 500, max: LONGEST_PAUSE }), signal).catch(() => undefined)
  }

  #report(claim: Claim, verdict: Verdict, settled: Settled): void {
    const { job, run } = claim
    const failure = 'failure' in verdict ? { failure: verdict.failure } : {}
    const facts = {
      job: job.uuid,
      name: job.name,
      run,
      ...('failure' in verdict ? { because: describeFailure(verdict.failure) } : {}),
    }
    if (settled === 'unknown')
      this.#parts.log.warn(facts, 'nobody can tell whether the job was settled; if not, it runs again')
    else if ('failure' in verdict) this.#parts.log.warn(facts, `job ${settled}`)
    else this.#parts.log.info(facts, `job ${settled}`)
    this.#events.emit('settled', { job, run, settled, ...failure })
  }

  /** Resolves when nothing runs any more, when the time is over, or when the signal fires. */
  async #allOver(limits: { within: number; unless?: AbortSignal }): Promise<void> {
    using stop = followSignals([limits.unless])
    using _timer = abortAfter(stop, limits.within, () => new ShuttingDown('the time is over'))
    await unlessAborted(Promise.all(this.#running.values()), stop.signal).catch(() => undefined)
  }

  /** Not without a connection: it would wait for one, and the end of the session takes the entity away anyway. */
  async #unregister(): Promise<void> {
    if (!this.#parts.board.connected) return
    try {
      await this.#entity?.[Symbol.asyncDispose]()
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(thrown: unknown): void {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    this.#parts.log.warn({ err: error }, 'a fault in the background')
    this.#events.emit('error', { error })
  }
}
