/** Computes whether the keys of a group have room for a job: the slots and tokens that are left, as far as this process knows. */
import { compareClaimOrder } from '../model/claim-order.ts'
import type { QueuePlace } from '../model/entry.ts'
import { type LimitCost, takeTokens } from '../model/limits.ts'
import type { Posting } from '../model/posting/posting.ts'
import { compareTurns, type KeyLine, type LimitGroup } from './limit-groups.ts'

/** The number of jobs of a key that a search has chosen so far, and the time by which they move its arrival time. */
export interface ChosenOfKey {
  count: number
  costMs: number
}

export type ChosenJobs = ReadonlyMap<KeyLine, ChosenOfKey>

/** A key without room, and the time until which it has none. */
export interface BlockedKey {
  readonly line: KeyLine
  /** Milliseconds since 1970; infinite if it is not known. */
  readonly until: number
}

/**
 * Returns the key of the group that has no room for a job for the longest time; undefined if all keys have room. By default, the job
 * is the first of the group. While a job waits for a slot, no tokens are kept for it: it is not known when it will start.
 */
export function findBlocked(
  group: LimitGroup,
  options: { now: number; place?: QueuePlace; chosen?: ChosenJobs },
): BlockedKey | undefined {
  const { now, place = group.line.first, chosen } = options
  if (!place) return undefined
  let blocked: BlockedKey | undefined
  for (const line of group.keys) {
    const want = { cost: costOf(place.stored.posting, line), now, chosen: chosen?.get(line) }
    const until = blockedUntil(line, want) ?? findKept(line, { group, place, now })?.until
    if (until !== undefined && until > (blocked?.until ?? Number.NEGATIVE_INFINITY)) blocked = { line, until }
  }
  return blocked
}

/**
 * Returns the earlier job for which the key keeps its tokens, and until when. If it kept none, jobs that cost few tokens would take
 * each token as soon as it is free, and a job that costs many would never start.
 */
export function findKept(
  line: KeyLine,
  { group, place, now }: { readonly group: LimitGroup; readonly place: QueuePlace; readonly now: number },
): { readonly first: QueuePlace; readonly until: number } | undefined {
  const waiting = line.rule.rate && line.parked.first
  const first = waiting?.line.first
  if (!waiting || !first || waiting === group || !goesBefore(waiting, { group, place })) return undefined
  const until = blockedUntil(line, { cost: costOf(first.stored.posting, line), now })
  return until === undefined ? undefined : { first, until }
}

function goesBefore(
  waiting: LimitGroup,
  { group, place }: { readonly group: LimitGroup; readonly place: QueuePlace },
): boolean {
  const pattern = waiting.fairKey?.rule.fair
  if (pattern !== undefined && pattern === group.fairKey?.rule.fair && group.head)
    return compareTurns(waiting, group) < 0
  return waiting.head !== undefined && compareClaimOrder(waiting.head, place) < 0
}

/** Returns the time until which the key has no room, infinite if it is not known; undefined if it has room. */
export function blockedUntil(
  { rule, used, reserved, reservedTokens, arrivalMs, refusedUntil }: KeyLine,
  want: { readonly cost: number; readonly now: number; readonly chosen?: ChosenOfKey | undefined },
): number | undefined {
  const { concurrency, rate, heldUntil = 0 } = rule
  const { cost, now, chosen = { count: 0, costMs: 0 } } = want
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

/** Returns whether the jobs that a search has chosen use up the room of the key. */
export function isUsedUp(
  line: KeyLine,
  { now, chosen }: { readonly now: number; readonly chosen: ChosenJobs },
): boolean {
  const ofKey = chosen.get(line)
  return ofKey !== undefined && blockedUntil(line, { cost: 1, now, chosen: ofKey }) !== undefined
}

/**
 * Returns the number of jobs of the key that can start now: at least 1, so that a search makes progress, and at most 1,000, so that it does
 * not open too many groups at once.
 */
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
