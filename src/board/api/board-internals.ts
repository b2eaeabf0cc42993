/** What other folders of this project need of a board, beside what its users need: see `boardInternals`. */
import { type AlarmClock, systemAlarmClock } from '../../core/time.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { ClaimNextOptions } from '../claims/claim-options.ts'
import { Job } from '../jobs/job.ts'
import type { TrashedJob } from '../jobs/trashed-job.ts'
import type { DeclaredLimits } from '../limits/declare.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { SuspectPlace } from '../queue/suspect-place.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { DeclarationReport } from '../records/declared-records.ts'
import { publishOutlines } from '../records/flow-outlines.ts'
import { type RunOnceOptions, runOnce } from '../records/run-once.ts'
import { type DeclaredSchedules, type DeclareReport, declareSchedules } from '../schedules/declare.ts'
import { Scheduler, type SchedulerOptions } from '../schedules/scheduler.ts'
import type { DeclaredFlowSettings } from '../settings/flow-settings.ts'
import { FLOW_SETTINGS } from '../settings/record.ts'
import { FlowRules, NO_FLOW_RULES } from '../settings/rules.ts'
import { type JobsSurvey, surveyJobs } from '../view/survey.ts'
import type { BoardParts } from './assemble-board.ts'
import type { HealthCounters } from './events/health-counters.ts'
import { type JobEndsRequest, type KnownJobEnd, readJobEnds } from './job-ends.ts'
import type { JobPageOptions, ListedJob, Page, TrashPageOptions } from './job-pages.ts'

/** The key of the internals in a board. It is a property, and not private, so that a proxy of a board has it, too. */
export const INTERNALS = Symbol('jobboard.internals')

/** Returns what other folders of this project need of a board, beside what its users need. */
export function boardInternals(board: { readonly [INTERNALS]: BoardInternals }): BoardInternals {
  return board[INTERNALS]
}

/** Returns whether a value that a user has passed is a board. */
export function isBoard(value: unknown): boolean {
  return Object(value)[INTERNALS] instanceof BoardInternals
}

/** The members of a board that its users do not see. */
export class BoardInternals {
  readonly #parts: BoardParts

  constructor(parts: BoardParts) {
    this.#parts = parts
  }

  /** Resolves when the board is connected. */
  open(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    return this.#parts.life.open(options)
  }

  /** The records of the board: schedules, limits, outlines of flows. */
  get records(): BoardRecords {
    return this.#parts.records
  }

  /** Whether the board keeps a record of the jobs that have ended, and with it the results that flows ask to be kept. */
  get keepsHistory(): boolean {
    return this.#parts.claims.settler.keepsHistory
  }

  // --- Time ---------------------------------------------------------------------------------------------------------

  /** The clock of the board, which conductors use: a memory board can have a clock of its own. */
  get clock(): AlarmClock {
    return this.#parts.backend.clock.alarms ?? systemAlarmClock
  }

  /** Whether the board has a clock of servers, which may differ from the one of this machine. */
  get hasServerClock(): boolean {
    return this.#parts.backend.clock.alarms === undefined
  }

  /** The time of the board's clock in milliseconds since 1970, as far as it is known here; no request. */
  get now(): number {
    return this.#parts.backend.clock.now()
  }

  /** Returns the time of the servers' clock in milliseconds since 1970; a round trip if it is not known yet. @throws NotConnected */
  async readClock(): Promise<number> {
    const { clock } = this.#running.backend
    await clock.read()
    return clock.now()
  }

  /** The milliseconds for which what this board holds is certainly held; infinite where this is not known. */
  get sessionLeft(): number {
    return this.#parts.backend.session.leftMs() ?? 0
  }

  // --- Faults -------------------------------------------------------------------------------------------------------

  /** The counters and the flag for faults with which the board still works, such as missing notifications. */
  get healthCounters(): Pick<HealthCounters, 'missedNotifications' | 'areNotificationsMissing' | 'stoppedBackends'> {
    return this.#parts.healthCounters
  }

  /** The error with which the board has refused several claims of this process in a row; undefined if there is none. */
  get claimFault(): Error | undefined {
    return this.#parts.claims.rejected.fault
  }

  // --- Jobs ---------------------------------------------------------------------------------------------------------

  /** Returns a part of the jobs in claim order, filtered before it is cut: see `job-pages.ts`. @throws InvalidArgument, NotConnected */
  async jobPage(options: JobPageOptions): Promise<Page<ListedJob>> {
    const { lookup, router } = this.#running
    return lookup.page(options, () => router.paused)
  }

