/** The entry of a job in the view of this process, from the first report of the job until no code references the entry. */
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import type { JobState } from '../../core/states.ts'
import type { QueueKey, StoredJob } from '../contract/index.ts'
import type { ClaimOrderKey } from './claim-order.ts'
import type { Posting } from './posting/posting.ts'
import type { ResourceWants } from './resources.ts'

/**
 * The state of the posting in the view: `unread` (not read yet), `fresh`, `stale` (changed since it was read), `unreadable`
 * (this release cannot decode it: it is not claimed here, and left to other releases).
 */
export type ContentState = 'unread' | 'fresh' | 'stale' | 'unreadable'

/**
 * The position of a job relative to the view's window. `inside`: in the window. `pinned`: behind the window's end, and in the view
 * because a caller or owner holds the job or it becomes due soon; it is not offered for claiming. `outside`: not in the view; only
 * callers that reference the entry know it.
 */
export type WindowStatus = 'inside' | 'pinned' | 'outside'

/** Keeps entries current that are not in the view, on demand. */
export interface EntryFollower {
  /** Keeps the entry current until the result is disposed, which the caller does once. */
  follow(entry: JobEntry): Disposable
  /** Keeps the entry current for some time, because a caller has looked at its state. */
  touch(entry: JobEntry): void
}

export interface JobEntry {
  /** The id of the job; absent only for a posted job that had left the board before the answer to its post. */
  readonly id: string | undefined
  content: ContentState
  windowStatus: WindowStatus
  /** The position of the job in claim order, used until its posting is read. */
  queueKey: QueueKey | undefined
  /** The posting as it was last read. */
  stored: StoredJob | undefined
  claimed: boolean
  /** Whether a cancel was requested: the job is due at once, so that the work it has done is reverted. */
  cancelRequested: boolean
  /** Whether this process is trying to claim the job, so that it is not chosen twice. */
  isReserved: boolean
  /** Whether its trash entry was reported, which happens just before the posting is removed. */
  trashing: boolean
  /** Whether this process posted the job during a resync: a listing without it may be older than the post. */
  postedDuringResync: boolean
  /**
   * The way in which the job entered the view. `posted` is not emitted for jobs that were on the board before the view was opened (`earlier`), nor
   * for jobs that entered it by a change after their post (`late`). A field, because a set of all jobs of a long board takes long to fill.
   */
  entered: 'posted' | 'late' | 'earlier'
  /** The message of the error that was reported when it could not be read, so that each error is reported once. */
  reportedError: string | undefined
  /** The posting that a settlement of this process writes; the final one once the job has left the board. */
  settledPosting: Posting | undefined
  /** The number of changes of the posting: an answer to a read from before the newest change is ignored. */
  changeCount: number
  ended: 'COMPLETE' | 'TRASHED' | undefined
  /** The place of the job in the queue, set only by the queue; absent while the posting is not known, and after the job's end. */
  queuePlace: QueuePlace | undefined
  /** Created by the first wait for the job's end. */
  endDeferred: Deferred<'COMPLETE' | 'TRASHED'> | undefined
  /** A reference to an object that lives as long as a `Job` of this entry that a user may read: see {@link keepEntry}. */
  holder: WeakRef<object> | undefined
  /** Keeps the entry current; it is the follower of the board object to which the entry belongs. */
  readonly follower: EntryFollower | undefined
}

/** Returns the object that a `Job` references for as long as it lives, so that the view knows that a user may read it. */
export function keepEntry(entry: JobEntry): object {
  const known = entry.holder?.deref()
  if (known) return known
  const holder = {}
  entry.holder = new WeakRef(holder)
  return holder
}

export function isHeld({ holder }: JobEntry): boolean {
  return holder?.deref() !== undefined
}

/**
 * The place of a job in the queue; it is replaced when its posting or state changes. There is one for every job on the
 * board, so each added field costs memory a hundred thousand times.
 */
export interface QueuePlace extends ClaimOrderKey {
  readonly entry: JobEntry
  readonly stored: StoredJob
  readonly state: QueueState
  readonly resources: ResourceWants
  /** The due time in milliseconds on the server's clock; 0 for at once. */
  readonly dueAt: number
  /** The number of reasons against a claim: the lines in which it waits, plus one if earlier postings are unread. */
  blockerCount: number
  /** Whether the job can be claimed now. */
  isReady: boolean
}

/**
 * The state of a job in the queue. `delayed`: its delay is not over, and no job waits for it. `waiting`: it waits in the lines of its resources.
 * `claimed`: it and its resources are claimed, here or elsewhere.
 */
export type QueueState = 'delayed' | 'waiting' | 'claimed'

export interface NewEntryOptions {
  readonly windowStatus?: WindowStatus
  readonly follower?: EntryFollower | undefined
}

export function newEntry(id: string | undefined, options: NewEntryOptions = {}): JobEntry {
  const { windowStatus = 'inside', follower } = options
  return {
    id,
    content: 'unread',
    windowStatus,
    queueKey: undefined,
    stored: undefined,
    claimed: false,
    cancelRequested: false,
    isReserved: false,
    trashing: false,
    postedDuringResync: false,
    entered: 'posted',
    reportedError: undefined,
    changeCount: 0,
    ended: undefined,
    settledPosting: undefined,
    queuePlace: undefined,
    endDeferred: undefined,
    holder: undefined,
    follower,
  }
}

export function toJobState(entry: JobEntry): JobState {
  return entry.ended ?? (entry.claimed ? 'CLAIMED' : 'UNCLAIMED')
}

/** Resolves with how the job left the board. */
export async function waitForEnd(entry: JobEntry): Promise<'COMPLETE' | 'TRASHED'> {
  // While there is a deferred, the job's last attempt may still have to be read.
  if (entry.ended && !entry.endDeferred) return entry.ended
  entry.endDeferred ??= createDeferred()
  return entry.endDeferred.promise
}
