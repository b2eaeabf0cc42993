/** One job as this process sees it, from the first sight of it until nobody holds on to it any more. */
import { type Deferred, deferred } from '../core/abort.ts'
import type { JobState } from '../core/states.ts'
import type { Standpoint, Stored } from './backend.ts'
import type { Ordered } from './claim-order.ts'
import type { Posting } from './posting.ts'
import type { Wants } from './resources.ts'

/**
 * What is known of the posting: `unread` (not yet), `fresh`, `stale` (it changed since it was read), `unreadable` (this
 * release cannot make sense of it; hidden from claiming here, left for others).
 */
export type Content = 'unread' | 'fresh' | 'stale' | 'unreadable'

/**
 * How it stands to the view's window: `inside`; `beyond` its end, and in the view all the same, because somebody holds it or
 * it is to wake soon: nobody is given it; `outside`: not in the view, and known to those who hold on to it.
 */
export type Standing = 'inside' | 'beyond' | 'outside'

export interface Entry {
  /** Absent only for a job whose post was answered by its own end. */
  readonly id: string | undefined
  content: Content
  standing: Standing
  /** Where it stands, as long as its posting was not read. */
  at: Standpoint | undefined
  /** The posting as it was last read. */
  stored: Stored | undefined
  claimed: boolean
  /** Somebody asked for it back: it is due at once, so that what it has done is reverted. */
  cancelRequested: boolean
  /** Set while this process tries to claim it, so that it does not choose the job twice. */
  chosen: boolean
  /** Set once its trash entry was seen, which comes just before the posting goes. */
  trashing: boolean
  /** Posted by this process while a gap was open: a listing that lacks it may be older than the post. */
  newerThanGap: boolean
  /** What was said of it when it could not be read: said once, however often it is read again. */
  fault: string | undefined
  /** What a settle of this process makes of the posting: so it is, once the job has left the board. */
  settled: Posting | undefined
  /** Counts changes of the posting: content that was asked for before the newest change is not believed. */
  changes: number
  ended: 'COMPLETE' | 'TRASHED' | undefined
  /** What it is to the queue, which alone sets this: absent while its posting is not known, and after its end. */
  place: Place | undefined
  /** Made when somebody waits for the end. */
  end: Deferred<'COMPLETE' | 'TRASHED'> | undefined
  /** Lives as long as some `Job` of it does that a user may look at: see {@link holdOn}. */
  holder: WeakRef<object> | undefined
}

/** Returns what a `Job` keeps for as long as it lives, so that the view knows that somebody may look at it. */
export function holdOn(entry: Entry): object {
  const known = entry.holder?.deref()
  if (known) return known
  const holder = {}
  entry.holder = new WeakRef(holder)
  return holder
}

export function isHeld({ holder }: Entry): boolean {
  return holder?.deref() !== undefined
}

/**
 * What an entry is to the queue, as long as its posting and its stance stay what they are. One for every job on the board:
 * what is added here is paid a hundred thousand times.
 */
export interface Place extends Ordered {
  readonly entry: Entry
  readonly stored: Stored
  readonly stance: Stance
  readonly wants: Wants
  /** In milliseconds on the server's clock; 0 is at once. */
  readonly dueAt: number
  /** How many reasons keep it from being claimed: lines in which it has to wait, postings before it that nobody has read. */
  blocks: number
  /** Whether it is among those that can be taken now. */
  ready: boolean
}

/**
 * `asleep`: its delay is not over, and nobody minds it. `waiting`: it stands in the lines of its resources. `holding`: it is
 * claimed, here or elsewhere, and its resources with it.
 */
export type Stance = 'asleep' | 'waiting' | 'holding'

export function newEntry(id: string | undefined, standing: Standing = 'inside'): Entry {
  return {
    id,
    content: 'unread',
    standing,
    at: undefined,
    stored: undefined,
    claimed: false,
    cancelRequested: false,
    chosen: false,
    trashing: false,
    newerThanGap: false,
    fault: undefined,
    changes: 0,
    ended: undefined,
    settled: undefined,
    place: undefined,
    end: undefined,
    holder: undefined,
  }
}

export function stateOf(entry: Entry): JobState {
  return entry.ended ?? (entry.claimed ? 'CLAIMED' : 'UNCLAIMED')
}

/** Resolves with how the job left the board. */
export async function endOf(entry: Entry): Promise<'COMPLETE' | 'TRASHED'> {
  // With one there may still be something to read of how it ended.
  if (entry.ended && !entry.end) return entry.ended
  entry.end ??= deferred()
  return entry.end.promise
}
