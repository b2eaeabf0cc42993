/**
 * Finds which of the jobs that wait for limits may start now, in claim order. It counts the jobs that were chosen, so that it
 * never yields more jobs of a key than the key has room for.
 *
 * The groups of a fair pattern take turns, and count as one: their place in claim order is the place of the job whose turn it is. So a job of
 * another key never waits for a job that was posted after it.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueuePlace } from '../model/entry.ts'
import type { QueueFilter } from '../model/queues.ts'
import { type Contender, FairTurns, type GroupList, type KeyLine, type LimitGroup } from './limit-groups.ts'
import { type BlockedKey, type ChosenJobs, type ChosenOfKey, costOf, findBlocked, isUsedUp } from './limit-room.ts'
import { type Cursor, isNotBehind, Turns, toCursor } from './limit-turns.ts'
import { SortedList } from './sorted.ts'

export interface SearchOptions {
  readonly open: GroupList
  readonly now: number
  /** Absent if the jobs of all queues are wanted. */
  readonly isWanted?: QueueFilter | undefined
  readonly keysOf: (place: QueuePlace) => readonly KeyLine[]
  /**
   * Opens parked groups: `times` as many as there is room for, and none of a key whose room the chosen jobs use up. Returns whether any was
   * opened.
   */
  readonly openMore: (times: number, chosen: ChosenJobs) => boolean
  /** Parks a group. @param options.isTaken whether the key has no room only because of chosen jobs, which may be refused */
  readonly park: (group: LimitGroup, blocked: BlockedKey, options: { readonly isTaken: boolean }) => void
}

export class LimitSearch {
  readonly #options: SearchOptions
  readonly #chosen = new Map<KeyLine, ChosenOfKey>()
  /** The groups without room. */
  readonly #full = new Map<LimitGroup, BlockedKey>()
  /** The groups that have no room only because of the chosen jobs. */
  readonly #taken = new Map<LimitGroup, BlockedKey>()
  readonly #yielded = new Set<QueuePlace>()
  /** Keys with too few tokens for a job that this scan has visited: they keep their tokens for it, and the jobs behind it get none. */
  readonly #kept = new Set<KeyLine>()

  constructor(options: SearchOptions) {
    this.#options = options
  }

  /** Notes that a job was chosen, so that its slots and tokens are not free for later jobs of this search. */
  choose(place: QueuePlace): void {
    for (const line of this.#options.keysOf(place)) {
      const chosen = this.#chosen.get(line) ?? { count: 0, costMs: 0 }
      chosen.count += 1
      chosen.costMs += costOf(place.stored.posting, line) * (line.rule.rate?.intervalMs ?? 0)
      this.#chosen.set(line, chosen)
    }
  }

  /** Yields the jobs that may start now. The lines must not change before {@link end}. */
  *jobs(): Generator<QueuePlace, void, undefined> {
    this.#options.openMore(1, this.#chosen)
    for (let times = 2; ; times *= 2) {
      yield* this.#scan()
      this.#parkFull()
      if (!this.#options.openMore(times, this.#chosen)) return
    }
  }

  /** Parks the groups without room, so that the next search need not visit all of them again. */
  end(): void {
    this.#parkFull()
    // Only at the end: otherwise this search would open and park the same groups again and again.
    for (const [group, blocked] of this.#taken) this.#options.park(group, blocked, { isTaken: true })
    this.#taken.clear()
  }

  #parkFull(): void {
    for (const [group, blocked] of this.#full) this.#options.park(group, blocked, { isTaken: false })
    this.#full.clear()
  }

  *#scan(): Generator<QueuePlace, void, undefined> {
    this.#kept.clear()
    const cursors = new SortedList<Cursor, ClaimOrderKey>(compareClaimOrder)
    const contenders = this.#options.open[Symbol.iterator]()
    let next = contenders.next()
    while (true) {
      while (!next.done && isNotBehind(next.value.head, cursors.first)) {
        const cursor = this.#begin(next.value)
        if (cursor) cursors.add(cursor)
        next = contenders.next()
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

  /** Returns the first job of a group, or the job of a fair pattern whose turn it is. */
  #begin(contender: Contender): Cursor | undefined {
    const { now, isWanted } = this.#options
    if (!(contender instanceof FairTurns))
      return isWanted?.(contender.queue) === false ? undefined : toCursor(contender, contender.line[Symbol.iterator]())
    const turns = new Turns(contender, {
      isWanted,
      isFull: (cursor) => this.#isFull(cursor),
      isYielded: (place) => this.#yielded.has(place),
      chosenOf: (line) => this.#chosen.get(line)?.count ?? 0,
      isUsedUp: (line) => isUsedUp(line, { now, chosen: this.#chosen }),
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
    const taken = blocked ? undefined : findBlocked(group, { now, place, chosen: this.#chosen })
    if (taken) this.#taken.set(group, taken)
    const first = blocked ?? taken
    if (first?.line.rule.rate) this.#kept.add(first.line)
    return first !== undefined
  }
}
