/**
 * The jobboard: one class for every backend. Here live what users call, the checks, the events and the claims held; the
 * live view knows what is on the board, the backend decides who gets it.
 *
 * Costs, in transactions and round trips of the backend: `post`, `claim` and each settle one transaction; `jobs`, `find`,
 * `wait`, `jobCount` and `job.state` nothing (`ensureFresh`, and a `find` of what is not in the view, one round trip).
 */
import { hostname } from 'node:os'
import { abortAfter, followSignals } from '../core/abort.ts'
import {
  InvalidArgument,
  InvalidPosting,
  InvalidState,
  MissingDependencies,
  NotConnected,
  NotFound,
  Timeout,
} from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { Lifecycle } from '../core/lifecycle.ts'
import { type Logger, silent } from '../core/log.ts'
import type { Duration } from '../core/time.ts'
import { type AnyFlow, type Flow, missingInputs } from '../flow/index.ts'
import type { Backend, Entity, Result, SessionEvent, SessionState, Sink, Stored } from './backend.ts'
import type { AbandonOptions, Claim, TrashOptions } from './claim.ts'
import { compareClaimOrder, type Ordered } from './claim-order.ts'
import { EntityRegistry } from './entity-registry.ts'
import { type Entry, newEntry } from './entry.ts'
import type { BoardEvents } from './events.ts'
import { HeldClaims } from './held-claims.ts'
import { Job } from './job.ts'
import { type Happening, LiveView } from './live-view.ts'
import { makePosting, type Posting, type PostOptions, type Size } from './posting.ts'
import type { Priority } from './priority.ts'
import { TrashedJob } from './trashed-job.ts'

export interface BoardOptions {
  /** Who claims: `host:pid` by default. Must not be empty. */
  readonly who?: string
  readonly log?: Logger
}

export interface JobsOptions {
  readonly onlyUnclaimed?: boolean
  /** Everything committed before the call is seen; one round trip. */
  readonly ensureFresh?: boolean
  readonly name?: string
  readonly priority?: Priority
  readonly size?: Size
}

export interface ClaimNextOptions {
  /** Up to so many at once; 1 by default. */
  readonly max?: number
  /** Jobs it says no to are left to others. Asked often: it should be quick and ask nobody. */
  readonly accept?: (posting: Posting) => boolean
  readonly signal?: AbortSignal
}

export class JobBoard implements AsyncDisposable {
  /** The owner that this board's claims name. */
  readonly who: string
  readonly #backend: Backend
  readonly #log: Logger
  readonly #lifecycle: Lifecycle
  readonly #view: LiveView
  readonly #entities: EntityRegistry
  readonly #events: Emitter<BoardEvents>
  readonly #claims: HeldClaims
  #session: SessionEvent | undefined
  /** What failed while nobody could listen yet; the first listener for errors is told. */
  #unheard: Error[] | undefined = []

