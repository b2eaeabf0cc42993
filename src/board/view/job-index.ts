/**
 * The jobs of the view: by id and by uuid, in the claim queue, and on the list of postings that have to be read; and each step by which
 * the state of one job changes.
 *
 * The index is a pure state machine. It does no I/O, sets no timers and calls no listeners: the consequences of a change are kept
 * as {@link Effect}s, which are carried out afterwards (`effects.ts`).
 *
 * What changes the index is above it: what is reported of single jobs (`job-reports.ts`), and listings of the board (`listing-applier.ts`).
 */
import type { QueueKey, StoredJob, UnreadableJob } from '../contract/index.ts'
import { type EntryFollower, type JobEntry, newEntry, type WindowStatus } from '../model/entry.ts'
import { ClaimQueue } from '../queue/queue.ts'
import { ReadList } from './content-reader.ts'
import { UuidIndex } from './uuid-index.ts'
import { type JobEnd, RecentEnds, WeakJobs } from './weak-jobs.ts'
import type { Window } from './window.ts'

export type JobEventKind = 'posted' | 'claimed' | 'abandoned' | 'consumed' | 'trashed'

/** An action that has to be carried out because of a change. */
export type Effect =
  /** `isEarlier`: it happened before the view was opened, so listeners do not receive it. */
  | { readonly kind: 'emit'; readonly event: JobEventKind; readonly entry: JobEntry; readonly isEarlier: boolean }
  /** A cancel of the job was requested. */
  | { readonly kind: 'cancelled'; readonly entry: JobEntry }
  /** The posting is gone, and the backend has to be asked how the job ended. */
  | { readonly kind: 'find-end'; readonly entry: JobEntry; readonly id: string }
  | { readonly kind: 'error'; readonly error: unknown }

/** A job of a section of the board that was read. */
export type SectionJob = QueueKey & { readonly cancelled?: boolean }

const NO_EFFECTS: readonly Effect[] = []

export interface JobIndexOptions {
  /** Absent where the view holds the whole board. */
  readonly window: Window | undefined
  readonly follower?: EntryFollower
}

export class JobIndex {
  readonly queue = new ClaimQueue()
  readonly toRead = new ReadList()
  /** Jobs outside the view that this process references. */
  readonly outside: WeakJobs
  readonly ends = new RecentEnds()
  /** Absent where the view holds the whole board. */
  readonly window: Window | undefined
  readonly follower: EntryFollower | undefined
  /** Whether the change that is being applied has happened before the view was opened. */
  isEarlier = false
  readonly #entries = new Map<string, JobEntry>()
  readonly #byUuid = new UuidIndex(() => this.#entries.values())
  /** Jobs whose posting was never readable here, such as postings of a newer release. */
  readonly #unreadable = new Set<JobEntry>()
  #effects: Effect[] = []

  constructor({ window, follower }: JobIndexOptions) {
    this.window = window
    this.follower = follower
    this.outside = new WeakJobs({ follower })
  }

  // --- Lookups ----------------------------------------------------------------------------------------------------------

