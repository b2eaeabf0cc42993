/**
 * The live view: the board as this process knows it, kept by increments.
 *
 * It is told of changes synchronously, in commit order, and turns them into entries, the queue, and happenings for
 * listeners. The view only chooses; the backend's transaction decides, so being a little behind costs a refused claim and
 * never a wrong one.
 *
 * **After a gap** (first of all when the board opens) nothing is chosen until the board has been listed and diffed: `gap.ts`.
 *
 * **Of a long board** it holds a part, where the backend can tell it of parts: `window.ts`. Jobs outside are known to those
 * who hold on to them: `handles.ts`.
 *
 * **Content** is read in batches, after all changes at hand were applied: `postings.ts`.
 */
import { Condition } from '../../core/condition.ts'
import type { Backend, Change, Spot, Standpoint, Stored } from '../backend.ts'
import type { Entry, Standing } from '../entry.ts'
import type { Work } from '../known-work.ts'
import { ClaimQueue } from '../queue/queue.ts'
import { Beyond } from './beyond.ts'
import { DueTimer } from './due-timer.ts'
import { Gap } from './gap.ts'
import { HeldJobs } from './held-jobs.ts'
import type { KeptContents } from './kept-contents.ts'
import { LastWords } from './last-words.ts'
import { OwnPosts } from './own-posts.ts'
import { Postings } from './postings.ts'
import { UnacceptedFlows } from './unaccepted-flows.ts'
import { ViewJobs } from './view-jobs.ts'
import { type ViewListing, ViewWindow, type Windowed } from './window.ts'

export type Happening = 'posted' | 'claimed' | 'abandoned' | 'consumed' | 'trashed'

export interface ViewListener {
  happened(happening: Happening, entry: Entry): void
  /** Somebody wants the job given up. */
  cancelled(entry: Entry): void
  /** From now on no job waits for those of this flow, the first of which is given: no conductor knows it. */
  unaccepted(work: Work, first: Entry): void
  failed(error: Error): void
}

const NOTHING: ViewListing = { jobs: [], claimed: new Set(), trashed: new Set(), cancelled: new Set() }

export class LiveView implements Windowed {
  readonly queue = new ClaimQueue()
  readonly beyond: Beyond
  readonly held: HeldJobs
  readonly unaccepted: UnacceptedFlows
  /** Notified whenever something may have become claimable, or current. */
  readonly changed = new Condition()
  readonly #backend: Backend
  readonly #listener: ViewListener
  readonly #signal: AbortSignal
  readonly #jobs: ViewJobs
  readonly #postings: Postings
  readonly #posts: OwnPosts
  readonly #gap: Gap<ViewListing>
  readonly #window: ViewWindow | undefined
  /** Not posted just now, but met because of something else: nobody is told that they were posted. */
  readonly #met = new WeakSet<Entry>()
  /** Somebody wants to hear of every post. */
  #announcing = false
  readonly #dueTimer: DueTimer
  readonly #lastWords: LastWords

