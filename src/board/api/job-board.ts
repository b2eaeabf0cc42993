/**
 * The jobboard: one class for every backend. It has the public methods, the checks, the events and the claims that are held.
 * The live view knows which jobs are on the board (`lookup.ts` reads it); the backend decides which owner gets a job.
 *
 * Costs, in transactions and round trips of the backend: `post`, `claim` and each settle one transaction. What a process receives
 * depends on what it uses:
 *
 * | level | begun by | receives |
 * |---|---|---|
 * | posting | `openBoard`, `post`, `cancel`, `pause`, `trashed`, `restore`, `entities` | nothing |
 * | following | `job.wait`, `job.state` and the like, `find` with a reference, held claims | hints that these jobs have changed |
 * | viewing | `view`, `jobs`, `on`, `wait`, claims, conductors | the changes of the board; then `jobs`, `find` and `wait` send no request |
 *
 * A level is left some seconds after its last use (`view/subscription.ts`, `view/job-follower.ts`).
 */

import { answerInTime, followSignals } from '../../core/async/abort.ts'
import { Lifecycle } from '../../core/async/lifecycle.ts'
import { asError, Duplicate, InvalidState, Timeout } from '../../core/errors.ts'
import { parseReference } from '../../core/job-reference.ts'
import type { Logger } from '../../core/log.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { type AlarmClock, systemAlarmClock, toDate } from '../../core/time.ts'
import { newUuid } from '../../core/uuid.ts'
import type { AnyFlow, Flow } from '../../flow/index.ts'
import type { Claim } from '../claims/claim.ts'
import { ClaimManager } from '../claims/claim-manager.ts'
import { Claimer } from '../claims/claimer.ts'
import type { ReleasedClaim } from '../claims/release-claim.ts'
import type { AbandonOptions, TrashOptions } from '../claims/settle-options.ts'
import type { Backend, BackendCapabilities, Cancellation, Entity, SessionState } from '../contract/index.ts'
import { refusalError } from '../contract/refusals.ts'
import type { DeclaredLimits, DeclareLimitsReport } from '../limits/declare.ts'
import { LimitBook } from '../limits/limit-book.ts'
import { Limits } from '../limits/limits.ts'
import { TokenTaker } from '../limits/token-taker.ts'
import type { JobEntry } from '../model/entry.ts'
import type { FlowReference } from '../model/flow-reference.ts'
import { POST_OPTIONS, type PostOptions, type Reservation } from '../model/posting.ts'
import type { SuspectPlace } from '../queue/suspect-place.ts'
import { BoardRecords } from '../records/board-records.ts'
import { type ListedFlow, listFlows, publishOutlines } from '../records/flow-outlines.ts'
import {
  assertPauseOptions,
  type BoardPause,
  describePause,
  type PauseOptions,
  readPause,
  removePause,
  writePause,
} from '../records/pause-record.ts'
import { type OnceHost, type RunOnceOptions, runOnce } from '../records/run-once.ts'
import { type DeclaredSchedules, type DeclareReport, declareSchedules } from '../schedules/declare.ts'
import type { ScheduleHost } from '../schedules/schedule-host.ts'
import { Scheduler, type SchedulerOptions } from '../schedules/scheduler.ts'
import { Schedules } from '../schedules/schedules.ts'
import { type JobEventKind, LiveView } from '../view/live-view.ts'
import { type JobsSurvey, surveyJobs } from '../view/survey.ts'
import type { Batch, BatchView } from './batches/batch.ts'
import type { BatchOptions } from './batches/batch-options.ts'
import { Batches, type BatchesOptions } from './batches/batches.ts'
import { DependencyResolver } from './dependency-resolver.ts'
import { detachedBackend } from './detached-backend.ts'
import { EntityRegistry, type RegisteredEntity } from './entity-registry.ts'
import { BackendEventRouter } from './event-router.ts'
import { type BoardEvents, ErrorReporter } from './events.ts'
import { HealthCounters } from './health-counters.ts'
import { type EndedJob, type HistoryOptions, readEndedJob, readHistory } from './history.ts'
import { Job } from './job.ts'
import { type JobDependencies, readJobDependencies } from './job-dependencies.ts'
import { type JobEndsRequest, type KnownJobEnd, readJobEnds } from './job-ends.ts'
import {
  countTrash,
  type JobPageOptions,
  type ListedJob,
  type Page,
  readTrashPage,
  type TrashPageOptions,
} from './job-pages.ts'
import { type JobResult, type ResultOptions, readResult } from './job-result.ts'
import type { JobsOptions } from './listed.ts'
import { Lookup } from './lookup.ts'
import {
  assertCancelOptions,
  assertKind,
  assertReleaseOptions,
  assertUuid,
  type BoardOptions,
  boardSettings,
  type CancelOptions,
  type ClaimNextOptions,
  type ClaimsOptions,
  NO_REASON,
  type PostAndClaimOptions,
  postAndClaimSettings,
  type ReleaseOptions,
  type WaitOptions,
} from './options.ts'
import { OwnKeyWarning } from './posting/own-key-warning.ts'
import { type PostManyOptions, type PostManyResult, postMany, type TypedPostItem } from './posting/post-many.ts'
import { PostRecorder } from './posting/post-recorder.ts'
import type { PostedJob } from './posting/posted-job.ts'
import { Poster } from './posting/poster.ts'
import { type HoldOptions, ResourceHold, toHoldPost } from './resource-hold.ts'
import { type RestoreOptions, restore } from './restoring.ts'
import { toScheduleHost } from './schedule-host.ts'
import { TrashedJob } from './trashed-job.ts'
import { readTokenReason, type WaitingFor } from './waiting-for.ts'

