/**
 * The live view: the board as this process knows it, kept up to date by the changes that the backend reports.
 *
 * Changes arrive synchronously, in commit order. Each one is applied to the index (`job-reports.ts`, `job-index.ts`, without I/O); this loop
 * then carries out the effects (`effects.ts`), reads postings, moves the window, sets the timer for the next delay, and notifies waiters.
 * The view only proposes jobs to claim; the backend's transaction decides. So a view that is a little behind costs a rejected claim, and
 * never a wrong one.
 *
 * - **The view is open** while something holds it, and closed in a process that only posts: `subscription.ts`.
 * - **After a gap**, first of all when the view opens, nothing is chosen until the board has been listed: `resync.ts`, `listing-applier.ts`.
 *   Callers wait for that in `readiness.ts`.
 * - **A long board** is in the view in part, if the backend can read sections of it: `window.ts`, `window-reader.ts`,
 *   `extent.ts`.
 * - **Postings** are read in batches, after all changes at hand were applied: `content-reader.ts`. Those of jobs that run elsewhere are read
 *   for callers that hold them: `claimed-postings.ts`.
 * - **While the view is closed**, single jobs are followed: `job-follower.ts`.
 */

import { Condition, createDeferred } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { asError } from '../../core/errors.ts'
import type { Backend, BoardChange, JobStatus, StoredJob } from '../contract/index.ts'
import type { JobEntry } from '../model/entry.ts'
import type { LimitRules } from '../model/limits.ts'
import { defaultWindowBytes, dropDetails } from '../model/posting/posting-codec.ts'
import type { ClaimQueue } from '../queue/queue.ts'
import type { QueueChoice } from '../queue/served-queues.ts'
import { ClaimedPostings } from './claimed-postings.ts'
import { ContentReader } from './content-reader.ts'
import { DueTimer } from './due-timer.ts'
import { EffectRunner, type ViewListener } from './effects.ts'
import { ViewExtent } from './extent.ts'
import { JobFollower } from './job-follower.ts'
import { JobIndex } from './job-index.ts'
import { JobReports, type OwnChange, type OwnWrite } from './job-reports.ts'
import { ListingApplier } from './listing-applier.ts'
import { Readiness } from './readiness.ts'
import { Resync } from './resync.ts'
import { Subscription } from './subscription.ts'
import { UnacceptedFlows } from './unaccepted-flows.ts'
import { ViewScope } from './view-scope.ts'
import { type ViewListing, Window } from './window.ts'
import { WindowReader } from './window-reader.ts'

