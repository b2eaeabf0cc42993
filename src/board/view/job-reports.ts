/**
 * Applies to the index what this process receives about single jobs: the changes that the backend reports, postings and statuses that were read,
 * and the answers to requests of this process.
 *
 * | change | job outside the view | job in the view |
 * |---|---|---|
 * | posted | enters the view if the window holds it | – |
 * | updated | with a new place, enters the view if the window holds it | its posting is read again, at once or when its claim is released |
 * | claimed | enters the view, because it may hold resources; not in a view of some queues | holds its resources |
 * | holds | enters a view of some queues | – |
 * | released | – | waits again; leaves the view if the window does not hold it |
 * | ready (no dependencies left) | enters the view if the window holds it | waits for an owner; its posting is read again if it is not known |
 * | cancelled | enters the view, because it is due at once | is due at once |
 * | trashed | is remembered until it is gone | is remembered until it is gone |
 * | gone | ends, if this process references it | ends |
 */
import type { BoardChange, JobStatus, QueueKey, StoredJob, UnreadableJob } from '../contract/index.ts'
import { type JobEntry, newEntry } from '../model/entry.ts'
import type { JobIndex } from './job-index.ts'

export interface OwnPostOptions {
  readonly isCurrent: boolean
  /** Whether all changes since the post was requested have been reported. */
  readonly isCovered: boolean
}

/** A change that this process has made to a job. */
export type OwnChange = 'consumed' | 'trashed' | 'released' | 'cancelled'

/** The posting as a write of this process has stored it. */
export type OwnWrite = Pick<StoredJob, 'posting' | 'revision'> & Partial<Pick<StoredJob, 'writtenAt' | 'bytes'>>

export class JobReports {
  readonly #index: JobIndex
  /** The number of jobs on the board, where the backend reports it because the view may be a part of the board. */
  #count: number | undefined
  #announcesAll = false

  constructor(index: JobIndex) {
    this.#index = index
  }

  /** The number of jobs on the board, readable or not. */
  get jobCount(): number {
    return this.#count ?? this.#index.size
  }

  /** Forgets the state that is valid only while the view is open. */
  close(): void {
    this.#count = undefined
    this.#announcesAll = false
  }

  // --- Reports of the backend -------------------------------------------------------------------------------------------

  /** Makes the view emit `posted` for jobs outside the window, too; it reads their postings for that. */
  announceAll(): void {
    this.#announcesAll = true
  }