  /** Returns the newest known posting of a job of this board. */
  postingOf(job: Job): Posting {
    return Job.postingOf(job)
  }

  /** Returns a part of the trash, as {@link jobPage} does of the jobs. */
  async trashPage(options: TrashPageOptions): Promise<Page<TrashedJob>> {
    return this.#running.trash.page(options)
  }

  /** Counts the jobs in the trash. @throws NotConnected */
  async countTrash(): Promise<number> {
    return this.#running.trash.count()
  }

  /** Counts the jobs of the board by flow and state, from memory. The caller views the board (`board.view`). */
  survey(): JobsSurvey {
    const { view, backend } = this.#running
    return surveyJobs(view, { now: backend.clock.now() })
  }

  /** Returns how jobs ended, many at once and without waiting. @throws SealedLogbook, StorageFailure, NotConnected */
  async readEnds(asked: JobEndsRequest): Promise<readonly KnownJobEnd[]> {
    return readJobEnds(asked, this.#running.backend)
  }

  /** The place of logbooks whose writes a settlement can include; undefined if there is none. */
  get recordedPlace(): string | undefined {
    return this.#parts.backend.claims.recordedPlace
  }

  /** Resolves when this board has received everything that was committed before the call. @throws NotConnected */
  async catchUp(): Promise<void> {
    await this.#running.backend.changes.barrier()
  }

  /** Closes the view now if nothing holds it; tests use it. */
  closeUnusedView(): void {
    this.#parts.view.closeIfUnused()
  }

  // --- Conductors ---------------------------------------------------------------------------------------------------

  /** Resolves when there is a job to claim that `accept` accepts. @throws the signal's reason */
  async waitToClaim(options: Pick<Required<ClaimNextOptions>, 'accept' | 'signal'>): Promise<void> {
    return this.#running.claims.claimer.waitToClaim(options)
  }

  /** The place for suspects, which the boards of a conductor share. */
  get suspects(): SuspectPlace {
    return this.#parts.claims.held.suspects
  }

  /** Uses the place of another board from now on. */
  shareSuspects(place: SuspectPlace): void {
    this.#parts.claims.held.shareSuspects(place)
  }

  /** Writes the outlines of a conductor's flows. */
  async publishFlows(flows: readonly AnyFlow[]): Promise<void> {
    const { log, records, backend } = this.#parts
    const onError = (error: Error) => log.debug({ err: error }, 'the outline of a flow is not on the board')
    await publishOutlines(records, { flows, now: backend.clock.now(), onError })
  }

  /** Puts the schedules that a conductor declares at its start. */
  declareSchedules(declared: Required<DeclaredSchedules>): Promise<DeclareReport> {
    const { schedules, scheduleHost: host } = this.#parts
    return declareSchedules(declared, { schedules, host })
  }

  /** Puts the limits that a conductor declares at its start. */
  declareLimits(declared: Required<DeclaredLimits>): Promise<DeclarationReport> {
    return this.#parts.limits.declare(declared)
  }

  /** Puts the settings of flows that a conductor declares at its start. */
  declareFlowSettings(declared: Required<DeclaredFlowSettings>): Promise<DeclarationReport> {
    return this.#parts.flowSettings.declare(declared)
  }

  /** The settings of flows as this process knows them; current while it views the board. */
  get flowRules(): FlowRules {
    return this.#parts.postSettings.rules
  }

  /** Reads the settings of flows as they are set now. A board whose jobs other programs claim has none. @throws NotConnected, AccessDenied */
  async readFlowRules(): Promise<FlowRules> {
    const { backend, records } = this.#running
    return backend.shared ? NO_FLOW_RULES : new FlowRules(await records.of(FLOW_SETTINGS).list())
  }

  /** Returns what fires the schedules; not started. */
  scheduler(options: Omit<SchedulerOptions, 'host' | 'schedules'>): Scheduler {
    const { schedules, scheduleHost: host } = this.#parts
    return new Scheduler({ ...options, host, schedules })
  }

  /** Runs work once for the board: see `records/run-once.ts`. */
  runOnce(options: RunOnceOptions): Promise<'ran' | 'done'> {
    const { who, records, backend, viewing } = this.#parts
    return runOnce(
      {
        ...{ who, records, now: () => backend.clock.now() },
        register: async (entity) => this.#running.entities.register(entity),
        onLost: (lost) => viewing.on('state', ({ state }) => state === 'lost' && lost()),
      },
      options,
    )
  }

  /** The parts of a board that is open. @throws InvalidState */
  get #running(): BoardParts {
    this.#parts.lifecycle.assertRunning()
    return this.#parts
  }
}
