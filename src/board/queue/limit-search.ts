/**
 * Searches the jobs that wait for limits for those that may start now, in claim order. Counts the jobs that were chosen, so that it never
 * yields more of a key than there is room for.
 *
 * The groups of a fair pattern take turns, and count as one: their place in claim order is that of the job whose turn it is. So a job of
 * another key never waits for a job that was posted after it.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueueEntry } from '../model/entry.ts'
import {
  type BlockedKey,
  type ChosenOfKey,
  costOf,
  findBlocked,
  type GroupList,
  type KeyLine,
  type LimitGroup,
  runningOf,
} from './limit-groups.ts'
import { SortedList } from './sorted.ts'

export interface SearchOptions {
  readonly open: GroupList
  readonly now: number
  readonly keysOf: (place: QueueEntry) => readonly KeyLine[]
  /** Opens parked groups: `times` times as many as there is room for. Returns whether any was opened. */
  readonly openMore: (times: number) => boolean
  readonly park: (group: LimitGroup, line: KeyLine, until: number) => void
}

/** The next job of a group. */
interface Cursor extends ClaimOrderKey {
  readonly place: QueueEntry
  readonly group: LimitGroup
  readonly rest: Iterator<QueueEntry>
  /** Set for a group that takes turns: where the next job comes from. */
  readonly turns?: Turns
}

export class LimitSearch {
  readonly #options: SearchOptions
  readonly #chosen = new Map<KeyLine, ChosenOfKey>()
  readonly #full = new Map<LimitGroup, BlockedKey>()
  readonly #yielded = new Set<QueueEntry>()
  /** Keys with too few tokens for a job that this scan has visited. They keep their tokens for it, from the jobs behind it. */
  readonly #kept = new Set<KeyLine>()

  constructor(options: SearchOptions) {
    this.#options = options
  }

  /** Notes that a job was chosen, so that its slots and tokens are not free for later jobs of this search. */
  choose(place: QueueEntry): void {
    for (const line of this.#options.keysOf(place)) {
      const chosen = this.#chosen.get(line) ?? { count: 0, costMs: 0 }
      chosen.count += 1
      chosen.costMs += costOf(place.stored.posting, line) * (line.rule.rate?.intervalMs ?? 0)
      this.#chosen.set(line, chosen)
    }
  }