  /** The number of jobs in the view. */
  get size(): number {
    return this.#entries.size
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

  /** Keeps an event that has to be emitted. */
  emit(event: JobEventKind, entry: JobEntry): void {
    this.#effects.push({ kind: 'emit', event, entry, isEarlier: this.isEarlier })
  }

  /** Keeps a job whose end is not known: the backend has to be asked. */
  findEnd(entry: JobEntry, id: string): void {
    this.#effects.push({ kind: 'find-end', entry, id })
  }

  // --- Steps of a job ---------------------------------------------------------------------------------------------------

  /** Adds a job to the view. */
  add(id: string, status: WindowStatus): JobEntry {
    const entry = this.outside.take(id) ?? newEntry(id, { follower: this.follower })
    this.#entries.set(id, entry)
    this.setWindowStatus(entry, status)
    this.#indexUuid(entry)
    return entry
  }

  /** Adds a job from outside the view that was posted earlier. */
  addLate(id: string): JobEntry {
    const entry = this.add(id, 'pinned')
    // All claimed jobs are in the view, so a job from outside is not claimed.
    entry.claimed = false
    this.queue.update(entry)
    entry.entered = 'late'
    return entry
  }

  /** Moves a job that is still on the board out of the view. */
  moveOutside(entry: JobEntry): void {
    this.#remove(entry)
    this.setWindowStatus(entry, 'outside')
    this.outside.add(entry)
  }

  /** Ends a job that has left the board. */
  end(entry: JobEntry, id: string): void {
    const end: JobEnd = entry.trashing ? 'TRASHED' : 'COMPLETE'
    this.#remove(entry)
    this.outside.take(id)
    entry.ended = end
    this.ends.note(id, end)
    this.queue.update(entry)
    this.emit(end === 'TRASHED' ? 'trashed' : 'consumed', entry)
  }

  setClaimed(entry: JobEntry): void {
    if (entry.claimed) return
    entry.claimed = true
    this.queue.update(entry)
    this.emit('claimed', entry)
  }

  setReleased(entry: JobEntry): void {
    if (!entry.claimed) return
    entry.claimed = false
    // The posting has changed while the job was claimed: it is read now.
    if (entry.content === 'stale') this.toRead.add(entry)
    this.queue.update(entry)
    this.emit('abandoned', entry)
    this.updateWindowStatus(entry)
  }

  setCancelled(entry: JobEntry): void {
    if (entry.cancelRequested) return
    entry.cancelRequested = true
    this.queue.update(entry)
    this.#effects.push({ kind: 'cancelled', entry })
  }

  /** Marks the posting as stale and has it read again. For a claimed job that is not needed before its release. */
  outdate(entry: JobEntry): void {
    entry.changeCount += 1
    if (!entry.claimed || entry.content === 'unread') this.toRead.add(entry)
    // The queue knows it as unread already.
    if (entry.content === 'unread') return
    entry.content = 'stale'
    this.queue.update(entry)
  }

  /** Applies a posting that was read. */
  adopt(entry: JobEntry, content: StoredJob | UnreadableJob): void {
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
    if (entry.entered === 'posted') this.emit('posted', entry)
    else if (entry.entered === 'late' && entry.claimed) this.emit('claimed', entry)
  }

  /** Applies an own post whose posting has changed since: the answer identifies the job, but its content is stale. */
  adoptOutdated(entry: JobEntry, stored: StoredJob): void {
    entry.stored = stored
    entry.content = 'stale'
    this.#indexUuid(entry)
    this.queue.update(entry)
    this.emit('posted', entry)
  }

  #markUnreadable(entry: JobEntry, error: Error): void {
    if (entry.reportedError !== error.message) this.#effects.push({ kind: 'error', error })
    entry.reportedError = error.message
    entry.content = 'unreadable'
    if (!entry.stored && entry.windowStatus !== 'outside') this.#unreadable.add(entry)
  }

  #indexUuid(entry: JobEntry): void {
    if (entry.stored && entry.windowStatus !== 'outside') this.#byUuid.add(entry.stored.posting.uuid, entry)
  }

  #remove(entry: JobEntry): void {
    if (entry.id !== undefined) this.#entries.delete(entry.id)
    this.#byUuid.delete(entry)
    this.toRead.delete(entry)
    this.#unreadable.delete(entry)
  }

  // --- The window -------------------------------------------------------------------------------------------------------

  /** Applies a job of a section of the board that was read. */
  addFromSection(summary: SectionJob): void {
    const entry = this.#entries.get(summary.id) ?? this.addLate(summary.id)
    entry.queueKey = summary
    if (summary.cancelled) this.setCancelled(entry)
    if (entry.content !== 'fresh') this.toRead.add(entry)
    this.updateWindowStatus(entry)
  }

  /** Adds a job of another section to the view, pinned. */
  addPinned(id: string): void {
    this.toRead.add(this.addLate(id))
  }

  /** Updates the status of a job after it or the window has changed. A job that the window does not hold leaves the view. */
  updateWindowStatus(entry: JobEntry): void {
    if (!this.window || entry.ended || entry.windowStatus === 'outside') return
    const status = this.window.statusOf(entry)
    if (status === 'outside') this.moveOutside(entry)
    else if (status !== undefined && status !== entry.windowStatus) this.setWindowStatus(entry, status)
  }

  updateWindowStatuses(): void {
    for (const entry of [...this.#entries.values()]) this.updateWindowStatus(entry)
  }

  setWindowStatus(entry: JobEntry, status: WindowStatus): void {
    entry.windowStatus = status
    this.queue.update(entry)
  }

  /** Moves all jobs out of the view. The jobs that this process references are kept as they were last known. */
  close(): void {
    for (const entry of [...this.#entries.values()]) {
      this.moveOutside(entry)
      entry.entered = 'posted'
    }
    this.#effects = []
    // Changes are not reported from now on, so the remembered ends would be incomplete.
    this.ends.forgetAll()
  }
}
