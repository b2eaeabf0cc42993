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

import type { StoredJob } from '../backend.ts'
import { isSuspect } from '../model/attempts.ts'
import { type ClaimOrderKey, compareClaimOrder, compareIds, type HasId } from '../model/claim-order.ts'
import type { JobEntry, QueueEntry, QueueState } from '../model/entry.ts'
import { type FlowReference, flowKey, toFlowReference } from '../model/known-work.ts'
import type { Posting } from '../model/posting.ts'
import { toResourceWants } from '../model/resources.ts'
import { pickAtRandom } from '../model/spread.ts'
import { type Blocker, ResourceLines } from './resource-lines.ts'
import { SortedList } from './sorted.ts'
import { Threshold } from './threshold.ts'

export interface TakeOptions {
  /** At most so many. */
  readonly max: number
  readonly accept: (posting: Posting) => boolean
  /** Whether this process runs a suspect already and must not take another. */
  readonly holdsSuspect: boolean
  /**
   * 1 takes strictly what comes first. With more, `max` are picked at random among the first `spread * max` of the priority
   * that comes first, so that processes that look at the same head do not all try the same jobs.
   */
  readonly spread: number
  /** From 0 up to 1. */
  readonly random?: () => number
}

/** Jobs of one flow that stand in line for resources. */
export interface WaitingFlow {
  readonly work: FlowReference
  /** Since when the first of them could be claimed if its resources were free, in milliseconds on the server's clock. */
  readonly since: number
  /** The first of them in claim order. */
  readonly first: JobEntry
}

const NO_KEYS: ReadonlySet<string> = new Set()
/** How many flows are noted: what others post must not fill the memory of one who asks for none of it. */
const MAX_CLAIMED_FLOWS = 1_000

export class ClaimQueue {
  readonly #readyEntries = new SortedList<QueueEntry, ClaimOrderKey>(compareClaimOrder)
  readonly #delayed = new SortedList<QueueEntry>(compareDue)
  readonly #lines = new ResourceLines((place, passes) => this.#onPasses(place, passes))
  /** Jobs whose posting nobody here has seen. What they want is not known, so those behind them wait that want anything. */
  readonly #unread = new SortedList<JobEntry, HasId>(compareIds)
  /** Everything that waits for resources, by id: an unread job has no place in claim order yet. */
  readonly #behindUnread = new Threshold<QueueEntry, HasId>(compareIds)
  /** Those that somebody here waits for: see {@link reserve}. */
  readonly #reserved = new Set<JobEntry>()
  /** Keys of the flows whose jobs are set aside: see {@link setAside}. */
  #aside: ReadonlySet<string> = new Set()
  /** Keys of the flows of which jobs with resources were claimed: see {@link claimedFlows}. */
  readonly #claimedFlows = new Set<string>()
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
  get delayedCount(): number {
    return this.#delayed.size
  }

  /** When the next delay is over, in milliseconds on the server's clock: call {@link advance} then. */
  get nextDue(): number | undefined {
    return this.#delayed.first?.dueAt
  }

  /** Whether a job may be waiting behind another that nobody has claimed. */
  get contended(): boolean {
    return this.#lines.contended || this.#aside.size > 0
  }

