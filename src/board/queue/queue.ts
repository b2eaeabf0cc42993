/**
 * The claim queue: it computes incrementally, from the live view, which jobs can be claimed next. It only proposes jobs; the
 * backend's transaction decides.
 *
 * A job can be claimed when all of these conditions hold:
 *
 * - it is on the board, in the view's window and unclaimed, its posting is current, and this process is not trying to claim it;
 * - it is due: its delay is over, or a cancel was requested, or it is reserved;
 * - no claimed job holds a resource in conflict with it, and no due job before it in claim order wants one;
 * - if it wants any resource: every posting before it has been read, and so is known not to want the same;
 * - each of its limits has a free slot and enough tokens, as far as is known here (`limit-lines.ts`).
 *
 * A job keeps its place in the lines of its resources while a claim is being tried, while its posting is read again, and while
 * no caller in this process accepts it. So the state of this process does not change the order of jobs.
 *
 * A job whose flow no conductor has known for long is **set aside**: no other job waits for it, until a conductor knows the
 * flow again. It can still be claimed. `view/unaccepted-flows.ts` determines these flows.
 *
 * In this folder an *entry* (`JobEntry`) is a job in the view, and a *place* (`QueuePlace`) is its place in the queue, which is replaced
 * when its state changes.
 *
 * **Costs.** The claimable jobs are in a sorted list of their own, so choosing never visits the other jobs. A change costs as much
 * as it affects: its own job, and the jobs that it blocks or unblocks.
 */
import { compareNumbers } from '../../core/time.ts'
import type { StoredJob } from '../contract/index.ts'
import { compareClaimOrder, compareIds, type HasId, pickAtRandom } from '../model/claim-order.ts'
import type { JobEntry, QueuePlace, QueueState } from '../model/entry.ts'
import { type FlowReference, flowKey, toFlowReference } from '../model/flow-reference.ts'
import type { LimitRules } from '../model/limits.ts'
import type { Posting } from '../model/posting/posting.ts'
import { toKeptBytes } from '../model/posting/posting-codec.ts'
import { type QueueFilter, queueOf } from '../model/queues.ts'
import { toResourceWants } from '../model/resources.ts'
import { ExpiringJobs } from './expiring-jobs.ts'
import { type KeptTokens, type LimitBlocker, LimitLines } from './limit-lines.ts'
import type { LimitedKey } from './limited-keys.ts'
import type { QueueTurns } from './queue-turns.ts'
import { mergeByClaimOrder, ReadyJobs } from './ready-jobs.ts'
import { type Blocker, ResourceLines } from './resource-lines.ts'
import type { QueueChoice } from './served-queues.ts'
import { SortedList } from './sorted.ts'
import { needsSuspectPlace, type SuspectPlace } from './suspect-place.ts'
import { Threshold } from './threshold.ts'

export interface TakeOptions {
  /** The maximum number of jobs. */
  readonly max: number
  readonly accept: (posting: Posting) => boolean
  /** The queues of the jobs, and the order between them; all queues by default, in claim order. */
  readonly queues?: QueueTurns | undefined
  /** The queues that have more jobs on the board than in the view; none by default. */
  readonly continued?: readonly string[]
  /** The place for suspects of this process: while it is taken, no job that needs it is chosen. */
  readonly suspects: Pick<SuspectPlace, 'isFree' | 'noteWaiting'>
  /**
   * The spread of the choice: with 1, the first jobs in claim order are chosen; with more, `max` jobs are chosen at random among the first `spread * max` of
   * the highest priority, so that processes with the same view do not all try the same jobs.
   */
  readonly spread: number
  /** Returns random numbers from 0 to below 1. */
  readonly random?: () => number
}

/** Jobs of one flow that wait in line for resources. */
export interface WaitingFlow {
  readonly work: FlowReference
  /** The time since when one of them could be claimed if its resources were free, in milliseconds on the server's clock. */
  readonly since: number
  /** The first job in claim order. */
  readonly first: JobEntry
}

const NO_KEYS: ReadonlySet<string> = new Set()
/** The maximum number of noted flows: other programs' postings must not fill the memory of a process that never reads the notes. */
const MAX_CLAIMED_FLOWS = 1_000

