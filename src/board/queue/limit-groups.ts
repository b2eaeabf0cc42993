/**
 * Groups of jobs with the same limited keys, and the order in which groups are searched. `limit-lines.ts` explains how groups are opened
 * and parked.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueuePlace } from '../model/entry.ts'
import type { LimitRule } from '../model/limits.ts'
import { SortedList } from './sorted.ts'

/** The jobs with the same limited keys. */
export interface LimitGroup {
  readonly id: string
  /** The queue of its jobs. */
  readonly queue: string
  readonly keys: readonly KeyLine[]
  readonly line: SortedList<QueuePlace, ClaimOrderKey>
  /** The number of jobs of the queue that belong to the group, claimable or not. */
  members: number
  /** The position of its first job in claim order, by which a list sorts the group; undefined while it is in no list. */
  head: ClaimOrderKey | undefined
  /** The key without room under which the group is parked; undefined if it is open. */
  parkedUnder: KeyLine | undefined
  /**
   * The key by which the group takes turns with groups of other keys of a fair pattern; undefined if no pattern is fair. The key and its
   * pattern do not change while the group is in a list.
   */
  fairKey: KeyLine | undefined
}

/** The line of a key for which a limit or a hold is set: its groups, and the slots and tokens that are taken. */
export interface KeyLine {
  readonly key: string
  rule: LimitRule
  /** The groups that are parked under the key. */
  readonly parked: GroupList
  /** The groups with the key. */
  readonly groups: Set<LimitGroup>
  /** The number of claimed jobs. */
  used: number
  /** The ordinal of the last start of a job of the key among the starts that this process knows; 0 without a start. */
  lastStart: number
  /** The groups that are being opened: each may start a job before the next one of the key is opened. */
  opening: number
  /** The turns that are sorted by the counts of the key. The key must be withdrawn from them before its counts change. */
  readonly turns: Set<FairTurns>
  /** The number of jobs that this process is trying to claim. */
  reserved: number
  /** The tokens of these jobs: a number and not a time, because the rate may change meanwhile. */
  reservedTokens: number
  /** The newest known arrival time: see `model/limits.ts`. */
  arrivalMs: number
  /** The time before which the key is not tried again, because a server has refused a claim for a reason that is not known here. */
  refusedUntil: number
  /** The time at which the groups that are parked under the key are checked again. */
  wakeAt: number
}

/** An element of a {@link GroupList}: a group, or all groups of a fair pattern. */
export type Contender = LimitGroup | FairTurns

/**
 * Groups in the claim order of their first jobs. The groups of a fair pattern take turns, and have one place in this order: the
 * place of the first of all their jobs.
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

  /** Changes the groups of a pattern, and sorts them again: their place may have changed. */
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

/**
 * The number of keys from which turns are sorted. With fewer, all are compared: a key may be in many lists, and each start would sort it in
 * all.
 */
const SORTED_FROM = 32

/**
 * The groups of one fair pattern in a list, by their keys: a key has one turn, however many groups and jobs it has. Among keys with jobs of
 * the same priority, the key with the fewest running jobs goes first. If several have as few, it is the key that has not started a job for
 * the longest time. So a key with many short jobs does not keep the others of its pattern waiting.
 */
export class FairTurns implements Iterable<FairKey> {
  readonly #byHead = new SortedList<LimitGroup>(compareHeads)
  readonly #keys = new Map<KeyLine, FairKey>()
  /** The keys by their turns; undefined until there are {@link SORTED_FROM} of them. */
  #sorted: SortedList<FairKey> | undefined

  /** The place of the first job of all groups in claim order, whichever key has the turn; undefined without a group. */
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

  /** Removes the key from the sorted keys, before its counts change. */
  withdraw(line: KeyLine): void {
    const key = this.#keys.get(line)
    if (key) this.#sorted?.delete(key)
  }

  /** Adds the key to the sorted keys, after its counts have changed. */
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

/** Returns the number of jobs of the key that run, or that this process is trying to claim. */
export function countRunning({ used, reserved }: KeyLine): number {
  return used + reserved
}

/** Compares by the priority of the first job, then by the running jobs of the fair key and its last start, then in claim order. */
export function compareTurns(a: LimitGroup, b: LimitGroup): number {
  const [one, other] = [a.fairKey, b.fairKey]
  if (a.head?.priority !== b.head?.priority || !one || !other) return compareHeads(a, b)
  const running = countRunning(one) + one.opening - countRunning(other) - other.opening
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
