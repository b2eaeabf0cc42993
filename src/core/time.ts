/** Durations as people write them, one monotonic clock, and waiting that can be given up. */
import { setTimeout as wait } from 'node:timers/promises'
import { InvalidArgument } from './errors.ts'

/** Milliseconds, or a number with its unit: `250`, `'10s'`, `'1.5h'`. Instants are `Date`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The longest time that a timer of Node can wait. A longer wait takes several timers: one that fires too early looks again. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** 100 years: an instant that is so far from now is a `Date` still. */
const MAX_DURATION_MS = 36_525 * 86_400_000

/**
 * The milliseconds of a duration.
 *
 * @param what the option's name, for the error
 * @throws InvalidArgument for a negative number, NaN, more than 100 years, or a text that is no duration
 * @example milliseconds('10s', 'timeout') // 10000
 */
export function toMilliseconds(duration: Duration | string, what: string): number {
  const found = typeof duration === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration.trim()) : undefined
  const value = found ? Number(found[1]) * (UNITS_MS[found[2] ?? ''] ?? Number.NaN) : duration
  if (typeof value === 'number' && value >= 0 && value <= MAX_DURATION_MS) return value
  const given = formatInvalidDuration(duration)
  if (typeof value === 'number' && value > MAX_DURATION_MS)
    throw new InvalidArgument(`${what}: ${given} is more than the 100 years there can be; leave it out for no limit`)
  throw new InvalidArgument(
    `${what}: ${given} is no duration; write milliseconds or a number with ms, s, m, h or d, such as '10s'`,
  )
}

function formatInvalidDuration(duration: unknown): string {
  if (typeof duration === 'string') return JSON.stringify(duration)
  if (duration instanceof Date) return 'an instant (a Date)'
  return typeof duration === 'object' && duration !== null ? 'an object' : String(duration)
}

/** For people: `2000 ms`; a text as it was written. */
export function formatDuration(duration: Duration): string {
  return typeof duration === 'number' ? `${duration} ms` : duration
}

/** Milliseconds on a clock that never jumps; comparable only within this process. */
export function monotonic(): number {
  return performance.now()
}

/** Resolves after so many milliseconds; rejects with the signal's reason if that fires first. */
export async function sleep(ms: number, options: { signal?: AbortSignal } = {}): Promise<void> {
  const { signal } = options
  signal?.throwIfAborted()
  try {
    await wait(ms, undefined, signal ? { signal } : {})
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  }
}

export interface Backoff {
  /** Milliseconds before the first attempt. */
  readonly first: number
  /** No wait is longer. */
  readonly max: number
  /** What the wait grows by each time; 2 by default. */
  readonly factor?: number
  /** `full` (the default) waits for a random part of the time, so that a crowd spreads; `none` for all of it. */
  readonly jitter?: 'full' | 'none'
  readonly random?: () => number
}

/** How long to wait, in milliseconds, before attempt `attempt` (from 1): exponential up to `max`. */
export function backoffDelay(attempt: number, options: Backoff): number {
  const { first, max, factor = 2, jitter = 'full', random = Math.random } = options
  const longest = Math.min(max, first * factor ** Math.min(attempt - 1, 100))
  return jitter === 'full' ? random() * longest : longest
}

/** Waits for the work, and no longer than so many milliseconds: what becomes of it then is nobody's affair. */
export async function withinTime(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([work, sleep(ms, done).catch(() => undefined)])
  done.abort()
}
