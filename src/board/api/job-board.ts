/**
 * The jobboard: one class for every backend. Here live what users call, the checks, the events and the claims held; the
 * live view knows what is on the board (asked in `lookup.ts`), the backend decides who gets it.
 *
 * Costs, in transactions and round trips of the backend: `post`, `claim` and each settle one transaction; `jobs`, `find`,
 * `wait`, `jobCount` and `job.state` nothing (`ensureFresh`, and a `find` of what is not in the view, one round trip).
 */

import { type AlarmClock, systemAlarmClock } from '../../core/alarm-clock.ts'
import { followSignals } from '../../core/async/abort.ts'
import { Lifecycle } from '../../core/async/lifecycle.ts'
import { Duplicate, InvalidState, Unclaimable } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { assertOptions } from '../../core/options.ts'
import type { Flow } from '../../flow/index.ts'
import type { Backend, Cancellation, Entity, SessionState } from '../backend.ts'
import type { Claim } from '../claims/claim.ts'
import { ClaimManager } from '../claims/claim-manager.ts'
import { Claimer } from '../claims/claimer.ts'
import type { AbandonOptions, TrashOptions } from '../claims/settle-options.ts'
import type { JobEntry } from '../model/entry.ts'
import type { FlowReference } from '../model/known-work.ts'
import { POST_OPTIONS, type PostOptions } from '../model/posting.ts'
import { type JobEventKind, LiveView } from '../view/live-view.ts'
import { EntityRegistry, type RegisteredEntity } from './entity-registry.ts'
import { ErrorReporter } from './error-reporter.ts'
import { BackendEventRouter } from './event-router.ts'
import type { BoardEvents } from './events.ts'
import { Job } from './job.ts'
import type { JobsOptions } from './listed.ts'
import { Lookup } from './lookup.ts'
import {
  assertCancelOptions,
  assertKind,
  type BoardOptions,
  boardSettings,
  type CancelOptions,
  type ClaimNextOptions,
  type ClaimsOptions,
  NO_REASON,
  type PostAndClaimOptions,
  postAndClaimSettings,
  type WaitOptions,
} from './options.ts'
import { OwnKeyWarning } from './own-key.ts'
import { type PostedJob, Poster } from './poster.ts'
import { TrashedJob } from './trashed-job.ts'
import type { WaitingFor } from './waiting-for.ts'

/** How long others leave a job alone that its poster wants to claim. */
const RESERVED_FOR_POSTER = '1h'

/** A board that is open: posts, lists, claims, settles and tells. Opened by `openBoard`, closed by `close()` or `await using`. */
export class JobBoard implements AsyncDisposable {
  /** The owner that this board's claims name. */
  readonly who: string
  readonly #log: Logger
  readonly #backend: Backend
  readonly #lifecycle: Lifecycle
  readonly #view: LiveView
  readonly #entities: EntityRegistry
  readonly #errorReporter: ErrorReporter
  readonly #lookup: Lookup
  readonly #poster: Poster
  readonly #claims: ClaimManager
  readonly #claimer: Claimer
  readonly #eventRouter: BackendEventRouter

