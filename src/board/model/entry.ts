/** One job as this process sees it, from the first sight of it until nobody holds on to it any more. */
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import type { JobState } from '../../core/states.ts'
import type { QueueKey, StoredJob } from '../backend.ts'
import type { ClaimOrderKey } from './claim-order.ts'
import type { Posting } from './posting.ts'
import type { ResourceWants } from './resources.ts'

/**
 * What is known of the posting: `unread` (not yet), `fresh`, `stale` (it changed since it was read), `unreadable` (this
 * release cannot make sense of it; hidden from claiming here, left for others).
 */
export type ContentState = 'unread' | 'fresh' | 'stale' | 'unreadable'

/**
 * How it stands to the view's window: `inside`; `pinned`: behind its end, and in the view all the same, because somebody holds it or
 * it is to wake soon: nobody is given it; `outside`: not in the view, and known to those who hold on to it.
 */
export type WindowStatus = 'inside' | 'pinned' | 'outside'

export interface JobEntry {
  /** Absent only for a job whose post was answered by its own end. */
  readonly id: string | undefined
  content: ContentState
  windowStatus: WindowStatus
  /** Where it stands, as long as its posting was not read. */
  queueKey: QueueKey | undefined
  /** The posting as it was last read. */
  stored: StoredJob | undefined
  claimed: boolean
  /** Somebody asked for it back: it is due at once, so that what it has done is reverted. */
  cancelRequested: boolean
  /** Set while this process tries to claim it, so that it does not choose the job twice. */
  isReserved: boolean
  /** Set once its trash entry was seen, which comes just before the posting goes. */
  trashing: boolean
  /** Posted by this process while a gap was open: a listing that lacks it may be older than the post. */
  postedDuringResync: boolean
  /** What was said of it when it could not be read: said once, however often it is read again. */
  reportedError: string | undefined
  /** What a settle of this process makes of the posting: so it is, once the job has left the board. */
  settledPosting: Posting | undefined
  /** Counts changes of the posting: content that was asked for before the newest change is not believed. */
  changeCount: number
  ended: 'COMPLETE' | 'TRASHED' | undefined
  /** What it is to the queue, which alone sets this: absent while its posting is not known, and after its end. */
  queueEntry: QueueEntry | undefined
  /** Made when somebody waits for the end. */
  endDeferred: Deferred<'COMPLETE' | 'TRASHED'> | undefined
  /** Lives as long as some `Job` of it does that a user may look at: see {@link keepEntry}. */
  holder: WeakRef<object> | undefined
}

/** Returns what a `Job` keeps for as long as it lives, so that the view knows that somebody may look at it. */
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
 * What an entry is to the queue, as long as its posting and its stance stay what they are. One for every job on the board:
 * what is added here is paid a hundred thousand times.
 */
export interface QueueEntry extends ClaimOrderKey {
  readonly entry: JobEntry
  readonly stored: StoredJob
  readonly state: QueueState
  readonly resources: ResourceWants
  /** In milliseconds on the server's clock; 0 is at once. */
  readonly dueAt: number
  /** How many reasons keep it from being claimed: lines in which it has to wait, postings before it that nobody has read. */
  blockerCount: number
  /** Whether it is among those that can be taken now. */
  isReady: boolean
}

/**
 * `delayed`: its delay is not over, and nobody minds it. `waiting`: it stands in the lines of its resources. `claimed`: it is
 * claimed, here or elsewhere, and its resources with it.
 */
export type QueueState = 'delayed' | 'waiting' | 'claimed'

export function newEntry(id: string | undefined, windowStatus: WindowStatus = 'inside'): JobEntry {
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
    reportedError: undefined,
    changeCount: 0,
    ended: undefined,
    settledPosting: undefined,
    queueEntry: undefined,
    endDeferred: undefined,
    holder: undefined,
  }
}

export function toJobState(entry: JobEntry): JobState {
  return entry.ended ?? (entry.claimed ? 'CLAIMED' : 'UNCLAIMED')
}

/** Resolves with how the job left the board. */
export async function waitForEnd(entry: JobEntry): Promise<'COMPLETE' | 'TRASHED'> {
  // With one there may still be something to read of how it ended.
  if (entry.ended && !entry.endDeferred) return entry.ended
  entry.endDeferred ??= createDeferred()
  return entry.endDeferred.promise
}
