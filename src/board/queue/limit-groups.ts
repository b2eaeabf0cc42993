/**
 * The jobs that wait for limits, in groups: jobs with the same limited keys may start together, or none of them. `limit-lines.ts` says how
 * groups are opened and parked.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueueEntry } from '../model/entry.ts'
import type { LimitRule } from '../model/limits.ts'
import { SortedList } from './sorted.ts'

/** The jobs with the same limited keys. */
export interface LimitGroup {
  readonly id: string
  readonly keys: readonly KeyLine[]
  readonly line: SortedList<QueueEntry, ClaimOrderKey>
  /** The number of entries of the queue that belong to the group, claimable or not. */
  members: number
  /** The place of its first entry by which the group is sorted where it is; undefined while it is in no list. */
  head: ClaimOrderKey | undefined
  parkedUnder: KeyLine | undefined
  /**
   * The key of a fair pattern by whose running jobs the group takes turns with others; undefined if there is none. It and its pattern stay
   * while the group is in a list.
   */
  fairKey: KeyLine | undefined
}

/** A key for which something is set. */
export interface KeyLine {
  readonly key: string
  rule: LimitRule
  readonly parked: GroupList
  readonly groups: Set<LimitGroup>
  /** The number of claimed jobs. */
  used: number
  /** Greater for a key of which a job has started later, as far as this process knows; 0 if none has. */
  lastStart: number
  /** The groups that are being opened: each may start a job before the next one of the key is opened. */
  opening: number
  /** The turns in which the key has a place by its counts. It is taken out of them while these change. */
  readonly turns: Set<FairTurns>
  /** The jobs that this process tries to claim, and the tokens that they take. The interval of a token may change while they are tried. */
  reserved: number
  reservedTokens: number
  /** The newest known arrival time: see `model/limits.ts`. */
  arrivalMs: number
  refusedUntil: number
  /** The time at which parked groups are looked at again. */
  wakeAt: number
}

/** What has a place in claim order: a group, or all groups of a fair pattern. */
export type Contender = LimitGroup | FairTurns

/**
 * Groups in the claim order of their first jobs. The groups of a fair pattern take turns, and have one place together: that of the first of
 * their jobs.
 */
export class GroupList implements Iterable<Contender> {
  readonly #contenders = new SortedList<Contender>(compareHeads)
  readonly #byPattern = new Map<string, FairTurns>()

  /** The number of groups and fair patterns: 0 if the list has no group. */
  get size(): number {
    return this.#contenders.size
  }

  /** The group that goes first. */
  get first(): LimitGroup | undefined {
    const { first } = this.#contenders
    return first instanceof FairTurns ? first.first : first
  }

  /** Iterates in the claim order of the first jobs. The list must not change meanwhile. */
  [Symbol.iterator](): Iterator<Contender> {
    return this.#contenders[Symbol.iterator]()
  }

  add(group: LimitGroup): void {
    const pattern = group.fairKey?.rule.fair
    if (pattern === undefined) this.#contenders.add(group)
    else this.#changeTurns(pattern, (turns) => turns.add(group))
  }

  delete(group: LimitGroup): void {
    const pattern = group.fairKey?.rule.fair
    if (pattern === undefined) this.#contenders.delete(group)
    else this.#changeTurns(pattern, (turns) => turns.delete(group))
  }

  /** Changes the groups of a pattern, by the first of which all of them have their place. */
  #changeTurns(pattern: string, change: (turns: FairTurns) => void): void {
    const turns = this.#byPattern.get(pattern) ?? new FairTurns()
    if (turns.head) this.#contenders.delete(turns)
    change(turns)
    if (turns.head) {
      this.#byPattern.set(pattern, turns)
      this.#contenders.add(turns)
    } else this.#byPattern.delete(pattern)
  }
}

/** The number of keys from which on turns are sorted. A list with fewer looks at all of them: a key may be in very many such lists. */
const SORTED_FROM = 32

