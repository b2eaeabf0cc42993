/**
 * The live view: the board as this process knows it, kept up to date by the changes that the backend reports.
 *
 * Changes arrive synchronously, in commit order. The index applies each one (`job-index.ts`, without I/O); this loop then carries out
 * the effects: it emits events, reads postings, moves the window, sets the timer for the next delay, and notifies waiters. The view
 * only proposes jobs to claim; the backend's transaction decides. So a view that is a little behind costs a rejected claim, and never
 * a wrong one.
 *
 * - **The view is open** while something holds it, and closed in a process that only posts: `subscription.ts`.
 * - **After a gap**, first of all when the view opens, nothing is chosen until the board has been listed: `resync.ts`.
 * - **A long board** is in the view in part, if the backend can read sections of it: `window.ts`, `window-reader.ts`.
 * - **Postings** are read in batches, after all changes at hand were applied: `content-reader.ts`.
 */

import { Condition, createDeferred } from '../../core/async/abort.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { monotonic, startTimer } from '../../core/time.ts'
import type { Backend, BoardChange, JobStatus, StoredJob } from '../contract/index.ts'
import type { JobEntry } from '../model/entry.ts'
import type { FlowReference } from '../model/flow-reference.ts'
import type { LimitRules } from '../model/limits.ts'
import { defaultWindowBytes, dropDetails } from '../model/posting.ts'
import type { ClaimQueue } from '../queue/queue.ts'
import { ContentReader } from './content-reader.ts'
import { FollowedJobs } from './followed-jobs.ts'
import { JobFollower } from './job-follower.ts'
import { type Effect, type JobEventKind, JobIndex, type OwnChange, type OwnWrite } from './job-index.ts'
import { Resync } from './resync.ts'
import { Subscription } from './subscription.ts'
import { UnacceptedFlows } from './unaccepted-flows.ts'
import { type ViewListing, Window, wantsResources } from './window.ts'
import { WindowReader } from './window-reader.ts'

export type { JobEventKind } from './job-index.ts'

/** A timer is set again if its end differs by more than this. */
const MAX_TIMER_ERROR_MS = 100

const EMPTY_LISTING: ViewListing = { jobs: [], claimed: new Set(), trashed: new Set(), cancelled: new Set() }

export interface ViewListener {
  /** `isEarlier`: it has happened before the view was opened, so listeners do not receive it. */
  jobChanged(event: JobEventKind, entry: JobEntry, options: { readonly isEarlier: boolean }): void
  /** Called with the status of a followed job. */
  statusRead(entry: JobEntry, status: JobStatus): void
  /** Called when a cancel of the job was requested. */
  cancelRequested(entry: JobEntry): void
  /** Called when other jobs no longer wait for the jobs of this flow, because no conductor knows it; `first` is the first of them. */
  flowUnaccepted(work: FlowReference, first: JobEntry): void
  /** Called after each evaluation while the view has expired jobs. */
  jobsExpired(): void
  /** Called when jobs begin to wait for a limit; `first` is the first of them, and `until` the time if it is known. */
  limited(key: string, waiting: { readonly first: JobEntry; readonly until: number | undefined }): void
  onError(error: Error): void
}

export interface LiveViewOptions {
  readonly backend: Backend
  readonly listener: ViewListener
  /** The time in milliseconds. */
  readonly unacceptedAfter: number
  /** The limits of claims: they are opened with each listing of the board, because jobs are chosen by them, and closed with the view. */
  readonly limits?: { open(): Promise<void>; close(): void }
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
}

/** The progress of the opening of a view. */
export interface ViewReading {
  /** The number of jobs whose postings are read. */
  readonly read: number
  /** The number of jobs on the board; absent until the board was listed. */
  readonly all?: number
}

