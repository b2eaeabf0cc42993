/**
 * Limits: how many jobs of a key run at once (concurrency), and how many start in a time (rate). The claim of a job takes a slot and
 * tokens of each of its keys in its own transaction, so no limit can be exceeded, and none leaks when an owner dies.
 *
 * Rates follow the generic cell rate algorithm (GCRA). A key has one number, its **arrival time**: the time at which all tokens that were
 * taken would have been refilled. Each claim moves it by `cost` intervals, by the server's clock, and is refused if that would put it
 * further ahead of the clock than `burst` intervals. So in any time t at most `burst + rate × t` tokens are taken, and the time at which
 * the next claim succeeds is known exactly.
 *
 * The rate by which the tokens were taken is stored with the arrival time. The first request by another rate converts the arrival time,
 * whether the request is granted or not ({@link toArrivalAt}): as many tokens are missing as before, but at most the new burst, and they
 * come back at the new rate. In a time with one change of the rate, at most the greater burst is taken, plus what each rate gives in its
 * part.
 */
import { InvalidPosting, LimitReached } from '../../core/errors.ts'
import { ILL_FORMED, shortenText } from '../../core/texts.ts'
import { toDate } from '../../core/time.ts'
import { queueOf } from './queues.ts'

/** The greatest length of a key, in characters: it is the id of a record. */
export const MAX_LIMIT_KEY_LENGTH = 512
/** The greatest number of keys of a job, besides the key of its flow: each is a step of the claim's transaction. */
const MAX_LIMIT_KEYS = 32
/** The greatest number of tokens that a job takes. */
const MAX_COST = 1_000_000
/** The greatest concurrency: Postgres compares it as a number of 32 bits. */
export const MAX_CONCURRENCY = 2 ** 31 - 1
/** The precision of times in milliseconds since 1970 as floating-point numbers: a smaller difference is a rounding error. */
const ROUNDING_MS = 0.0005

/** A key of a job, and the tokens that its start takes; 1 by default. */
export type PostLimit = string | { readonly key: string; readonly cost?: number }

/** The limits of a posting: keys with the tokens they take; `none` for a job that takes none, not even the limit of its flow. */
export type StoredLimits = readonly LimitCost[] | 'none'

export interface LimitCost {
  readonly key: string
  /** The tokens that a start takes. */
  readonly cost: number
}

/** A limit that a claim has to keep, as it is set now. */
export interface ClaimLimit {
  readonly key: string
  /** The number of claims that may hold a slot of the key; absent if it has no such limit. */
  readonly concurrency?: number
  readonly rate?: ClaimRate
}

/** A rate: the time in which a token comes back, and the burst. */
export interface TokenRate {
  /** The time in which a token comes back, in milliseconds. */
  readonly intervalMs: number
  /** The number of tokens that can be taken at once when none is missing. */
  readonly burst: number
}

/** A rate, and the number of tokens that are taken by it at once. A cost above the burst is possible when no token is missing. */
export interface ClaimRate extends TokenRate {
  readonly cost: number
}

/** The tokens that were taken of a key. */
export interface TakenTokens {
  readonly arrivalMs: number
  /** The rate by which they were taken; undefined if it is not known: then the present rate counts. */
  readonly rate: TokenRate | undefined
}

/** The limits of a claim, and the revision of all limits by which they were found. */
export interface ClaimLimits {
  /** The revision, as `Backend.limits.revision` returned it: a claim at another one is refused. */
  readonly revision: number
  readonly wants: readonly ClaimLimit[]
}

/** Returns the key that every job of the flow has. */
export function flowLimitKey(flow: string): string {
  return `${FLOW_PREFIX}${flow}`
}

const FLOW_PREFIX = 'flow/'

/** Returns the keys of a job and their costs, the key of its flow first. A key that is named twice has the greater cost. */
export function toLimitCosts(posting: {
  readonly limits?: StoredLimits
  readonly details: { readonly flow?: string }
}): readonly LimitCost[] {
  const { limits, details } = posting
  if (limits === 'none') return []
  const implicit = details.flow === undefined ? [] : [{ key: flowLimitKey(details.flow), cost: 1 }]
  if (!limits) return implicit
  return [...implicit.filter(({ key }) => !limits.some((named) => named.key === key)), ...limits]
}