  /** Sets the number of jobs on the board after the last change. */
  setCount(jobs: number): void {
    if (this.#index.window) this.#count = jobs
  }

  /** Updates the number of jobs on the board by these changes; also called during a resync. */
  countChanges(changes: readonly BoardChange[]): void {
    if (this.#count === undefined) return
    for (const { kind, id, again } of changes) {
      if (kind === 'posted') this.#count += 1
      else if (kind === 'gone' && (!again || this.#index.get(id))) this.#count -= 1
    }
  }

  apply(change: BoardChange): void {
    const { id, kind } = change
    const index = this.#index
    const entry = index.get(id)
    if (!entry) this.#applyOutside(change)
    else if (kind === 'updated') index.outdate(entry)
    else if (kind === 'ready') this.#setReady(entry)
    else if (kind === 'claimed') index.setClaimed(entry)
    else if (kind === 'released') index.setReleased(entry)
    else if (kind === 'trashed') entry.trashing = true
    else if (kind === 'cancelled') index.setCancelled(entry)
    else if (kind === 'gone') index.end(entry, id)
  }

  /** Applies a change of a job that is not in the view. Without a window, the job was posted now, or has left the board already. */
  #applyOutside({ kind, id, at }: BoardChange): void {
    const index = this.#index
    if (kind === 'posted') this.#addPosted(id, at)
    if (!index.window) return
    const outsideEntry = index.outside.get(id)
    if (this.#mustEnter(kind, { isKnown: outsideEntry !== undefined })) {
      const entry = index.addLate(id)
      if (kind === 'cancelled') index.setCancelled(entry)
      else index.setClaimed(entry)
      index.toRead.add(entry)
    }
    if ((kind === 'updated' || kind === 'ready') && outsideEntry?.stored) outsideEntry.content = 'stale'
    if (kind === 'ready' || (kind === 'updated' && at)) this.#addMoved(id, at)
    if (kind === 'trashed') index.ends.noteTrashing(id)
    if (kind !== 'gone') return
    const end = index.ends.noteGone(id)
    if (!outsideEntry) return
    outsideEntry.trashing = end === 'TRASHED'
    index.end(outsideEntry, id)
  }

  /** Returns whether a job outside the view enters it by a change, wherever it is in claim order. @param options.isKnown whether this process references the job */
  #mustEnter(kind: BoardChange['kind'], { isKnown }: { readonly isKnown: boolean }): boolean {
    if (kind === 'cancelled') return true
    // A change of the kind `claimed` does not name the queue of its job.
    if (this.#index.window?.scope.isRestricted) return kind === 'holds' || (kind === 'claimed' && isKnown)
    return kind === 'claimed'
  }

  #addPosted(id: string, at: QueueKey | undefined): void {
    const { window, outside, toRead } = this.#index
    const status = at && window ? window.judgePosted(at) : 'inside'
    if (status === 'outside') {
      if (this.#announcesAll) toRead.add(outside.getOrCreate(id))
      return
    }
    const entry = this.#index.add(id, status)
    entry.queueKey = at
    toRead.add(entry)
  }

  /** Adds a job from outside the view that has another place in the queue, or has become due because its dependencies have ended. */
  #addMoved(id: string, at: QueueKey | undefined): void {
    if (at && this.#index.window?.judgePosted(at) === 'outside') return
    const entry = this.#index.addLate(id)
    entry.queueKey = at
    this.#index.toRead.add(entry)
  }

  /** Marks a job as ready, because its dependencies have ended. That does not change its posting, so a known posting is not read again. */
  #setReady(entry: JobEntry): void {
    const { stored, content } = entry
    if (!stored || content !== 'fresh' || this.#index.toRead.has(entry)) this.#index.outdate(entry)
    else if (stored.waits) {
      const { waits: _, ...ready } = stored
      this.#index.adopt(entry, ready)
    }
  }

  /** Applies the status of a followed job that was just read. */
  applyStatus(entry: JobEntry, status: JobStatus): void {
    if (entry.ended || entry.id === undefined || entry.windowStatus !== 'outside') return
    if (typeof status === 'string') {
      // A job that was never read here may not be on the board yet, because its transaction is still open.
      if (!entry.stored) return
      entry.trashing ||= status === 'trashed'
      this.#index.end(entry, entry.id)
      return
    }
    entry.trashing = false
    if (entry.stored && entry.stored.revision !== status.revision) this.#index.outdate(entry)
    if (status.claimed) this.#index.setClaimed(entry)
    else this.#index.setReleased(entry)
    if (status.cancelled) this.#index.setCancelled(entry)
  }

  /** Applies a posting that was read; undefined if there is none any more. */
  applyPosting(entry: JobEntry, content: StoredJob | UnreadableJob | undefined): void {
    if (content) this.#index.adopt(entry, content)
    else if (!entry.ended && entry.id !== undefined) this.#onPostingMissing(entry, entry.id)
  }

  /** Handles a posting that is missing. Without a window the job has ended; with one, the change may arrive later, so the backend is asked. */
  #onPostingMissing(entry: JobEntry, id: string): void {
    if (!this.#index.window || entry.trashing) this.#index.end(entry, id)
    else this.#index.findEnd(entry, id)
  }

  // --- Answers to requests of this process ------------------------------------------------------------------------------

  /** Adds a job that this process has posted, without a report of the backend. */
  addOutside(stored: StoredJob): JobEntry {
    const entry = this.#index.getOrCreate(stored.id)
    if (!entry.stored) {
      entry.stored = stored
      entry.content = 'fresh'
    }
    return entry
  }

  /**
   * Applies the answer to a post of this process. The change is reported before the answer, so the job is usually known. If the view is not
   * current, its listing may be older than the post: the entry is marked as newer. If changes may be missing, the posting is read again.
   */
  applyOwnPost(stored: StoredJob, { isCurrent, isCovered }: OwnPostOptions): JobEntry {
    const index = this.#index
    const known = index.get(stored.id)
    const entry = known ?? (isCurrent && isCovered ? this.#findOwnPost(stored) : index.add(stored.id, 'inside'))
    if (entry.windowStatus === 'outside') return entry
    if (!known && !entry.ended) entry.postedDuringResync = true
    if (entry.ended) entry.stored = stored
    else if (entry.changeCount === 0 && entry.content === 'unread') index.adopt(entry, stored)
    else if (!entry.stored) index.adoptOutdated(entry, stored)
    // The job may have ended before the listing that made the view current.
    if (!known && !isCovered && isCurrent) index.toRead.add(entry)
    return entry
  }

  /** Returns the entry of an own post that was reported but is not in the view: the job has ended, or is outside the window. */
  #findOwnPost(stored: StoredJob): JobEntry {
    const { id } = stored
    const { ends, window, outside, follower } = this.#index
    const end = ends.get(id) ?? (window ? undefined : 'COMPLETE')
    if (end) return { ...newEntry(id, { follower }), ended: end }
    const entry = outside.getOrCreate(id)
    if (!entry.stored) {
      entry.stored = stored
      entry.content = 'fresh'
      this.#index.emit('posted', entry)
    }
    if (ends.mayHaveForgotten(id)) this.#index.findEnd(entry, id)
    return entry
  }

  /** Applies a posting that a claim, a settlement or a replacement of this process has written. The claim itself is reported as a change. */
  applyOwnWrite(entry: JobEntry, written: OwnWrite): void {
    if (!entry.stored) return
    entry.stored = Object.assign({ ...entry.stored }, written)
    this.#index.queue.update(entry)
  }

  /** Applies a change that this process has made to a job outside the view. */
  applyOwnChange(entry: JobEntry, change: OwnChange): void {
    const { id, ended, windowStatus } = entry
    if (ended || id === undefined || windowStatus !== 'outside') return
    if (change === 'cancelled') this.#index.setCancelled(entry)
    else if (change === 'released') this.#index.setReleased(entry)
    else {
      entry.trashing = change === 'trashed'
      this.#index.end(entry, id)
    }
  }
}