const EMPTY_LISTING: ViewListing = { jobs: [], claimed: new Set(), trashed: new Set(), cancelled: new Set() }

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
  readonly claimedPostings: ClaimedPostings
  readonly extent: ViewExtent
  readonly follower: JobFollower
  readonly unaccepted: UnacceptedFlows
  readonly #backend: Backend
  readonly #listener: ViewListener
  readonly #limits: LiveViewOptions['limits']
  readonly #signal: AbortSignal
  readonly #index: JobIndex
  readonly #reports: JobReports
  readonly #listings: ListingApplier
  readonly #effects: EffectRunner
  readonly #windowReader: WindowReader | undefined
  readonly #reader: ContentReader
  readonly #resync: Resync<ViewListing>
  readonly #subscription: Subscription
  readonly #readiness: Readiness
  readonly #dueTimer: DueTimer
  readonly #scope = new ViewScope()
  /** The memory of postings, in bytes, above which the view keeps no details of further jobs. */
  readonly #maxBytes: number
  /** The number of jobs in the listing that is being applied; undefined before the first one, and if the view is a part of the board. */
  #listed: number | undefined
  #gaps = 0
  /** The number of gaps when the view began to list the board for the queues of a caller; undefined when it was listed. */
  #gapOfServe: number | undefined
  /** The queues of the present callers; undefined for all. */
  #servedText: string | undefined
  #received = 0

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
    const window = sections && new Window({ scope: this.#scope, now })
    this.follower = new JobFollower({
      ...{ backend, signal, onError },
      isViewing: () => this.#readiness.isEntered,
      hold: () => this.hold(),
      touch: () => this.#subscription.touch(),
      onStatus: (entry, status) => this.#onStatus(entry, status),
    })
    const index = new JobIndex({ window, follower: this.follower })
    this.#index = index
    this.#reports = new JobReports(index)
    this.#listings = new ListingApplier(index)
    this.#reader = new ContentReader({
      ...{ jobs: backend.jobs, list: index.toRead, signal, onError, onProgress: evaluate },
      onRead: (entry, content) => this.#onRead(entry, content),
    })
    this.#resync = new Resync({
      ...{ signal, onError, list: () => this.#list() },
      apply: (listing, missed) => this.#applyListing(listing, missed),
      onApplied: (missed) => this.#onApplied(missed),
      onDisconnected: (error) => this.#readiness.onListFailed(error),
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
      onOpen: () => this.#listings.open(),
      onSubscribed: evaluate,
      onClose: () => this.#onClosed(),
    })
    this.#readiness = new Readiness({
      ...{ subscription: this.#subscription, resync: this.#resync, toRead: index.toRead },
      ...{ follower: this.follower, changed: this.changed },
    })
    this.extent = new ViewExtent({
      ...{ index, reports: this.#reports, windowReader: this.#windowReader, contentReader: this.#reader, signal },
      ...{ subscription: this.#subscription, readiness: this.#readiness },
    })
    this.#dueTimer = new DueTimer({ now, onDue: evaluate })
    const updated = (entry: JobEntry) => {
      index.queue.update(entry)
      this.#keepWithinMemory(entry)
    }
    this.claimedPostings = new ClaimedPostings({ backend, signal, updated })
    this.#effects = new EffectRunner({
      ...{ index, sections, listener, follower: this.follower, claimedPostings: this.claimedPostings },
      ...{ readiness: this.#readiness, onEndFound: evaluate },
    })
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
    return this.#readiness.isCurrent
  }

  /** The number of gaps so far in which changes may have been missed; see {@link addOwnPost}. */
  get epoch(): number {
    return this.#gaps
  }

  /** The number of jobs on the board, readable or not; undefined while the view is closed, and until the board was listed and read. */
  get jobCount(): number | undefined {
    return this.#readiness.isEntered ? this.#reports.jobCount : undefined
  }

  /** The progress of the first read of the board; undefined once it is read. */
  get reading(): ViewReading | undefined {
    if (this.#readiness.isEntered) return undefined
    const all = this.isCurrent ? this.#reports.jobCount : this.#listed
    return { read: this.#index.size - this.#index.toRead.size, ...(all === undefined ? {} : { all }) }
  }

  /** Makes the view hold the jobs of these queues, for a caller that claims them; undefined for all queues. To be called before {@link hold}. */
  serve(choice: QueueChoice | undefined): void {
    if (!this.#scope.add(choice, { isOpen: this.isOpen }) || !this.isOpen || !this.#windowReader) return
    this.resync()
    this.#gapOfServe = this.#gaps
  }

  /** Resolves when the view has the jobs of all queues for which {@link serve} was called; at once without a connection. */
  async whenServed(options: { signal?: Stoppable | undefined } = {}): Promise<void> {
    if (this.#gapOfServe !== this.#gaps) return
    await this.#readiness.whenListed(options)
    if (this.isCurrent) this.#gapOfServe = undefined
  }

  /** Sets the queues of the callers that claim at present: no job waits for a resource behind a job of another queue. */
  setServed(choices: readonly (QueueChoice | undefined)[]): void {
    const distinct = new Map(choices.map((choice) => [choice?.toString(), choice]))
    const served = distinct.has(undefined) ? undefined : [...distinct.values()].flatMap((choice) => choice ?? [])
    const text = served?.map(String).sort().join('; ')
    if (text === this.#servedText) return
    this.#servedText = text
    const { queue } = this.#index
    queue.setServed(served && ((name) => served.some((choice) => choice.includes(name))), this.#index.entries())
    this.evaluate()
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
  whenSubscribed(options: { signal?: Stoppable | undefined } = {}): Promise<void> {
    return this.#subscription.whenSubscribed(options)
  }

  /**
   * Resolves when the board has been read once since the view was opened: its listing, and the postings. The caller holds the view.
   *
   * @throws NotConnected, AccessDenied
   */
  whenEntered(options: { signal?: Stoppable | undefined } = {}): Promise<void> {
    return this.#readiness.whenEntered(options)
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
    return this.#index.hasUnreadable || !this.extent.isWholeBoard
  }

  /**
   * Resolves when the view is current, and every posting is read that had to be read at the time of the call. The caller holds the
   * view.
   *
   * @throws NotConnected, AccessDenied if the view cannot be opened
   */
  whenSettled(options: { signal?: Stoppable | undefined } = {}): Promise<void> {
    return this.#readiness.whenSettled(options)
  }

  // --- Reports of the backend -------------------------------------------------------------------------------------------

  apply(batch: readonly BoardChange[]): void {
    if (!this.isOpen) return
    this.#received += batch.length
    this.#reports.countChanges(batch)
    if (this.#resync.keep(batch)) return
    for (const change of batch) this.#apply(change)
    this.evaluate()
  }

  /** Lists the board again, because changes may have been missed. */
  resync(): void {
    this.#gaps += 1
    this.#readiness.onGap()
    if (this.isOpen) this.#resync.start()
    this.follower.resume()
  }

  /** Sets the number of jobs on the board after the last change. */
  setJobCount(jobs: number): void {
    if (this.isOpen) this.#reports.setCount(jobs)
  }

  /** Makes the view emit `posted` for jobs outside the window, too. */
  announceAll(): void {
    this.#reports.announceAll()
  }

  /**
   * Applies the answer to a post of this process.
   *
   * @param epoch the {@link epoch} when the post was requested: if it has changed, changes of the job may not have been reported
   */
  addOwnPost(stored: StoredJob, { epoch }: { readonly epoch: number }): JobEntry {
    if (!this.isOpen) return this.#reports.addOutside(stored)
    const entry = this.#reports.applyOwnPost(stored, { isCurrent: this.isCurrent, isCovered: epoch === this.epoch })
    this.#effects.run()
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
      await this.follower.readStatus(this.#reports.addOutside(stored))
      return
    }
    using _view = this.hold()
    // The view has to read the posting itself: for an entry that has one already it emits no `posted`.
    await this.whenEntered({ signal: this.#signal })
    await this.#backend.changes.barrier()
    await this.whenSettled({ signal: this.#signal })
    const entry = this.byId(stored.id)
    if (entry.stored || entry.ended || entry.windowStatus !== 'outside') return
    this.#reports.addOutside(stored)
    await this.#effects.findEnd(entry, stored.id)
  }

  /** Applies a posting that a claim, a settlement or a replacement of this process has written. */
  addOwnWrite(entry: JobEntry, written: OwnWrite): void {
    this.#reports.applyOwnWrite(entry, written)
  }

  /** Applies a change that this process has made to a job. A subscribed view has received the change before the answer. */
  applyOwnChange(entry: JobEntry, change: OwnChange): void {
    if (this.#subscription.isSubscribed) return
    this.#reports.applyOwnChange(entry, change)
    this.#effects.run()
  }

  /** Ends the view: every wait for the end of a job is rejected, also waits that start later. */
  close(reason: Error): void {
    this.#dueTimer.stop()
    this.#subscription.stop()
    this.follower.stop()
    this.unaccepted.stop()
    this.#windowReader?.stop()
    this.claimedPostings.stop()
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

  // --- The loop ---------------------------------------------------------------------------------------------------------

  /** Carries out the effects of changes, notifies waiters, and sets the timer for the next delay. */
  evaluate(): void {
    const { queue } = this.#index
    this.#windowReader?.tend()
    queue.advance(this.#backend.clock.now())
    this.unaccepted.update()
    this.#effects.run()
    this.#reader.start()
    if (this.isCurrent && !this.#reader.isBusy) this.#readiness.enter()
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
    if (!this.#signal.aborted && this.isOpen) this.#dueTimer.set(this.#index.queue.nextDue)
  }

  #apply(change: BoardChange): void {
    this.#reports.apply(change)
    const entry = change.kind === 'updated' ? this.#index.get(change.id) : undefined
    // Where not every change is reported, a release and the next claim may be seen as one update.
    if (entry?.claimed) this.claimedPostings.noteClaim(entry)
    this.#effects.run()
  }

  #report(error: unknown): void {
    this.#listener.onError(asError(error))
  }

  #onRead(entry: JobEntry, content: Parameters<JobReports['applyPosting']>[1]): void {
    // After a gap, the listing says how a job ended.
    if (!content && !this.isCurrent) return
    this.#reports.applyPosting(entry, content)
    this.#effects.run()
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
    if (this.#effects.isRunning) return
    const stored = dropDetails(entry.stored)
    if (stored === entry.stored) return
    entry.stored = stored
    this.#index.queue.update(entry)
  }

  /** Empties the view after it was closed. */
  #onClosed(): void {
    this.#dueTimer.stop()
    this.unaccepted.stop()
    this.#windowReader?.stop()
    this.#resync.stop()
    this.#limits?.close()
    this.#scope.reset()
    this.#index.queue.setServed(undefined, [])
    this.#servedText = undefined
    this.#readiness.onClosed()
    this.#listed = undefined
    this.#index.close()
    this.#reports.close()
    this.follower.resume()
    this.changed.notify()
  }

  #onStatus(entry: JobEntry, status: JobStatus): void {
    this.#listener.statusRead(entry, status)
    this.#reports.applyStatus(entry, status)
    this.#effects.run()
    // A read that failed without a connection is tried again: this status shows that there is a connection.
    this.#reader.resume()
  }

  async #list(): Promise<ViewListing> {
    // If the limits cannot be read, the view shows the board all the same, and a claim reports why.
    const [listing] = await Promise.all([this.#listJobs(), this.#limits?.open().catch(() => undefined)])
    return listing
  }

  async #listJobs(): Promise<ViewListing> {
    if (this.#windowReader) return this.#windowReader.list(this.#listings.knownIds())
    return (await this.#backend.jobs.list?.()) ?? EMPTY_LISTING
  }

  *#applyListing(listing: ViewListing, missed: readonly BoardChange[]): Generator<void, void, undefined> {
    if (listing.window) this.#windowReader?.begin(listing.window)
    else this.#listed = listing.jobs.length
    for (const step of this.#listings.apply(listing, missed)) {
      // The first postings of a long board are read while the listing is applied, so that they can be shown early.
      this.#reader.start()
      yield step
    }
  }

  #onApplied(missed: readonly BoardChange[]): void {
    this.#effects.run()
    for (const change of missed) this.#apply(change)
    this.#windowReader?.readUpToPinned()
    this.#reader.resume()
    this.evaluate()
  }
}