export class ClaimQueue {
  readonly #ready = new ReadyJobs()
  readonly #delayed = new SortedList<QueuePlace>(compareDue)
  readonly #lines = new ResourceLines((place, passes) => this.#onPasses(place, passes))
  readonly #limits = new LimitLines()
  /** The unclaimed jobs that expire if they are not started. An expired job keeps its place until it is in the trash. */
  readonly expiring = new ExpiringJobs()
  /** Jobs whose posting is unread here. Their resources are unknown, so later jobs that want any resource wait for them. */
  readonly #unread = new SortedList<JobEntry, HasId>(compareIds)
  /** The jobs that wait for resources, by id, because an unread job has no place in claim order yet. */
  readonly #behindUnread = new Threshold<QueuePlace, HasId>(compareIds)
  /** The jobs that are reserved for a caller: see {@link reserve}. */
  readonly #reserved = new Set<JobEntry>()
  /** The jobs that are being claimed: see {@link reserveNext}. */
  readonly #chosen = new Set<QueuePlace>()
  /** Keys of the flows whose jobs are set aside: see {@link setAside}. */
  #aside: ReadonlySet<string> = new Set()
  /** Keys of the flows whose jobs with resources were claimed: see {@link claimedFlows}. */
  readonly #claimedFlows = new Set<string>()
  #isServed: QueueFilter | undefined
  /** The number of unclaimed jobs that are due, by their queues. */
  readonly #waiting = new Map<string, number>()
  #now = 0
  #size = 0
  #bytes = 0
  #keptBytes = 0

  /** The number of unclaimed jobs in the view, claimable or not. */
  get size(): number {
    return this.#size
  }

  /** Returns the number of unclaimed jobs of a queue in the view that are due. */
  countWaiting(queue: string): number {
    return this.#waiting.get(queue) ?? 0
  }

  /** The memory of their postings in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** The memory of the postings of all jobs in the queue, claimed ones included, in bytes. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** The number of delayed jobs in the view. */
  get delayedCount(): number {
    return this.#delayed.size
  }

  /** Whether a fair limit is set, whose keys take turns. */
  get isFair(): boolean {
    return this.#limits.isFair
  }

  /**
   * The time at which the next delay is over, a limit may permit the next job to start, or the next job expires, in milliseconds on the
   * server's clock: call {@link advance} then.
   */
  get nextDue(): number | undefined {
    const never = Number.POSITIVE_INFINITY
    const next = Math.min(
      this.#delayed.first?.dueAt ?? never,
      this.#limits.nextWake ?? never,
      this.expiring.next ?? never,
    )
    return next === never ? undefined : next
  }

  /** Whether a job may be waiting behind another unclaimed job. */
  get contended(): boolean {
    return this.#lines.contended || this.#aside.size > 0
  }

