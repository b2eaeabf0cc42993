/**
 * A conductor claims jobs up to its number of slots, runs their flows, and settles them.
 *
 *     starting → busy ⇄ idle → draining → aborting → stopped
 *                  ⇅     ⇅        ↑
 *                  paused ────────┘
 *
 * - **busy, idle**: it claims jobs, never more than slots are free (`claiming/claim-loop.ts`). A filter decides which
 *   jobs (`claiming/job-filter.ts`).
 * - **paused**: it claims nothing; running jobs continue.
 * - **draining** (the first stage of a stop): it claims no more jobs; running jobs may finish within `drainTimeout`.
 * - **aborting** (the second stage): the signals of the tasks fire, flows are suspended in their logbooks, and their
 *   jobs return to the board uncharged. A task that ignores its signal is not waited for after
 *   `abortTimeout`; it can no longer write to the logbook.
 *
 * A slot stays taken until the code of its run has ended.
 */
import type { DeclaredSchedules, JobBoard } from '../board/index.ts'
import { boardId } from '../board/internal.ts'
import { abortAfter, createSharedController, followSignals, rejectOnAbort } from '../core/async/abort.ts'
import { keepAlive, Lifecycle } from '../core/async/lifecycle.ts'
import { asError, NotFound, ShuttingDown, StorageFailure, UnsupportedCapability } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { defined } from '../core/options.ts'
import { monotonic, toMilliseconds } from '../core/time.ts'
import { IN_PROCESS } from '../engine/index.ts'
import type { Persistence } from '../persistence/index.ts'
import type { PoolEvent } from '../pool/index.ts'
import { ClaimLoop } from './claiming/claim-loop.ts'
import { JobFilter } from './claiming/job-filter.ts'
import type { KnownFlows } from './claiming/known-flows.ts'
import { type ConductorCounts, RunCounters } from './counters.ts'
import { type EventLoopBlocked, formatBlocked, watchEventLoop } from './event-loop-watch.ts'
import { type ChildStartedEvent, CONDUCTOR_EVENTS, type ConductorEvents, toChildDied } from './events.ts'
import { type Health, type HealthServer, serveHealth } from './health-server.ts'
import { runBeforeClaim, subscribeHooks } from './hooks.ts'
import { type IsolatedAtoms, toChildrenHealth, toStateCounts } from './isolation/isolated-atoms.ts'
import { ConductorMetrics } from './metrics.ts'
import type { ConductorSettings } from './options.ts'
import { Registration } from './registration.ts'
import { retain } from './retention.ts'
import { toFlowAges } from './runs/book-owner.ts'
import { DisclosurePolicy } from './runs/disclosure.ts'
import { type RunStarted, Runs } from './runs/runs.ts'
import { TaskWatch } from './runs/task-watch.ts'
import { formatStopIgnored, type StopIgnored } from './runs/unstopped-jobs.ts'
import { Scheduling } from './scheduling.ts'
import { ServiceHealth } from './services/health.ts'
import type { OpenServices } from './services/open.ts'
import { retainTrash } from './trash-retention.ts'

export interface ConductorParts extends ConductorSettings {
  readonly name: string
  readonly board: JobBoard
  readonly persistence: Persistence
  readonly flows: KnownFlows
  readonly services: OpenServices
  /** The child processes for isolated tasks. */
  readonly isolator: IsolatedAtoms | undefined
  /** Whether isolated tasks run in child processes; if not, they run in this process. */
  readonly isolates: boolean
  /** The schedules that it declares. */
  readonly schedules: Required<DeclaredSchedules> | undefined
  /** The resources opened for this conductor, in the order in which they are closed at the end of a stop. */
  readonly owned: readonly AsyncDisposable[]
}

/** The state of a conductor. `busy` and `idle` claim jobs; `draining` and `aborting` are the two stages of a stop. */
export type ConductorState = 'starting' | 'busy' | 'idle' | 'paused' | 'draining' | 'aborting' | 'stopped'

/** The UUID of no logbook: reading it shows whether the storage answers. */
const NO_BOOK_UUID = '00000000-0000-0000-0000-000000000000'