  /** Returns, by its key, the work of all jobs that stand in such lines. Looks at all lines. */
  contendingFlows(): Map<string, WaitingFlow> {
    const found = new Map<string, { work: FlowReference; since: number; first: QueueEntry }>()
    for (const place of this.#lines.contendingEntries()) {
      const work = toFlowReference(place.stored)
      if (!work) continue
      const since = Math.max(place.dueAt, place.stored.writtenAt)
      const key = flowKey(work)
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
    const changed = new Set<QueueEntry>()
    for (const place of this.#lines.waitingEntries()) {
      const work = toFlowReference(place.stored)
      const key = work && flowKey(work)
      if (key !== undefined && keys.has(key) !== this.#aside.has(key)) changed.add(place)
    }
    this.#aside = keys
    for (const { entry, state } of changed) this.#move(entry, state)
  }

  /** Returns the keys of the flows of which jobs with resources were claimed since the last call, here or elsewhere. */
  claimedFlows(): ReadonlySet<string> {
    if (this.#claimedFlows.size === 0) return NO_KEYS
    const claimed = new Set(this.#claimedFlows)
    this.#claimedFlows.clear()
    return claimed
  }

  /** To be called after anything about the entry has changed. Costs nothing where that makes no difference. */
  update(entry: JobEntry): void {
    if (entry.content === 'unread' && !entry.ended && entry.windowStatus !== 'outside') this.#unread.add(entry)
    // Whatever has a place was read before.
    else if (!entry.queueEntry && this.#unread.size > 0) this.#unread.delete(entry)
    const state = this.#queueStateOf(entry)
    if (entry.queueEntry && entry.queueEntry.state === state && entry.queueEntry.stored === entry.stored)
      this.#showEntry(entry.queueEntry)
    else this.#move(entry, state)
    this.#behindUnread.move(this.#unread.first ?? 'all', (place, passes) => this.#onPasses(place, passes))
  }

  /**
   * Until it is disposed the job is due, whatever its delay says to others, and is not taken but by {@link reserveFree}: others
   * in this process, who look at the same queue, leave it to whom it is reserved for.
   */
  reserve(entry: JobEntry): Disposable {
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
    for (let place = this.#delayed.first; place && place.dueAt <= now; place = this.#delayed.first) {
      this.#move(place.entry, this.#queueStateOf(place.entry))
      woken = true
    }
    return woken
  }

  /** The first that are claimable, in claim order. They count as being tried until {@link release}. */
  reserveNext(wanted: TakeOptions): QueueEntry[] {
    const { max, random = Math.random } = wanted
    const found = this.#findCandidates(wanted)
    const taken = found.length <= max ? found : pickAtRandom(found, { count: max, random }).sort(compareClaimOrder)
    // Not before all were looked at: what `accept` throws must leave nothing chosen.
    for (const place of taken) this.#reserve(place)
    return taken
  }

  /**
   * This very job, if it is unclaimed, known as it is now, and not being tried; also when it is blocked or not due. It
   * counts as being tried until {@link release}.
   */
  reserveEntry(entry: JobEntry): QueueEntry | undefined {
    const { queueEntry } = entry
    if (!queueEntry || queueEntry.state === 'claimed' || entry.content !== 'fresh' || entry.isReserved) return undefined
    this.#reserve(queueEntry)
    return queueEntry
  }

  /** This very job, if nothing that is known here speaks against claiming it. It counts as being tried, as with {@link reserveEntry}. */
  reserveFree(entry: JobEntry): QueueEntry | undefined {
    return entry.queueEntry?.state === 'waiting' && entry.queueEntry.blockerCount === 0
      ? this.reserveEntry(entry)
      : undefined
  }

  /** Returns whether there is anything to take. */
  hasClaimable(accept: (posting: Posting) => boolean): boolean {
    for (const place of this.#readyEntries) if (accept(place.stored.posting)) return true
    return false
  }

  release(places: readonly QueueEntry[]): void {
    for (const { entry } of places) {
      entry.isReserved = false
      if (entry.queueEntry) this.#showEntry(entry.queueEntry)
    }
  }

  /**
   * What keeps a due job from its resources: of the first resource that it cannot have, who holds it, else who stands first
   * in line. Where postings that nobody has read yet keep it waiting, the first of these (its content is `unread`), under
   * the name of a resource that it might want.
   */
  blockedBy({ queueEntry }: JobEntry): Blocker | undefined {
    if (!queueEntry?.blockerCount) return undefined
    const blocker = this.#lines.findBlocker(queueEntry)
    if (blocker) return blocker
    const { exclusive, shared } = queueEntry.resources
    const resource = exclusive[0] ?? shared[0]
    const entry = this.#unread.first
    return entry && resource !== undefined ? { resource, entry } : undefined
  }

  /** What there is to pick from: `max`, or more of the first priority where they are to be spread. */
  #findCandidates(wanted: TakeOptions): QueueEntry[] {
    const { max, accept, holdsSuspect, spread } = wanted
    const found: QueueEntry[] = []
    let suspects = holdsSuspect
    for (const place of this.#readyEntries) {
      const first = found[0] ?? place
      if (found.length >= (place.priority === first.priority ? Math.ceil(spread * max) : max)) break
      const { posting } = place.stored
      if ((suspects && isSuspect(posting)) || !accept(posting)) continue
      suspects ||= isSuspect(posting)
      found.push(place)
    }
    return found
  }

  #reserve(place: QueueEntry): void {
    place.entry.isReserved = true
    this.#showEntry(place)
  }

  #queueStateOf(entry: JobEntry): QueueState | undefined {
    const { stored, content } = entry
    if (!stored || entry.ended || entry.windowStatus === 'outside') return undefined
    // Whoever could read it has claimed it, with what it wanted when it was last readable here.
    if (entry.claimed) return 'claimed'
    if (content === 'unread' || content === 'unreadable') return undefined
    const due = entry.cancelRequested || dueTime(stored) <= this.#now || this.#reserved.has(entry)
    return due ? 'waiting' : 'delayed'
  }

  #move(entry: JobEntry, state: QueueState | undefined): void {
    const old = entry.queueEntry
    const place = entry.stored && state && newQueueEntry(entry, entry.stored, state)
    entry.queueEntry = place
    if (old) this.#leave(old)
    if (place) this.#enter(place)
    if (old) this.#lines.settle(old.resources)
    if (!place) return
    this.#lines.settle(place.resources)
    this.#showEntry(place)
  }

  #enter(place: QueueEntry): void {
    if (place.state !== 'claimed') this.#count(place, 1)
    if (place.state === 'delayed') {
      this.#delayed.add(place)
      return
    }
    this.#lines.enter(place, this.#setAsideGroup(place))
    if (place.state === 'waiting' && wantsResources(place) && !this.#behindUnread.add(place)) place.blockerCount += 1
  }

  #leave(place: QueueEntry): void {
    if (place.isReady) this.#readyEntries.delete(place)
    place.isReady = false
    if (place.state !== 'claimed') this.#count(place, -1)
    if (place.state === 'delayed') {
      this.#delayed.delete(place)
      return
    }
    this.#lines.leave(place)
    if (place.state === 'waiting' && wantsResources(place)) this.#behindUnread.delete(place)
  }

  /** Returns the group with which the place is set aside, if it is; notes of one that is claimed that its flow is known. */
  #setAsideGroup(place: QueueEntry): string | undefined {
    if (!this.contended || !wantsResources(place)) return undefined
    const work = toFlowReference(place.stored)
    const key = work && flowKey(work)
    if (key === undefined) return undefined
    if (place.state !== 'claimed') return this.#aside.has(key) ? key : undefined
    if (this.#claimedFlows.size < MAX_CLAIMED_FLOWS) this.#claimedFlows.add(key)
    return undefined
  }

  #count({ stored }: QueueEntry, times: 1 | -1): void {
    this.#size += times
    this.#bytes += times * stored.bytes
  }

