/**
 * What is claimable next: one incremental function over the live view. It only chooses; the backend's transaction decides.
 *
 * A job can be taken when all of this holds:
 *
 * - it is on the board, in the view's window, unclaimed, its content is known as it is now, and nobody here is trying it;
 * - it is due: its delay is over, or somebody asked for it to be cancelled, or it is reserved;
 * - no claimed job holds a resource in conflict with it, and no due job before it in claim order wants one;
 * - if it wants any resource: everything posted before it has been read, and so is known to want nothing of it.
 *
 * A job keeps its place in the lines of its resources while it is being tried, while its content is read anew, and when
 * nobody here would accept it. So what was posted first is not overtaken because of how this process works.
 *
 * A job whose flow no conductor has known for long is **set aside**: no other job waits for it, until a conductor knows the
 * flow again. It can be taken as before. `view/unaccepted-flows.ts` says which flows these are.
 *
 * **Costs.** Those that can be taken are kept apart and in order, so taking never meets the others, and a change costs what
 * it changes: its own place, and those that it blocks or frees.
 */

import { isSuspect } from '../attempts.ts'
import type { Stored } from '../backend.ts'
import { compareClaimOrder, compareIds, type Identified, type Ordered } from '../claim-order.ts'
import type { Entry, Place, Stance } from '../entry.ts'
import { type Work, workKey, workNamed } from '../known-work.ts'
import type { Posting } from '../posting.ts'
import { resourcesOf } from '../resources.ts'
import { pickAtRandom } from '../spread.ts'
import { type Blocker, ResourceLines } from './resource-lines.ts'
import { Sorted } from './sorted.ts'
import { Threshold } from './threshold.ts'

export interface Wanted {
  /** At most so many. */
  readonly max: number
  readonly accept: (posting: Posting) => boolean
  /** Whether this process runs a suspect already and must not take another. */
  readonly suspectHeld: boolean
  /**
   * 1 takes strictly what comes first. With more, `max` are picked at random among the first `spread * max` of the priority
   * that comes first, so that processes that look at the same head do not all try the same jobs.
   */
  readonly spread: number
  /** From 0 up to 1. */
  readonly random?: () => number
}

/** Jobs of one flow that stand in line for resources. */
export interface WaitingWork {
  readonly work: Work
  /** Since when the first of them could be claimed if its resources were free, in milliseconds on the server's clock. */
  readonly since: number
  /** The first of them in claim order. */
  readonly first: Entry
}

const NONE: ReadonlySet<string> = new Set()
/** How many flows are noted: what others post must not fill the memory of one who asks for none of it. */
const MOST_CLAIMED = 1_000

export class ClaimQueue {
  readonly #ready = new Sorted<Place, Ordered>(compareClaimOrder)
  readonly #asleep = new Sorted<Place>(compareDue)
  readonly #lines = new ResourceLines((place, passes) => this.#told(place, passes))
  /** Jobs whose posting nobody here has seen. What they want is not known, so those behind them wait that want anything. */
  readonly #unread = new Sorted<Entry, Identified>(compareIds)
  /** Everything that waits for resources, by id: an unread job has no place in claim order yet. */
  readonly #behindUnread = new Threshold<Place, Identified>(compareIds)
  /** Those that somebody here waits for: see {@link reserve}. */
  readonly #reserved = new Set<Entry>()
  /** Keys of the flows whose jobs are set aside: see {@link setAside}. */
  #aside: ReadonlySet<string> = new Set()
  /** Keys of the flows of which jobs with resources were claimed: see {@link claimedWork}. */
  readonly #claimedWork = new Set<string>()
  #now = 0
  #size = 0
  #bytes = 0

  /** How many unclaimed jobs are known here, be they due and free or not. */
  get size(): number {
    return this.#size
  }

  /** How many bytes their postings take in memory, by their size when they are encoded. */
  get bytes(): number {
    return this.#bytes
  }

  /** How many rest, and are known here. */
  get resting(): number {
    return this.#asleep.size
  }

  /** When the next delay is over, in milliseconds on the server's clock: call {@link advance} then. */
  get nextDue(): number | undefined {
    return this.#asleep.first?.dueAt
  }

  /** Whether a job may be waiting behind another that nobody has claimed. */
  get contended(): boolean {
    return this.#lines.contended || this.#aside.size > 0
  }