/**
 * Claims jobs, up to its number of slots, runs their flows, and settles them. `startConductor` creates it; `stop()`,
 * `abort()` or the end of an `await using` ends it. A stopped conductor cannot be started again.
 */
export class Conductor implements AsyncDisposable {
  readonly name: string
  readonly #parts: ConductorParts
  readonly #lifecycle: Lifecycle
  readonly #events: Emitter<ConductorEvents>
  readonly #runs: Runs
  readonly #jobFilter: JobFilter
  readonly #claimLoop: ClaimLoop
  readonly #registration: Registration
  readonly #tasks: TaskWatch
  readonly #scheduling: Scheduling
  readonly #serviceHealth: ServiceHealth
  readonly #counters = new RunCounters()
  readonly #metrics: ConductorMetrics | undefined
  readonly #draining = createSharedController()
  readonly #suspend = createSharedController()
  readonly #leave = createSharedController()
  #healthServer: HealthServer | undefined
  #alive: Disposable | undefined
  #watch: Disposable | undefined
  #loop: Promise<void> = Promise.resolve()
  #retaining: Promise<void> = Promise.resolve()
  #publishing: Promise<void> = Promise.resolve()
  #checking: Promise<void> = Promise.resolve()
  #fault: Error | undefined
  #drainingSince: Date | undefined

