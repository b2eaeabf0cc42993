/**
 * The state of the view: the jobs of the board by id and by uuid, the claim queue, and the postings that have to be read.
 *
 * The index is a pure state machine. It does no I/O, sets no timers and calls no listeners: the consequences of a change are kept
 * as {@link Effect}s, which the view's loop carries out (`live-view.ts`).
 *
 * | change | job outside the view | job in the view |
 * |---|---|---|
 * | posted | enters the view if the window holds it | – |
 * | updated | with a new place, enters the view if the window holds it | its posting is read again, at once or when its claim is released |
 * | claimed | enters the view, because it holds resources | holds its resources |
 * | released | – | waits again; leaves the view if the window does not hold it |
 * | ready (no dependencies left) | enters the view if the window holds it | waits for an owner; its posting is read again if it is not known |
 * | cancelled | enters the view, because it is due at once | is due at once |
 * | trashed | is remembered until it is gone | is remembered until it is gone |
 * | gone | ends, if this process references it | ends |
 */
import type { BoardChange, JobStatus, JobSummary, QueueKey, StoredJob, UnreadableJob } from '../contract/index.ts'
import { type EntryFollower, type JobEntry, newEntry, type WindowStatus } from '../model/entry.ts'
import { ClaimQueue } from '../queue/queue.ts'
import { ReadList } from './content-reader.ts'
import { UuidIndex } from './uuid-index.ts'
import { type JobEnd, RecentEnds, WeakJobs } from './weak-jobs.ts'
import type { ViewListing, Window } from './window.ts'

export type JobEventKind = 'posted' | 'claimed' | 'abandoned' | 'consumed' | 'trashed'

/** An action that the loop has to carry out because of a change. */
export type Effect =
  /** `isEarlier`: it happened before the view was opened, so listeners do not receive it. */
  | { readonly kind: 'emit'; readonly event: JobEventKind; readonly entry: JobEntry; readonly isEarlier?: true }
  /** A cancel of the job was requested. */
  | { readonly kind: 'cancelled'; readonly entry: JobEntry }
  /** The posting is gone, and the loop has to ask the backend how the job ended. */
  | { readonly kind: 'find-end'; readonly entry: JobEntry; readonly id: string }
  | { readonly kind: 'error'; readonly error: unknown }

export interface OwnPostOptions {
  readonly isCurrent: boolean
  /** Whether all changes since the request of the post were reported. */
  readonly isCovered: boolean
}

/** A change that this process has made to a job. */
export type OwnChange = 'consumed' | 'trashed' | 'released' | 'cancelled'

/** The posting as a write of this process has left it. */
export type OwnWrite = Pick<StoredJob, 'posting' | 'revision'> & Partial<Pick<StoredJob, 'writtenAt' | 'bytes'>>

/** A job of a section of the board that was read. */
export type SectionJob = QueueKey & { readonly cancelled?: boolean }

/** The number of jobs of a listing that are applied at once, which takes some 10 ms. */
const LISTING_SLICE = 2_000

const NO_EFFECTS: readonly Effect[] = []

export interface JobIndexOptions {
  /** Absent where the view holds the whole board. */
  readonly window: Window | undefined
  readonly follower?: EntryFollower
  /** The number of jobs of a listing that are applied at once; 2,000 by default. */
  readonly listingSlice?: number
}

export class JobIndex {
  readonly queue = new ClaimQueue()
  readonly toRead = new ReadList()
  /** Jobs outside the view that this process references. */
  readonly outside: WeakJobs
  readonly #ends = new RecentEnds()
  readonly #listingSlice: number
  readonly #follower: EntryFollower | undefined
  /** Absent where the view holds the whole board. */
  readonly #window: Window | undefined
  readonly #entries = new Map<string, JobEntry>()
  readonly #byUuid = new UuidIndex(() => this.#entries.values())
  /** Jobs whose posting was never readable here, such as postings of a newer release. */
  readonly #unreadable = new Set<JobEntry>()
  /** The number of jobs on the board, where the backend reports it because the view may be a part of the board. */
  #count: number | undefined
  #announcesAll = false
  #effects: Effect[] = []
  /** Whether the board was listed since the view was opened. */
  #isListed = false
  /** Whether the change that is being applied has happened before the view was opened. */
  #isEarlier = false