export class LiveView {
  /** Notified whenever something may have become claimable, or the view current. */
  readonly changed = new Condition()
  readonly followed: FollowedJobs
  readonly follower: JobFollower
  readonly unaccepted: UnacceptedFlows
  readonly #backend: Backend
  readonly #listener: ViewListener
  readonly #limits: LiveViewOptions['limits']
  readonly #signal: AbortSignal
  readonly #index: JobIndex
  readonly #window: Window | undefined
  readonly #windowReader: WindowReader | undefined
  readonly #reader: ContentReader
  readonly #resync: Resync<ViewListing>
  readonly #subscription: Subscription
  /** The memory of postings, in bytes, above which the view keeps no details of further jobs. */
  readonly #maxBytes: number
  /** Whether the board was listed, and its postings read, since the view was opened. */
  #isEntered = false
  /** The number of jobs in the listing that is being applied; undefined before the first one, and if the view is a part of the board. */
  #listed: number | undefined
  /** The reason why the board could not be listed since the last gap; without a connection, another gap follows. */
  #listError: NotConnected | undefined
  #gaps = 0
  #received = 0
  #isCarryingOut = false
  #dueTimer: NodeJS.Timeout | undefined
  /** The time for which the timer is set, on the backend's clock, and the time at which it fires, on the monotonic clock. */
  #dueAt: number | undefined
  #dueTimerEnd = 0

