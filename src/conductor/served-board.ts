/**
 * The work of a conductor on one of its boards: its registration, its schedules, its claims and runs, and the removal of what is old.
 * Slots, services and child processes belong to the conductor.
 */
import type { JobBoard } from '../board/index.ts'
import { boardId, boardInternals } from '../board/internal.ts'
import { followSignals, isSettledWithin } from '../core/async/abort.ts'
import type { Stoppable } from '../core/async/abort-flag.ts'
import { retryUntilAborted } from '../core/async/retry.ts'
import { messageOf, StorageFailure, UnsupportedCapability } from '../core/errors.ts'
import type { Emitter } from '../core/events.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import { IN_PROCESS } from '../engine/index.ts'
import type { Persistence } from '../persistence/index.ts'
import { ClaimLoop } from './claiming/claim-loop.ts'
import { JobFilter } from './claiming/job-filter.ts'
import type { KnownFlows } from './claiming/known-flows.ts'
import type { Lane, Slots } from './claiming/slots.ts'
import { type ConductorCounts, RunCounters } from './counters.ts'
import { type Declarations, declareRecords } from './declarations.ts'
import type { ConductorEvents } from './events.ts'
import { runBeforeClaim } from './hooks.ts'
import type { IsolatedAtoms } from './isolation/isolated-atoms.ts'
import type { ConductorSettings } from './options.ts'
import { Registration } from './registration.ts'
import { retain } from './retention.ts'
import { toFlowAges } from './runs/book-owner.ts'
import { DisclosurePolicy } from './runs/disclosure.ts'
import type { ErrorHandler } from './runs/on-error.ts'
import { type RunStarted, Runs } from './runs/runs.ts'
import type { TaskWatch } from './runs/task-watch.ts'
import { formatStopIgnored, type StopIgnored } from './runs/unstopped-jobs.ts'
import { Scheduling } from './scheduling.ts'
import type { OpenServices } from './services/open.ts'
import { retainTrash } from './trash-retention.ts'

/** The parts that the boards of a conductor share. */
export interface SharedParts extends Omit<ConductorSettings, 'onError'> {
  readonly name: string
  /** Decide what becomes of jobs that fail. */
  readonly errorHandlers: readonly ErrorHandler[]
  readonly flows: KnownFlows
  readonly services: OpenServices
  /** The child processes for isolated tasks. */
  readonly isolator: IsolatedAtoms | undefined
  /** Whether isolated tasks run in child processes; if not, they run in this process. */
  readonly isolates: boolean
}

export interface ServedBoardOptions extends SharedParts, Declarations {
  readonly board: JobBoard
  readonly persistence: Persistence
  readonly slots: Slots
  readonly lane: Lane
  readonly tasks: TaskWatch
  readonly events: Emitter<ConductorEvents>
  /** Returns the state of the conductor, and since when it drains, for its entity. */
  readonly conductorStatus: () => { readonly state: string; readonly drainingSince: Date | undefined }
  readonly areServicesHealthy: () => boolean
  /** Called when a run has found that the logbooks are away: other boards may use the same. */
  readonly onStorageAway: (reason: string) => void
  /** Fires when no more jobs may be claimed. */
  readonly draining: AbortSignal
  /** Fires when flows must be suspended. */
  readonly suspend: Stoppable
  /** Fires when tasks that ignore their signal are not waited for any more. */
  readonly leave: Stoppable
  readonly onError: (error: unknown) => void
}

/** The time limit of a check of the logbooks: without an answer they are away. */
const STORAGE_CHECK_MS = 5_000
/** The pauses between two attempts to begin anew on a board that was emptied. */
const BEGIN_ANEW_PAUSES = { firstPauseMs: 500, maxPauseMs: 30_000 } as const
/** The UUID of no logbook: reading it shows whether the storage answers. */
const NO_BOOK_UUID = '00000000-0000-0000-0000-000000000000'