/** Returns the key of a job of the flow that keeps no limits: only the setting `enabled` of the flow stops it. */
export function flowSwitchKey(flow: string): string {
  return `${SWITCH_PREFIX}${flow}`
}

const SWITCH_PREFIX = 'flow-enabled/'

/** Returns whether the key belongs to a job that keeps no limits: neither its own limits and holds nor those of patterns apply. */
export function isSwitchKey(key: string): boolean {
  return key.startsWith(SWITCH_PREFIX)
}

/** Returns the flow whose setting `enabled` stops the jobs of the key; undefined for the key of no flow. */
export function toFlowOfKey(key: string): string | undefined {
  for (const prefix of [FLOW_PREFIX, SWITCH_PREFIX]) if (key.startsWith(prefix)) return key.slice(prefix.length)
  return undefined
}

/** Returns the key that every job of the queue has. */
export function queueLimitKey(queue: string): string {
  return `${QUEUE_PREFIX}${queue}`
}

const QUEUE_PREFIX = 'queue/'

/** Returns the queue of a key for which {@link isQueueKey} is true. */
export function toQueueOfKey(key: string): string {
  return key.slice(QUEUE_PREFIX.length)
}

/** Returns whether the key is of a queue. A pattern applies to it only if it begins in the same way: `*` is for the keys that jobs and flows name. */
export function isQueueKey(keyOrPattern: string): boolean {
  return keyOrPattern.startsWith(QUEUE_PREFIX)
}

/** Returns the keys by which a job is claimed, and their costs: its limits, and the keys of its queue and flow, which it keeps also with `none`. */
export function toClaimCosts(
  posting: Parameters<typeof toLimitCosts>[0] & { readonly queue?: string },
): readonly LimitCost[] {
  const { flow } = posting.details
  const isSwitched = posting.limits === 'none' && flow !== undefined
  return [
    ...toLimitCosts(posting),
    ...(isSwitched ? [{ key: flowSwitchKey(flow), cost: 1 }] : []),
    { key: queueLimitKey(queueOf(posting)), cost: 1 },
  ]
}

/** Returns whether tokens come back as fast at both rates, and as many can be missing. */
export function isSameRate(one: TokenRate, other: TokenRate): boolean {
  return one.intervalMs === other.intervalMs && one.burst === other.burst
}

/** Returns the arrival time after a change to this rate: as many tokens are missing as before, but no more than the burst. */
export function toArrivalAt({ arrivalMs, rate: former }: TakenTokens, rate: TokenRate, nowMs: number): number {
  if (!former || isSameRate(former, rate) || arrivalMs <= nowMs) return arrivalMs
  return nowMs + Math.min(rate.burst, toTokens(arrivalMs - nowMs, former)) * rate.intervalMs
}

/**
 * Returns the number of tokens that come back in a time. A number that is whole but for a rounding error is returned as whole: a slower rate would
 * multiply the error, and the last token of a burst would be refused.
 */
function toTokens(ms: number, { intervalMs }: TokenRate): number {
  const tokens = ms / intervalMs
  const whole = Math.round(tokens)
  return Math.abs(tokens - whole) * intervalMs <= ROUNDING_MS ? whole : tokens
}

/**
 * Takes tokens by GCRA.
 *
 * @param arrivalMs the arrival time of the key at this rate; undefined if no token was taken for long
 * @returns the new arrival time, or the time from which the claim would succeed; in milliseconds since 1970
 */
export function takeTokens(
  arrivalMs: number | undefined,
  { intervalMs, burst, cost }: ClaimRate,
  nowMs: number,
): { readonly arrivalMs: number } | { readonly until: number } {
  const next = Math.max(arrivalMs ?? 0, nowMs) + cost * intervalMs
  const burstMs = Math.max(burst, cost) * intervalMs
  return next - nowMs <= burstMs + ROUNDING_MS ? { arrivalMs: next } : { until: next - burstMs }
}