/** The events whose listeners do not open the view. */
const EVENTS_WITHOUT_VIEW: ReadonlySet<keyof BoardEvents> = new Set(['error', 'state', 'notifications'])
/** The delay of a job that is reserved for its poster: other boards do not claim the job before, and it expires long before. */
const RESERVED_FOR_POSTER = '365d'
/** The delay of such a job where jobs cannot expire: it is short, because other boards must run the job if its poster dies. */
const RESERVED_WITHOUT_EXPIRY = '1h'

/**
 * An open board: it posts, lists, claims and settles jobs, and emits events. Opened by `openBoard`, closed by `close()` or `await using`.
 */
export class JobBoard implements AsyncDisposable {
  /** The owner that this board's claims name. */
  readonly who: string
  /** @internal The records of the board: schedules, limits, outlines of flows. */
  readonly records: BoardRecords
  readonly #log: Logger
  readonly #backend: Backend
  readonly #lifecycle: Lifecycle
  readonly #view: LiveView
  readonly #entities: EntityRegistry
  readonly #errorReporter: ErrorReporter
  readonly #lookup: Lookup
  readonly #dependencies: DependencyResolver
  readonly #poster: Poster
  readonly #claims: ClaimManager
  readonly #claimer: Claimer
  readonly #eventRouter: BackendEventRouter
  readonly #scheduleHost: ScheduleHost
  readonly #limitBook: LimitBook
  readonly #tokens: TokenTaker
  readonly #healthCounters: HealthCounters
  readonly #batches: Batches
  #limits: Limits | undefined
  #schedules: Schedules | undefined

