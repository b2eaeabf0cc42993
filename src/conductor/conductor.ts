/**
 * A conductor claims jobs up to its number of slots, runs their flows, and settles them.
 *
 *     starting → busy ⇄ idle → draining → aborting → stopped
 *                  ⇅     ⇅        ↑
 *                  paused ────────┘
 *
 * - **busy, idle**: it claims jobs of its boards (`served-board.ts`), never more than slots are free (`claiming/slots.ts`). A filter
 *   decides which jobs (`claiming/job-filter.ts`).
 * - **paused**: it claims nothing; running jobs continue.
 * - **draining** (the first stage of a stop): it claims no more jobs; running jobs may finish within `drainTimeout`.
 * - **aborting** (the second stage): the signals of the tasks fire, flows are suspended in their logbooks, and their
 *   jobs return to the board uncharged. A task that ignores its signal is not waited for after
 *   `abortTimeout`; it can no longer write to the logbook.
 *
 * A slot stays taken until the code of its run has ended.
 */
import type { JobBoard } from '../board/index.ts'
import { boardInternals, toDeclaredFlowSettings, toDeclaredLimits, toDeclaredSchedules } from '../board/internal.ts'
import { abortAfter, createSharedController, followSignals, rejectOnAbort } from '../core/async/abort.ts'
import { AbortFlag, type Stoppable } from '../core/async/abort-flag.ts'
import { keepAlive, Lifecycle } from '../core/async/lifecycle.ts'
import { retryUntilAborted } from '../core/async/retry.ts'
import { asError, NotConnected, ShuttingDown } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { describeError } from '../core/failure.ts'
import { childLog } from '../core/log.ts'
import { defined } from '../core/options.ts'
import { monotonic, toDate, toMilliseconds } from '../core/time.ts'
import type { Persistence } from '../persistence/index.ts'
import type { PoolEvent } from '../pool/index.ts'
import { toBoardLabel } from './boards/board-entries.ts'
import type { BoardSource } from './boards/board-source.ts'
import { type Lane, Slots } from './claiming/slots.ts'
import { type ConductorCounts, sumCounts } from './counters.ts'
import type { Declarations } from './declarations.ts'
import { type EventLoopBlocked, formatBlocked, watchEventLoop } from './event-loop-watch.ts'
import { type ChildStartedEvent, CONDUCTOR_EVENTS, type ConductorEvents, toChildDied } from './events.ts'
import { type BoardHealth, type Health, type HealthServer, serveHealth } from './health-server.ts'
import { subscribeHooks } from './hooks.ts'
import { largestMemory, toChildrenHealth, toStateCounts } from './isolation/isolated-atoms.ts'
import { type BoardGauges, ConductorMetrics } from './metrics.ts'
import { assertChanges, type ConductorChanges } from './options.ts'
import { TaskWatch } from './runs/task-watch.ts'
import { ServedBoard, type SharedParts } from './served-board.ts'
import { ServiceHealth } from './services/health.ts'

export interface ConductorParts extends SharedParts {
  /** The boards in their order; one alone is open. */
  readonly sources: readonly BoardSource[]
  /** The resources opened for this conductor, in the order in which they are closed at the end of a stop. */
  readonly owned: readonly AsyncDisposable[]
}

/** The state of a conductor. `busy` and `idle` claim jobs; `draining` and `aborting` are the two stages of a stop. */
export type ConductorState = 'starting' | 'busy' | 'idle' | 'paused' | 'draining' | 'aborting' | 'stopped'

/** The pauses between two attempts to open a board that could not be reached, in milliseconds. */
const REOPEN_PAUSES = { firstPauseMs: 1_000, maxPauseMs: 15_000 } as const

/** The period of checks of boards and logbooks: one round trip to each. */
const CHECK_PERIOD_MS = 60_000

/** A board of the conductor; it is served once it was opened. */
interface ConductedBoard {
  readonly source: BoardSource
  readonly lane: Lane
  /** What the conductor declares on it. */
  declared: Declarations
  served?: ServedBoard
}

