/**
 * Groups of jobs that wait for limits: the jobs of a group have the same limited keys, so all of them may start, or none. `limit-lines.ts`
 * says how groups are opened and parked.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueueEntry } from '../model/entry.ts'
import { type LimitCost, type LimitRule, takeTokens } from '../model/limits.ts'
import type { Posting } from '../model/posting.ts'
import { SortedList } from './sorted.ts'

/** The jobs with the same limited keys. */
export interface LimitGroup {
  readonly id: string
  readonly keys: readonly KeyLine[]
  readonly line: SortedList<QueueEntry, ClaimOrderKey>
  /** The number of entries of the queue that belong to the group, claimable or not. */
  members: number
  /** The position of its first entry in claim order, by which its list sorts the group; undefined while it is in no list. */
  head: ClaimOrderKey | undefined
  parkedUnder: KeyLine | undefined
  /** The key of a fair pattern by whose running jobs the group takes turns with others; undefined if there is none. */
  fairKey: KeyLine | undefined
}

/** A key for which a limit or a hold is set. */
export interface KeyLine {
  readonly key: string
  rule: LimitRule
  readonly parked: GroupList
  readonly groups: Set<LimitGroup>
  /** The number of claimed jobs. */
  used: number
  /** A number that is greater the later the last job of the key has started, as far as this process knows; 0 if none has. */
  lastStart: number
  /** The jobs that this process tries to claim, and the tokens that they take. The interval of a token may change while they are tried. */
  reserved: number
  reservedTokens: number
  /** The newest known arrival time: see `model/limits.ts`. */
  arrivalMs: number
  refusedUntil: number
  /** The time at which the groups that are parked under the key are checked again. */
  wakeAt: number
}

/** The jobs of a key that a search has chosen so far, and the time by which they move its arrival time. */
export interface ChosenOfKey {
  count: number
  costMs: number
}

/**
 * Groups in the claim order of their first jobs. Groups of a fair pattern take turns: of those with the same priority, the one whose key
 * has the fewest running jobs goes first, and of these the one of which no job has started for the longest time. So the other keys of the
 * pattern do not wait until a key with very many jobs has none left, even if its jobs are short.
 */
export class GroupList {
  readonly #byHead = new SortedList<LimitGroup>(compareHeads)
  /** The groups of each fair pattern, by their turns. */
  readonly #byTurn = new Map<string, SortedList<LimitGroup>>()

  get size(): number {
    return this.#byHead.size
  }

  /** The group that goes first. */
  get first(): LimitGroup | undefined {
    const { first } = this.#byHead
    const turns = first && this.turnsOf(first)
    return turns ? turns.first : first
  }

  [Symbol.iterator](): Iterator<LimitGroup> {
    return this.#byHead[Symbol.iterator]()
  }

  add(group: LimitGroup): void {
    this.#byHead.add(group)
    const pattern = group.fairKey?.rule.fair
    if (pattern === undefined) return
    const turns = this.#byTurn.get(pattern) ?? new SortedList<LimitGroup>(compareTurns)
    this.#byTurn.set(pattern, turns)
    turns.add(group)
  }

  delete(group: LimitGroup): void {
    this.#byHead.delete(group)
    const turns = this.turnsOf(group)
    turns?.delete(group)
    if (turns?.size === 0) this.#byTurn.delete(group.fairKey?.rule.fair ?? '')
  }

  /** Returns the groups with which this one takes turns, first the one whose turn it is; undefined if it takes none. */
  turnsOf({ fairKey }: LimitGroup): SortedList<LimitGroup> | undefined {
    return fairKey?.rule.fair === undefined ? undefined : this.#byTurn.get(fairKey.rule.fair)
  }
}

/** A key without room, and the time from which it has room. */
export interface BlockedKey {
  readonly line: KeyLine
  /** In milliseconds since 1970; infinite if it is not known. */
  readonly until: number
}

/**
 * Returns the key of the group that has no room for an entry; of several keys, the one that has room last. By default the entry is the
 * first of the group. A job that waits for a slot keeps no tokens from others.
 */