  #onPasses(place: QueueEntry, passes: boolean): void {
    place.blockerCount += passes ? -1 : 1
    this.#showEntry(place)
  }

  /** Puts it among those that can be taken, or away from them. */
  #showEntry(place: QueueEntry): void {
    const { content } = place.entry
    const ready = place.state === 'waiting' && place.blockerCount === 0 && content === 'fresh' && !this.#isTaken(place)
    if (ready === place.isReady) return
    place.isReady = ready
    if (ready) this.#readyEntries.add(place)
    else this.#readyEntries.delete(place)
  }

  #isTaken({ entry }: QueueEntry): boolean {
    return entry.isReserved || entry.windowStatus === 'pinned' || this.#reserved.has(entry)
  }
}

function newQueueEntry(entry: JobEntry, stored: StoredJob, state: QueueState): QueueEntry {
  const { id, order, posting } = stored
  const wants = toResourceWants(posting)
  const dueAt = dueTime(stored)
  return {
    id,
    priority: posting.priority,
    order,
    entry,
    stored,
    state,
    resources: wants,
    dueAt,
    blockerCount: 0,
    isReady: false,
  }
}

/** A delay counts from the write that carries it. */
export function dueTime({ posting, writtenAt }: StoredJob): number {
  return posting.delay === undefined ? 0 : writtenAt + posting.delay
}

function wantsResources({ resources }: QueueEntry): boolean {
  return resources.exclusive.length + resources.shared.length > 0
}

function compareDue(a: QueueEntry, b: QueueEntry): number {
  return a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : compareIds(a, b)
}