  /**
   * @param options.bytes how much of the postings stays in memory; 64 MiB by default
   * @param options.unacceptedAfter in milliseconds
   * @param options.signal ends everything that goes on in the background
   */
  constructor(options: {
    backend: Backend
    listener: ViewListener
    bytes?: number | undefined
    unacceptedAfter: number
    signal: AbortSignal
  }) {
    this.#backend = options.backend
    this.#listener = options.listener
    this.#signal = options.signal
    const failed = (error: unknown) => this.failed(error)
    this.#postings = new Postings({
      ...{ backend: options.backend, queue: this.queue, bytes: options.bytes, signal: options.signal, failed },
      entries: () => this.#jobs.all(),
      read: (entry, known) => this.#read(entry, known),
      // While a gap is open, how it ended is what the listing says.
      gone: (entry) => this.current && !entry.ended && entry.id !== undefined && this.#lastWords.of(entry, entry.id),
      progressed: () => this.evaluate(),
    })
    this.held = new HeldJobs({
      ...{ backend: options.backend, signal: options.signal },
      updated: (entry) => this.queue.update(entry),
    })
    this.#jobs = new ViewJobs({
      queue: this.queue,
      forget: (entry) => this.#postings.forget(entry),
      ended: (entry, end) => this.held.ended(entry, end),
    })
    this.#gap = new Gap({
      ...{ signal: options.signal, failed },
      list: () => this.#list(),
      close: (listing, missed) => this.#closeGap(listing, missed),
    })
    const { sections } = options.backend
    this.#posts = new OwnPosts({
      ...{ jobs: this.#jobs, postings: this.#postings, queue: this.queue, sections },
      current: () => this.current,
      posted: (entry) => options.listener.happened('posted', entry),
      ended: (entry, id) => this.#end(entry, id),
      evaluate: () => this.evaluate(),
    })
    const now = () => options.backend.now()
    const { signal } = options
    this.unaccepted = new UnacceptedFlows({
      ...{ backend: options.backend, queue: this.queue, after: options.unacceptedAfter, signal, failed },
      unaccepted: (work, first) => options.listener.unaccepted(work, first),
      changed: () => this.evaluate(),
    })
    this.#dueTimer = new DueTimer({ now, due: () => this.evaluate() })
    this.#lastWords = new LastWords({
      ...{ sections, failed, current: () => this.current },
      there: (entry) => this.#postings.want(entry),
      ended: (entry, id) => {
        this.#end(entry, id)
        this.evaluate()
      },
    })
    this.#window = sections && new ViewWindow({ sections, view: this, now, signal })
    this.beyond = new Beyond({
      ...{ window: this.#window, signal, current: () => this.current, reading: () => this.reading },
      meet: (id) => this.#postings.want(this.#meet(id)),
      settled: (waiting) => this.settled(waiting),
    })
  }

  /** Whether what the view shows is complete, and may be chosen from. */
  get current(): boolean {
    return this.#gap.closed
  }

  get kept(): KeptContents {
    return this.#postings.kept
  }

  /** Whether everything that is on the board is in the view. */
  get complete(): boolean {
    return this.#window?.complete ?? true
  }

  /** How many jobs are on the board, readable or not. */
  get jobCount(): number {
    return this.#jobs.onBoard
  }

  /** How many are in the view. */
  get size(): number {
    return this.#jobs.size
  }

  /** Whether postings are being read. */
  get reading(): boolean {
    return this.#postings.busy
  }

  entries(): Iterable<Entry> {
    return this.#jobs.all()
  }

  byUuid(uuid: string): Entry | undefined {
    return this.#jobs.byUuid(uuid)
  }

  /** The job with this id, in the view or not. One that is not has to be read by whoever asks. */
  byId(id: string): Entry {
    return this.#jobs.byId(id)
  }

  /** Whether the entry is this view's, or that of another board object. */
  owns(entry: Entry): boolean {
    return this.#jobs.owns(entry)
  }

  /** From now on every post is told of, also where the job is not in the view: each is read for that. */
  announceAll(): void {
    this.#announcing = true
  }

  /** How many jobs were on the board after what was told last. */
  counted(jobs: number): void {
    if (this.#window) this.#jobs.counted(jobs)
  }

  /** No end will be heard of any more: whoever waits for one is told, and so are those who come later. */
  giveUp(reason: Error): void {
    this.#dueTimer.stop()
    this.unaccepted.stop()
    this.#window?.stop()
    this.held.stop()
    this.#jobs.giveUp(reason)
    this.evaluate()
  }

  /** Resolves when the view is current and all content was read of what it had heard of by then. */
  async settled(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    while (!this.current) await this.changed.wait(options)
    const { requests } = this.#postings
    while (!(this.current && this.#postings.hasRead(requests))) await this.changed.wait(options)
  }

  /** Whether a job with this uuid may be on the board: no only where everything told so far speaks against it. */
  mayHold(uuid: string): boolean {
    return !this.current || this.#postings.busy || this.hidesSome || this.#jobs.byUuid(uuid) !== undefined
  }

  /** Whether there may be postings of which nobody here can tell what job they are. */
  get hidesSome(): boolean {
    return this.#postings.hidesSome || !this.complete
  }

  gap(): void {
    this.#gap.open()
  }

  apply(batch: readonly Change[]): void {
    this.#jobs.count(batch)
    if (this.#gap.keeps(batch)) return
    for (const change of batch) this.#apply(change)
    this.evaluate()
  }

  /** A job that this process posted, as the answer says. */
  learn(stored: Stored): Entry {
    return this.#posts.learn(stored)
  }

  /** A job that may come: it is this entry then. */
  expect(id: string): Entry {
    return this.byId(id)
  }

  /** Content as a claim or settle of this process wrote it; the claim itself is told by the backend's change. */
  rewrote(entry: Entry, written: { posting: Stored['posting']; revision: number }): void {
    if (!entry.stored) return
    entry.stored = { ...entry.stored, ...written }
    this.queue.update(entry)
  }

  async #list(): Promise<ViewListing> {
    if (this.#window) {
      // Nobody knows of what is still expected whether it was committed: it may come yet.
      const handles = this.#jobs.handles.all().filter(({ stored }) => stored)
      return this.#window.list([
        ...[...this.#jobs.all()].map(({ id }) => id ?? ''),
        ...handles.map(({ id }) => id ?? ''),
      ])
    }
    return (await this.#backend.list?.()) ?? NOTHING
  }

  #closeGap(listing: ViewListing, missed: readonly Change[]): void {
    const listed = new Set(listing.jobs)
    if (listing.window) this.#window?.begin(listing.window)
    for (const entry of [...this.#jobs.all()]) {
      const { id = '', newerThanGap: newer } = entry
      entry.newerThanGap = false
      if (listed.has(id)) continue
      // What came into the view after the listing began was not asked about.
      if (newer || (listing.window && !listing.window.asked.has(id))) this.#postings.want(entry)
      else if (!listing.window?.outside.has(id)) this.#endListed(entry, id, listing)
      else if (this.#window?.holds(entry)) this.#keepBeyond(entry)
      else this.leave(entry)
    }
    for (const entry of this.#jobs.handles.all()) {
      if (!entry.stored || entry.id === undefined || listed.has(entry.id)) continue
      // Read since the listing began: it was there by then, and what has become of it since is told.
      if (listing.window && !listing.window.asked.has(entry.id)) continue
      if (listing.window?.outside.has(entry.id)) entry.content = 'stale'
      else this.#endListed(entry, entry.id, listing)
    }
    for (const id of listing.jobs) {
      const spot = listing.window?.spots.get(id)
      const entry = this.#jobs.get(id) ?? this.#add(id, 'beyond')
      if (spot) entry.at = spot
      this.#postings.outdate(entry)
      this.#stand(entry, spot)
      this.#claimed(entry, listing.claimed.has(id))
      if (listing.cancelled.has(id)) this.#cancelRequested(entry)
    }
    for (const change of missed) this.#apply(change)
    this.#window?.reachHeld()
    this.evaluate()
  }

  /** It is outside, and somebody here holds on to it. */
  #keepBeyond(entry: Entry): void {
    this.#jobs.stand(entry, 'beyond')
    this.#claimed(entry, false)
    this.#postings.outdate(entry)
  }

  /** It was known, and is not on the board any more. */
  #endListed(entry: Entry, id: string, { trashed }: ViewListing): void {
    entry.trashing = trashed.has(id)
    this.#end(entry, id)
  }

  #stand(entry: Entry, spot: Spot | undefined): void {
    const standing = this.#window && spot ? this.#window.judge(spot) : 'inside'
    entry.standing = standing === 'outside' ? 'beyond' : standing
    this.queue.update(entry)
  }

  // --- What the window does -------------------------------------------------------------------------------------------

  show(spot: Standpoint & { readonly cancelled?: boolean }): void {
    const entry = this.#jobs.get(spot.id) ?? this.#meet(spot.id)
    entry.at = spot
    if (spot.cancelled) this.#cancelRequested(entry)
    if (entry.content !== 'fresh') this.#postings.want(entry)
    this.#window?.settle(entry)
  }

  stand(entry: Entry, standing: Standing): void {
    this.#jobs.stand(entry, standing)
  }

  failed(error: unknown): void {
    this.#listener.failed(error instanceof Error ? error : new Error(String(error)))
  }

  leave(entry: Entry): void {
    this.#jobs.leave(entry)
  }

  // --- Changes --------------------------------------------------------------------------------------------------------

  #apply(change: Change): void {
    const { id, kind } = change
    const entry = this.#jobs.get(id)
    if (!entry) this.#applyOutside(change)
    else if (kind === 'updated') this.#postings.outdate(entry)
    else if (kind === 'claimed' || kind === 'released') this.#claimed(entry, kind === 'claimed')
    else if (kind === 'trashed') entry.trashing = true
    else if (kind === 'cancelled') this.#cancelRequested(entry)
    else if (kind === 'gone') this.#end(entry, id)
  }

  /** Of a job that is not in the view. Without a window it is one that is posted, or it has left the board. */
  #applyOutside({ kind, id, at }: Change): void {
    const handle = this.#jobs.handles.get(id)
    if (kind === 'posted') this.#posted(id, at)
    if (!this.#window) return
    if (kind === 'claimed' || kind === 'cancelled') {
      const entry = this.#meet(id)
      if (kind === 'claimed') this.#claimed(entry, true)
      else this.#cancelRequested(entry)
      this.#postings.want(entry)
    }
    if (kind === 'updated' && handle?.stored) handle.content = 'stale'
    if (kind === 'trashed') this.#jobs.handles.trashing(id)
    if (kind !== 'gone') return
    const end = this.#jobs.handles.left(id)
    if (!handle) return
    handle.trashing = end === 'TRASHED'
    this.#end(handle, id)
  }

  #posted(id: string, at: Standpoint | undefined): void {
    const standing = at && this.#window ? this.#window.judgePosted(at) : 'inside'
    if (standing === 'outside') {
      if (this.#announcing) this.#postings.want(this.#jobs.handles.of(id))
      return
    }
    const entry = this.#add(id, standing)
    entry.at = at
    this.#postings.want(entry)
  }

  /** It comes into the view, and was posted before. */
  #meet(id: string): Entry {
    const entry = this.#add(id, 'beyond')
    this.#met.add(entry)
    return entry
  }

  #add(id: string, standing: Standing): Entry {
    const entry = this.#jobs.add(id, standing)
    this.kept.arrived(entry)
    return entry
  }

  #claimed(entry: Entry, claimed: boolean): void {
    if (entry.claimed === claimed) return
    entry.claimed = claimed
    this.#postings.claimed(entry)
    if (claimed) this.held.claimed(entry)
    this.queue.update(entry)
    this.#listener.happened(claimed ? 'claimed' : 'abandoned', entry)
    if (!claimed) this.#window?.settle(entry)
  }

  #cancelRequested(entry: Entry): void {
    if (entry.cancelRequested) return
    entry.cancelRequested = true
    this.queue.update(entry)
    this.#listener.cancelled(entry)
  }

  #end(entry: Entry, id: string): void {
    this.#listener.happened(this.#jobs.end(entry, id) === 'TRASHED' ? 'trashed' : 'consumed', entry)
  }

  #read(entry: Entry, { first }: { readonly first: boolean }): void {
    this.#jobs.index(entry)
    if (first) this.#firstRead(entry)
    this.#window?.settle(entry)
  }

  /** Of one that was met because somebody has claimed it, that was not told before. */
  #firstRead(entry: Entry): void {
    if (!this.#met.has(entry)) this.#listener.happened('posted', entry)
    else if (entry.claimed) this.#listener.happened('claimed', entry)
  }

  /** Wakes whoever waits for something to claim, now and when the next delay is over. */
  evaluate(): void {
    this.#window?.tend()
    this.kept.trim()
    this.queue.advance(this.#backend.now())
    this.unaccepted.tend()
    this.changed.notify()
    if (!this.#signal.aborted) this.#dueTimer.set(this.queue.nextDue)
  }
}