  /** Returns, by its key, the work of all jobs that stand in such lines. Looks at all lines. */
  contendingWork(): Map<string, WaitingWork> {
    const found = new Map<string, { work: Work; since: number; first: Place }>()
    for (const place of this.#lines.contenders()) {
      const work = workNamed(place.stored)
      if (!work) continue
      const since = Math.max(place.dueAt, place.stored.writtenAt)
      const key = workKey(work)
      const known = found.get(key)
      if (!known) found.set(key, { work, since, first: place })
      else {
        known.since = Math.min(known.since, since)
        if (compareClaimOrder(place, known.first) < 0) known.first = place
      }
    }
    return new Map([...found].map(([key, { first, ...rest }]) => [key, { ...rest, first: first.entry }]))
  }

  /** Lets nobody wait for the jobs of these flows from now on, by their keys, and of all others as usual. */
  setAside(keys: ReadonlySet<string>): void {
    const changed = new Set<Place>()
    for (const place of this.#lines.waiting()) {
      const work = workNamed(place.stored)
      const key = work && workKey(work)
      if (key !== undefined && keys.has(key) !== this.#aside.has(key)) changed.add(place)
    }
    this.#aside = keys
    for (const { entry, stance } of changed) this.#move(entry, stance)
  }

  /** Returns the keys of the flows of which jobs with resources were claimed since the last call, here or elsewhere. */
  claimedWork(): ReadonlySet<string> {
    if (this.#claimedWork.size === 0) return NONE
    const claimed = new Set(this.#claimedWork)
    this.#claimedWork.clear()
    return claimed
  }

  /** To be called after anything about the entry has changed. Costs nothing where that makes no difference. */
  update(entry: Entry): void {
    if (entry.content === 'unread' && !entry.ended && entry.standing !== 'outside') this.#unread.add(entry)
    // Whatever has a place was read before.
    else if (!entry.place && this.#unread.size > 0) this.#unread.delete(entry)
    const stance = this.#stanceOf(entry)
    if (entry.place && entry.place.stance === stance && entry.place.stored === entry.stored) this.#show(entry.place)
    else this.#move(entry, stance)
    this.#behindUnread.move(this.#unread.first ?? 'all', (place, passes) => this.#told(place, passes))
  }

  /**
   * Until it is disposed the job is due, whatever its delay says to others, and is not taken but by {@link pickFree}: others
   * in this process, who look at the same queue, leave it to whom it is reserved for.
   */
  reserve(entry: Entry): Disposable {
    this.#reserved.add(entry)
    this.update(entry)
    return {
      [Symbol.dispose]: () => {
        this.#reserved.delete(entry)
        this.update(entry)
      },
    }
  }

  /**
   * Wakes what has become due. Should the clock be set back, nobody who is awake falls asleep before the next update.
   *
   * @param now in milliseconds on the server's clock
   * @returns whether there was anything
   */
  advance(now: number): boolean {
    this.#now = now
    let woken = false
    for (let place = this.#asleep.first; place && place.dueAt <= now; place = this.#asleep.first) {
      this.#move(place.entry, this.#stanceOf(place.entry))
      woken = true
    }
    return woken
  }

  /** The first that are claimable, in claim order. They count as being tried until {@link release}. */
  take(wanted: Wanted): Place[] {
    const { max, random = Math.random } = wanted
    const found = this.#find(wanted)
    const taken = found.length <= max ? found : pickAtRandom(found, { count: max, random }).sort(compareClaimOrder)
    // Not before all were looked at: what `accept` throws must leave nothing chosen.
    for (const place of taken) this.#choose(place)
    return taken
  }

  /**
   * This very job, if it is unclaimed, known as it is now, and not being tried; also when it is blocked or not due. It
   * counts as being tried until {@link release}.
   */
  pick(entry: Entry): Place | undefined {
    const { place } = entry
    if (!place || place.stance === 'holding' || entry.content !== 'fresh' || entry.chosen) return undefined
    this.#choose(place)
    return place
  }

  /** This very job, if nothing that is known here speaks against claiming it. It counts as being tried, as with {@link pick}. */
  pickFree(entry: Entry): Place | undefined {
    return entry.place?.stance === 'waiting' && entry.place.blocks === 0 ? this.pick(entry) : undefined
  }

  /** Returns whether there is anything to take. */
  has(accept: (posting: Posting) => boolean): boolean {
    for (const place of this.#ready) if (accept(place.stored.posting)) return true
    return false
  }

  release(places: readonly Place[]): void {
    for (const { entry } of places) {
      entry.chosen = false
      if (entry.place) this.#show(entry.place)
    }
  }

  /**
   * What keeps a due job from its resources: of the first resource that it cannot have, who holds it, else who stands first
   * in line. Where postings that nobody has read yet keep it waiting, the first of these (its content is `unread`), under
   * the name of a resource that it might want.
   */
  blockedBy({ place }: Entry): Blocker | undefined {
    if (!place?.blocks) return undefined
    const blocker = this.#lines.blockerOf(place)
    if (blocker) return blocker
    const { exclusive, shared } = place.wants
    const resource = exclusive[0] ?? shared[0]
    const entry = this.#unread.first
    return entry && resource !== undefined ? { resource, entry } : undefined
  }

  /** What there is to pick from: `max`, or more of the first priority where they are to be spread. */
  #find(wanted: Wanted): Place[] {
    const { max, accept, suspectHeld, spread } = wanted
    const found: Place[] = []
    let suspects = suspectHeld
    for (const place of this.#ready) {
      const first = found[0] ?? place
      if (found.length >= (place.priority === first.priority ? Math.ceil(spread * max) : max)) break
      const { posting } = place.stored
      if ((suspects && isSuspect(posting)) || !accept(posting)) continue
      suspects ||= isSuspect(posting)
      found.push(place)
    }
    return found
  }

  #choose(place: Place): void {
    place.entry.chosen = true
    this.#show(place)
  }

  #stanceOf(entry: Entry): Stance | undefined {
    const { stored, content } = entry
    if (!stored || entry.ended || entry.standing === 'outside') return undefined
    // Whoever could read it has claimed it, with what it wanted when it was last readable here.
    if (entry.claimed) return 'holding'
    if (content === 'unread' || content === 'unreadable') return undefined
    const due = entry.cancelRequested || dueAtOf(stored) <= this.#now || this.#reserved.has(entry)
    return due ? 'waiting' : 'asleep'
  }

  #move(entry: Entry, stance: Stance | undefined): void {
    const old = entry.place
    const place = entry.stored && stance && newPlace(entry, entry.stored, stance)
    entry.place = place
    if (old) this.#leave(old)
    if (place) this.#enter(place)
    if (old) this.#lines.settle(old.wants)
    if (!place) return
    this.#lines.settle(place.wants)
    this.#show(place)
  }

  #enter(place: Place): void {
    if (place.stance !== 'holding') this.#count(place, 1)
    if (place.stance === 'asleep') {
      this.#asleep.add(place)
      return
    }
    this.#lines.enter(place, this.#groupOf(place))
    if (place.stance === 'waiting' && wantsAny(place) && !this.#behindUnread.add(place)) place.blocks += 1
  }

  #leave(place: Place): void {
    if (place.ready) this.#ready.delete(place)
    place.ready = false
    if (place.stance !== 'holding') this.#count(place, -1)
    if (place.stance === 'asleep') {
      this.#asleep.delete(place)
      return
    }
    this.#lines.leave(place)
    if (place.stance === 'waiting' && wantsAny(place)) this.#behindUnread.delete(place)
  }