/** Calls that wait for tokens of one key outside of a claim, in their order. */
export interface TokenRequest {
  readonly key: string
  /** The revision of the limits by which the rate was found: at another one nothing is taken. */
  readonly revision: number
  /** The rate of the key; absent for a key without a rate: then only the revision is checked. */
  readonly rate?: TokenRate
  /**
   * The tokens that each call takes, for at most {@link MAX_CALLS_PER_REQUEST} calls. Empty to only apply a new rate to the tokens that
   * were taken.
   */
  readonly costs: readonly number[]
}

/** The maximum number of calls in a {@link TokenRequest}: other requests of the key wait while a server counts them. */
export const MAX_CALLS_PER_REQUEST = 100

/** The answer to a {@link TokenRequest}. */
export interface TokensTaken {
  /** The number of calls whose tokens were taken: the first ones. */
  readonly taken: number
  /** The time from which the next call's tokens are free, in milliseconds since 1970; absent if the tokens of all calls were taken. */
  readonly until?: number
}

/** Takes the tokens of one call after the other by GCRA, up to the first one whose tokens are not free. */
export function takeTokensInOrder(
  arrivalMs: number | undefined,
  { rate, costs }: { readonly rate: TokenRate; readonly costs: readonly number[] },
  nowMs: number,
): TokensTaken & { readonly arrivalMs: number | undefined } {
  let arrival = arrivalMs
  for (const [taken, cost] of costs.entries()) {
    const token = takeTokens(arrival, { ...rate, cost }, nowMs)
    if ('until' in token) return { taken, until: token.until, arrivalMs: arrival }
    arrival = token.arrivalMs
  }
  return { taken: costs.length, arrivalMs: arrival }
}

/**
 * Parses the limits of a job: keys, or `{ key, cost }`. Returns undefined where there are none.
 *
 * @throws InvalidPosting for anything else
 */
export function parseLimits(value: unknown): StoredLimits | undefined {
  if (value === undefined || value === null) return undefined
  if (value === 'none') return value
  if (!Array.isArray(value))
    throw new InvalidPosting("limits must be an array of keys, or of { key, cost }, such as ['api/stripe']")
  if (value.length > MAX_LIMIT_KEYS)
    throw new InvalidPosting(`limits has ${value.length} keys, at most ${MAX_LIMIT_KEYS} are allowed`)
  const costs = new Map<string, number>()
  for (const each of value) {
    const { key, cost } = parseLimit(each)
    costs.set(key, Math.max(cost, costs.get(key) ?? 0))
  }
  return costs.size === 0 ? undefined : [...costs].map(([key, cost]) => ({ key, cost }))
}

function parseLimit(value: unknown): LimitCost {
  const { key, cost = 1, ...others } = typeof value === 'string' ? { key: value } : Object(value)
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw new InvalidPosting(`a limit has an unknown field ${shortenText(unknown)}; only key and cost are allowed`)
  const problem = limitKeyProblem(key)
  if (problem !== undefined) throw new InvalidPosting(`limits: ${problem}`)
  const wrongCost = limitCostProblem(key, cost)
  if (wrongCost !== undefined) throw new InvalidPosting(`limits: ${wrongCost}`)
  return { key, cost }
}

/** Returns why a value cannot be the number of tokens that are taken of a key; undefined if it can. */
export function limitCostProblem(key: string, cost: unknown): string | undefined {
  if (Number.isSafeInteger(cost) && Number(cost) >= 1 && Number(cost) <= MAX_COST) return undefined
  return `the cost of ${key} must be a whole number from 1 to ${MAX_COST}, got ${String(cost)}`
}

/** Returns why a value cannot be the key of a limit; undefined if it can. */
export function limitKeyProblem(key: unknown): string | undefined {
  if (typeof key !== 'string' || key === '') return `a key must be a non-empty text, got ${typeof key}`
  if (!key.isWellFormed()) return `key ${shortenText(JSON.stringify(key))} ${ILL_FORMED}`
  if (key.length > MAX_LIMIT_KEY_LENGTH)
    return `key ${shortenText(key)} has ${key.length} characters, at most ${MAX_LIMIT_KEY_LENGTH} are allowed`
  if (key.includes('*'))
    return `key ${shortenText(key)} must not contain *, which stands for the rest of a key in patterns`
  return undefined
}