  /** @internal Use `startConductor`. */
  constructor(parts: ConductorParts) {
    this.name = parts.name
    this.#parts = parts
    this.#lifecycle = new Lifecycle(`conductor ${parts.name}`)
    const listenerThrew = (error: unknown, event: keyof ConductorEvents) => {
      parts.log.error({ err: error, event }, 'a listener threw')
    }
    this.#events = new Emitter(listenerThrew, { events: CONDUCTOR_EVENTS })
    // The watch looks for blocks of half of the session's timeout: a task that runs for less cannot have caused one.
    this.#metrics = this.#createMetrics()
    if (parts.hooks) subscribeHooks(parts.hooks, { events: this.#events, onError: (error) => this.#reportError(error) })
    this.#tasks = new TaskWatch({ minimum: (parts.board.sessionTimeout ?? 0) / 4, now: monotonic })
    this.#runs = new Runs({
      ...parts,
      isolator: parts.isolator ?? (parts.isolates ? undefined : IN_PROCESS),
      disclosure: new DisclosurePolicy({ ...parts, encrypted: parts.persistence.encrypts === true }),
      limits: parts.board.limits,
      readEnds: (asked) => parts.board.readEnds(asked),
      boardId: boardId(parts.board.uri),
      clock: parts.board.clock,
      draining: this.#draining.signal,
      suspend: this.#suspend.signal,
      leave: this.#leave.signal,
      errorHandler: parts.onError,
      onStarted: (event) => this.#runStarted(event),
      onSettled: (event) => {
        this.#scheduling.onSettled(event)
        this.#counters.onSettled(event)
        this.#events.emit('settled', event)
      },
      tasks: this.#tasks,
      onStopIgnored: (event) => this.#onStopIgnored(event),
      onProgress: (event) => this.#events.emit('progress', event),
      onEnded: (uuid) => this.#onRunEnded(uuid),
      onStorage: (state) => this.#claimLoop.noteStorage(state),
      onError: (error) => this.#reportError(error),
    })
    this.#scheduling = new Scheduling({
      ...parts,
      emit: (event, value) => this.#events.emit(event, value),
      onError: (error) => this.#reportError(error),
    })
    this.#jobFilter = new JobFilter({
      ...parts,
      takeoverDelay: toMilliseconds(parts.takeoverDelay, 'takeoverDelay'),
      isRunning: (uuid) => this.#runs.has(uuid),
      hasRoomFor: (flow) => !parts.isolator?.isIsolated(flow) || parts.isolator.hasRoom,
      onRecheck: () => this.#claimLoop.recheck(),
    })
    this.#serviceHealth = new ServiceHealth({
      services: parts.services.checkable,
      log: parts.log,
      onChange: () => this.#claimLoop.recheck(),
    })
    this.#claimLoop = new ClaimLoop({
      ...parts,
      slots: parts.concurrency,
      maxIdleTime: parts.maxIdleTime === undefined ? undefined : toMilliseconds(parts.maxIdleTime, 'maxIdleTime'),
      accept: (posting) => this.#jobFilter.accepts(posting),
      hasRoom: () => parts.isolator?.hasRoomForAny ?? true,
      areServicesHealthy: () => this.#serviceHealth.isHealthy,
      dispatch: (claim) => this.#runs.begin(claim),
      isStorageBack: () => this.#storageIsBack(),
      onError: (error) => this.#reportError(error),
      onChange: () => this.#registration.statusChanged(),
    })
    this.#registration = new Registration({
      ...parts,
      flows: parts.flows,
      status: () => ({
        ...{ state: this.state, jobs: this.#runs.uuids, isolator: parts.isolator },
        ...{ counts: this.counts, drainingSince: this.#drainingSince },
      }),
      onError: (error) => this.#reportError(error),
    })
  }

  get state(): ConductorState {
    if (this.#lifecycle.state === 'new' || this.#lifecycle.state === 'starting') return 'starting'
    if (this.#lifecycle.state === 'stopped') return 'stopped'
    if (this.#suspend.signal.aborted) return 'aborting'
    if (this.#draining.signal.aborted) return 'draining'
    if (this.#claimLoop.paused) return 'paused'
    return this.#runs.size > 0 ? 'busy' : 'idle'
  }

  /**
   * Whether it can claim when a slot is free: it runs, neither the board nor the logbooks are known to be away, its services are healthy,
   * and child processes can be started if it has a pool.
   */
  get healthy(): boolean {
    const canStartChildren = this.#parts.isolator?.refusal === undefined
    const canRun = canStartChildren && this.#serviceHealth.isHealthy
    return this.#lifecycle.state === 'running' && this.#claimLoop.isHealthy && canRun
  }

  /** The last time at which it could have claimed a job; the present time while it waits for a job. */
  get lastClaimableCheck(): Date | undefined {
    return this.#claimLoop.lastClaimableCheck
  }

  /** The URL of `/healthz` and `/readyz`, when the option `health` is set. */
  get healthUrl(): string | undefined {
    return this.#healthServer?.url
  }

  /** The number of jobs that run now. */
  get running(): number {
    return this.#runs.size
  }

  /** What it has done since its start. */
  get counts(): ConductorCounts {
    return this.#counters.counts
  }

  /** The error for which it has stopped by itself; its process should be started again. */
  get fault(): Error | undefined {
    return this.#fault
  }

  /** Resolves when the conductor has stopped. */
  get stopped(): Promise<void> {
    return this.#lifecycle.stopped
  }

  /**
   * Calls `listener` at each event, until the returned function is called. An error of a listener does not affect other
   * listeners.
   */
  on<E extends keyof ConductorEvents>(event: E, listener: (event: ConductorEvents[E]) => unknown): () => void {
    return this.#events.on(event, listener)
  }

  /** Registers on the board and begins to claim. @internal @throws Duplicate when a living conductor has the name */
  start(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    return this.#lifecycle.start(
      async () => {
        const { board, persistence, flows, concurrency, health, log } = this.#parts
        const failed = (error: unknown) => this.#reportError(error)
        this.#metrics?.subscribe()
        const answers = { health: () => this.#health(), metrics: this.#metrics, failed }
        if (health) this.#healthServer = await serveHealth(health, answers)
        await this.#registration.register(options)
        await this.#runBeforeClaim(options.signal)
        await this.#scheduling.start()
        await this.#serviceHealth.check(this.#draining.signal)
        this.#publishing = this.#publishFlows()
        this.#alive = keepAlive()
        this.#watch = this.#watchEventLoop()
        this.#loop = this.#claimAndRun()
        this.#retaining = this.#retain()
        this.#checking = this.#serviceHealth.run(this.#draining.signal)
        const places = { board: board.uri, persistence: persistence.uri }
        log.info({ conductor: this.name, ...places, flows: flows.names, concurrency }, 'conductor started')
      },
      async () => {
        this.#draining.abort()
        await this.#scheduling[Symbol.asyncDispose]()
        await this.#registration.unregister()
        await this.#healthServer?.[Symbol.asyncDispose]()
      },
    )
  }

  /**
   * Stops claiming until {@link resume}; running jobs continue. `board.pause()` applies to all conductors, and lasts
   * when they end.
   */
  pause(): void {
    this.#claimLoop.pause()
  }

  resume(): void {
    this.#claimLoop.resume()
  }

  /**
   * Drains, then aborts the jobs that have not finished within `drainTimeout`; idempotent. Resolves when nothing runs
   * any more.
   */
  stop(): Promise<void> {
    this.#draining.abort(new ShuttingDown(`conductor ${this.name} is stopping`))
    this.#drainingSince ??= new Date()
    return this.#lifecycle.stop(async () => {
      using _alive = this.#alive
      using _watch = this.#watch
      using _selection = this.#jobFilter
      const { drainTimeout, abortTimeout, owned, log } = this.#parts
      log.info({ conductor: this.name, running: this.running }, 'conductor draining')
      this.#registration.statusChanged()
      // The other conductors fire, as this one will be gone soon.
      const background = [this.#loop, this.#retaining, this.#publishing, this.#checking]
      await Promise.all([...background, this.#scheduling[Symbol.asyncDispose]()])
      await this.#waitForRuns({ within: toMilliseconds(drainTimeout, 'drainTimeout'), unless: this.#suspend.signal })
      this.abort()
      await this.#waitForRuns({ within: toMilliseconds(abortTimeout, 'abortTimeout') })
      this.#leave.abort(new ShuttingDown(`conductor ${this.name} has stopped`))
      await this.#runs.whenSettled()
      await this.#registration.unregister()
      await this.#healthServer?.[Symbol.asyncDispose]()
      for (const opened of owned) await opened[Symbol.asyncDispose]()
      log.info({ conductor: this.name, leftBehind: this.running }, 'conductor stopped')
    })
  }

  /** Begins the second stage of a stop at once: the tasks' signals fire, and their jobs return to the board. */
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

  // --- Child processes --------------------------------------------------------------------------------------------

  /** Reports what happens to child processes. @internal */
  onPoolEvent(event: PoolEvent): void {
    const { log } = this.#parts
    this.#registration.statusChanged()
    switch (event.kind) {
      case 'started': {
        const { child, tookMs } = event
        const facts: ChildStartedEvent = { child: child.number, pid: child.pid, tookMs: Math.round(tookMs) }
        log.debug({ conductor: this.name, ...facts }, 'child process ready')
        this.#events.emit('childStarted', facts)
        break
      }
      case 'ended': {
        const { child, end } = event
        const facts = toChildDied(child, end)
        log[facts.expected ? 'debug' : 'warn']({ conductor: this.name, ...facts }, 'child process ended')
        this.#events.emit('childDied', facts)
        break
      }
      case 'start-failed':
        log.warn(
          { conductor: this.name, err: event.error, inARow: event.inARow },
          'a child process could not be started',
        )
        break
      case 'availability':
        if (event.error) this.#reportError(event.error)
        else log.info({ conductor: this.name }, 'child processes can be started again')
        this.#claimLoop.recheck()
    }
  }

  /** Looks again for jobs to claim: one that was rejected may be acceptable now. @internal */
  recheck(): void {
    this.#claimLoop.recheck()
  }

  /** Stops, because the module of the pool has changed: children of two versions must not run side by side. @internal */
  onCodeChanged(error: Error): void {
    this.#reportError(error)
    this.#fault ??= error
    this.stop().catch((failed: unknown) => this.#reportError(failed))
  }

  // --- Claiming ---------------------------------------------------------------------------------------------------

  async #claimAndRun(): Promise<void> {
    const over = await this.#claimLoop.run(this.#draining.signal)
    if (over === undefined) return
    this.#parts.log.info({ conductor: this.name }, `conductor stops by itself: ${over}`)
    // This must not be awaited here: a stop waits for this loop.
    this.stop().catch((error: unknown) => this.#reportError(error))
  }

  async #runBeforeClaim(signal: AbortSignal | undefined): Promise<void> {
    const { board, hooks, release, log } = this.#parts
    if (!hooks) return
    using stop = followSignals([signal, this.#draining.signal])
    await runBeforeClaim(hooks, { board, conductor: this.name, release, log, signal: stop.signal })
  }

  /** Writes the outlines of the flows, for people. No job waits for it, and none suffers if it fails. */
  async #publishFlows(): Promise<void> {
    const { board, flows } = this.#parts
    try {
      await board.publishFlows(flows.all)
    } catch (error) {
      if (board.connected && !(error instanceof UnsupportedCapability)) this.#reportError(error)
    }
  }

  async #retain(): Promise<void> {
    const { removeLogbooksAfter, removeTrashAfter, flows, ...parts } = this.#parts
    const { signal } = this.#draining
    const ages = toFlowAges(flows.all)
    const age =
      removeLogbooksAfter === undefined ? undefined : toMilliseconds(removeLogbooksAfter, 'removeLogbooksAfter')
    await Promise.all([
      age === undefined && ages.length === 0 ? undefined : retain({ ...parts, age, flowAges: ages }, signal),
      removeTrashAfter === undefined
        ? undefined
        : retainTrash({ ...parts, age: toMilliseconds(removeTrashAfter, 'removeTrashAfter') }, signal),
    ])
  }

  async #storageIsBack(): Promise<boolean> {
    return this.#parts.persistence.getBook(NO_BOOK_UUID).then(
      () => true,
      (error: unknown) => error instanceof NotFound || !(error instanceof StorageFailure),
    )
  }

  #runStarted(event: RunStarted): void {
    this.#counters.onStarted(event)
    this.#registration.statusChanged()
    this.#events.emit('started', event)
  }

  #onRunEnded(uuid: string): void {
    this.#claimLoop.noteSlotFreed()
    this.#jobFilter.noteRunEnded(uuid)
    this.#registration.statusChanged()
  }

  /** Resolves when no job runs any more, when the time is over, or when the signal fires. */
  async #waitForRuns(limits: { within: number; unless?: AbortSignal }): Promise<void> {
    using stop = followSignals([limits.unless])
    using _timer = abortAfter(stop, limits.within, () => new ShuttingDown('the time is over'))
    await rejectOnAbort(this.#runs.whenIdle(), stop.signal).catch(() => undefined)
  }

  #health(): Health {
    const { board, concurrency } = this.#parts
    return {
      state: this.state,
      healthy: this.healthy,
      running: this.running,
      slots: concurrency,
      counts: this.counts,
      board: board.state,
      storage: this.#claimLoop.isStorageAway ? 'away' : 'there',
      ...(this.#parts.isolator && { children: toChildrenHealth(this.#parts.isolator) }),
      ...defined({ services: this.#serviceHealth.status, lastClaimableCheck: this.lastClaimableCheck }),
    }
  }

  #createMetrics(): ConductorMetrics | undefined {
    const { metrics, board, concurrency, isolator, log } = this.#parts
    if (!metrics) return undefined
    return new ConductorMetrics({
      ...(metrics === true ? {} : metrics),
      ...{ events: this.#events, log, now: () => board.clock.now() },
      gauges: () => ({
        ...{ slots: concurrency, ready: this.healthy, connected: board.connected },
        children: isolator && toStateCounts(isolator.children),
      }),
    })
  }

  #watchEventLoop(): Disposable | undefined {
    const { sessionTimeout } = this.#parts.board
    if (sessionTimeout === undefined) return undefined
    const blocked = (facts: EventLoopBlocked) => {
      this.#parts.log.warn({ conductor: this.name, ...facts }, formatBlocked(facts))
      this.#events.emit('eventLoopBlocked', facts)
    }
    return watchEventLoop({ sessionTimeout, tasks: this.#tasks, blocked })
  }

  #onStopIgnored(event: StopIgnored): void {
    const { job, run, tasks } = event
    this.#parts.log.warn({ conductor: this.name, job: job.uuid, run, tasks }, formatStopIgnored(event))
    this.#events.emit('stopIgnored', event)
  }

  #reportError(thrown: unknown): void {
    const error = asError(thrown)
    this.#parts.log.warn({ err: error }, 'background operation failed')
    this.#events.emit('error', { error })
  }
}