  constructor({ backend, listener, unacceptedAfter, limits, signal }: LiveViewOptions) {
    this.#backend = backend
    this.#listener = listener
    this.#limits = limits
    this.#signal = signal
    const { sections } = backend
    this.#maxBytes = sections?.windowBytes ?? defaultWindowBytes()
    const now = () => backend.clock.now()
    const onError = (error: unknown) => this.#report(error)
    const evaluate = () => this.evaluate()
    const window = sections && new Window({ now })
    this.follower = new JobFollower({
      ...{ backend, signal, onError },
      isViewing: () => this.#isEntered,
      hold: () => this.hold(),
      touch: () => this.#subscription.touch(),
      onStatus: (entry, status) => this.#onStatus(entry, status),
    })
    const index = new JobIndex({ window, follower: this.follower })
    this.#window = window
    this.#index = index
    this.#reader = new ContentReader({
      ...{ jobs: backend.jobs, list: index.toRead, signal, onError, onProgress: evaluate },
      onRead: (entry, content) => this.#onRead(entry, content),
    })
    this.#resync = new Resync({
      ...{ signal, onError, list: () => this.#list() },
      apply: (listing, missed) => this.#applyListing(listing, missed),
      onApplied: (missed) => this.#onApplied(missed),
      onDisconnected: (error) => {
        this.#listError = error
        this.changed.notify()
      },
    })
    this.#windowReader =
      window &&
      new WindowReader({
        ...{ sections, window, index, now, signal, onError, onRead: evaluate },
        isCurrent: () => this.isCurrent,
        needsWholeBoard: () => this.#index.queue.isFair,
        resync: () => this.resync(),
      })
    this.#subscription = new Subscription({
      ...{ changes: backend.changes, signal, onError },
      onOpen: () => index.open(),
      onSubscribed: () => this.evaluate(),
      onClose: () => this.#onClosed(),
    })
    const updated = (entry: JobEntry) => {
      index.queue.update(entry)
      this.#keepWithinMemory(entry)
    }
    this.followed = new FollowedJobs({ backend, signal, updated })
    this.unaccepted = new UnacceptedFlows({
      ...{ backend, queue: index.queue, after: unacceptedAfter, signal, onError, onChange: evaluate },
      onUnaccepted: (work, first) => listener.flowUnaccepted(work, first),
    })
  }

  get queue(): ClaimQueue {
    return this.#index.queue
  }

  /** Whether the view is open. */
  get isOpen(): boolean {
    return this.#subscription.isOpen
  }

  /** Whether the view is complete, so that jobs may be chosen from it. */
  get isCurrent(): boolean {
    return this.#subscription.isSubscribed && this.#resync.isDone
  }

  /** The number of gaps so far in which changes may have been missed; see {@link addOwnPost}. */
  get epoch(): number {
    return this.#gaps
  }

  /** Whether everything that is on the board is in the view. A window leaves out jobs that wait for others. */
  get isWholeBoard(): boolean {
    if (!this.#window) return this.isOpen
    return this.isOpen && this.#window.isWholeBoard && this.#index.size >= this.#index.jobCount
  }

  /**
   * Whether the view shows every job on the board, with its posting if that can be read. A window that a job has just entered, which may have
   * been on the board for long, does not before the posting is read.
   */
  get showsWholeBoard(): boolean {
    return this.isWholeBoard && !(this.#window && this.#reader.isBusy)
  }

  /** Whether all due jobs of the board are in the view, and their postings read: reading on finds no more. */
  get isReadToEnd(): boolean {
    return this.isOpen && (this.#windowReader?.isReadToEnd ?? true)
  }

  /** The number of jobs on the board, readable or not; undefined while the view is closed, and until the board was listed and read. */
  get jobCount(): number | undefined {
    return this.#isEntered ? this.#index.jobCount : undefined
  }

  /** The progress of the first read of the board; undefined once it is read. */
  get reading(): ViewReading | undefined {
    if (this.#isEntered) return undefined
    const all = this.isCurrent ? this.#index.jobCount : this.#listed
    return { read: this.#index.size - this.#index.toRead.size, ...(all === undefined ? {} : { all }) }
  }

  /** Keeps the view open until the result is disposed; opens it if it is closed. */
  hold(): Disposable {
    return this.#subscription.hold()
  }

  /** The number of holds that are not disposed. */
  get holds(): number {
    return this.#subscription.holds
  }

  /** The number of changes that were received since the board was opened. */
  get received(): number {
    return this.#received
  }

  /** Closes the view now if nothing holds it, without lingering. */
  closeIfUnused(): void {
    this.#subscription.closeIfUnused()
  }

  /** Resolves when the backend reports changes. The caller holds the view. @throws NotConnected, AccessDenied */
  whenSubscribed(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    return this.#subscription.whenSubscribed(options)
  }

  /**
   * Resolves when the board has been read once since the view was opened: its listing, and the postings. The caller holds the view.
   *
   * @throws NotConnected, AccessDenied
   */
  async whenEntered(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (!this.#isEntered) await this.whenSettled(options)
  }

  entries(): Iterable<JobEntry> {
    return this.#index.entries()
  }

  byUuid(uuid: string): JobEntry | undefined {
    return this.#index.byUuid(uuid)
  }

  /** Returns the job, in the view or not; its posting may be unknown, and it may never be posted. */
  byId(id: string): JobEntry {
    return this.#index.getOrCreate(id)
  }

  /** Returns whether the entry belongs to this view, and not to the view of another board object. */
  owns(entry: JobEntry): boolean {
    return this.#index.owns(entry)
  }

  /** Returns whether a job with this uuid may be on the board; false only where all reports so far exclude it. */
  mayContain(uuid: string): boolean {
    return !this.isCurrent || this.#reader.isBusy || this.hidesJobs || this.#index.byUuid(uuid) !== undefined
  }

  /** Whether there may be jobs on the board whose uuid is not known here. */
  get hidesJobs(): boolean {
    return this.#index.hasUnreadable || !this.isWholeBoard
  }

  /**
   * Resolves when the view is current, and every posting is read that had to be read at the time of the call. The caller holds the
   * view.
   *
   * @throws NotConnected, AccessDenied if the view cannot be opened
   */
  async whenSettled(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (!this.#isEntered) await this.#subscription.whenSubscribed(options)
    while (!this.isCurrent) {
      if (!this.#isEntered && this.#listError) throw this.#listError
      await this.changed.wait(options)
    }
    const { toRead } = this.#index
    const { requests } = toRead
    while (!(this.isCurrent && toRead.hasRead(requests))) await this.changed.wait(options)
    this.#enter()
  }

  /** Marks the view as read, for the first time since it was opened. */
  #enter(): void {
    if (this.#isEntered) return
    this.#isEntered = true
    this.#subscription.noteRead()
    this.follower.suspend()
  }

  // --- Reports of the backend -------------------------------------------------------------------------------------------

  apply(batch: readonly BoardChange[]): void {
    if (!this.isOpen) return
    this.#received += batch.length
    this.#index.countChanges(batch)
    if (this.#resync.keep(batch)) return
    for (const change of batch) this.#apply(change)
    this.evaluate()
  }

  /** Lists the board again, because changes may have been missed. */
  resync(): void {
    this.#gaps += 1
    this.#listError = undefined
    if (this.isOpen) this.#resync.start()
    this.follower.resume()
  }

  /** Sets the number of jobs on the board after the last change. */
  setJobCount(jobs: number): void {
    if (this.isOpen) this.#index.setCount(jobs)
  }

  /** Makes the view emit `posted` for jobs outside the window, too. */
  announceAll(): void {
    this.#index.announceAll()
  }

  /**
   * Applies the answer to a post of this process.
   *
   * @param epoch the {@link epoch} when the post was requested: if it has changed, changes of the job may not have been reported
   */
  addOwnPost(stored: StoredJob, { epoch }: { readonly epoch: number }): JobEntry {
    if (!this.isOpen) return this.#index.addOutside(stored)
    const entry = this.#index.applyOwnPost(stored, { isCurrent: this.isCurrent, isCovered: epoch === this.epoch })
    this.#carryOut()
    this.#keepWithinMemory(entry)
    this.evaluate()
    return entry
  }

  /**
   * Applies the answer to an earlier post: the job may have been changed, or have ended since.
   *
   * @throws NotConnected
   */
  async addEarlierPost(stored: StoredJob): Promise<void> {
    if (!this.isOpen) {
      await this.follower.readStatus(this.#index.addOutside(stored))
      return
    }
    using _view = this.hold()
    // The view has to read the posting itself: for an entry that has one already it emits no `posted`.
    await this.whenEntered({ signal: this.#signal })
    await this.#backend.changes.barrier()
    await this.whenSettled({ signal: this.#signal })
    const entry = this.byId(stored.id)
    if (entry.stored || entry.ended || entry.windowStatus !== 'outside') return
    this.#index.addOutside(stored)
    await this.#findEnd(entry, stored.id)
  }

  /** Applies a posting that a claim, a settlement or a replacement of this process has written. */
  addOwnWrite(entry: JobEntry, written: OwnWrite): void {
    this.#index.applyOwnWrite(entry, written)
  }

  /** Applies a change that this process has made to a job. A subscribed view has received the change before the answer. */
  applyOwnChange(entry: JobEntry, change: OwnChange): void {
    if (this.#subscription.isSubscribed) return
    this.#index.applyOwnChange(entry, change)
    this.#carryOut()
  }

  /** Ends the view: every wait for the end of a job is rejected, also waits that start later. */
  close(reason: Error): void {
    clearTimeout(this.#dueTimer)
    this.#subscription.stop()
    this.follower.stop()
    this.unaccepted.stop()
    this.#windowReader?.stop()
    this.followed.stop()
    for (const entry of [...this.#index.entries(), ...this.#index.outside.all()]) {
      entry.endDeferred ??= createDeferred()
      entry.endDeferred.promise.catch(() => undefined)
      entry.endDeferred.reject(reason)
    }
    this.evaluate()
  }

  /** Sets the rules of the limits. */
  setLimits(rules: LimitRules): void {
    this.#index.queue.setLimits(rules, this.#index.entries())
    this.evaluate()
  }

  // --- The window -------------------------------------------------------------------------------------------------------

  /**
   * Keeps the job in the view until the pin is disposed; if it wants resources, with everything before it. A job that was outside
   * takes a round trip or two, and one for each part of the board before it.
   */
  async pin(entry: JobEntry): Promise<Disposable> {
    const reader = this.#windowReader
    const signal = this.#signal
    if (!reader || entry.ended || entry.id === undefined) return { [Symbol.dispose]: () => undefined }
    const pin = reader.pin(entry)
    try {
      if (entry.windowStatus === 'outside') {
        this.#index.addPinned(entry.id)
        this.#reader.start()
        await this.whenSettled({ signal })
      }
      if (entry.windowStatus !== 'pinned' || !wantsResources(entry)) return pin
      await reader.readUpTo(entry)
      await this.whenSettled({ signal })
      return pin
    } catch (error) {
      pin[Symbol.dispose]()
      throw error
    }
  }

  /** Returns whether a caller wants more jobs than the window has, and the board has more. */
  isTooShortFor(jobs: number): boolean {
    return this.isCurrent && this.#windowReader?.isTooShortFor(jobs) === true
  }

  /**
   * Reads the next section for a caller that finds nothing to claim in the view. Resolves with false if there is none, or it cannot be
   * read now.
   */
  async readOn(options: { signal?: AbortSignal | undefined } = {}): Promise<boolean> {
    if (!this.#windowReader || this.#window?.isWholeBoard || !this.isCurrent) return false
    const hasMore = this.#reader.isBusy || (await this.#windowReader.readOn())
    // A view that was closed meanwhile must not be opened again: nothing would hold it.
    if (!hasMore || !this.isOpen) return false
    await this.whenSettled(options)
    return true
  }

  // --- The loop ---------------------------------------------------------------------------------------------------------

  /** Carries out the effects of changes, notifies waiters, and sets the timer for the next delay. */
  evaluate(): void {
    const { queue } = this.#index
    this.#windowReader?.tend()
    queue.advance(this.#backend.clock.now())
    this.unaccepted.update()
    this.#carryOut()
    this.#reader.start()
    if (this.isCurrent && !this.#reader.isBusy) this.#enter()
    this.changed.notify()
    this.afterSearch()
  }

  /**
   * Reports expired jobs, and limits for which jobs now wait, and sets the timer for the next delay, limit or expiry. To be called after
   * each search for a job, which finds them.
   */
  afterSearch(): void {
    if (this.#index.queue.expiring.hasExpired) this.#listener.jobsExpired()
    for (const { key, first, until } of this.#index.queue.takeLimited())
      this.#listener.limited(key, { first: first.entry, until })
    if (!this.#signal.aborted && this.isOpen) this.#setDueTimer(this.#index.queue.nextDue)
  }

  #apply(change: BoardChange): void {
    this.#index.apply(change)
    const entry = change.kind === 'updated' ? this.#index.get(change.id) : undefined
    // Where not every change is reported, a release and the next claim may be seen as one update.
    if (entry?.claimed) this.followed.claimed(entry)
    this.#carryOut()
  }

  /**
   * Carries out all effects in their order. A listener may cause further changes, as a post on a memory board does: their effects
   * follow the effects that are left, or listeners would receive the events of one job in the wrong order.
   */
  #carryOut(): void {
    if (this.#isCarryingOut) return
    this.#isCarryingOut = true
    try {
      for (let effects = this.#index.takeEffects(); effects.length > 0; effects = this.#index.takeEffects())
        for (const effect of effects) this.#carryOutOne(effect)
    } finally {
      this.#isCarryingOut = false
    }
  }

  #carryOutOne(effect: Effect): void {
    if (effect.kind === 'emit') this.#emit(effect)
    else if (effect.kind === 'cancelled') this.#listener.cancelRequested(effect.entry)
    else if (effect.kind === 'find-end') void this.#findEnd(effect.entry, effect.id)
    else this.#report(effect.error)
  }

  #emit({ event, entry, isEarlier }: Extract<Effect, { kind: 'emit' }>): void {
    if (event === 'claimed') this.followed.claimed(entry)
    if (entry.ended) {
      this.followed.ended(entry, entry.ended)
      if (entry.id !== undefined) this.follower.forget(entry.id)
    }
    this.#listener.jobChanged(event, entry, { isEarlier: isEarlier === true })
  }

  #report(error: unknown): void {
    this.#listener.onError(asError(error))
  }

  #onRead(entry: JobEntry, content: Parameters<JobIndex['applyPosting']>[1]): void {
    // After a gap, the listing says how a job ended.
    if (!content && !this.isCurrent) return
    this.#index.applyPosting(entry, content)
    this.#carryOut()
    this.#keepWithinMemory(entry)
  }

  /**
   * Drops the details of a job that was just read, if the view has no room for them: code that claims or shows the job reads them again. A
   * view with a window shortens the window instead, unless the window must keep more jobs than there is room for.
   */
  #keepWithinMemory(entry: JobEntry): void {
    if (!entry.stored || this.#index.queue.keptBytes <= this.#maxBytes) return
    if (this.#windowReader && entry.windowStatus === 'inside' && !entry.claimed && !this.#windowReader.mustOutgrow)
      return
    if (this.#isCarryingOut) return
    const stored = dropDetails(entry.stored)
    if (stored === entry.stored) return
    entry.stored = stored
    this.#index.queue.update(entry)
  }

  /** Asks how a job ended: where answers and changes come over different connections, an answer may come first. */
  async #findEnd(entry: JobEntry, id: string): Promise<void> {
    const { sections } = this.#backend
    try {
      const [status = 'there'] = (await sections?.statusOf([id])) ?? []
      if (entry.ended || !this.isCurrent) return
      if (status === 'there') {
        if (entry.windowStatus !== 'outside') this.#index.toRead.add(entry)
      } else {
        entry.trashing ||= status === 'trashed'
        this.#index.end(entry, id)
      }
      this.evaluate()
    } catch (error) {
      // Without a connection: the reconnect is a gap, and the listing after it shows how the job ended.
      if (!(error instanceof NotConnected)) this.#report(error)
    }
  }

  /** Empties the view after it was closed. */
  #onClosed(): void {
    clearTimeout(this.#dueTimer)
    this.#dueAt = undefined
    this.unaccepted.stop()
    this.#windowReader?.stop()
    this.#resync.stop()
    this.#limits?.close()
    this.#isEntered = false
    this.#listed = undefined
    this.#index.close()
    this.follower.resume()
    this.changed.notify()
  }

  #onStatus(entry: JobEntry, status: JobStatus): void {
    this.#listener.statusRead(entry, status)
    this.#index.applyStatus(entry, status)
    this.#carryOut()
    // A read that failed without a connection is tried again: this status shows that there is a connection.
    this.#reader.resume()
  }

  async #list(): Promise<ViewListing> {
    // If the limits cannot be read, the view shows the board all the same, and a claim reports why.
    const [listing] = await Promise.all([this.#listJobs(), this.#limits?.open().catch(() => undefined)])
    return listing
  }

  async #listJobs(): Promise<ViewListing> {
    if (this.#windowReader) return this.#windowReader.list(this.#index.knownIds())
    return (await this.#backend.jobs.list?.()) ?? EMPTY_LISTING
  }

  *#applyListing(listing: ViewListing, missed: readonly BoardChange[]): Generator<void, void, undefined> {
    if (listing.window) this.#windowReader?.begin(listing.window)
    else this.#listed = listing.jobs.length
    for (const step of this.#index.applyListing(listing, missed)) {
      // The first postings of a long board are read while the listing is applied, so that they can be shown early.
      this.#reader.start()
      yield step
    }
  }

  #onApplied(missed: readonly BoardChange[]): void {
    this.#carryOut()
    for (const change of missed) this.#apply(change)
    this.#windowReader?.readUpToPinned()
    this.#reader.resume()
    this.evaluate()
  }

  #setDueTimer(at: number | undefined): void {
    const left = at === undefined ? 0 : Math.max(1, at - this.#backend.clock.now())
    const end = monotonic() + left
    // The clock may have been wrong when the timer was set: it is known only after an answer of the server.
    if (at === this.#dueAt && Math.abs(end - this.#dueTimerEnd) < MAX_TIMER_ERROR_MS) return
    clearTimeout(this.#dueTimer)
    this.#dueAt = at
    this.#dueTimerEnd = end
    if (at === undefined) return
    const onDue = () => {
      this.#dueAt = undefined
      this.evaluate()
    }
    this.#dueTimer = startTimer(onDue, left).unref()
  }
}