/** Returns whether the limit of this key or pattern can apply to the key. */
export function isLimitOf(keyOrPattern: string, key: string): boolean {
  if (isQueueKey(key) && !isQueueKey(keyOrPattern)) return false
  return keyOrPattern === key || (keyOrPattern.endsWith('*') && key.startsWith(keyOrPattern.slice(0, -1)))
}

/** The origin of a hold or of a concurrency of 0: who has set it, when and why. */
export interface LimitOrigin {
  /** The key, or the pattern that it matches, as it was named. */
  readonly id: string
  readonly by: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly reason?: string
  /** The flow that a setting disables; absent for limits and holds. */
  readonly flow?: string
}

/** The limit of a key as it is set now. */
export interface LimitRule {
  /** The number of jobs that may run at once. */
  readonly concurrency?: number
  readonly rate?: TokenRate
  /** The pattern whose keys take turns, if that is set. */
  readonly fair?: string
  /** The time until which no job of the key starts, in milliseconds since 1970; infinite for a key that is stopped. */
  readonly heldUntil?: number
  /** The origin of the longest hold of the key; absent where no hold is set, and where one cannot be read here. */
  readonly hold?: LimitOrigin
  /** The origin of a concurrency of 0; absent with any other. */
  readonly closed?: LimitOrigin
}

/** The slots and tokens that are taken of a key. */
export interface LimitUse {
  readonly key: string
  /** The number of slots that are taken. */
  readonly slots: number
  /** The arrival time, if it is known: see the top of the file. */
  readonly arrivalMs: number | undefined
  /** The rate by which the tokens were taken, if it is known. */
  readonly rate?: TokenRate
}

/** The maximum number of keys whose {@link LimitUse} is returned at once. */
export const MAX_USED_KEYS = 1_000

/** The limits and holds of keys as they are set now. */
export interface LimitRules {
  /** Whether nothing is set for any key. */
  readonly isEmpty: boolean
  /** Whether keys of any pattern take turns. */
  readonly isFair: boolean
  ruleOf(key: string): LimitRule | undefined
}

/** Returns the limits that a claim of the job has to keep. */
export function toClaimLimits(posting: Parameters<typeof toClaimCosts>[0], rules: LimitRules): readonly ClaimLimit[] {
  if (rules.isEmpty) return []
  return toClaimCosts(posting).flatMap(({ key, cost }) => {
    const { concurrency, rate } = rules.ruleOf(key) ?? {}
    if (concurrency === undefined && !rate) return []
    return [
      {
        key,
        ...(concurrency === undefined ? {} : { concurrency: Math.min(concurrency, MAX_CONCURRENCY) }),
        ...(rate ? { rate: { ...rate, cost } } : {}),
      },
    ]
  })
}

/** Returns the text that says that no slot of a limit is free. */
export function describeTakenSlots(key: string, concurrency: number | undefined): string {
  return concurrency === 1
    ? `the only slot of limit ${key} is taken`
    : `all ${concurrency} slots of limit ${key} are taken`
}

/**
 * Returns the error of a claim that a limit does not permit.
 *
 * @param untilMs the time from which it would, in milliseconds since 1970, if that is known
 */
export function limitReachedError(
  what: string,
  want: ClaimLimit | undefined,
  untilMs: number | undefined,
): LimitReached {
  const { key = 'unknown', concurrency = 0 } = want ?? {}
  // A date has whole milliseconds: a date that is rounded down would be too early.
  const until = untilMs === undefined ? undefined : toDate(Math.ceil(untilMs))
  const why =
    until === undefined
      ? concurrency === 0
        ? `limit ${key} permits 0 jobs at once`
        : describeTakenSlots(key, concurrency)
      : `limit ${key} has no token before ${until.toISOString()}`
  return new LimitReached(`${what}: ${why}`, { key, until, untilMs })
}