  /** @internal Use `openBoard`. @throws TypeError when `who` is no text or empty; InvalidArgument for `log` */
  constructor(backend: Backend, options: BoardOptions = {}) {
    const { who, log, unacceptedAfter } = boardSettings(options)
    this.who = who
    this.#log = log
    this.#backend = backend
    this.#lifecycle = new Lifecycle(`board ${backend.uri}`)
    const { signal } = this.#lifecycle
    const failed = (error: Error) => this.#reportError(error)
    this.#entities = new EntityRegistry({ backend, signal, onError: failed })
    this.#errorReporter = new ErrorReporter(log)
    this.#view = new LiveView({
      backend,
      unacceptedAfter,
      signal,
      listener: {
        jobChanged: (happening, entry) => this.#emitJobEvent(happening, entry),
        cancelRequested: (entry) => this.#claims.cancelled(entry),
        flowUnaccepted: (work, first) => this.#emitUnaccepted(work, first),
        onError: failed,
      },
    })
    this.#lookup = new Lookup({ backend, view: this.#view, signal })
    const ownKey = new OwnKeyWarning({ log, holds: (entry) => this.#claims.holds(entry) })
    this.#poster = new Poster({
      ...{ backend, view: this.#view, lookup: this.#lookup },
      keyTaken: (entry, posting) => ownKey.warnIfOwnKey(entry, posting),
    })
    const claims = new ClaimManager({ backend, view: this.#view, entities: this.#entities, who, onError: failed })
    this.#claims = claims
    const [view, entities, faults] = [this.#view, this.#entities, this.#errorReporter]
    this.#eventRouter = new BackendEventRouter({ view, claims, entities, errorReporter: faults, onError: failed })
    this.#claimer = new Claimer({ claims, view: this.#view, signal, uri: this.uri })
  }

  /** For people: the URI, without a password. */
  get uri(): string {
    return this.#backend.uri
  }

  /** Whether TaskFlow's services post and claim here beside this library's processes. */
  get shared(): boolean {
    return this.#backend.shared === true
  }

  /** Whether operations go through now. */
  get connected(): boolean {
    return this.#eventRouter.state === 'connected'
  }

  get state(): SessionState {
    return this.#eventRouter.state
  }

  /**
   * After how many milliseconds without a sign of life others take over what this board holds; undefined where a session
   * lasts as long as its process.
   */
  get sessionTimeout(): number | undefined {
    return this.#backend.sessionTimeout
  }

  /** @internal What whoever works for this board goes by: a memory board can have a clock of its own. */
  get clock(): AlarmClock {
    return this.#backend.clock ?? systemAlarmClock
  }

  /** How many jobs are on the board, claimed or not. */
  get jobCount(): number {
    return this.#view.jobCount
  }

  /** Calls `listener` at each event, until the function returned is called. A listener that throws harms nobody. */
  on<E extends keyof BoardEvents>(event: E, listener: (event: BoardEvents[E]) => unknown): () => void {
    const off = this.#errorReporter.events.on(event, listener)
    if (event === 'error') this.#errorReporter.errorListenerAdded()
    if (event === 'posted') this.#view.announceAll()
    if (event === 'unaccepted') this.#view.unaccepted.start()
    return off
  }

  /** @internal Resolves when the board is connected and the view is current. */
  open(options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#lifecycle.start(
      async (stopped) => {
        using either = followSignals([stopped, options.signal])
        await this.#backend.open(this.#eventRouter.sink, either)
        await this.#view.whenSettled(either)
      },
      () => this.#backend.close(),
    )
  }

  /** Ends the session, and with it every claim that was not settled. Idempotent; awaits what is under way. */
  close(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      await this.#backend.close()
      this.#claims.loseAll('the board was closed')
      this.#view.close(new InvalidState(`board ${this.uri} was closed`))
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // --- Posting and looking ----------------------------------------------------------------------------------------

  /**
   * Posts a job; one transaction. Given the flow itself, its inputs are checked by the compiler and, as far as they are
   * missing, here; given its name, by whoever runs it.
   *
   * With a `key`, at most one job with that key is on the board: where there is one, it is what this resolves to, with
   * `created` false, and nothing is posted (two round trips more).
   *
   * @throws MissingDependencies, InvalidPosting, PayloadTooLarge, UnsupportedCapability: nothing was posted
   * @throws NotConnected: nothing was posted; try again
   * @throws OutcomeUnknown: it may have been posted; with a key just post again, else post again with the same uuid if
   * running twice does no harm
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
   * Posts a job and claims it here: nobody else does meanwhile. Waits for its resources as every job does. Two transactions.
   *
   * To others it is a job that rests for an hour. So if this process goes before it has the claim, the job is anybody's then.
   *
   * @throws as {@link post}; Timeout, or the signal's reason, and the job is in the trash; Duplicate when a job with the key
   * is on the board; NotFound when somebody has cancelled the job before its turn came
   * @example await using claim = await board.postAndClaim('tidy', {}, { resources: { exclusive: ['disk'] } })
   */
  async postAndClaim<I extends object>(
    flow: Flow<I> | string,
    store: NoInfer<I>,
    options: PostAndClaimOptions = {},
  ): Promise<Claim> {
    this.#lifecycle.assertRunning()
    const { post, wait } = postAndClaimSettings(options)
    wait.signal?.throwIfAborted()
    const job = await this.#poster.post(flow, store, { ...post, delay: RESERVED_FOR_POSTER })
    if (!job.created) throw new Duplicate(`${job}: it has the key that was asked for, and is on the board already`)
    return this.#claimer.claimOwnPost(job, wait)
  }

  /** The jobs on the board as it stands now: higher priority first, then in posting order. */
  async *jobs(options: JobsOptions = {}): AsyncGenerator<Job, void, undefined> {
    this.#lifecycle.assertRunning()
    yield* this.#lookup.jobs(options)
  }

  /** Resolves when there is a job to claim. @throws Timeout */
  async wait(options: WaitOptions = {}): Promise<void> {
    this.#lifecycle.assertRunning()
    return this.#claimer.waitForClaimable(options)
  }

  /** The job with this uuid. @throws NotFound when it is not on the board (any more) */
  async find(uuid: string): Promise<Job> {
    this.#lifecycle.assertRunning()
    return this.#lookup.find(uuid)
  }

  /** Who holds the claim of the job; one round trip. */
  async findOwner(job: Job): Promise<string | undefined> {
    this.#lifecycle.assertRunning()
    return this.#lookup.owner(job)
  }

  /**
   * What holds the job back, if anything is known to: a pause, its delay, a resource, or that of the conductors that there
   * are none knows its flow. A round trip or two, and one for each conductor.
   */
  async waitingFor(job: Job): Promise<WaitingFor | undefined> {
    this.#lifecycle.assertRunning()
    return this.#lookup.waitingFor(job, { paused: () => this.paused })
  }

  /**
   * Yields what is in the trash, oldest first, with who trashed it and why. It is read page by page, so that a long trash needs
   * little memory; what leaves the trash meanwhile may be left out.
   */
  async *trashed(): AsyncGenerator<TrashedJob, void, undefined> {
    this.#lifecycle.assertRunning()
    for await (const entry of this.#backend.trashed()) yield new TrashedJob(entry)
  }

  /**
   * Out of the trash, to the end of the queue: with its uuid and its run number, without attempts. One transaction.
   *
   * @throws NotFound when it is not in the trash any more; Duplicate when its key is taken
   */
  async restore(trashed: TrashedJob): Promise<void> {
    this.#lifecycle.assertRunning()
    const entry = TrashedJob.entryFor(trashed)
    const { delay: _, ...posting } = entry.posting
    await this.#backend.restore(entry, { ...posting, attempts: [] })
  }

  /** Out of the trash for ever; one transaction. @throws NotFound when it is not in the trash any more */
  async purge(trashed: TrashedJob): Promise<void> {
    this.#lifecycle.assertRunning()
    await this.#backend.purge(TrashedJob.entryFor(trashed))
  }

  // --- Asking for something that others carry out -----------------------------------------------------------------

  /**
   * Asks for a job to be given up: `claim.cancelled` fires wherever it runs. One that was never run is trashed at once;
   * one that was run before and waits is claimed once more, so that a conductor undoes what it has done; `claim.perform`,
   * which knows of nothing to undo, trashes it without calling the work.
   *
   * @throws NotFound when it has left the board
   */
  async cancel(job: Job, options: CancelOptions = {}): Promise<void> {
    this.#lifecycle.assertRunning()
    assertCancelOptions(options)
    await this.#claims.cancel(await this.#lookup.toOwnEntry(job), options.reason ?? NO_REASON)
  }

  /** Who has asked for the job to be given up, and why, if anybody has; one round trip. */
  async cancellation(job: Job): Promise<Cancellation | undefined> {
    this.#lifecycle.assertRunning()
    return this.#lookup.cancellation(job)
  }

  /**
   * From now on nobody claims, wherever they are, until {@link resume}: also when everybody has gone meanwhile. What runs
   * goes on. One transaction.
   */
  async pause(): Promise<void> {
    this.#lifecycle.assertRunning()
    await this.#backend.request({ kind: 'gate', paused: true })
  }

  async resume(): Promise<void> {
    this.#lifecycle.assertRunning()
    await this.#backend.request({ kind: 'gate', paused: false })
  }

  /** As this process knows it. */
  get paused(): boolean {
    return this.#eventRouter.paused
  }

  // --- Claiming ---------------------------------------------------------------------------------------------------

  /**
   * Claims this very job; one transaction.
   *
   * @throws Unclaimable naming the owner, or the limit that the job is over (it is trashed then)
   * @throws NotFound when it has left the board
   */
  async claim(job: Job): Promise<Claim> {
    this.#lifecycle.assertRunning()
    const own = await this.#lookup.toOwnEntry(job)
    using _held = await this.#view.pin(Job.entryFor(own))
    if (!this.#lookup.isCurrent(own)) await this.#lookup.refresh()
    if (this.paused) throw new Unclaimable(`${job}: the board is paused`)
    return this.#claims.claim(own).catch(async (error: unknown) => {
      // Where not every change is told, it may have been refused for what is over by now.
      const mayBeOver = error instanceof Unclaimable && !Job.entryFor(own).ended
      if (!mayBeOver || this.#backend.capabilities.completeChangeFeed) throw error
      await this.#lookup.refresh()
      return this.#claims.claim(own)
    })
  }

  /**
   * Waits until there is something to claim and claims up to `max` jobs, first in claim order first. Losing a race for a
   * job costs a round trip and nothing else.
   *
   * @throws Timeout when there is a `timeout`; the signal's reason; InvalidState when the board is closed
   * @example const [claim] = await board.claimNext({ signal })
   */
  async claimNext(options: ClaimNextOptions = {}): Promise<[Claim, ...Claim[]]> {
    this.#lifecycle.assertRunning()
    return this.#claimer.claimNext(options)
  }

  /**
   * One claim after the other, until the signal fires or the board is closed.
   *
   * @example for await (const claim of board.claims({ signal })) await claim.perform(work)
   */
  async *claims(options: ClaimsOptions = {}): AsyncGenerator<Claim, void, undefined> {
    yield* this.#claimer.claimAll(options)
  }

  /** Settles what this board claimed. @throws NotFound when nobody holds it, NotOwner when another does, as Claim.consume */
  async consume(job: Job): Promise<void> {
    return (await this.#requireClaim(job)).consume()
  }

  /** @throws as {@link consume} */
  async abandon(job: Job, options?: AbandonOptions): Promise<void> {
    return (await this.#requireClaim(job)).abandon(options)
  }

  /** @throws as {@link consume} */
  async trash(job: Job, options?: TrashOptions): Promise<void> {
    return (await this.#requireClaim(job)).trash(options)
  }

  // --- Participants -----------------------------------------------------------------------------------------------

  /** Shows a participant on the board until it is disposed, also over a change of session. @throws Duplicate */
  async registerEntity(entity: Omit<Entity, 'instance'>): Promise<RegisteredEntity> {
    this.#lifecycle.assertRunning()
    return this.#entities.register(entity)
  }

  /** Who lives: conductors, say. One round trip and one for each. */
  async entities(kind: string): Promise<Entity[]> {
    this.#lifecycle.assertRunning()
    assertKind(kind)
    return this.#backend.entities(kind)
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  async #requireClaim(job: Job): Promise<Claim> {
    this.#lifecycle.assertRunning()
    return this.#claims.findClaim(await this.#lookup.toOwnEntry(job))
  }

  #emitJobEvent(happening: JobEventKind, entry: JobEntry): void {
    this.#claims.jobChanged(happening, entry)
    if (entry.stored) this.#errorReporter.events.emit(happening, { job: new Job(entry) })
  }

  #emitUnaccepted({ flow, version }: FlowReference, first: JobEntry): void {
    const job = new Job(first)
    this.#log.warn(
      { flow, version, job: job.uuid },
      'jobs of a flow that no living conductor knows hold others back from their resources no longer: start a conductor that has the flow, or cancel them',
    )
    this.#errorReporter.events.emit('unaccepted', { flow, version, job })
  }

  #reportError(error: Error): void {
    this.#errorReporter.report(error, { opening: this.#lifecycle.state === 'starting' })
  }
}