  /** Returns the flows of all jobs in the lines where an unclaimed job may wait for another, by their keys. Visits all lines. */
  contendingFlows(): Map<string, WaitingFlow> {
    const found = new Map<string, { work: FlowReference; since: number; first: QueuePlace }>()
    for (const place of this.#lines.contendingEntries()) {
      const work = toFlowReference(place.stored.posting)
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

  /** Sets aside the jobs of the flows with these keys, and of no other flows. */
  setAside(keys: ReadonlySet<string>): void {
    const changed = new Set<QueuePlace>()
    for (const place of this.#lines.waitingEntries()) {
      const work = toFlowReference(place.stored.posting)
      const key = work && flowKey(work)
      if (key !== undefined && keys.has(key) !== this.#aside.has(key)) changed.add(place)
    }
    this.#aside = keys
    for (const { entry, state } of changed) this.#move(entry, state)
  }

  /**
   * Sets the queues whose jobs this process claims; undefined for all. No other job waits for a job of another queue, which this process may not
   * even know.
   *
   * @param entries all jobs of the view
   */
  setServed(isServed: QueueFilter | undefined, entries: Iterable<JobEntry>): void {
    this.#isServed = isServed
    for (const entry of entries)
      if (entry.queuePlace && wantsResources(entry.queuePlace)) this.#move(entry, entry.queuePlace.state)
  }

  /** Sets the limits of all keys. @param entries all jobs of the view */
  setLimits(rules: LimitRules, entries: Iterable<JobEntry>): void {
    this.#limits.setRules(rules)
    for (const entry of entries) if (entry.queuePlace) this.#move(entry, entry.queuePlace.state)
  }

  /** Notes the arrival time of a key, from the answer to a claim. */
  noteArrival(key: string, arrivalMs: number): void {
    this.#limits.noteArrival(key, arrivalMs)
  }

  /** Notes that a claim was refused because of a limit, and that the time from which it permits the claim is not known. */
  noteLimitReached(key: string): void {
    this.#limits.noteRefused(key, this.#now)
  }

  /** Stops counting the slots and tokens of jobs whose claims were tried: by now they are taken, or free. */
  endTrials(places: readonly QueuePlace[]): void {
    for (const place of places) this.#limits.unreserve(place)
  }

  /** Returns the keys of limits for which jobs have begun to wait since the last call. */
  takeLimited(): readonly LimitedKey[] {
    return this.#limits.limited.take()
  }

  /** Returns the limit for which a due job waits; undefined if it waits for none. */
  limitOf({ queuePlace }: JobEntry): LimitBlocker | undefined {
    return queuePlace?.state === 'waiting' ? this.#limits.blockerOf(queuePlace, this.#now) : undefined
  }

  /** Returns the earlier job for which a limit keeps its tokens from a due job; undefined if there is none. */
  keptFor({ queuePlace }: JobEntry): KeptTokens | undefined {
    return queuePlace?.state === 'waiting' ? this.#limits.keptFor(queuePlace, this.#now) : undefined
  }

  /** Returns the keys of the flows whose jobs with resources were claimed since the last call, here or elsewhere. */
  claimedFlows(): ReadonlySet<string> {
    if (this.#claimedFlows.size === 0) return NO_KEYS
    const claimed = new Set(this.#claimedFlows)
    this.#claimedFlows.clear()
    return claimed
  }

  /** Updates the queue after a change of the entry. Costs nothing if the change does not affect the queue. */
  update(entry: JobEntry): void {
    if (entry.content === 'unread' && !entry.ended && entry.windowStatus !== 'outside') this.#unread.add(entry)
    // A queued job always has its posting loaded.
    else if (!entry.queuePlace && this.#unread.size > 0) this.#unread.delete(entry)
    const state = this.#queueStateOf(entry)
    const known = entry.queuePlace
    const isSame = known && known.state === state && known.stored === entry.stored
    if (isSame && !this.#passesStops(known)) this.#showEntry(known)
    else this.#move(entry, state)
    this.#behindUnread.move(this.#unread.first ?? 'all', this.#onPasses)
  }

  /** Returns whether the job waits for a key that is stopped, and was cancelled since: see `limit-lines.ts`. */
  #passesStops(place: QueuePlace): boolean {
    return place.state === 'waiting' && place.entry.cancelRequested && this.#limits.isStopped(place)
  }

  /**
   * Reserves the job until the result is disposed: it is due in spite of its delay, and only {@link reserveFree} chooses it, not
   * other callers of the same queue.
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
   * Applies the time: delayed jobs become due, keys of limits may have room again, jobs expire. If the clock is set back, due jobs stay due
   * until their next update.
   *
   * @param now the time in milliseconds on the server's clock
   * @returns whether any job has become due, or may be permitted by its limits now
   */
  advance(now: number): boolean {
    this.#now = now
    this.expiring.advance(now)
    let woken = this.#limits.advance(now)
    for (let place = this.#delayed.first; place && place.dueAt <= now; place = this.#delayed.first) {
      this.#move(place.entry, this.#queueStateOf(place.entry))
      woken = true
    }
    return woken
  }

  /** Whether no job can be claimed now, as is known without a search. */
  get hasNoneReady(): boolean {
    return this.#limits.isEmpty && this.#ready.isEmpty
  }

  /** Chooses the first claimable jobs and returns them in claim order. They are not chosen again until {@link unreserve}. */
  reserveNext(wanted: TakeOptions): QueuePlace[] {
    if (wanted.queues) return this.#reserveInQueues(wanted, wanted.queues)
    const taken = this.#choose(wanted)
    // Jobs are reserved only after all were examined: if `accept` throws, no job may stay reserved.
    for (const place of taken) this.#reserve(place)
    return taken
  }

  /** Chooses up to `max` jobs of the queues that are wanted: the first ones, or some at random with a spread above 1. */
  #choose(wanted: TakeOptions, isWanted?: QueueFilter): QueuePlace[] {
    const { max, random = Math.random } = wanted
    const found = this.#findCandidates(wanted, isWanted)
    return found.length <= max ? found : pickAtRandom(found, { count: max, random }).sort(compareClaimOrder)
  }

  /**
   * Chooses jobs of served queues, and reserves them: of the first queue that has some, or one by one as the weights of the queues decide. Ends early at a
   * queue whose next jobs are not in the view yet ({@link #isDry}): otherwise jobs of a later queue would overtake them.
   */
  #reserveInQueues(wanted: TakeOptions, turns: QueueTurns): QueuePlace[] {
    const { choice } = turns
    const taken: QueuePlace[] = []
    const reserved: number[] = []
    const reserveOf = (index: number, max: number) => {
      const suspects = this.#suspectsBeside(taken, wanted)
      const chosen = this.#choose({ ...wanted, max, suspects }, (queue) => choice.indexOf(queue) === index)
      for (const each of chosen) this.#reserve(each)
      taken.push(...chosen)
      reserved.push(...chosen.map(() => index))
      return chosen.length > 0
    }
    try {
      if (choice.isWeighted) {
        let before: number
        do {
          before = taken.length
          turns.order(reserved).some((index) => reserveOf(index, 1) || this.#isDry(index, wanted, choice))
        } while (taken.length > before && taken.length < wanted.max)
      } else {
        for (const index of choice.entries.keys()) {
          reserveOf(index, wanted.max - taken.length)
          if (taken.length >= wanted.max || this.#isDry(index, wanted, choice)) break
        }
      }
    } catch (error) {
      this.unreserve(taken)
      throw error
    }
    return taken
  }

  /**
   * Returns whether all jobs of the served queue that are in the view are being claimed, and the board has more: they are behind the end of the window,
   * or their postings are being read.
   */
  #isDry(index: number, { continued = [] }: Pick<TakeOptions, 'continued'>, choice: QueueChoice): boolean {
    if (continued.length === 0 && this.#unread.size === 0) return false
    const isOwn = (queue: string) => choice.indexOf(queue) === index
    let free = 0
    for (const [queue, count] of this.#waiting) if (isOwn(queue)) free += count
    for (const { stored, state } of this.#chosen) if (state === 'waiting' && isOwn(queueOf(stored.posting))) free -= 1
    if (free > 0) return false
    if (continued.some(isOwn)) return true
    for (const { queueKey } of this.#unread)
      if (queueKey && queueKey.dueAt <= this.#now && isOwn(queueOf(queueKey))) return true
    return false
  }

  /** Returns the place for suspects as it is once the jobs were chosen that are taken. */
  #suspectsBeside(taken: readonly QueuePlace[], { suspects }: Pick<TakeOptions, 'suspects'>): TakeOptions['suspects'] {
    const isTaken = taken.some(({ stored, entry }) =>
      needsSuspectPlace(stored.posting, { isCancelled: entry.cancelRequested }),
    )
    return isTaken ? { isFree: false, noteWaiting: (entry) => suspects.noteWaiting(entry) } : suspects
  }

  /**
   * Chooses the given job if it is unclaimed, its posting is current, and no claim of it is being tried, even if it is blocked or
   * not due. It is not chosen again until {@link unreserve}.
   */
  reserveEntry(entry: JobEntry): QueuePlace | undefined {
    const { queuePlace } = entry
    if (!queuePlace || queuePlace.state === 'claimed' || entry.content !== 'fresh' || entry.isReserved) return undefined
    this.#reserve(queuePlace)
    return queuePlace
  }

  /**
   * Chooses the given job as {@link reserveEntry} does, if it is due and nothing blocks it. If it waits for a limit until a known time,
   * {@link nextDue} is no later.
   */
  reserveFree(entry: JobEntry): QueuePlace | undefined {
    const { queuePlace } = entry
    const isFree = queuePlace?.state === 'waiting' && queuePlace.blockerCount === 0
    return isFree && !this.#limits.awaitRoom(queuePlace, this.#now) ? this.reserveEntry(entry) : undefined
  }

  /**
   * Returns whether {@link reserveNext} would choose a job now. The two must agree: a conductor of several boards calls one after the other, and if this
   * returned true while `reserveNext` chooses none, it would repeat both for ever, without a turn of the event loop in between.
   */
  hasClaimable(wanted: Pick<TakeOptions, 'accept' | 'suspects' | 'queues' | 'continued'>): boolean {
    const { queues: turns } = wanted
    const one = { ...wanted, max: 1, spread: 1 }
    if (!turns) return this.#findCandidates(one).length > 0
    const { choice } = turns
    // Most callers find nothing, and one search of all their queues says so.
    if (this.#findCandidates(one, (queue) => choice.includes(queue)).length === 0) return false
    for (const index of choice.isWeighted ? turns.order([]) : choice.entries.keys()) {
      if (this.#findCandidates(one, (queue) => choice.indexOf(queue) === index).length > 0) return true
      if (this.#isDry(index, wanted, choice)) return false
    }
    return false
  }

  unreserve(places: readonly QueuePlace[]): void {
    for (const place of places) {
      const { entry } = place
      entry.isReserved = false
      this.#chosen.delete(place)
      this.#limits.unreserve(place)
      if (entry.queuePlace) this.#showEntry(entry.queuePlace)
    }
  }

  /**
   * Returns the job that blocks a due job: the holder of the first resource that is not available, else the first in its line.
   * Where unread postings block the job, returns the first of them (its content is `unread`) with the name of one resource, which
   * it may want.
   */
  blockedBy({ queuePlace }: JobEntry): Blocker | undefined {
    if (!queuePlace?.blockerCount) return undefined
    const blocker = this.#lines.findBlocker(queuePlace)
    if (blocker) return blocker
    const { exclusive, shared } = queuePlace.resources
    const resource = exclusive[0] ?? shared[0]
    const entry = this.#unread.first
    return entry && resource !== undefined ? { resource, entry } : undefined
  }

  /** Returns the jobs to choose from: `max`, or more of the first priority with a spread above 1. */
  #findCandidates(wanted: TakeOptions, isWanted?: QueueFilter): QueuePlace[] {
    const { max, accept, suspects, spread } = wanted
    const found: QueuePlace[] = []
    let isPlaceFree = suspects.isFree
    const search = this.#limits.isEmpty ? undefined : this.#limits.search({ now: this.#now, isWanted })
    const ready = this.#ready.inOrder(isWanted)
    const entries = search ? mergeByClaimOrder(ready, search.jobs()) : ready
    for (const place of entries) {
      const first = found[0] ?? place
      if (found.length >= (place.priority === first.priority ? Math.ceil(spread * max) : max)) break
      const { posting } = place.stored
      if (!accept(posting)) continue
      if (needsSuspectPlace(posting, { isCancelled: place.entry.cancelRequested })) {
        if (!isPlaceFree) {
          suspects.noteWaiting(place.entry)
          continue
        }
        isPlaceFree = false
      }
      found.push(place)
      // The search for a further place, which is not needed, would visit all groups that have no room beside the chosen jobs.
      if (found.length >= Math.ceil(spread * max)) break
      search?.choose(place)
    }
    search?.end()
    return found
  }

  #reserve(place: QueuePlace): void {
    place.entry.isReserved = true
    this.#chosen.add(place)
    this.#limits.reserve(place)
    this.#showEntry(place)
  }

  #queueStateOf(entry: JobEntry): QueueState | undefined {
    const { stored, content } = entry
    if (!stored || entry.ended || entry.windowStatus === 'outside') return undefined
    // A claimed job stays in the queue even if its posting is unreadable here: it holds the resources that were last read.
    if (entry.claimed) return 'claimed'
    if (content === 'unread' || content === 'unreadable') return undefined
    const due = entry.cancelRequested || dueTime(stored) <= this.#now || this.#reserved.has(entry)
    return due ? 'waiting' : 'delayed'
  }

  #move(entry: JobEntry, state: QueueState | undefined): void {
    const old = entry.queuePlace
    const place = entry.stored && state && newQueuePlace(entry, entry.stored, state)
    if (place) this.#limits.join(place)
    entry.queuePlace = place
    if (old) this.#leave(old)
    if (old) this.#limits.quit(old)
    if (place) this.#enter(place)
    if (old) this.#lines.settle(old.resources)
    if (!place) return
    this.#lines.settle(place.resources)
    this.#showEntry(place)
  }

  #enter(place: QueuePlace): void {
    this.#keptBytes += toKeptBytes(place.stored)
    if (place.state === 'claimed') this.#limits.occupy(place)
    else {
      this.#count(place, 1)
      this.expiring.add(place)
    }
    if (place.state === 'delayed') {
      this.#delayed.add(place)
      return
    }
    this.#lines.enter(place, this.#setAsideGroup(place))
    if (place.state === 'waiting' && wantsResources(place) && !this.#behindUnread.add(place)) place.blockerCount += 1
  }

  #leave(place: QueuePlace): void {
    this.#keptBytes -= toKeptBytes(place.stored)
    this.#setReady(place, { isReady: false })
    this.#chosen.delete(place)
    this.#limits.unreserve(place)
    if (place.state === 'claimed') this.#limits.free(place)
    else {
      this.#count(place, -1)
      this.expiring.delete(place)
    }
    if (place.state === 'delayed') {
      this.#delayed.delete(place)
      return
    }
    this.#lines.leave(place)
    if (place.state === 'waiting' && wantsResources(place)) this.#behindUnread.delete(place)
  }

  /** Returns the group with which the job is set aside; undefined if it is not. Notes the flow of a claimed job as known. */
  #setAsideGroup(place: QueuePlace): string | undefined {
    if (!wantsResources(place)) return undefined
    const queue = queueOf(place.stored.posting)
    if (place.state !== 'claimed' && this.#isServed?.(queue) === false) return `queue/${queue}`
    if (!this.contended) return undefined
    const work = toFlowReference(place.stored.posting)
    const key = work && flowKey(work)
    if (key === undefined) return undefined
    if (place.state !== 'claimed') return this.#aside.has(key) ? key : undefined
    if (this.#claimedFlows.size < MAX_CLAIMED_FLOWS) this.#claimedFlows.add(key)
    return undefined
  }

  #count({ stored, state }: QueuePlace, times: 1 | -1): void {
    this.#size += times
    this.#bytes += times * toKeptBytes(stored)
    if (state !== 'waiting') return
    const queue = queueOf(stored.posting)
    this.#waiting.set(queue, (this.#waiting.get(queue) ?? 0) + times)
    if (this.#waiting.get(queue) === 0) this.#waiting.delete(queue)
  }

  /** A property, because {@link update} passes it for every change. */
  readonly #onPasses = (place: QueuePlace, passes: boolean): void => {
    place.blockerCount += passes ? -1 : 1
    this.#showEntry(place)
  }

  /** Adds the job to the claimable ones, or removes it, as its state requires. */
  #showEntry(place: QueuePlace): void {
    const { content } = place.entry
    const ready = place.state === 'waiting' && place.blockerCount === 0 && content === 'fresh' && !this.#isTaken(place)
    this.#setReady(place, { isReady: ready })
  }

  #setReady(place: QueuePlace, { isReady }: { readonly isReady: boolean }): void {
    if (isReady === place.isReady) return
    place.isReady = isReady
    if (this.#limits.has(place)) this.#limits.show(place, { isReady })
    else if (isReady) this.#ready.add(place)
    else this.#ready.delete(place)
  }

  #isTaken({ entry }: QueuePlace): boolean {
    return entry.isReserved || entry.windowStatus === 'pinned' || this.#reserved.has(entry)
  }
}

function newQueuePlace(entry: JobEntry, stored: StoredJob, state: QueueState): QueuePlace {
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

/** Returns the due time: a delay counts from the write that contains it. It is infinite for a job that waits for others. */
export function dueTime({ posting, writtenAt, waits }: StoredJob): number {
  if (waits) return Number.POSITIVE_INFINITY
  return posting.delay === undefined ? 0 : writtenAt + posting.delay
}

function wantsResources({ resources }: QueuePlace): boolean {
  return resources.exclusive.length + resources.shared.length > 0
}

function compareDue(a: QueuePlace, b: QueuePlace): number {
  return compareNumbers(a.dueAt, b.dueAt) || compareIds(a, b)
}