export function findBlocked(
  group: LimitGroup,
  options: { now: number; place?: QueueEntry; chosen?: ReadonlyMap<KeyLine, ChosenOfKey> },
): BlockedKey | undefined {
  const { now, place = group.line.first, chosen } = options
  if (!place) return undefined
  let blocked: BlockedKey | undefined
  for (const line of group.keys) {
    const asked = { cost: costOf(place.stored.posting, line), now, chosen: chosen?.get(line) }
    const until = blockedUntil(line, asked) ?? findKept(line, { group, place, now })?.until
    if (until !== undefined && until > (blocked?.until ?? Number.NEGATIVE_INFINITY)) blocked = { line, until }
  }
  return blocked
}

/**
 * Returns the job that goes before an entry and waits for tokens of the key, and the time from which it can have them. Such a job keeps the
 * tokens: otherwise jobs that cost few tokens would take each token as soon as it is free, and a job that costs many would never start.
 */
export function findKept(
  line: KeyLine,
  { group, place, now }: { readonly group: LimitGroup; readonly place: QueueEntry; readonly now: number },
): { readonly first: QueueEntry; readonly until: number } | undefined {
  const waiting = line.rule.rate && line.parked.first
  const first = waiting?.line.first
  if (!waiting || !first || waiting === group || !goesBefore(waiting, { group, place })) return undefined
  const until = blockedUntil(line, { cost: costOf(first.stored.posting, line), now })
  return until === undefined ? undefined : { first, until }
}

function goesBefore(
  waiting: LimitGroup,
  { group, place }: { readonly group: LimitGroup; readonly place: QueueEntry },
): boolean {
  const pattern = waiting.fairKey?.rule.fair
  if (pattern !== undefined && pattern === group.fairKey?.rule.fair && group.head)
    return compareTurns(waiting, group) < 0
  return waiting.head !== undefined && compareClaimOrder(waiting.head, place) < 0
}

/** Returns the time from which the key has room, infinite if it is not known; undefined if it has room now. */
export function blockedUntil(
  { rule, used, reserved, reservedTokens, arrivalMs, refusedUntil }: KeyLine,
  asked: { readonly cost: number; readonly now: number; readonly chosen?: ChosenOfKey | undefined },
): number | undefined {
  const { concurrency, rate, heldUntil = 0 } = rule
  const { cost, now, chosen = { count: 0, costMs: 0 } } = asked
  if (heldUntil > now) return heldUntil
  if (concurrency !== undefined && used + reserved + chosen.count >= concurrency) return Number.POSITIVE_INFINITY
  if (refusedUntil > now) return refusedUntil
  if (!rate) return undefined
  const taken = takeTokens(
    Math.max(arrivalMs, now) + reservedTokens * rate.intervalMs + chosen.costMs,
    { ...rate, cost },
    now,
  )
  return 'until' in taken ? taken.until : undefined
}

/** Returns the number of jobs of the key to try now: those that can start as far as is known, and at least one. */
export function roomOf({ rule, used, reserved, reservedTokens, arrivalMs }: KeyLine, now: number): number {
  const { concurrency = Number.POSITIVE_INFINITY, rate } = rule
  const ahead = Math.max(arrivalMs, now) - now
  const tokens = rate ? Math.floor(rate.burst - reservedTokens - ahead / rate.intervalMs) : 1_000
  return Math.max(1, Math.min(1_000, concurrency - used - reserved, tokens))
}

/** Returns the number of tokens that a start of the job takes of the key. */
export function costOf(posting: Posting, { key }: KeyLine): number {
  const { limits } = posting
  if (!limits || limits === 'none') return 1
  return limits.find((each: LimitCost) => each.key === key)?.cost ?? 1
}

/** Returns the number of jobs of the key that run, or that this process tries to claim. */
export function runningOf({ used, reserved }: KeyLine): number {
  return used + reserved
}

function compareHeads(a: LimitGroup, b: LimitGroup): number {
  if (a === b || !a.head || !b.head) return a === b ? 0 : a.head ? 1 : -1
  return compareClaimOrder(a.head, b.head)
}

/** Compares by the priority of the first job, then by the running jobs of the fair key and its last start, then in claim order. */
function compareTurns(a: LimitGroup, b: LimitGroup): number {
  if (a.head?.priority !== b.head?.priority || !a.fairKey || !b.fairKey) return compareHeads(a, b)
  return runningOf(a.fairKey) - runningOf(b.fairKey) || a.fairKey.lastStart - b.fairKey.lastStart || compareHeads(a, b)
}