  /** @internal Use `openBoard`. @throws TypeError when `who` is no text or empty */
  constructor(backend: Backend, options: BoardOptions = {}) {
    const { who = `${hostname()}:${process.pid}`, log = silent } = options
    if (typeof who !== 'string' || who === '') throw new TypeError('who has to be a text that is not empty')
    this.who = who
    this.#backend = backend
    this.#log = log
    this.#lifecycle = new Lifecycle(`board ${backend.uri}`)
    this.#entities = new EntityRegistry(backend)
    this.#events = new Emitter((error, event) => this.#listenerFailed(error, event))
    this.#view = new LiveView({
      backend,
      signal: this.#lifecycle.signal,
      listener: {
        happened: (happening, entry) => this.#happened(happening, entry),
        failed: (error) => this.#failed(error),
      },
    })
    this.#claims = new HeldClaims({ backend, view: this.#view, who, failed: (error) => this.#failed(error) })
  }

  /** For people: the URI, without a password. */
  get uri(): string {
    return this.#backend.uri
  }

  /** Whether operations go through now. */
  get connected(): boolean {
    return this.#session?.state === 'connected'
  }

  get state(): SessionState {
    return this.#session?.state ?? 'closed'
  }

  /** How many jobs are on the board, claimed or not. */
  get jobCount(): number {
    return this.#view.size
  }

  /** Calls `listener` at each event, until the function returned is called. A listener that throws harms nobody. */
  on<E extends keyof BoardEvents>(event: E, listener: (event: BoardEvents[E]) => unknown): () => void {
    const off = this.#events.on(event, listener)
    if (event === 'error') queueMicrotask(() => this.#tellUnheard())
    return off
  }

  /** @internal Resolves when the board is connected and the view is current. */
  open(options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#lifecycle.start(
      async (stopped) => {
        using either = followSignals([stopped, options.signal])
        await this.#backend.open(this.#sink(), either)
        await this.#view.settled(either)
      },
      () => this.#backend.close(),
    )
  }

  /** Ends the session, and with it every claim that was not settled. Idempotent; awaits what is under way. */
  close(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      await this.#backend.close()
      this.#claims.loseAll('the board was closed')
      this.#view.giveUp(new InvalidState(`board ${this.uri} was closed`))
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
   * @throws MissingDependencies, InvalidPosting, PayloadTooLarge: nothing was posted
   * @throws NotConnected: nothing was posted; try again
   * @throws OutcomeUnknown: it may have been posted; post again with the same uuid if running twice does no harm
   * @example await board.post(hello, { name: 'Ada' }, { priority: 'HIGH' })
   */
  async post<I extends object>(flow: Flow<I> | string, store: NoInfer<I>, options: PostOptions = {}): Promise<Job> {
    this.#lifecycle.assertRunning()
    const posting = makePosting({ ...options, ...requestOf(flow, store, options) })
    const [result] = await this.#backend.post([posting])
    const posted = granted(result)
    const { id, trashed, revision, order } = posted
    if (id !== undefined) {
      const entry = this.#view.learn({ id, posting, revision, order, postedAt: new Date() })
      return new Job(entry)
    }
    const gone = newEntry(undefined)
    gone.stored = { id: '', posting, revision, order, postedAt: new Date() }
    gone.ended = trashed ? 'TRASHED' : 'COMPLETE'
    return new Job(gone)
  }

  /** The jobs on the board as it stands now: higher priority first, then in posting order. */
  async *jobs(options: JobsOptions = {}): AsyncGenerator<Job, void, undefined> {
    this.#lifecycle.assertRunning()
    const { onlyUnclaimed = false, ensureFresh = false, name, priority, size } = options
    if (ensureFresh) await this.#refresh()
    const places = [...this.#view.entries()].map(placeOf).filter((place) => place !== undefined)
    for (const { entry, stored } of places.sort(compareClaimOrder)) {
      const { posting } = stored
      if (entry.ended || (onlyUnclaimed && entry.claimed)) continue
      if (name !== undefined && posting.name !== name) continue
      if (priority !== undefined && posting.priority !== priority) continue
      if (size !== undefined && posting.size !== size) continue
      yield new Job(entry)
    }
  }

  /** Resolves when there is a job to claim. @throws Timeout */
  async wait(options: { timeout?: Duration; signal?: AbortSignal } = {}): Promise<void> {
    this.#lifecycle.assertRunning()
    using stop = followSignals([this.#lifecycle.signal, options.signal])
    using _timer = abortAfter(
      stop,
      options.timeout,
      () => new Timeout(`no job to claim on ${this.uri} within ${options.timeout}`),
    )
    while (!(this.#view.current && this.#view.queue.has(() => true))) await this.#view.changed.wait(stop)
  }

  /** The job with this uuid. @throws NotFound when it is not on the board (any more) */
  async find(uuid: string): Promise<Job> {
    this.#lifecycle.assertRunning()
    if (!this.#view.byUuid(uuid)) await this.#refresh()
    const entry = this.#view.byUuid(uuid)
    if (entry) return new Job(entry)
    throw new NotFound(
      `job ${uuid} is not on ${this.uri}: it was never posted here, or it is done, or it is in the trash`,
    )
  }

  /** Who holds the claim of the job; one round trip. */
  async findOwner(job: Job): Promise<string | undefined> {
    this.#lifecycle.assertRunning()
    const { id, ended } = Job.entryOf(job)
    return id === undefined || ended ? undefined : this.#backend.owner(id)
  }

  /** What was trashed, oldest first, with who did it and why. */
  async *trashed(): AsyncGenerator<TrashedJob, void, undefined> {
    this.#lifecycle.assertRunning()
    for (const entry of await this.#backend.trashed()) yield new TrashedJob(entry)
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
    const own = await this.#own(job)
    const { ended, content } = Job.entryOf(own)
    if (!ended && content !== 'fresh') await this.#refresh()
    return this.#claims.claim(own)
  }

  /**
   * Waits until there is something to claim and claims up to `max` jobs, first in claim order first. Losing a race for a
   * job costs a round trip and nothing else.
   *
   * @throws the signal's reason; InvalidState when the board is closed
   * @example const [claim] = await board.claimNext({ signal })
   */
  async claimNext(options: ClaimNextOptions = {}): Promise<[Claim, ...Claim[]]> {
    const { max = 1, accept = () => true } = options
    if (!(max >= 1)) throw new InvalidArgument(`claimNext: max is ${max}; it has to be 1 or more`)
    this.#lifecycle.assertRunning()
    using stop = followSignals([this.#lifecycle.signal, options.signal])
    while (true) {
      stop.signal.throwIfAborted()
      const places = this.#claims.choose({ max, accept })
      if (places.length === 0) {
        await this.#view.changed.wait(stop)
        continue
      }
      const [first, ...rest] = await this.#claims.take(places)
      if (first) return [first, ...rest]
    }
  }

  /**
   * One claim after the other, until the signal fires or the board is closed.
   *
   * @example for await (const claim of board.claims({ signal })) await claim.perform(work)
   */
  async *claims(options: Omit<ClaimNextOptions, 'max'> = {}): AsyncGenerator<Claim, void, undefined> {
    const over = () => options.signal?.aborted || this.#lifecycle.signal.aborted
    while (!over()) {
      const claims = await this.claimNext(options).catch((error: unknown) => {
        if (over()) return []
        throw error
      })
      yield* claims
    }
  }

  /** Settles what this board claimed. @throws NotFound when nobody holds it, NotOwner when another does, as Claim.consume */
  async consume(job: Job): Promise<void> {
    return (await this.#claimOf(job)).consume()
  }

  /** @throws as {@link consume} */
  async abandon(job: Job, options?: AbandonOptions): Promise<void> {
    return (await this.#claimOf(job)).abandon(options)
  }

  /** @throws as {@link consume} */
  async trash(job: Job, options?: TrashOptions): Promise<void> {
    return (await this.#claimOf(job)).trash(options)
  }

  // --- Participants -----------------------------------------------------------------------------------------------

  /** Shows a participant on the board until it is disposed, also over a change of session. @throws Duplicate */
  async registerEntity(entity: Omit<Entity, 'instance'>): Promise<AsyncDisposable> {
    this.#lifecycle.assertRunning()
    return this.#entities.register(entity)
  }

  /** Who lives: conductors, say. One round trip and one for each. */
  async entities(kind: string): Promise<Entity[]> {
    this.#lifecycle.assertRunning()
    return this.#backend.entities(kind)
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  /** The same job in this view: it may have been seen through another board object. @throws NotFound */
  async #own(job: Job): Promise<Job> {
    const entry = Job.entryOf(job)
    return entry.ended || this.#view.owns(entry) ? job : this.find(job.uuid)
  }

  async #claimOf(job: Job): Promise<Claim> {
    this.#lifecycle.assertRunning()
    return this.#claims.find(await this.#own(job))
  }

  async #refresh(): Promise<void> {
    await this.#backend.barrier()
    await this.#view.settled({ signal: this.#lifecycle.signal })
  }

  #sink(): Sink {
    return {
      changes: (batch) => this.#view.apply(batch),
      gap: () => this.#view.gap(),
      session: (event) => this.#sessionChanged(event),
      error: (error) => this.#failed(error),
    }
  }

  #sessionChanged(event: SessionEvent): void {
    this.#session = event
    this.#claims.sessionChanged(event)
    if (event.state === 'connected') {
      this.#entities.connected(event.session).catch((error: Error) => this.#failed(error))
    }
    this.#events.emit('state', { state: event.state, ...(event.reason ? { reason: event.reason } : {}) })
    this.#view.changed.notify()
  }

  #happened(happening: Happening, entry: Entry): void {
    this.#claims.happened(happening, entry)
    if (entry.stored) this.#events.emit(happening, { job: new Job(entry) })
  }

  #failed(error: Error): void {
    this.#log.warn({ err: error }, 'jobboard: a fault in the background')
    if (this.#unheard && this.#lifecycle.state === 'starting') this.#unheard.push(error)
    this.#events.emit('error', { error })
  }

  #tellUnheard(): void {
    const unheard = this.#unheard ?? []
    this.#unheard = undefined
    for (const error of unheard) this.#events.emit('error', { error })
  }

  #listenerFailed(thrown: unknown, event: keyof BoardEvents): void {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    this.#log.error({ err: error, event }, 'jobboard: a listener threw')
    // A listener for errors that throws must not be called about it for ever.
    if (event !== 'error') this.#events.emit('error', { error })
  }
}

function requestOf(
  flow: AnyFlow | string,
  store: object,
  options: PostOptions,
): { name: string; details: Posting['details'] } {
  const asked = typeof flow === 'string' ? { flow } : { flow: flow.name, version: flow.version }
  if (asked.flow === '') throw new InvalidPosting('the name of the flow is empty')
  const missing = typeof flow === 'string' ? [] : missingInputs(flow, store)
  if (missing.length > 0)
    throw new MissingDependencies(`flow ${asked.flow} requires ${missing.join(', ')}: add it to the store`)
  return { name: options.name ?? asked.flow, details: { ...options.details, ...asked, store } }
}

/** Where an entry stands among all, claimed ones too. */
function placeOf(entry: Entry): (Ordered & { readonly entry: Entry; readonly stored: Stored }) | undefined {
  const { stored } = entry
  if (!stored || entry.content === 'unreadable') return undefined
  return { id: stored.id, priority: stored.posting.priority, order: stored.order, entry, stored }
}

function granted<T>(result: Result<T> | undefined): T {
  if (result && 'value' in result) return result.value
  throw result?.error ?? new NotConnected('the backend gave no answer')
}