  /** Yields the jobs. The lines must not change before {@link end}. */
  *jobs(): Generator<QueueEntry, void, undefined> {
    this.#options.openMore(1)
    for (let times = 2; ; times *= 2) {
      yield* this.#scan()
      this.end()
      if (!this.#options.openMore(times)) return
    }
  }

  /** Ends the search, and parks the groups that have no room. */
  end(): void {
    for (const [group, { line, until }] of this.#full) this.#options.park(group, line, until)
    this.#full.clear()
  }

  *#scan(): Generator<QueueEntry, void, undefined> {
    this.#kept.clear()
    const cursors = new SortedList<Cursor, ClaimOrderKey>(compareClaimOrder)
    const patterns = new Set<string>()
    const groups = this.#options.open[Symbol.iterator]()
    let next = groups.next()
    while (true) {
      while (!next.done && isNotBehind(next.value.head, cursors.first)) {
        const cursor = this.#begin(next.value, patterns)
        if (cursor) cursors.add(cursor)
        next = groups.next()
      }
      const cursor = cursors.first
      if (!cursor) return
      cursors.delete(cursor)
      if (!this.#yielded.has(cursor.place)) {
        if (!cursor.turns && this.#isFull(cursor)) continue
        this.#yielded.add(cursor.place)
        yield cursor.place
      }
      const following = cursor.turns ? cursor.turns.take() : toCursor(cursor.group, cursor.rest)
      if (following) cursors.add(following)
    }
  }

  /** Returns the first job of a group, or of the groups with which it takes turns; undefined if this scan has begun those turns already. */
  #begin(group: LimitGroup, patterns: Set<string>): Cursor | undefined {
    const pattern = group.fairKey?.rule.fair
    const groups = this.#options.open.turnsOf(group)
    if (pattern === undefined || !groups) return toCursor(group, group.line[Symbol.iterator]())
    if (patterns.has(pattern)) return undefined
    patterns.add(pattern)
    const turns = new Turns(groups, {
      isFull: (cursor) => this.#isFull(cursor),
      isYielded: (place) => this.#yielded.has(place),
      chosenOf: (line) => this.#chosen.get(line)?.count ?? 0,
    })
    return turns.take()
  }

  /**
   * Returns whether the group has no room for this job. Then the jobs behind it in the group wait, too, and jobs of other groups must not
   * take the tokens for which it waits.
   */
  #isFull({ group, place }: Cursor): boolean {
    const { now } = this.#options
    const blocked = findBlocked(group, { now, place })
    if (blocked) this.#full.set(group, blocked)
    else if (group.keys.some((line) => this.#kept.has(line))) return true
    const first = blocked ?? findBlocked(group, { now, place, chosen: this.#chosen })
    if (first?.line.rule.rate) this.#kept.add(first.line)
    return first !== undefined
  }
}

interface TurnsOptions {
  readonly isFull: (cursor: Cursor) => boolean
  readonly isYielded: (place: QueueEntry) => boolean
  /** Returns the number of jobs of the key that this search has chosen. */
  readonly chosenOf: (line: KeyLine) => number
}

/** A group that waits for its turn, with the numbers by which it is sorted. */
interface Waiting {
  readonly cursor: Cursor
  readonly running: number
  readonly lastStart: number
}

/** The turns of the groups of one fair pattern in one scan. A group is visited only when its turn may have come. */
class Turns {
  readonly #options: TurnsOptions
  readonly #groups: Iterator<LimitGroup>
  #next: IteratorResult<LimitGroup>
  readonly #waiting = new SortedList<Waiting>(compareWaiting)
  /** The job of the last turn. Its group is sorted again at the next turn, when it is known whether the job was chosen. */
  #last: Cursor | undefined

  constructor(groups: Iterable<LimitGroup>, options: TurnsOptions) {
    this.#options = options
    this.#groups = groups[Symbol.iterator]()
    this.#next = this.#groups.next()
  }

  /** Returns the next job of the group whose turn it is; undefined if there is none. */
  take(): Cursor | undefined {
    this.#requeueLast()
    while (true) {
      this.#pull()
      const { first } = this.#waiting
      if (!first) return undefined
      this.#waiting.delete(first)
      const { cursor } = first
      if (this.#options.isYielded(cursor.place)) this.#add(toCursor(cursor.group, cursor.rest))
      else if (!this.#options.isFull(cursor)) {
        this.#last = cursor
        return { ...cursor, turns: this }
      }
    }
  }

  #requeueLast(): void {
    const last = this.#last
    if (!last) return
    this.#last = undefined
    // Other groups with the same key are sorted by the same number of running jobs, which may have changed.
    for (const waiting of [...this.#waiting].filter(({ cursor }) => cursor.group.fairKey === last.group.fairKey)) {
      this.#waiting.delete(waiting)
      this.#add(waiting.cursor)
    }
    this.#add(toCursor(last.group, last.rest))
  }

  /**
   * Adds the groups that may come before the first one that waits. The groups are sorted without the jobs that this search has chosen, so
   * their numbers can only grow.
   */
  #pull(): void {
    while (!this.#next.done) {
      const group = this.#next.value
      const { first } = this.#waiting
      const cursor = toCursor(group, group.line[Symbol.iterator]())
      const key = group.fairKey
      const least = cursor && key && { cursor, running: runningOf(key), lastStart: key.lastStart }
      if (first && least && compareWaiting(first, least) < 0) return
      this.#next = this.#groups.next()
      this.#add(cursor)
    }
  }

  #add(cursor: Cursor | undefined): void {
    const key = cursor?.group.fairKey
    if (!cursor || !key) return
    this.#waiting.add({ cursor, running: runningOf(key) + this.#options.chosenOf(key), lastStart: key.lastStart })
  }
}

function compareWaiting(a: Waiting, b: Waiting): number {
  if (a.cursor.priority !== b.cursor.priority) return compareClaimOrder(a.cursor, b.cursor)
  return a.running - b.running || a.lastStart - b.lastStart || compareClaimOrder(a.cursor, b.cursor)
}

function toCursor(group: LimitGroup, rest: Iterator<QueueEntry>): Cursor | undefined {
  const { done, value: place } = rest.next()
  return done ? undefined : { id: place.id, priority: place.priority, order: place.order, place, group, rest }
}

function isNotBehind(head: ClaimOrderKey | undefined, first: ClaimOrderKey | undefined): boolean {
  return head === undefined || first === undefined || compareClaimOrder(head, first) <= 0
}