/**
 * Claims jobs, up to its number of slots, runs their flows, and settles them. `startConductor` creates it; `stop()`,
 * `abort()` or the end of an `await using` ends it. A stopped conductor cannot be started again.
 */
export class Conductor implements AsyncDisposable {
  readonly name: string
  readonly #parts: ConductorParts
  readonly #lifecycle: Lifecycle
  readonly #events: Emitter<ConductorEvents>
  readonly #slots: Slots
  readonly #boards: readonly ConductedBoard[]
  readonly #tasks = new TaskWatch({ minimum: Number.POSITIVE_INFINITY, now: monotonic })
  readonly #serviceHealth: ServiceHealth
  readonly #metrics: ConductorMetrics | undefined
  readonly #draining = createSharedController()
  readonly #suspend = new AbortFlag()
  readonly #leave = new AbortFlag()
  #healthServer: HealthServer | undefined
  #alive: Disposable | undefined
  #recording: Disposable | undefined
  #eventLoopWatch: { readonly sessionTimeout: number; readonly watch: Disposable } | undefined
  #background: Promise<unknown> = Promise.resolve()
  #fault: Error | undefined
  #drainingSince: Date | undefined

  /** @internal Use `startConductor`. */
  constructor(parts: ConductorParts) {
    const { name, log, hooks, sources, concurrency, burst, maxJobs, maxIdleTime } = parts
    this.name = name
    this.#parts = parts
    this.#lifecycle = new Lifecycle(`conductor ${name}`)
    const listenerThrew = (error: unknown, event: keyof ConductorEvents) => {
      log.error({ err: error, event }, 'a listener threw')
    }
    this.#events = new Emitter(listenerThrew, { events: CONDUCTOR_EVENTS })
    this.#metrics = this.#createMetrics()
    if (hooks) subscribeHooks(hooks, { events: this.#events, onError: (error) => this.#reportError(error) })
    this.#slots = new Slots({
      ...{ count: concurrency, burst, maxJobs, isWeighted: sources.some(({ entry }) => entry.weight !== undefined) },
      maxIdleTime: maxIdleTime === undefined ? undefined : toMilliseconds(maxIdleTime, 'maxIdleTime'),
    })
    this.#boards = sources.map((source) => {
      const { limits, flowSettings, schedules } = source.entry
      return { source, lane: this.#slots.addLane(source.entry), declared: { limits, flowSettings, schedules } }
    })
    this.#serviceHealth = new ServiceHealth({
      services: parts.services.checkable,
      log,
      onChange: () => this.recheck(),
    })
  }

  get state(): ConductorState {
    if (this.#lifecycle.state === 'new' || this.#lifecycle.state === 'starting') return 'starting'
    if (this.#lifecycle.state === 'stopped') return 'stopped'
    if (this.#suspend.aborted) return 'aborting'
    if (this.#draining.signal.aborted) return 'draining'
    if (this.#slots.isPaused) return 'paused'
    return this.running > 0 ? 'busy' : 'idle'
  }

  /**
   * Whether it can claim when a slot is free: it runs, neither the board nor the logbooks are known to be away, its services are healthy,
   * and child processes can be started if it has a pool. Of several boards, one has to be there with its logbooks.
   */
  get healthy(): boolean {
    const canStartChildren = this.#parts.isolator?.refusal === undefined
    const canRun = canStartChildren && this.#serviceHealth.isHealthy
    return this.#lifecycle.state === 'running' && this.#served.some(({ isHealthy }) => isHealthy) && canRun
  }

  /**
   * The last time at which the conductor looked for jobs to claim. While it waits for a job, it checks once a minute that it receives
   * changes: then the time of this check.
   */
  get lastClaimableCheck(): Date | undefined {
    const checks = this.#served.flatMap(({ lastClaimableCheck }) => lastClaimableCheck ?? [])
    return checks.length === 0 ? undefined : new Date(Math.max(...checks.map((check) => check.getTime())))
  }

  /** The URL of `/healthz` and `/readyz`, when the option `health` is set. */
  get healthUrl(): string | undefined {
    return this.#healthServer?.url
  }

  /** The number of jobs that run now. */
  get running(): number {
    return this.#served.reduce((sum, { running }) => sum + running, 0)
  }

  /** The counts of the conductor since its start, of all boards together. */
  get counts(): ConductorCounts {
    return sumCounts(this.#served.map(({ counts }) => counts))
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

  /**
   * Registers on its boards and begins to claim. @internal
   *
   * @throws Duplicate when a living conductor has the name; NotConnected when no board is there any more
   */
  start(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    return this.#lifecycle.start(
      async () => {
        const { flows, queues, concurrency, health, log, release } = this.#parts
        const onError = (error: unknown) => this.#reportError(error)
        this.#recording = this.#metrics?.subscribe()
        const answers = { health: () => this.#health(), metrics: this.#metrics?.answer, onError }
        if (health) this.#healthServer = await serveHealth(health, answers)
        await this.#serveOpenBoards(options)
        await this.#serviceHealth.check(this.#draining.signal)
        this.#alive = keepAlive()
        for (const served of this.#served) this.#begin(served)
        const checks = setInterval(() => this.#check(), CHECK_PERIOD_MS).unref()
        this.#draining.signal.addEventListener('abort', () => clearInterval(checks), { once: true })
        this.#background = Promise.all([
          this.#serviceHealth.run(this.#draining.signal),
          this.#stopWhenOver(),
          ...this.#boards.map((each) => each.served ?? this.#serveLater(each)),
        ])
        log.info(
          {
            conductor: this.name,
            ...this.#places,
            ...defined({ release }),
            flows: flows.names,
            ...defined({ queues }),
            concurrency,
          },
          'conductor started',
        )
      },
      async () => {
        this.#draining.abort()
        for (const served of this.#served) await served.leave()
        this.#recording?.[Symbol.dispose]()
        await this.#healthServer?.[Symbol.asyncDispose]()
      },
    )
  }

  /**
   * Stops claiming until {@link resume}; running jobs continue. `board.pause()` applies to all conductors, and lasts
   * when they end.
   */
  pause(): void {
    this.#setPaused({ paused: true })
  }

  resume(): void {
    this.#setPaused({ paused: false })
  }

  /**
   * Changes options while it runs. Running jobs continue: if they are more than the new `concurrency`, none is claimed until enough have ended.
   * Limits, settings of flows and schedules replace its earlier declarations, as at a start: schedules on the first board, the others on each. A board that is
   * away gets them when it is served, if it was away since the start.
   *
   * @throws InvalidArgument, and InvalidState unless it runs: then nothing is changed; the error of the first board whose declarations failed, such
   * as NotConnected: the other boards have theirs
   * @example await conductor.reconfigure({ concurrency: 16 })
   */
  async reconfigure(changes: ConductorChanges): Promise<void> {
    assertChanges(changes)
    const limits = changes.limits && toDeclaredLimits(changes.limits)
    const flowSettings = changes.flowSettings && toDeclaredFlowSettings(changes.flowSettings)
    const schedules = changes.schedules && toDeclaredSchedules(changes.schedules)
    this.#lifecycle.assertRunning()
    const { concurrency } = changes
    if (concurrency !== undefined && concurrency !== this.#slots.count) {
      this.#slots.setCount(concurrency)
      // The calls in progress may claim as many as there were.
      this.recheck()
      this.#statusChanged()
    }
    const failures: unknown[] = []
    for (const [index, each] of this.#boards.entries()) {
      const changed = defined({ limits, flowSettings, schedules: index === 0 ? schedules : undefined })
      if (Object.keys(changed).length === 0) continue
      each.declared = { ...each.declared, ...changed }
      // A board that is away stops no other.
      await each.served?.declare(changed).catch((error: unknown) => failures.push(error))
    }
    const [first, ...others] = failures
    for (const error of others) this.#reportError(error)
    if (failures.length > 0) throw first
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
      const { drainTimeout, abortTimeout, owned, log } = this.#parts
      log.info({ conductor: this.name, running: this.running }, 'conductor draining')
      this.#statusChanged()
      await this.#background
      await Promise.all(this.#served.map((served) => served.whenDrained()))
      await this.#waitForRuns({ within: toMilliseconds(drainTimeout, 'drainTimeout'), unless: this.#suspend })
      this.abort()
      await this.#waitForRuns({ within: toMilliseconds(abortTimeout, 'abortTimeout') })
      this.#leave.abort(new ShuttingDown(`conductor ${this.name} has stopped`))
      await Promise.all(this.#served.map((served) => served.whenSettled()))
      await Promise.all(this.#served.map((served) => served.leave()))
      this.#eventLoopWatch?.watch[Symbol.dispose]()
      this.#recording?.[Symbol.dispose]()
      await this.#healthServer?.[Symbol.asyncDispose]()
      for (const opened of owned) await opened[Symbol.asyncDispose]()
      log.info({ conductor: this.name, leftBehind: this.running }, 'conductor stopped')
    })
  }

  /** Begins the second stage of a stop at once: the tasks' signals fire, and their jobs return to the board. */
  abort(): void {
    this.#draining.abort(new ShuttingDown(`conductor ${this.name} is stopping`))
    if (this.#suspend.aborted) return
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
    this.#statusChanged()
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
        this.recheck()
    }
  }

  /** Looks again for jobs to claim: a job that was rejected may be acceptable now. @internal */
  recheck(): void {
    for (const served of this.#served) served.recheck()
  }

  /** Stops, because the module of the pool has changed: children of two versions must not run side by side. @internal */
  onCodeChanged(error: Error): void {
    this.#reportError(error)
    this.#fault ??= error
    this.stop().catch((failed: unknown) => this.#reportError(failed))
  }

  // --- Boards -----------------------------------------------------------------------------------------------------

  get #served(): readonly ServedBoard[] {
    return this.#boards.flatMap(({ served }) => served ?? [])
  }

  /** Whether other boards go on when one is away. */
  get #hasSeveral(): boolean {
    return this.#boards.length > 1
  }

  get #places() {
    const [first] = this.#boards
    if (!first || this.#hasSeveral) return { boards: this.#boards.map(({ source }) => source.entry.uri) }
    return { board: first.source.entry.uri, persistence: first.source.persistence.uri }
  }

  /** Serves the boards that are open. @throws the error of a board that cannot be served at all; NotConnected if all are away by now */
  async #serveOpenBoards(options: { readonly signal?: AbortSignal | undefined }): Promise<void> {
    let away: unknown
    // One after the other: hooks that prepare something for several boards must not run side by side.
    for (const each of this.#boards) {
      if (!each.source.board) continue
      await this.#serve(each, options).catch((error: unknown) => {
        if (!(error instanceof NotConnected)) throw error
        away = error
      })
    }
    if (this.#served.length === 0) throw away
  }

  /** Registers on a board, and prepares to claim its jobs. @throws the errors of opening, of registering, and of hooks */
  async #serve(
    each: ConductedBoard,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ServedBoard> {
    const { source, lane, declared } = each
    // An opening that began before the start of this conductor does not end by its signal.
    const board = await rejectOnAbort(source.open(this.#draining.signal), this.#draining.signal)
    // The boards share a place for suspects, because a job that crashes this process ends the jobs of all of them.
    const [other] = this.#served
    if (other && other.board !== board) boardInternals(board).shareSuspects(boardInternals(other.board).suspects)
    if (board.sessionTimeout !== undefined) this.#tasks.lowerMinimum(board.sessionTimeout / 4)
    const { log } = this.#parts
    const served = new ServedBoard({
      ...this.#parts,
      ...{ board, persistence: source.persistence, slots: this.#slots, lane },
      ...declared,
      log: this.#hasSeveral ? childLog(log, { board: board.uri }) : log,
      tasks: this.#tasks,
      events: this.#events,
      conductorStatus: () => ({ state: this.state, drainingSince: this.#drainingSince }),
      areServicesHealthy: () => this.#serviceHealth.isHealthy,
      onStorageAway: (reason) => this.#noteStorageAway(source.persistence, reason),
      ...{ draining: this.#draining.signal, suspend: this.#suspend, leave: this.#leave },
      onError: (error) => this.#reportError(error),
    })
    try {
      await served.start(options)
    } catch (error) {
      await served.leave()
      throw error
    }
    each.served = served
    // They were changed meanwhile.
    if (each.declared !== declared) await served.declare(each.declared)
    return served
  }

  /** Opens a board that could not be reached at the start, and claims its jobs from then on. */
  async #serveLater(each: ConductedBoard): Promise<void> {
    const { log } = this.#parts
    const { entry } = each.source
    let reported: string | undefined
    const report = (error: unknown) => {
      const reason = describeError(error)
      // That it is still away, for whichever reason, is no news.
      const kind = error instanceof NotConnected ? NotConnected.code : reason
      if (kind === reported) return
      reported = kind
      log.warn(
        { board: entry.uri, reason },
        'a board cannot be reached: the conductor goes on with its other boards, and tries again',
      )
    }
    report(each.source.fault ?? new NotConnected('no answer yet'))
    const { signal } = this.#draining
    const serve = () => this.#serve(each, { signal })
    const served = await retryUntilAborted(serve, { ...REOPEN_PAUSES, signal, onRetry: report })
    if (!served || signal.aborted) return
    log.info({ board: entry.uri }, 'a board is there: its jobs are claimed, too')
    this.#begin(served)
  }

  #begin(served: ServedBoard): void {
    this.#watchEventLoop(served.board.sessionTimeout)
    served.begin()
  }

  /** Stops the claims of all boards that use these logbooks: their jobs would be claimed in vain. */
  #noteStorageAway(persistence: Persistence, reason: string): void {
    for (const { source, served } of this.#boards)
      if (source.persistence === persistence) served?.noteStorageAway(reason)
  }

  /**
   * Checks boards and logbooks: while no job runs, nothing else shows that logbooks are away, or that changes do not arrive. A check that is
   * not answered delays neither the next one nor a stop.
   */
  #check(): void {
    const users = new Map<Persistence, ServedBoard>()
    for (const { source, served } of this.#boards) {
      // A board that cannot be reached reports this itself.
      served?.check().catch(() => undefined)
      if (served?.storage === 'there') users.set(source.persistence, served)
    }
    for (const [persistence, served] of users)
      void served.findStorageFault().then((fault) => {
        if (fault !== undefined) this.#noteStorageAway(persistence, fault)
      })
  }

  async #stopWhenOver(): Promise<void> {
    const over = await this.#slots.whenOver(this.#draining.signal)
    if (over === undefined) return
    this.#parts.log.info({ conductor: this.name }, `conductor stops by itself: ${over}`)
    // This must not be awaited here: a stop waits for this function.
    this.stop().catch((error: unknown) => this.#reportError(error))
  }

  #setPaused({ paused }: { readonly paused: boolean }): void {
    if (this.#slots.isPaused === paused) return
    this.#slots.setPaused({ paused })
    if (paused) this.recheck()
    this.#statusChanged()
  }

  #statusChanged(): void {
    for (const served of this.#served) served.statusChanged()
  }

  /** Resolves when no job runs any more, when the time is over, or when the signal fires. */
  async #waitForRuns(limits: { within: number; unless?: Stoppable }): Promise<void> {
    using stop = followSignals([limits.unless])
    using _timer = abortAfter(stop, limits.within, () => new ShuttingDown('the time is over'))
    const idle = Promise.all(this.#served.map((served) => served.whenIdle()))
    await rejectOnAbort(idle, stop).catch(() => undefined)
  }

  /** The place for suspects, which its boards share. */
  get #suspects() {
    const [first] = this.#served
    return first && boardInternals(first.board).suspects
  }

  #health(): Health {
    const { holder, othersWait = false } = this.#suspects ?? {}
    const boards = this.#boards.map(toBoardHealth)
    const [first] = boards
    return {
      state: this.state,
      healthy: this.healthy,
      running: this.running,
      slots: this.#slots.count,
      counts: this.counts,
      ...(first && !this.#hasSeveral
        ? { board: first.state, storage: first.storage, ...defined({ notifications: first.notifications }) }
        : { boards }),
      ...(this.#parts.isolator && { children: toChildrenHealth(this.#parts.isolator) }),
      ...defined({
        suspect: holder && { since: toDate(holder.since), othersWait },
        services: this.#serviceHealth.status,
        lastClaimableCheck: this.lastClaimableCheck,
      }),
    }
  }

  #createMetrics(): ConductorMetrics | undefined {
    const { metrics = false, telemetry, isolator, log, release } = this.#parts
    if (!metrics && !telemetry?.metrics) return undefined
    return new ConductorMetrics({
      ...(typeof metrics === 'boolean' ? {} : metrics),
      ...{ events: this.#events, log, release, hasText: metrics !== false, sink: telemetry?.metrics },
      gauges: () => ({
        ...{ slots: this.#slots.count, ready: this.healthy },
        suspectsWait: this.#suspects?.othersWait ?? false,
        boards: this.#boards.map((each) => {
          const { name, usable, storage } = toBoardHealth(each)
          const { source, served } = each
          return {
            board: name,
            usable,
            storage,
            connected: source.board?.connected === true,
            clockAheadMs: served?.clockAheadMs ?? 0,
            totals: toTotals(source.board),
          }
        }),
        children: isolator && toStateCounts(isolator.children),
        childBytes: isolator && largestMemory(isolator.children),
      }),
    })
  }

  /** Watches the event loop for the session that ends first. */
  #watchEventLoop(sessionTimeout = Number.POSITIVE_INFINITY): void {
    const { sessionTimeout: watched = Number.POSITIVE_INFINITY, watch } = this.#eventLoopWatch ?? {}
    if (sessionTimeout >= watched) return
    watch?.[Symbol.dispose]()
    const blocked = (facts: EventLoopBlocked) => {
      this.#parts.log.warn({ conductor: this.name, ...facts }, formatBlocked(facts))
      this.#events.emit('eventLoopBlocked', facts)
    }
    this.#eventLoopWatch = { sessionTimeout, watch: watchEventLoop({ sessionTimeout, tasks: this.#tasks, blocked }) }
  }

  #reportError(thrown: unknown): void {
    const error = asError(thrown)
    this.#parts.log.warn({ err: error }, 'background operation failed')
    this.#events.emit('error', { error })
  }
}

function toBoardHealth({ source, served }: ConductedBoard): BoardHealth {
  const { board, entry } = source
  const state = board ? board.state : 'not opened'
  const areNotificationsMissing = board && boardInternals(board).healthCounters.areNotificationsMissing
  return {
    ...{ name: toBoardLabel(entry.uri), state, usable: served?.isHealthy ?? false },
    ...{ running: served?.running ?? 0, storage: served?.storage ?? 'there' },
    ...(areNotificationsMissing ? { notifications: 'missing' } : {}),
  }
}

/** Returns the counters of a board; zeros before it is opened. */
function toTotals(board: JobBoard | undefined): BoardGauges['totals'] {
  const counters = board && boardInternals(board).healthCounters
  return {
    jobboard_notifications_missed_total: counters?.missedNotifications ?? 0,
    jobboard_stopped_backends_total: counters?.stoppedBackends ?? 0,
  }
}