export class ServedBoard {
  readonly board: JobBoard
  readonly #options: ServedBoardOptions
  readonly #runs: Runs
  readonly #jobFilter: JobFilter
  readonly #claimLoop: ClaimLoop
  readonly #registration: Registration
  readonly #scheduling: Scheduling
  readonly #counters = new RunCounters()
  #background: Promise<unknown> = Promise.resolve()
  #unwatch: (() => void) | undefined
  #stopWatchingEmptied: (() => void) | undefined
  /** What the conductor declares on the board. */
  #declarations: Declarations
  /** The number of times the board was emptied. Nothing is claimed until it was prepared since the last one. */
  #timesEmptied = 0
  #preparedFor = 0
  #isBeginningAnew = false
  /** The shortest age, of the jobs that ran here, at which a logbook is to be removed by its posting. */
  #shortestBookAge = Number.POSITIVE_INFINITY
  #hasBegun = false

  constructor(options: ServedBoardOptions) {
    const { board, persistence, isolator, isolates, flows, events } = options
    this.board = board
    this.#options = options
    const { limits, flowSettings, schedules } = options
    this.#declarations = { limits, flowSettings, schedules }
    this.#runs = new Runs({
      ...options,
      isolator:
        isolator?.forBoard({ sessionLeft: () => boardInternals(board).sessionLeft }) ??
        (isolates ? undefined : IN_PROCESS),
      disclosure: new DisclosurePolicy({ ...options, encrypted: persistence.encrypts === true }),
      limits: board.limits,
      flowRules: () => boardInternals(board).flowRules,
      onBookAge: (age) => {
        this.#shortestBookAge = Math.min(age, this.#shortestBookAge)
      },
      readEnds: (request) => boardInternals(board).readEnds(request),
      boardId: boardId(board.uri),
      recordedPlace: boardInternals(board).recordedPlace,
      clock: boardInternals(board).clock,
      onStarted: (event) => this.#onRunStarted(event),
      onSettled: (event) => {
        this.#scheduling.onSettled(event)
        this.#counters.onSettled(event)
        // The code of the run may still execute, and the status says so.
        this.#registration.statusChanged()
        events.emit('settled', event)
      },
      onStopIgnored: (event) => this.#onStopIgnored(event),
      onProgress: (event) => events.emit('progress', event),
      onEnded: (uuid) => this.#onRunEnded(uuid),
      onStorage: (fault) => {
        this.#claimLoop.noteStorage(fault)
        if (fault !== undefined) options.onStorageAway(fault)
      },
    })
    this.#scheduling = new Scheduling({ ...options, emit: (event, value) => events.emit(event, value) })
    this.#jobFilter = new JobFilter({
      ...options,
      takeoverDelay: toMilliseconds(options.takeoverDelay, 'takeoverDelay'),
      isRunning: (uuid) => this.#runs.has(uuid),
      hasRoomFor: (flow) => !isolator?.isIsolated(flow) || isolator.hasRoom,
      onRecheck: () => this.recheck(),
    })
    this.#claimLoop = new ClaimLoop({
      ...options,
      queues: options.queues,
      accept: (posting) => this.#jobFilter.accepts(posting),
      hasRoom: () => isolator?.hasRoomForAny ?? true,
      mayClaim: () => this.#preparedFor === this.#timesEmptied && options.areServicesHealthy(),
      dispatch: (claim) => this.#runs.begin(claim),
      findStorageFault: () => this.findStorageFault(),
    })
    this.#registration = new Registration({
      ...options,
      flows,
      status: () => ({
        ...{ ...options.conductorStatus(), jobs: this.#runs.uuids, unended: this.#runs.unended },
        ...{
          isolator,
          counts: this.counts,
          concurrency: options.slots.count,
          schedules: this.#scheduling.declared,
          storage: this.storage,
        },
      }),
    })
  }

  /** The number of jobs of this board that run now. */
  get running(): number {
    return this.#runs.size
  }

  /** The counts of this board. */
  get counts(): ConductorCounts {
    return this.#counters.counts
  }

  /** Whether a job could be claimed if a slot were free: neither the board nor its logbooks are known to be away. */
  get isHealthy(): boolean {
    return this.#claimLoop.isHealthy
  }

  get storage(): 'there' | 'away' {
    return this.#claimLoop.isStorageAway ? 'away' : 'there'
  }

  /** The time by which the clock of this machine is ahead of the servers' clock, in milliseconds; 0 within a tolerance. */
  get clockAheadMs(): number {
    return this.#registration.clockAheadMs
  }

  get lastClaimableCheck(): Date | undefined {
    return this.#claimLoop.lastClaimableCheck
  }

  /**
   * Registers the conductor on the board, runs the `beforeClaim` hooks, declares limits, and begins to fire schedules.
   *
   * @throws the errors of these
   */
  async start(options: { readonly signal?: AbortSignal | undefined }): Promise<void> {
    this.#stopWatchingEmptied = this.board.on('emptied', () => this.#onEmptied())
    await this.#registration.register(options)
    await this.#runBeforeClaim(options.signal)
    await declareRecords(this.#options, this.#options)
    await this.#scheduling.start()
  }

  /** Makes declarations in place of earlier ones of the same kind. @throws the errors of the declarations; NotConnected */
  async declare(changed: Partial<Declarations>): Promise<void> {
    // Noted before they are written: a board that is emptied meanwhile gets these, and not the earlier ones.
    this.#declarations = { ...this.#declarations, ...changed }
    await this.#declare(changed)
    this.#registration.statusChanged()
  }

  async #declare(declarations: Partial<Declarations>): Promise<void> {
    await declareRecords(declarations, this.#options)
    if (declarations.schedules) await this.#scheduling.declare(declarations.schedules)
  }

  /** Begins to claim jobs, and to remove what is old. */
  begin(): void {
    this.#unwatch = this.#options.persistence.onRetry?.((error) => this.noteStorageAway(messageOf(error)))
    this.#hasBegun = true
    this.#background = Promise.all([this.#publishFlows(), this.#retain(), this.#claimLoop.run(this.#options.draining)])
    // Emptied while the conductor started.
    if (this.#timesEmptied > 0) this.#beginAnew()
  }

  /** Looks again for jobs to claim: a job that was rejected may be acceptable now. */
  recheck(): void {
    this.#claimLoop.recheck()
  }

  /** Notes that the logbooks are away, as another board, a check, or a read or write that is repeated has found. */
  noteStorageAway(reason: string): void {
    if (this.storage === 'there') this.#claimLoop.noteStorage(reason)
    this.#registration.statusChanged()
  }

  /** Makes sure that all changes of the board are received. @throws NotConnected */
  check(): Promise<void> {
    return this.#claimLoop.check()
  }

  /** Returns why the logbooks do not answer in time, undefined if they do; publishes what has changed. Never rejects. */
  async findStorageFault(): Promise<string | undefined> {
    const reading = this.#options.persistence.getBook(NO_BOOK_UUID).then(
      () => undefined,
      (error: unknown) => (error instanceof StorageFailure ? error.message : undefined),
    )
    const fault = (await isSettledWithin(STORAGE_CHECK_MS, reading))
      ? await reading
      : `no answer within ${STORAGE_CHECK_MS / 1_000} s`
    this.#registration.statusChanged()
    return fault
  }

  /** Schedules an update of the entity, because the status may have changed. */
  statusChanged(): void {
    this.#registration.statusChanged()
  }

  /** Resolves when nothing is claimed, fired or removed any more. Call it after the signal `draining` has fired. */
  async whenDrained(): Promise<void> {
    // The other conductors fire, as this one will be gone soon.
    await Promise.all([this.#background, this.#scheduling[Symbol.asyncDispose]()])
  }

  /** Resolves when no code of the present runs executes any more. */
  whenIdle(): Promise<void> {
    return this.#runs.whenIdle()
  }

  /** Resolves when every run is settled whose code has ended or is not waited for. */
  whenSettled(): Promise<void> {
    return this.#runs.whenSettled()
  }

  /** Removes the conductor from the board. Nothing may run any more. */
  async leave(): Promise<void> {
    this.#unwatch?.()
    this.#stopWatchingEmptied?.()
    this.#jobFilter[Symbol.dispose]()
    await this.#scheduling[Symbol.asyncDispose]()
    await this.#registration.unregister()
  }

  #onEmptied(): void {
    const { events, log, name } = this.#options
    log.warn(
      { conductor: name, board: this.board.uri },
      'the board was emptied: hooks run again, limits and schedules are declared anew',
    )
    events.emit('emptied', { board: this.board })
    this.#timesEmptied += 1
    this.recheck()
    if (this.#hasBegun) this.#beginAnew()
  }

  #beginAnew(): void {
    if (this.#isBeginningAnew) return
    this.#isBeginningAnew = true
    this.#background = Promise.all([this.#background, this.#prepareAgain()])
  }

  /** Prepares a board that was emptied; tries again until that succeeds, or the board is closed. It does not register the conductor: the new session has done so. */
  async #prepareAgain(): Promise<void> {
    const { draining, onError } = this.#options
    const isRetryable = () => this.board.state !== 'closed'
    const options = { ...BEGIN_ANEW_PAUSES, signal: draining, onRetry: onError, isRetryable }
    try {
      while (this.#preparedFor < this.#timesEmptied && !draining.aborted) {
        const times = this.#timesEmptied
        await retryUntilAborted(() => this.#prepare(), options)
        this.#preparedFor = times
      }
    } catch (error) {
      onError(error)
    }
    this.#isBeginningAnew = false
    this.recheck()
  }

  async #prepare(): Promise<void> {
    await this.#runBeforeClaim(undefined)
    let declared: Declarations
    do {
      declared = this.#declarations
      await this.#declare(declared)
      // If others were declared meanwhile, those may have been written before these.
    } while (declared !== this.#declarations)
    await this.#publishFlows()
  }

  async #runBeforeClaim(signal: AbortSignal | undefined): Promise<void> {
    const { board, hooks, name, release, log, draining } = this.#options
    if (!hooks) return
    using stop = followSignals([signal, draining])
    await runBeforeClaim(hooks, { board, conductor: name, release, log, signal: stop.signal })
  }

  /** Writes the outlines of the flows, for people. No job waits for it, and none suffers if it fails. */
  async #publishFlows(): Promise<void> {
    const { board, flows, onError } = this.#options
    try {
      await boardInternals(board).publishFlows(flows.all)
    } catch (error) {
      if (board.connected && !(error instanceof UnsupportedCapability)) onError(error)
    }
  }

  async #retain(): Promise<void> {
    const { removeLogbooksAfter, removeTrashAfter, flows, draining, ...parts } = this.#options
    const ages = toFlowAges(flows.all)
    const toAge = (time: Duration | undefined, what: string) =>
      time === undefined ? undefined : toMilliseconds(time, what)
    const { board } = parts
    const flowAges = () => {
      const { flowRules } = boardInternals(board)
      const kept = flowRules.valuesOf('keepLogbooks').filter((age) => age !== 'forever')
      return [...ages, this.#shortestBookAge, ...kept, ...flowRules.valuesOf('resultTtl')]
    }
    const age = toAge(removeLogbooksAfter, 'removeLogbooksAfter')
    await Promise.all([
      retain({ ...parts, age, flowAges }, draining),
      retainTrash({ ...parts, age: toAge(removeTrashAfter, 'removeTrashAfter') }, draining),
    ])
  }

  #onRunStarted(event: RunStarted): void {
    this.#counters.onStarted(event)
    this.#registration.statusChanged()
    this.#options.events.emit('started', event)
  }

  #onRunEnded(uuid: string): void {
    this.#options.slots.noteEnded()
    this.#jobFilter.noteRunEnded(uuid)
    this.#registration.statusChanged()
  }

  #onStopIgnored(event: StopIgnored): void {
    const { job, run, tasks } = event
    const { log, name, events } = this.#options
    log.warn({ conductor: name, job: job.uuid, run, tasks }, formatStopIgnored(event))
    events.emit('stopIgnored', event)
  }
}