  /** @internal Use `openBoard`. @throws TypeError unless `who` is a non-empty string; InvalidArgument for `log` */
  constructor(given: Backend, options: BoardOptions = {}) {
    const { who, log, unacceptedAfter, keepHistory, telemetry } = boardSettings(options)
    const backend = telemetry?.tracer ? detachedBackend(given, telemetry.tracer) : given
    this.who = who
    this.#log = log
    this.#backend = backend
    this.#lifecycle = new Lifecycle(`board ${backend.uri}`)
    const { signal } = this.#lifecycle
    const failed = (error: Error) => this.#reportError(error)
    this.#entities = new EntityRegistry({ entities: backend.entities, signal, onError: failed })
    this.#errorReporter = new ErrorReporter(log)
    this.#view = new LiveView({
      backend,
      unacceptedAfter,
      limits: { open: () => this.#limitBook.open('view'), close: () => this.#limitBook.close('view') },
      signal,
      listener: {
        jobChanged: (event, entry, options) => this.#emitJobEvent(event, entry, options),
        statusRead: (entry, status) => this.#claims.statusRead(entry, status),
        cancelRequested: (entry) => this.#claims.cancelled(entry),
        jobsExpired: () => this.#claims.expirer.noteExpired(),
        flowUnaccepted: (work, first) => this.#emitUnaccepted(work, first),
        limited: (key, waiting) => this.#emitLimited(key, waiting),
        onError: failed,
      },
    })
    this.#lookup = new Lookup({ backend, view: this.#view, signal })
    const ownKey = new OwnKeyWarning({ log, holds: (entry) => this.#claims.holds(entry) })
    this.#dependencies = new DependencyResolver({ backend, lookup: this.#lookup })
    this.#poster = new Poster({
      ...{ who, backend, view: this.#view, lookup: this.#lookup, dependencies: this.#dependencies, signal },
      keyTaken: (entry, posting) => ownKey.warnIfOwnKey(entry, posting),
      heldMember: (batch) => this.#claims.findMember(batch),
      endDoomed: (id) => this.#claims.doomed.end(id),
      recorder: telemetry && new PostRecorder({ telemetry, board: backend.uri, log }),
    })
    this.#batches = new Batches({
      ...{ backend, who, log, poster: this.#poster, lookup: this.#lookup, dependencies: this.#dependencies, signal },
      cancel: async (job, reason) => this.#claims.cancel(await this.#lookup.toOwnEntry(job), { reason }),
      assertRunning: () => this.#lifecycle.assertRunning(),
    })
    this.records = new BoardRecords({ backend, signal, onError: failed })
    this.#limitBook = new LimitBook({
      ...{ backend, records: this.records, onError: failed },
      onRules: (rules) => {
        this.#view.setLimits(rules)
        this.#tokens.rulesChanged()
      },
    })
    this.#tokens = new TokenTaker({ backend, book: this.#limitBook, signal })
    const claims = new ClaimManager({
      ...{ backend, view: this.#view, entities: this.#entities, limits: this.#limitBook, who, signal, onError: failed },
      records: this.records,
      keepHistory,
    })
    this.#claims = claims
    const [view, entities, faults, { records }] = [this.#view, this.#entities, this.#errorReporter, this]
    this.#healthCounters = new HealthCounters({ uri: backend.uri, log, errorReporter: faults })
    this.#eventRouter = new BackendEventRouter({
      uri: backend.uri,
      view,
      claims,
      entities,
      records,
      errorReporter: faults,
      healthCounters: this.#healthCounters,
      batches: this.#batches.waits,
      onError: failed,
    })
    this.#scheduleHost = toScheduleHost({ backend, who, records, claims, lookup: this.#lookup })
    this.#claimer = new Claimer({ backend, claims, view: this.#view, signal, uri: this.uri, onError: failed })
  }

  /** The URI without a password, for messages. */
  get uri(): string {
    return this.#backend.uri
  }

  /** Whether TaskFlow's services also post and claim on this board. */
  get shared(): boolean {
    return this.#backend.shared === true
  }

  /** Whether the board is connected, so that operations can succeed. */
  get connected(): boolean {
    return this.#eventRouter.state === 'connected'
  }

  get state(): SessionState {
    return this.#eventRouter.state
  }

  /**
   * The milliseconds without a heartbeat after which other owners can take over the jobs of this board; undefined where a
   * session lasts as long as its process.
   */
  get sessionTimeout(): number | undefined {
    return this.#backend.session.timeout
  }

  /** @internal The milliseconds for which what this board holds is certainly held; infinite where this is not known. */
  get sessionLeft(): number {
    return this.#backend.session.leftMs() ?? 0
  }

  /** @internal The place for suspects, which the boards of a conductor share. */
  get suspects(): SuspectPlace {
    return this.#claims.suspects
  }

  /** @internal Uses the place of another board from now on. */
  shareSuspects(place: SuspectPlace): void {
    this.#claims.shareSuspects(place)
  }

  /** @internal The counters and the flag for faults with which the board still works, such as missing notifications. */
  get healthCounters(): Pick<HealthCounters, 'missedNotifications' | 'areNotificationsMissing' | 'stoppedBackends'> {
    return this.#healthCounters
  }

  /** @internal The error with which the board has refused several claims of this process in a row; undefined if there is none. */
  get claimFault(): Error | undefined {
    return this.#claims.fault
  }

  /** @internal The clock of the board, which conductors use: a memory board can have a clock of its own. */
  get clock(): AlarmClock {
    return this.#backend.clock.alarms ?? systemAlarmClock
  }

  /** @internal Whether the board has a clock of servers, which may differ from the one of this machine. */
  get hasServerClock(): boolean {
    return this.#backend.clock.alarms === undefined
  }

  /**
   * @internal Returns the time of the servers' clock in milliseconds since 1970; a round trip if it is not known yet.
   *
   * @throws NotConnected
   */
  async readClock(): Promise<number> {
    this.#lifecycle.assertRunning()
    await this.#backend.clock.read()
    return this.#backend.clock.now()
  }

  /**
   * The number of jobs on the board, claimed or not, without a request; undefined while this process does not {@link view} the board:
   * then {@link countJobs} counts them.
   */
  get jobCount(): number | undefined {
    return this.#view.jobCount
  }

  /**
   * Calls `listener` for each event until the returned function is called. An error that a listener throws affects no other listener.
   *
   * A listener for events of jobs opens the view of the board: await {@link view} where no event may be missed from then on.
   */
  on<E extends keyof BoardEvents>(event: E, listener: (event: BoardEvents[E]) => unknown): () => void {
    const off = this.#errorReporter.events.on(event, listener)
    if (event === 'error') this.#errorReporter.errorListenerAdded()
    if (EVENTS_WITHOUT_VIEW.has(event) || this.#lifecycle.state !== 'running') return off
    const held = this.#view.hold()
    if (event === 'posted') this.#view.announceAll()
    if (event === 'unaccepted') this.#view.unaccepted.start()
    return () => {
      off()
      held[Symbol.dispose]()
    }
  }

  /**
   * Views the board until the result is disposed: every later change is emitted, and `jobs`, `jobCount` and `wait` answer from
   * memory. Other methods open the view themselves while they need it; a process that only posts never does, and receives nothing.
   *
   * @throws NotConnected, AccessDenied
   * @example using _view = await board.view()
   */
  async view({ signal }: { readonly signal?: AbortSignal } = {}): Promise<Disposable> {
    this.#lifecycle.assertRunning()
    const held = this.#view.hold()
    using either = followSignals([this.#lifecycle.signal, signal])
    try {
      await this.#view.whenEntered(either)
      return held
    } catch (error) {
      held[Symbol.dispose]()
      throw error
    }
  }

  /** @internal Closes the view now if nothing holds it; tests use it. */
  closeUnusedView(): void {
    this.#view.closeIfUnused()
  }

  /** @internal Resolves when the board is connected. */
  open(options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#lifecycle.start(
      async (stopped) => {
        using either = followSignals([stopped, options.signal])
        await this.#backend.session.open(this.#eventRouter.sink, either)
      },
      () => this.#backend.session.close(),
    )
  }

  /** Ends the session, and with it every claim that was not settled. Idempotent; awaits what is under way. */
  close(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      await this.#backend.session.close()
      this.#claims.loseAll('the board was closed')
      this.#view.close(new InvalidState(`board ${this.uri} was closed`))
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // --- Posting and listing ----------------------------------------------------------------------------------------

  /**
   * Posts a job in one transaction. For a flow object, the compiler checks the inputs, and this method checks that none is
   * missing; for the name of a flow, the process that runs the job checks them.
   *
   * With a `key`, at most one job with that key is on the board: if there is one, nothing is posted, and this method resolves to
   * that job, with `created` false. That takes three round trips more, and on ZooKeeper it opens the view.
   *
   * @throws MissingDependencies, InvalidPosting, PayloadTooLarge, UnsupportedCapability: nothing was posted
   * @throws NotConnected: nothing was posted; try again
   * @throws OutcomeUnknown: the job may have been posted; with a key, post it again; without one, post it again with the same
   * uuid if two runs do no harm
   * @example await board.post(hello, { name: 'Ada' }, { priority: 'HIGH' })
   */
  async post<I extends object>(
    flow: Flow<I> | string,
    store: NoInfer<I>,
    options: PostOptions = {},
  ): Promise<PostedJob> {
    this.#lifecycle.assertRunning()
    assertOptions(options, POST_OPTIONS, 'post')
    return this.#poster.post(flow, store, options)
  }

  /**
   * Posts many jobs: a few hundred in each transaction, with an answer for each, in the order of the items; or with `atomic` at most 500
   * jobs in one transaction, or none. The items are read as they are needed, and can be an async iterable.
   *
   * An item that cannot be posted has an `error` as its answer, and the others are posted. An item whose `key` is taken has
   * `created: false`.
   *
   * @throws InvalidArgument; what the items throw; the signal's reason; with `atomic`, as {@link post}, and Duplicate where a key is taken
   * @example
   * const results = await board.postMany(users.map((user) => ({ flow: hello, store: { name: user.name }, key: user.id })))
   * for (const [index, result] of results.entries()) if ('error' in result) console.error(users[index], result.error)
   */
  async postMany<I extends object>(
    items: Iterable<TypedPostItem<I>> | AsyncIterable<TypedPostItem<I>>,
    options: PostManyOptions = {},
  ): Promise<PostManyResult[]> {
    this.#lifecycle.assertRunning()
    return this.#poster.many((poster) => postMany(items, options, poster))
  }

  /**
   * Creates a batch: a group of jobs that is counted to the end of the last one, which posts a callback. Post its jobs with `batch.post`,
   * and seal it when there are no more. One transaction.
   *
   * @throws InvalidArgument; for the callbacks as {@link post}; PayloadTooLarge; Duplicate when the board has a batch with the given
   *   `uuid`; UnsupportedCapability, NotConnected; OutcomeUnknown: the batch may have been created
   * @example
   * const batch = await board.batch({ name: 'import', onDone: { flow: report, store: { month: '2026-10' } } })
   * await batch.postMany(files.map((file) => ({ flow: load, store: { file } })))
   * await batch.seal()
   */
  async batch(options: BatchOptions): Promise<Batch> {
    this.#lifecycle.assertRunning()
    return this.#batches.create(options)
  }

  /** Finds a batch by its uuid; one round trip. @throws NotFound when the board has none, or keeps it no more; UnsupportedCapability */
  async findBatch(uuid: string): Promise<Batch> {
    this.#lifecycle.assertRunning()
    return this.#batches.find(uuid)
  }

  /**
   * Returns the newest batches, newest first, with their progress. Of those that have ended, a board keeps the last 1,000.
   *
   * @param options.limit the number of batches; 100 by default, at most 10,000
   * @throws InvalidArgument; UnsupportedCapability where the board has no batches
   */
  async batches(options: BatchesOptions = {}): Promise<readonly BatchView[]> {
    this.#lifecycle.assertRunning()
    return this.#batches.list(options)
  }

  /**
   * Posts a job and claims it here; no other board can claim it first. The job waits for its resources as every job does. Two
   * transactions.
   *
   * If this process ends before it has the claim, the job goes to the trash about a minute later, or after `expiresAfter`. Restore the job
   * from the trash if other processes are to run it. On a board that is shared with TaskFlow, where jobs do not expire, any board can claim
   * it after an hour.
   *
   * @throws as {@link post}; Timeout or the signal's reason: the job is then in the trash, or goes there when the servers answer again;
   * Duplicate when a job with the key is on the board; NotFound when the job was cancelled before its turn came
   * @example await using claim = await board.postAndClaim('tidy', {}, { resources: { exclusive: ['disk'] } })
   */
  async postAndClaim<I extends object>(
    flow: Flow<I> | string,
    store: NoInfer<I>,
    options: PostAndClaimOptions = {},
  ): Promise<Claim> {
    this.#lifecycle.assertRunning()
    return this.#postAndClaim(flow, store, postAndClaimSettings(options))
  }

  /**
   * Owns resources without a job's work: waits in their line as a job does, and owns them until they are released, or the session ends.
   * Two transactions, and one for the release. For `jobs`, the hold is a job of the flow `jobboard/hold`. If this process ends while it
   * waits, the job goes to the trash about a minute later.
   *
   * @throws InvalidArgument; Timeout, or the signal's reason, while it waits; NotFound when the hold was cancelled before its turn came;
   * UnsupportedCapability where the board has no resources
   * @example await using hold = await board.hold({ exclusive: ['repo/fedora'], timeout: '5m' })
   */
  async hold(options: HoldOptions): Promise<ResourceHold> {
    this.#lifecycle.assertRunning()
    const { flow, post: asked } = toHoldPost(options)
    return new ResourceHold(await this.#postAndClaim(flow, {}, postAndClaimSettings(asked)))
  }

  /** Yields the jobs that are on the board now: by priority, then in posting order. */
  async *jobs(options: JobsOptions = {}): AsyncGenerator<Job, void, undefined> {
    this.#lifecycle.assertRunning()
    yield* this.#lookup.jobs(options)
  }

  /**
   * @internal Returns a part of the jobs in claim order, filtered before it is cut: see `job-pages.ts`.
   *
   * @throws InvalidArgument, NotConnected
   */
  async jobPage(options: JobPageOptions): Promise<Page<ListedJob>> {
    this.#lifecycle.assertRunning()
    return this.#lookup.page(options, () => this.paused)
  }

  /** @internal Returns a part of the trash, as {@link jobPage} does of the jobs. */
  async trashPage(options: TrashPageOptions): Promise<Page<TrashedJob>> {
    this.#lifecycle.assertRunning()
    return readTrashPage(options, this.#backend)
  }

  /** @internal Counts the jobs in the trash. @throws NotConnected */
  async countTrash(): Promise<number> {
    this.#lifecycle.assertRunning()
    return countTrash(this.#backend)
  }

  /** @internal What the backend of the board can do. */
  get capabilities(): BackendCapabilities {
    return this.#backend.capabilities
  }

  /** Counts the jobs on the board now, claimed or not. Opens the view, which lists a ZooKeeper board as a whole. */
  async countJobs(): Promise<number> {
    this.#lifecycle.assertRunning()
    return this.#lookup.count()
  }

  /** @internal Counts the jobs of the board by flow and state, from memory. The caller views the board ({@link view}). */
  survey(): JobsSurvey {
    this.#lifecycle.assertRunning()
    return surveyJobs(this.#view, { now: this.#backend.clock.now() })
  }

  /** @internal Resolves when this board has received everything that was committed before the call. @throws NotConnected */
  async catchUp(): Promise<void> {
    this.#lifecycle.assertRunning()
    await this.#backend.changes.barrier()
  }

  /** @internal The time of the board's clock in milliseconds since 1970, as far as it is known here; no request. */
  get now(): number {
    return this.#backend.clock.now()
  }

  /** Resolves when there is a job to claim. @throws Timeout */
  async wait(options: WaitOptions = {}): Promise<void> {
    this.#lifecycle.assertRunning()
    return this.#claimer.waitForClaimable(options)
  }

  /** @internal Resolves when there is a job to claim that `accept` accepts. @throws the signal's reason */
  async waitToClaim(options: Pick<Required<ClaimNextOptions>, 'accept' | 'signal'>): Promise<void> {
    this.#lifecycle.assertRunning()
    return this.#claimer.waitToClaim(options)
  }

  /**
   * Finds a job by its reference ({@link Job.ref}) or its uuid. With a reference it takes one round trip. With a uuid it takes two on
   * Postgres and Redis; a ZooKeeper board that is not viewed is listed as a whole, and viewed for some seconds.
   *
   * @throws NotFound when it is not on the board
   * @example const job = await board.find(request.query.ref)
   */
  async find(reference: string): Promise<Job> {
    this.#lifecycle.assertRunning()
    return this.#lookup.find(reference)
  }

  /** Returns the owner of the job; undefined where it is unclaimed. One round trip. */
  async findOwner(job: Job): Promise<string | undefined> {
    this.#lifecycle.assertRunning()
    return this.#lookup.owner(job)
  }

  /**
   * Returns the known reason why the job is not run. Examples are a pause, a delay, a resource, and a flow that no living conductor knows.
   * A suspect waits while each process that could run it runs another suspect. Takes one or two round trips, and one for each conductor.
   */
  async waitingFor(job: Job): Promise<WaitingFor | undefined> {
    this.#lifecycle.assertRunning()
    // Changes come by a watch: without this, a key that this process has just held or resumed would be as it was before.
    if (this.#limitBook.revision !== undefined) await this.#limitBook.refresh().catch(() => undefined)
    const { suspects } = this.#claims
    const reason = await this.#lookup.waitingFor(job, {
      paused: () => this.paused,
      suspects: { place: suspects, who: this.who },
    })
    // The reason is certain without the record of the pause, which only adds the person and the cause.
    if (reason?.kind === 'pause')
      return { ...reason, text: describePause(await this.pauseOrigin().catch(() => undefined)) }
    const refusal = reason ? undefined : this.#claims.refusalOf(await this.#lookup.toOwnEntry(job))
    if (refusal) return { kind: 'refusal', text: `its claim was refused, and is tried again: ${refusal.message}` }
    if (reason || !this.capabilities.limits || job.limits.length === 0 || job.state !== 'UNCLAIMED') return reason
    return readTokenReason(job, this.limits)
  }

  /**
   * Returns the jobs that have ended last, newest first: done, or moved to the trash. One round trip. The board keeps some of them, see
   * `keepHistory`; none on a board that is shared with TaskFlow.
   *
   * @param options.limit the number of jobs; 100 by default, at most 10,000
   * @throws InvalidArgument, NotConnected
   * @example for (const { uuid, outcome, who } of await board.history()) console.log(uuid, outcome, who)
   */
  async history(options: HistoryOptions = {}): Promise<readonly EndedJob[]> {
    this.#lifecycle.assertRunning()
    return readHistory(options, this.#backend)
  }

  /**
   * Returns how the job with this uuid ended last: its owner, its times and its number of runs, from the history. Undefined if the history
   * does not have the job. Takes one round trip.
   *
   * @throws InvalidArgument, NotConnected
   */
  async findEnded(uuid: string): Promise<EndedJob | undefined> {
    this.#lifecycle.assertRunning()
    assertUuid(uuid)
    return readEndedJob(parseReference(uuid).uuid, this.#backend)
  }

  /** @internal Whether the board keeps a record of the jobs that have ended, and with it the results that flows ask to be kept. */
  get keepsHistory(): boolean {
    return this.#claims.keepsHistory
  }

  /**
   * Waits for the end of a job and returns its results, typed by its flow. It may end before, during or after the call: what is read is the
   * state of the job, its record in the history, and the logbook, where one is given. Results are found
   *
   * - on the board, where the flow has `keepResults: true`, or the job was consumed with `results`; no logbook is needed;
   * - in the logbook, with the options `flow` and `persistence`.
   *
   * The job that is given can be a posted one, or its uuid or reference. A job of which neither the board nor its history knows is not
   * found. One round trip and those of `find`, after the end of the job.
   *
   * @throws JobFailed, with the reason, for a job that is in the trash, was purged from it, or was reverted; ResultNotKept; NotFound;
   *   Timeout, or the signal's reason; SealedLogbook where the codecs do not match; InvalidArgument, NotConnected
   * @example
   * const job = await board.post(report, { month: '2026-10' })
   * const { results } = await board.result(job, { flow: report, timeout: '5m' })
   */
  async result<R = Record<string, unknown>>(job: Job | string, options: ResultOptions<R> = {}): Promise<JobResult<R>> {
    this.#lifecycle.assertRunning()
    const context = { backend: this.#backend, find: (reference: string) => this.#lookup.find(reference) }
    const late = (time: string) =>
      new Timeout(`job ${typeof job === 'string' ? job : job.uuid}: no result within ${time}`)
    return answerInTime(options, { work: () => readResult(job, options, context), late })
  }

  /** @internal Returns how jobs ended, many at once and without waiting. @throws SealedLogbook, StorageFailure, NotConnected */
  async readEnds(asked: JobEndsRequest): Promise<readonly KnownJobEnd[]> {
    this.#lifecycle.assertRunning()
    return readJobEnds(asked, this.#backend)
  }

  /**
   * Returns the jobs for which the job still waits, and those that are run after it, at most 1,000 each. Two round trips, and those that
   * read the postings.
   *
   * @throws NotFound when the job is not on the board
   */
  async dependencies(job: Job): Promise<JobDependencies> {
    this.#lifecycle.assertRunning()
    return readJobDependencies(job, { backend: this.#backend, lookup: this.#lookup })
  }

  /**
   * Yields the jobs in the trash, oldest first. The trash is read page by page, so that a long one needs little memory; a job that
   * leaves it meanwhile may be left out.
   */
  async *trashed(): AsyncGenerator<TrashedJob, void, undefined> {
    this.#lifecycle.assertRunning()
    for await (const entry of this.#backend.trash.list()) yield new TrashedJob(entry)
  }

  /**
   * Returns the job in the trash with this reference (`job.ref`) or uuid; undefined if there is none. If jobs with the uuid were trashed
   * several times, returns the newest one. Takes one or two round trips. On ZooKeeper and Redis, the first call of a process with a uuid
   * reads the whole trash; a call with a reference does not.
   *
   * @throws TypeError for an empty text; NotConnected
   * @example const trashed = await board.findTrashed(job.ref)
   */
  async findTrashed(reference: string): Promise<TrashedJob | undefined> {
    this.#lifecycle.assertRunning()
    assertUuid(reference)
    const { uuid, id } = parseReference(reference)
    const named = id === undefined ? undefined : await this.#backend.trash.entry(id)
    const entry = named?.posting.uuid === uuid ? named : await this.#backend.trash.find(uuid)
    return entry && new TrashedJob(entry)
  }

  /**
   * Moves a job from the trash to the end of the queue, with its uuid and run number and without attempts. One transaction.
   *
   * A job that depends on others waits for those of them that have not ended. With one of them in the trash it is refused: restore that
   * one, with `{ dependents: true }`, which restores this one, too. Returns the restored jobs.
   *
   * @throws NotFound when it is no longer in the trash, or a job on which it depends is not known any more; InvalidState when such a job is
   *   in the trash; Duplicate when its key is taken, or a job with its uuid is open in its batch; InvalidArgument. With `dependents`, also
   *   of one of those; the others are restored
   */
  async restore(trashed: TrashedJob, options: RestoreOptions = {}): Promise<readonly TrashedJob[]> {
    this.#lifecycle.assertRunning()
    return restore(trashed, options, { backend: this.#backend, dependencies: this.#dependencies })
  }

  /** Deletes a job from the trash; one transaction. @throws NotFound when it is no longer in the trash */
  async purge(trashed: TrashedJob): Promise<void> {
    this.#lifecycle.assertRunning()
    await this.#backend.trash.purge(TrashedJob.entryFor(trashed))
  }

  // --- Requests to all processes ----------------------------------------------------------------------------------

  /**
   * Cancels a job: `claim.cancelled` fires in the process that runs it. A job that was never run is trashed at once. A job that
   * was run before and waits is claimed once more, so that a conductor can revert its work; `claim.perform`, which has nothing to
   * revert, trashes it without calling the work.
   *
   * @param job the job, its reference, or its uuid
   * @throws NotFound when it has left the board
   * @example await board.cancel(uuid, { reason: 'ordered twice' })
   */
  async cancel(job: Job | string, options: CancelOptions = {}): Promise<void> {
    this.#lifecycle.assertRunning()
    assertCancelOptions(options)
    await this.#claims.cancel(await this.#lookup.resolve(job), {
      who: options.by,
      reason: options.reason ?? NO_REASON,
    })
  }

  /**
   * Takes the claim of a job away from its owner, which lives and makes no progress: the job is unclaimed, everything that the claim was
   * granted is free, and any owner can claim it. `claim.lost` fires in the process that had it, and the run is stopped as after the end of
   * a session. The attempt does not count. One transaction, which releases only the claim that is read; two more round trips.
   *
   * The former owner can still work for the moment until it receives the change, and for longer if its process hangs: its logbook
   * refuses it, and the fence (`ctx.fence`, `claim.fence`) tells other systems which run is the newest. A job that was posted with
   * `onOwnerLost: 'fail'`, and a hold, goes to the trash.
   *
   * @param job the job, its reference, or its uuid
   * @throws NotFound when the job has left the board, or is unclaimed; Conflict when another run has it: nothing was changed
   * @throws UnsupportedCapability on boards that are shared with TaskFlow
   * @example const { owner, run } = await board.release(job, { reason: 'hangs since noon' })
   */
  async release(job: Job | string, options: ReleaseOptions = {}): Promise<ReleasedClaim> {
    this.#lifecycle.assertRunning()
    assertReleaseOptions(options)
    return this.#claims.release(await this.#lookup.resolve(job), options)
  }

  /** Returns the cancel request of the job, with its reason, if there is one; one round trip. */
  async cancellation(job: Job): Promise<Cancellation | undefined> {
    this.#lifecycle.assertRunning()
    return this.#lookup.cancellation(job)
  }

  /**
   * Pauses the board: no process can claim a job until {@link resume}, also after all processes have been restarted. Running jobs continue. A board
   * that is paused already gets the new reason, and keeps the time at which its pause began.
   * Takes two transactions. The second one records who has paused the board, when and why; if it fails, the board stays paused, and `error`
   * is emitted.
   *
   * @throws InvalidArgument
   * @example await board.pause({ reason: 'the database moves', by: 'ada' })
   */
  async pause(options: PauseOptions = {}): Promise<void> {
    this.#lifecycle.assertRunning()
    assertPauseOptions(options)
    const isPaused = this.paused
    await this.#setGate({ paused: true })
    const { by = this.who, reason } = options
    const record = { by, at: this.#backend.clock.now(), ...defined({ reason }) }
    // The board is paused already: a rejection would mean to the caller that nothing was done.
    await writePause(this.records, record, { isPaused }).catch((error: unknown) => this.#reportError(asError(error)))
  }

  async resume(): Promise<void> {
    this.#lifecycle.assertRunning()
    await this.#setGate({ paused: false })
    await removePause(this.records).catch((error: unknown) => this.#reportError(asError(error)))
  }

  /** Returns who has paused the board, when and why; undefined if the board is not paused, or if this was not recorded. Takes one round trip. */
  async pauseOrigin(): Promise<BoardPause | undefined> {
    this.#lifecycle.assertRunning()
    return this.paused ? readPause(this.records) : undefined
  }

  /**
   * Whether the board is paused: as it was when it was opened, or as this process has set it last; as it is now while this process
   * views the board.
   */
  get paused(): boolean {
    return this.#eventRouter.paused
  }

  // --- Claiming ---------------------------------------------------------------------------------------------------

  /**
   * Claims the given job; one transaction.
   *
   * @throws Unclaimable naming the owner, or the limit that the job has exceeded (then it is trashed)
   * @throws NotFound when it has left the board
   */
  async claim(job: Job): Promise<Claim> {
    this.#lifecycle.assertRunning()
    using _view = this.#view.hold()
    const own = await this.#lookup.toOwnEntry(job)
    await this.#view.whenEntered({ signal: this.#lifecycle.signal })
    using _held = await this.#view.pin(Job.entryFor(own))
    if (!this.#lookup.isCurrent(own)) await this.#lookup.refresh()
    if (this.paused) throw refusalError(String(job), { why: 'paused' })
    return this.#claims.claim(own)
  }

  /**
   * Waits until a job can be claimed and claims up to `max` jobs, in claim order. A lost race for a job costs one round trip.
   *
   * Without a `timeout`, a caller that finds nothing among many jobs of others stops viewing the board, and looks at it some times a second
   * for jobs that nobody else claims. It begins such a job up to a second later, on a board with a long backlog up to half a minute later.
   *
   * @throws Timeout when there is a `timeout`; the signal's reason; InvalidState when the board is closed
   * @example const [claim] = await board.claimNext({ signal })
   */
  async claimNext(options: ClaimNextOptions = {}): Promise<[Claim, ...Claim[]]> {
    this.#lifecycle.assertRunning()
    return this.#claimer.claimNext(options)
  }

  /**
   * Yields one claim after the other, until the signal fires or the board is closed.
   *
   * @example for await (const claim of board.claims({ signal })) await claim.perform(work)
   */
  async *claims(options: ClaimsOptions = {}): AsyncGenerator<Claim, void, undefined> {
    yield* this.#claimer.claimAll(options)
  }

  /**
   * Consumes a job that this board has claimed.
   *
   * @throws NotFound when the job is unclaimed, NotOwner when another board object holds the claim; else as Claim.consume
   */
  async consume(job: Job): Promise<void> {
    return (await this.#requireClaim(job)).consume()
  }

  /** Abandons a job that this board has claimed. @throws as {@link consume} */
  async abandon(job: Job, options?: AbandonOptions): Promise<void> {
    return (await this.#requireClaim(job)).abandon(options)
  }

  /** Trashes a job that this board has claimed. @throws as {@link consume} */
  async trash(job: Job, options?: TrashOptions): Promise<void> {
    return (await this.#requireClaim(job)).trash(options)
  }

  // --- Schedules --------------------------------------------------------------------------------------------------

  /** The schedules of the board: list, put, pause, trigger. Conductors fire them. */
  get schedules(): Schedules {
    this.#schedules ??= new Schedules(this.#scheduleHost)
    return this.#schedules
  }

  /**
   * The limits of the board: how many jobs of a key run at once, and how many start in a time. They hold for the claims of all processes.
   *
   * @example await board.limits.set('flow/report', { concurrency: 2 })
   */
  get limits(): Limits {
    this.#limits ??= new Limits({
      ...{ uri: this.uri, who: this.who, records: this.records, capabilities: this.#backend.capabilities },
      now: () => this.#backend.clock.now(),
      readClock: () => this.#backend.clock.read(),
      use: (keys) => this.#backend.limits.use(keys),
      revision: () => this.#backend.limits.revision(),
      applyRate: async (request) => void (await this.#backend.limits.takeTokens(request)),
      unclaimed: () => this.jobs({ onlyUnclaimed: true, ensureFresh: true }),
      take: (key, call) => this.#tokens.take(key, call),
    })
    return this.#limits
  }

  /**
   * Returns the flows that conductors of this board have, or have had: their tasks and the order between them. `toMermaid` draws one.
   *
   * @throws NotConnected
   */
  async flows(): Promise<ListedFlow[]> {
    this.#lifecycle.assertRunning()
    return listFlows(this.records)
  }

  /** @internal Writes the outlines of a conductor's flows. */
  async publishFlows(flows: readonly AnyFlow[]): Promise<void> {
    const onError = (error: Error) => this.#log.debug({ err: error }, 'the outline of a flow is not on the board')
    await publishOutlines(this.records, { flows, now: this.#backend.clock.now(), onError })
  }

  /** @internal Puts the schedules that a conductor declares at its start. */
  declareSchedules(declared: Required<DeclaredSchedules>): Promise<DeclareReport> {
    return declareSchedules(declared, { schedules: this.schedules, host: this.#scheduleHost })
  }

  /** @internal Puts the limits that a conductor declares at its start. */
  declareLimits(declared: Required<DeclaredLimits>): Promise<DeclareLimitsReport> {
    return this.limits.declare(declared)
  }

  /** @internal Returns what fires the schedules; not started. */
  scheduler(options: Omit<SchedulerOptions, 'host' | 'schedules'>): Scheduler {
    return new Scheduler({ ...options, host: this.#scheduleHost, schedules: this.schedules })
  }

  // --- Entities ---------------------------------------------------------------------------------------------------

  /** Registers an entity on the board until it is disposed, also after a change of session. @throws Duplicate */
  async registerEntity(entity: Omit<Entity, 'instance'>): Promise<RegisteredEntity> {
    this.#lifecycle.assertRunning()
    return this.#entities.register(entity)
  }

  /** Returns the living entities of a kind, such as conductors. One round trip, and one for each entity. */
  async entities(kind: string): Promise<Entity[]> {
    this.#lifecycle.assertRunning()
    assertKind(kind)
    return this.#backend.entities.list(kind)
  }

  /** @internal Runs work once for the board: see `records/run-once.ts`. */
  runOnce(options: RunOnceOptions): Promise<'ran' | 'done'> {
    const host: OnceHost = {
      ...{ who: this.who, records: this.records, now: () => this.#backend.clock.now() },
      register: (entity) => this.registerEntity(entity),
      onLost: (lost) => this.on('state', ({ state }) => state === 'lost' && lost()),
    }
    return runOnce(host, options)
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  async #postAndClaim(
    flow: AnyFlow | string,
    store: object,
    { post, wait }: ReturnType<typeof postAndClaimSettings>,
  ): Promise<Claim> {
    wait.signal?.throwIfAborted()
    // Where jobs cannot expire, other boards may claim the job after a delay: it would otherwise stay for ever if its poster dies.
    const reservation: Reservation = this.#backend.capabilities.expiry
      ? { delay: RESERVED_FOR_POSTER, reservedFor: this.#claims.registerIncarnation() }
      : { delay: RESERVED_WITHOUT_EXPIRY }
    const { uuid = newUuid() } = post
    const own = {
      post: async () => {
        const job = await this.#poster.post(flow, store, { ...post, uuid }, reservation)
        if (job.created) return job
        throw new Duplicate(`${job} with the same key is already on the board; nothing was posted`)
      },
      find: post.uuid === undefined ? () => this.#lookup.find(uuid) : undefined,
    }
    return this.#claimer.claimOwnPost(own, wait)
  }

  async #setGate({ paused }: { readonly paused: boolean }): Promise<void> {
    await this.#backend.signals.setPaused(paused)
    // A view receives the change before this answer.
    if (!this.#view.isOpen) this.#eventRouter.sink.paused(paused)
  }

  async #requireClaim(job: Job): Promise<Claim> {
    this.#lifecycle.assertRunning()
    if (this.#claims.holds(Job.entryFor(job))) return this.#claims.findClaim(job)
    using _view = this.#view.hold()
    const own = await this.#lookup.toOwnEntry(job)
    if (!this.#claims.holds(Job.entryFor(own))) await this.#view.whenEntered({ signal: this.#lifecycle.signal })
    return this.#claims.findClaim(own)
  }

  #emitJobEvent(event: JobEventKind, entry: JobEntry, { isEarlier }: { readonly isEarlier: boolean }): void {
    this.#claims.jobChanged(event, entry)
    if (entry.stored && !isEarlier) this.#errorReporter.events.emit(event, { job: new Job(entry) })
  }

  #emitUnaccepted({ flow, version }: FlowReference, first: JobEntry): void {
    const job = new Job(first)
    this.#log.warn(
      { flow, version, job: job.uuid },
      'no living conductor knows the flow of these jobs, and other jobs no longer wait for them: start a conductor that has the flow, or cancel the jobs',
    )
    this.#errorReporter.events.emit('unaccepted', { flow, version, job })
  }

  #emitLimited(key: string, { first, until }: { readonly first: JobEntry; readonly until: number | undefined }): void {
    const job = new Job(first)
    const known = until === undefined ? {} : { until: toDate(until) }
    this.#log.info({ limit: key, job: job.uuid, ...known }, 'jobs wait for a limit')
    this.#errorReporter.events.emit('limited', { key, job, ...known })
  }

  #reportError(error: Error): void {
    this.#errorReporter.report(error)
  }
}