  /** Returns the group with which the place is set aside, if it is; notes of one that is claimed that its flow is known. */
  #groupOf(place: Place): string | undefined {
    if (!this.contended || !wantsAny(place)) return undefined
    const work = workNamed(place.stored)
    const key = work && workKey(work)
    if (key === undefined) return undefined
    if (place.stance !== 'holding') return this.#aside.has(key) ? key : undefined
    if (this.#claimedWork.size < MOST_CLAIMED) this.#claimedWork.add(key)
    return undefined
  }

  #count({ stored }: Place, times: 1 | -1): void {
    this.#size += times
    this.#bytes += times * stored.bytes
  }

  #told(place: Place, passes: boolean): void {
    place.blocks += passes ? -1 : 1
    this.#show(place)
  }

  /** Puts it among those that can be taken, or away from them. */
  #show(place: Place): void {
    const { content } = place.entry
    const ready = place.stance === 'waiting' && place.blocks === 0 && content === 'fresh' && !this.#isTaken(place)
    if (ready === place.ready) return
    place.ready = ready
    if (ready) this.#ready.add(place)
    else this.#ready.delete(place)
  }

  #isTaken({ entry }: Place): boolean {
    return entry.chosen || entry.standing === 'beyond' || this.#reserved.has(entry)
  }
}

function newPlace(entry: Entry, stored: Stored, stance: Stance): Place {
  const { id, order, posting } = stored
  const wants = resourcesOf(posting)
  const dueAt = dueAtOf(stored)
  return { id, priority: posting.priority, order, entry, stored, stance, wants, dueAt, blocks: 0, ready: false }
}

/** A delay counts from the write that carries it. */
export function dueAtOf({ posting, writtenAt }: Stored): number {
  return posting.delay === undefined ? 0 : writtenAt + posting.delay
}

function wantsAny({ wants }: Place): boolean {
  return wants.exclusive.length + wants.shared.length > 0
}

function compareDue(a: Place, b: Place): number {
  return a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : compareIds(a, b)
}