/**
 * The groups of one fair pattern in a list, by their keys: a key has one turn, however many groups and jobs it has. Of the keys with jobs of
 * the same priority, the one with the fewest running jobs goes first, and of these the one of which no job has started for the longest
 * time. So a key with very many jobs does not keep the others of its pattern waiting, however short they are.
 */
export class FairTurns implements Iterable<FairKey> {
  readonly #byHead = new SortedList<LimitGroup>(compareHeads)
  readonly #keys = new Map<KeyLine, FairKey>()
  /** The keys by their turns; undefined as long as there have been few. */
  #sorted: SortedList<FairKey> | undefined

  /** The place of the first job in claim order, whosever turn it is; undefined without a group. */
  get head(): ClaimOrderKey | undefined {
    return this.#byHead.first?.head
  }

  /** The first group of the key whose turn it is. */
  get first(): LimitGroup | undefined {
    if (this.#sorted) return this.#sorted.first?.groups.first
    let first: FairKey | undefined
    for (const key of this.#keys.values()) if (!first || compareFairKeys(key, first) < 0) first = key
    return first?.groups.first
  }

  /** Iterates over the keys by their turns. Nothing may change meanwhile. */
  [Symbol.iterator](): Iterator<FairKey> {
    return (this.#sorted ?? [...this.#keys.values()].sort(compareFairKeys))[Symbol.iterator]()
  }

  add(group: LimitGroup): void {
    const { fairKey: line } = group
    if (!line) return
    this.#byHead.add(group)
    this.withdraw(line)
    const key = this.#keys.get(line) ?? { line, groups: new SortedList<LimitGroup>(compareHeads) }
    this.#keys.set(line, key)
    key.groups.add(group)
    if (this.#keys.size >= SORTED_FROM) this.#sort()
    this.putBack(line)
  }

  delete(group: LimitGroup): void {
    const { fairKey: line } = group
    const key = line && this.#keys.get(line)
    if (!line || !key) return
    this.#byHead.delete(group)
    this.withdraw(line)
    key.groups.delete(group)
    if (key.groups.size > 0) this.putBack(line)
    else {
      this.#keys.delete(line)
      line.turns.delete(this)
    }
  }

  /** Takes the key out before its counts change. */
  withdraw(line: KeyLine): void {
    const key = this.#keys.get(line)
    if (key) this.#sorted?.delete(key)
  }

  /** Puts the key back to where its counts now belong. */
  putBack(line: KeyLine): void {
    const key = this.#keys.get(line)
    if (!key || !this.#sorted) return
    this.#sorted.add(key)
    line.turns.add(this)
  }

  /** Begins to keep the keys sorted. */
  #sort(): void {
    if (this.#sorted) return
    this.#sorted = new SortedList<FairKey>(compareFairKeys)
    for (const line of this.#keys.keys()) this.putBack(line)
  }
}

/** A key of a fair pattern in a list, with its groups there in the claim order of their first jobs. */
export interface FairKey {
  readonly line: KeyLine
  readonly groups: SortedList<LimitGroup>
}

/** Returns the number of jobs of the key that run, or that this process tries to claim. */
export function runningOf({ used, reserved }: KeyLine): number {
  return used + reserved
}

/** Compares by the priority of the first job, then by the running jobs of the fair key and its last start, then in claim order. */
export function compareTurns(a: LimitGroup, b: LimitGroup): number {
  const [one, other] = [a.fairKey, b.fairKey]
  if (a.head?.priority !== b.head?.priority || !one || !other) return compareHeads(a, b)
  const running = runningOf(one) + one.opening - runningOf(other) - other.opening
  return running || one.lastStart - other.lastStart || compareHeads(a, b)
}

function compareFairKeys(a: FairKey, b: FairKey): number {
  const [one, other] = [a.groups.first, b.groups.first]
  if (one === other) return 0
  return one && other ? compareTurns(one, other) : one ? -1 : 1
}

function compareHeads(a: Contender, b: Contender): number {
  if (a === b || !a.head || !b.head) return a === b ? 0 : a.head ? 1 : -1
  return compareClaimOrder(a.head, b.head)
}