  constructor({ window, follower, listingSlice = LISTING_SLICE }: JobIndexOptions) {
    this.#listingSlice = listingSlice
    this.#window = window
    this.#follower = follower
    this.outside = new WeakJobs({ follower })
  }

  // --- Lookups ----------------------------------------------------------------------------------------------------------

  /** The number of jobs in the view. */
  get size(): number {
    return this.#entries.size
  }

  /** The number of jobs on the board, readable or not. */
  get jobCount(): number {
    return this.#count ?? this.#entries.size
  }

  /** Whether there are jobs in the view whose uuid is not known, because their posting cannot be read here. */
  get hasUnreadable(): boolean {
    return this.#unreadable.size > 0
  }

  entries(): IterableIterator<JobEntry> {
    return this.#entries.values()
  }

  /** Returns the job if it is in the view. */
  get(id: string): JobEntry | undefined {
    return this.#entries.get(id)
  }

  /** Returns the job, in the view or not. If it is not in the view, the caller reads its posting. */
  getOrCreate(id: string): JobEntry {
    return this.#entries.get(id) ?? this.outside.getOrCreate(id)
  }

  byUuid(uuid: string): JobEntry | undefined {
    return this.#byUuid.get(uuid)
  }

  /** Returns whether the entry belongs to this view, and not to the view of another board object. */
  owns(entry: JobEntry): boolean {
    return entry.id !== undefined && (this.#entries.get(entry.id) ?? this.outside.get(entry.id)) === entry
  }

  // --- Effects ----------------------------------------------------------------------------------------------------------

  /** Returns the effects of the changes since the last call. */
  takeEffects(): readonly Effect[] {
    if (this.#effects.length === 0) return NO_EFFECTS
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  #emit(event: JobEventKind, entry: JobEntry): void {
    this.#effects.push({ kind: 'emit', event, entry, ...(this.#isEarlier ? { isEarlier: true } : {}) })
  }

  // --- Opening and closing ----------------------------------------------------------------------------------------------

  /** Prepares for the first listing of a view that was just opened. */
  open(): void {
    this.#isListed = false
  }

  /** Moves all jobs out of the view. The jobs that this process references are kept as they were last known. */
  close(): void {
    for (const entry of [...this.#entries.values()]) {
      this.#moveOutside(entry)
      entry.entered = 'posted'
    }
    this.#count = undefined
    this.#announcesAll = false
    this.#effects = []
    // Changes are not reported from now on, so the remembered ends would be incomplete.
    this.#ends.forgetAll()
  }

  /** Adds a job that this process has posted, and that was not reported. */
  addOutside(stored: StoredJob): JobEntry {
    const entry = this.getOrCreate(stored.id)
    if (!entry.stored) {
      entry.stored = stored
      entry.content = 'fresh'
    }
    return entry
  }

  /** Applies the status of a followed job that was just read. */
  applyStatus(entry: JobEntry, status: JobStatus): void {
    if (entry.ended || entry.id === undefined || entry.windowStatus !== 'outside') return
    if (typeof status === 'string') {
      // A job that was never read here may not be on the board yet, because its transaction is still open.
      if (!entry.stored) return
      entry.trashing ||= status === 'trashed'
      this.end(entry, entry.id)
      return
    }
    entry.trashing = false
    if (entry.stored && entry.stored.revision !== status.revision) this.#outdate(entry)
    this.#setClaimed(entry, status.claimed)
    if (status.cancelled) this.#setCancelled(entry)
  }

  /** Applies a change that this process has made to a job outside the view. */
  applyOwnChange(entry: JobEntry, change: OwnChange): void {
    const { id, ended, windowStatus } = entry
    if (ended || id === undefined || windowStatus !== 'outside') return
    if (change === 'cancelled') this.#setCancelled(entry)
    else if (change === 'released') this.#setClaimed(entry, false)
    else {
      entry.trashing = change === 'trashed'
      this.end(entry, id)
    }
  }

  // --- Reports of the backend -------------------------------------------------------------------------------------------

  /** Makes the view emit `posted` for jobs outside the window, too; it reads their postings for that. */
  announceAll(): void {
    this.#announcesAll = true
  }

  /** Sets the number of jobs on the board after the last change. */
  setCount(jobs: number): void {
    if (this.#window) this.#count = jobs
  }

  /** Updates the number of jobs by a batch of changes; also called during a resync. */
  countChanges(batch: readonly BoardChange[]): void {
    if (this.#count === undefined) return
    for (const { kind, id, again } of batch) {
      if (kind === 'posted') this.#count += 1
      else if (kind === 'gone' && (!again || this.#entries.has(id))) this.#count -= 1
    }
  }

  apply(change: BoardChange): void {
    const { id, kind } = change
    const entry = this.#entries.get(id)
    if (!entry) this.#applyOutside(change)
    else if (kind === 'updated') this.#outdate(entry)
    else if (kind === 'ready') this.#setReady(entry)
    else if (kind === 'claimed' || kind === 'released') this.#setClaimed(entry, kind === 'claimed')
    else if (kind === 'trashed') entry.trashing = true
    else if (kind === 'cancelled') this.#setCancelled(entry)
    else if (kind === 'gone') this.end(entry, id)
  }

  /** Applies a change of a job that is not in the view. Without a window, the job is posted now, or has left the board. */
  #applyOutside({ kind, id, at }: BoardChange): void {
    if (kind === 'posted') this.#addPosted(id, at)
    if (!this.#window) return
    const held = this.outside.get(id)
    if (kind === 'claimed' || kind === 'cancelled') {
      const entry = this.#addLate(id)
      if (kind === 'claimed') this.#setClaimed(entry, true)
      else this.#setCancelled(entry)
      this.toRead.add(entry)
    }
    if ((kind === 'updated' || kind === 'ready') && held?.stored) held.content = 'stale'
    if (kind === 'ready' || (kind === 'updated' && at)) this.#addMoved(id, at)
    if (kind === 'trashed') this.#ends.noteTrashing(id)
    if (kind !== 'gone') return
    const end = this.#ends.noteGone(id)
    if (!held) return
    held.trashing = end === 'TRASHED'
    this.end(held, id)
  }

  #addPosted(id: string, at: QueueKey | undefined): void {
    const status = at && this.#window ? this.#window.judgePosted(at) : 'inside'
    if (status === 'outside') {
      if (this.#announcesAll) this.toRead.add(this.outside.getOrCreate(id))
      return
    }
    const entry = this.#add(id, status)
    entry.queueKey = at
    this.toRead.add(entry)
  }

  /** Adds a job from outside the view that has become due, because its dependencies have ended, or that has another place in the queue. */
  #addMoved(id: string, at: QueueKey | undefined): void {
    if (at && this.#window?.judgePosted(at) === 'outside') return
    const entry = this.#addLate(id)
    entry.queueKey = at
    this.toRead.add(entry)
  }

  /** Removes a job that has left the board. */
  end(entry: JobEntry, id: string): void {
    const end: JobEnd = entry.trashing ? 'TRASHED' : 'COMPLETE'
    this.#remove(entry)
    this.outside.take(id)
    entry.ended = end
    this.#ends.note(id, end)
    this.queue.update(entry)
    this.#emit(end === 'TRASHED' ? 'trashed' : 'consumed', entry)
  }

  /** Marks a job as ready, because its dependencies have ended. That does not change its posting, so a known posting is not read again. */
  #setReady(entry: JobEntry): void {
    const { stored, content } = entry
    if (!stored || content !== 'fresh' || this.toRead.has(entry)) this.#outdate(entry)
    else if (stored.waits) {
      const { waits: _, ...ready } = stored
      this.#adopt(entry, ready)
    }
  }

  #setClaimed(entry: JobEntry, claimed: boolean): void {
    if (entry.claimed === claimed) return
    entry.claimed = claimed
    // The posting has changed while the job was claimed: it is read now.
    if (!claimed && entry.content === 'stale') this.toRead.add(entry)
    this.queue.update(entry)
    this.#emit(claimed ? 'claimed' : 'abandoned', entry)
    if (!claimed) this.updateWindowStatus(entry)
  }

  #setCancelled(entry: JobEntry): void {
    if (entry.cancelRequested) return
    entry.cancelRequested = true
    this.queue.update(entry)
    this.#effects.push({ kind: 'cancelled', entry })
  }

  // --- Listings ---------------------------------------------------------------------------------------------------------

  /** Returns the ids to ask the backend about when the board is listed. */
  knownIds(): string[] {
    // Entries without a posting are left out: their post may not be committed.
    const held = this.outside.all().filter(({ stored }) => stored)
    return [...this.#entries.values(), ...held].map(({ id }) => id ?? '')
  }

  /**
   * Applies a listing of the board. The caller has set the bounds of the window to the bounds of the listing.
   *
   * Yields between slices of the listing: in one step, a long board would block the event loop for half a second. Until the end, the
   * caller keeps all changes and applies none. A caller that stops earlier has to list the board again.
   *
   * @param changes the changes since the gap; what the first listing shows without one of them has happened before the view was opened
   */
  *applyListing(listing: ViewListing, changes: readonly BoardChange[]): Generator<void, void, undefined> {
    const isFirst = !this.#isListed
    const changed = new Set(changes.map(({ id }) => id))
    const posted = new Set(changes.flatMap(({ kind, id }) => (kind === 'posted' ? [id] : [])))
    this.#applyUnlisted(listing, { isEarlier: (id) => isFirst && !changed.has(id) })
    for (const [at, id] of listing.jobs.entries()) {
      if (at > 0 && at % this.#listingSlice === 0) yield
      this.#isEarlier = isFirst && !changed.has(id)
      this.#applyListed(id, listing, { wasThere: isFirst && !posted.has(id) })
      this.#isEarlier = false
    }
    this.#isListed = true
  }

  /** Handles known jobs that are not in the listing: they have left the board, are outside the window, or have to be read. */
  #applyUnlisted(listing: ViewListing, { isEarlier }: { readonly isEarlier: (id: string) => boolean }): void {
    const { window } = listing
    const listed = new Set(listing.jobs)
    for (const entry of [...this.#entries.values()]) {
      const { id = '', postedDuringResync: newer } = entry
      this.#isEarlier = isEarlier(id)
      if (listed.has(id)) continue
      entry.postedDuringResync = false
      // The listing did not ask about jobs that entered the view after it began.
      if (newer || (window && !window.asked.has(id))) this.toRead.add(entry)
      else if (!window?.outside.has(id)) this.#endUnlisted(entry, id, listing)
      else if (this.#window?.pinned.has(entry)) this.#keepPinned(entry)
      else this.#moveOutside(entry)
    }
    for (const entry of this.outside.all()) {
      if (!entry.stored || entry.id === undefined || listed.has(entry.id)) continue
      this.#isEarlier = isEarlier(entry.id)
      // The job was read since the listing began: it was on the board then, and later changes are reported.
      if (window && !window.asked.has(entry.id)) continue
      if (window?.outside.has(entry.id)) {
        entry.content = 'stale'
        // Claimed jobs are all listed.
        this.#setClaimed(entry, false)
      } else this.#endUnlisted(entry, entry.id, listing)
    }
    this.#isEarlier = false
  }

  /** @param options.wasThere whether the job was posted before the view was opened: `posted` is not emitted for it */
  #applyListed(
    id: string,
    { window, claimed, cancelled }: ViewListing,
    { wasThere }: { readonly wasThere: boolean },
  ): void {
    const summary = window?.summaries.get(id)
    const known = this.#entries.get(id)
    const status = this.#statusOfListed(summary)
    const entry = known ?? this.#add(id, status)
    if (wasThere && !entry.postedDuringResync) entry.entered = this.#isEarlier ? 'earlier' : 'late'
    entry.postedDuringResync = false
    if (summary) entry.queueKey = summary
    entry.trashing = false
    this.#outdate(entry)
    if (known) this.#setWindowStatus(entry, status)
    this.#setClaimed(entry, claimed.has(id))
    if (cancelled.has(id)) this.#setCancelled(entry)
  }

  #statusOfListed(summary: JobSummary | undefined): WindowStatus {
    const status = this.#window && summary ? this.#window.judge(summary) : 'inside'
    return status === 'outside' ? 'pinned' : status
  }

  /** Keeps a pinned job in the view although it is outside the window. */
  #keepPinned(entry: JobEntry): void {
    this.#setWindowStatus(entry, 'pinned')
    this.#setClaimed(entry, false)
    this.#outdate(entry)
  }

  #endUnlisted(entry: JobEntry, id: string, { trashed }: ViewListing): void {
    entry.trashing ||= trashed.has(id)
    this.end(entry, id)
  }

  // --- Postings ---------------------------------------------------------------------------------------------------------

  /** Applies a posting that was read; undefined if there is none any more. */
  applyPosting(entry: JobEntry, content: StoredJob | UnreadableJob | undefined): void {
    if (content) this.#adopt(entry, content)
    else if (!entry.ended && entry.id !== undefined) this.#onPostingMissing(entry, entry.id)
  }

  /**
   * Applies the answer to a post of this process. The change is reported before the answer, so the job is
   * known by now, unless it has ended already, is outside the window, or the view is not current. In the last case a listing
   * may be older than the post, and the entry is marked as newer. Where changes of the job may be missing, it is read again.
   */
  applyOwnPost(stored: StoredJob, { isCurrent, isCovered }: OwnPostOptions): JobEntry {
    const known = this.#entries.get(stored.id)
    const entry = known ?? (isCurrent && isCovered ? this.#findOwnPost(stored) : this.#add(stored.id, 'inside'))
    if (entry.windowStatus === 'outside') return entry
    if (!known && !entry.ended) entry.postedDuringResync = true
    if (entry.ended) entry.stored = stored
    else if (entry.changeCount === 0 && entry.content === 'unread') this.#adopt(entry, stored)
    else if (!entry.stored) this.#adoptOutdated(entry, stored)
    // It may have ended before the listing with which the view is current.
    if (!known && !isCovered && isCurrent) this.toRead.add(entry)
    return entry
  }

  /** Applies a posting that a claim, a settlement or a replacement of this process has written. The claim itself is reported as a change. */
  applyOwnWrite(entry: JobEntry, written: OwnWrite): void {
    if (!entry.stored) return
    entry.stored = { ...entry.stored, ...written }
    this.queue.update(entry)
  }

  #adopt(entry: JobEntry, content: StoredJob | UnreadableJob): void {
    this.toRead.delete(entry)
    const isFirst = entry.stored === undefined
    if ('error' in content) this.#markUnreadable(entry, content.error)
    else {
      entry.stored = content
      entry.content = 'fresh'
      entry.reportedError = undefined
      this.#unreadable.delete(entry)
      this.#indexUuid(entry)
      if (isFirst) this.#emitFirst(entry)
      this.updateWindowStatus(entry)
    }
    this.queue.update(entry)
  }

  /** Emits the first event of a job: for a job that entered the view by a claim, `claimed`, which needed the posting. */
  #emitFirst(entry: JobEntry): void {
    if (entry.entered === 'posted') this.#emit('posted', entry)
    else if (entry.entered === 'late' && entry.claimed) this.#emit('claimed', entry)
  }

  /** Applies an own post whose posting has changed since: the answer identifies the job, but its content is stale. */
  #adoptOutdated(entry: JobEntry, stored: StoredJob): void {
    entry.stored = stored
    entry.content = 'stale'
    this.#indexUuid(entry)
    this.queue.update(entry)
    this.#emit('posted', entry)
  }

  /** Returns the entry of an own post that is not in the view although its change was reported: it has left, or is outside. */
  #findOwnPost(stored: StoredJob): JobEntry {
    const { id } = stored
    const end = this.#ends.get(id) ?? (this.#window ? undefined : 'COMPLETE')
    if (end) return { ...newEntry(id, { follower: this.#follower }), ended: end }
    const entry = this.outside.getOrCreate(id)
    if (!entry.stored) {
      entry.stored = stored
      entry.content = 'fresh'
      this.#emit('posted', entry)
    }
    if (this.#ends.mayHaveForgotten(id)) this.#effects.push({ kind: 'find-end', entry, id })
    return entry
  }

  /** Marks the posting as stale and has it read again. For a claimed job that is not needed before its release. */
  #outdate(entry: JobEntry): void {
    entry.changeCount += 1
    if (!entry.claimed || entry.content === 'unread') this.toRead.add(entry)
    // The queue knows it as unread already.
    if (entry.content === 'unread') return
    entry.content = 'stale'
    this.queue.update(entry)
  }

  #markUnreadable(entry: JobEntry, error: Error): void {
    if (entry.reportedError !== error.message) this.#effects.push({ kind: 'error', error })
    entry.reportedError = error.message
    entry.content = 'unreadable'
    if (!entry.stored && entry.windowStatus !== 'outside') this.#unreadable.add(entry)
  }

  /** Handles a posting that is missing. Without a window the job has ended; with one, the change may arrive later, so the backend is asked. */
  #onPostingMissing(entry: JobEntry, id: string): void {
    if (!this.#window || entry.trashing) this.end(entry, id)
    else this.#effects.push({ kind: 'find-end', entry, id })
  }

  // --- The window -------------------------------------------------------------------------------------------------------

  /** Applies a job of a section of the board that was read. */
  addFromSection(summary: SectionJob): void {
    const entry = this.#entries.get(summary.id) ?? this.#addLate(summary.id)
    entry.queueKey = summary
    if (summary.cancelled) this.#setCancelled(entry)
    if (entry.content !== 'fresh') this.toRead.add(entry)
    this.updateWindowStatus(entry)
  }

  /** Adds a job of another section to the view, pinned. */
  addPinned(id: string): void {
    this.toRead.add(this.#addLate(id))
  }

  /** Updates the status of a job after it or the window has changed. A job that the window does not hold leaves the view. */
  updateWindowStatus(entry: JobEntry): void {
    if (!this.#window || entry.ended || entry.windowStatus === 'outside') return
    const status = this.#window.statusOf(entry)
    if (status === 'outside') this.#moveOutside(entry)
    else if (status !== undefined && status !== entry.windowStatus) this.#setWindowStatus(entry, status)
  }

  updateWindowStatuses(): void {
    for (const entry of [...this.#entries.values()]) this.updateWindowStatus(entry)
  }

  // --- Entries ----------------------------------------------------------------------------------------------------------

  #add(id: string, status: WindowStatus): JobEntry {
    const entry = this.outside.take(id) ?? newEntry(id, { follower: this.#follower })
    this.#entries.set(id, entry)
    this.#setWindowStatus(entry, status)
    this.#indexUuid(entry)
    return entry
  }

  #addLate(id: string): JobEntry {
    const entry = this.#add(id, 'pinned')
    // All claimed jobs are in the view, so a job from outside is not claimed.
    entry.claimed = false
    this.queue.update(entry)
    entry.entered = 'late'
    return entry
  }

  #setWindowStatus(entry: JobEntry, status: WindowStatus): void {
    entry.windowStatus = status
    this.queue.update(entry)
  }

  #indexUuid(entry: JobEntry): void {
    if (entry.stored && entry.windowStatus !== 'outside') this.#byUuid.add(entry.stored.posting.uuid, entry)
  }

  /** Moves a job that is still on the board out of the view. */
  #moveOutside(entry: JobEntry): void {
    this.#remove(entry)
    this.#setWindowStatus(entry, 'outside')
    this.outside.add(entry)
  }

  #remove(entry: JobEntry): void {
    if (entry.id !== undefined) this.#entries.delete(entry.id)
    this.#byUuid.delete(entry)
    this.toRead.delete(entry)
    this.#unreadable.delete(entry)
  }
}
