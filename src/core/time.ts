/** Durations as people write them, clocks, and waits that can be aborted. */
import { setTimeout as wait } from 'node:timers/promises'
import { InvalidArgument } from './errors.ts'

/** Milliseconds, or a number with its unit: `250`, `'10s'`, `'1.5h'`. Instants are `Date`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The longest time that a Node timer can wait. A longer wait takes several timers: each checks the time again. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** 100 years: an instant at this distance from now is still a valid `Date`. */
const MAX_DURATION_MS = 36_525 * 86_400_000

/** The last instant that a `Date` can have, in milliseconds since 1970. */
const MAX_DATE_MS = 8.64e15

/** Returns the instant as a `Date`, which is the last possible one where the time is later: an invalid `Date` throws when it is formatted. */
export function toDate(ms: number): Date {
  return new Date(Math.min(ms, MAX_DATE_MS))
}

/**
 * Converts a duration to milliseconds.
 *
 * @param what the option's name, for the error
 * @throws InvalidArgument for a negative number, NaN, more than 100 years, or a text that is not a duration
 * @example milliseconds('10s', 'timeout') // 10000
 */
export function toMilliseconds(duration: Duration | string, what: string): number {
  const found = typeof duration === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration.trim()) : undefined
  const value = found ? Number(found[1]) * (UNITS_MS[found[2] ?? ''] ?? Number.NaN) : duration
  if (typeof value === 'number' && value >= 0 && value <= MAX_DURATION_MS) return value
  const given = formatInvalidDuration(duration)
  if (typeof value === 'number' && value > MAX_DURATION_MS)
    throw new InvalidArgument(`${what}: ${given} is more than the maximum of 100 years; omit it for no limit`)
  throw new InvalidArgument(
    `${what}: ${given} is not a duration; write milliseconds or a number with ms, s, m, h or d, such as '10s'`,
  )
}

function formatInvalidDuration(duration: unknown): string {
  if (typeof duration === 'string') return JSON.stringify(duration)
  if (duration instanceof Date) return 'an instant (a Date)'
  return typeof duration === 'object' && duration !== null ? 'an object' : String(duration)
}

/** Formats a duration for people: a number as `2000 ms`, a text as it was written. */
export function formatDuration(duration: Duration): string {
  return typeof duration === 'number' ? `${duration} ms` : duration
}

/** Returns milliseconds on a clock that never jumps; comparable only within this process. */
export function monotonic(): number {
  return performance.now()
}

/** Resolves after `ms` milliseconds; rejects with the signal's reason if that fires first. */
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
  /** The wait before the first attempt, in milliseconds. */
  readonly first: number
  /** The longest wait, in milliseconds. */
  readonly max: number
  /** The factor by which the wait grows each time; 2 by default. */
  readonly factor?: number
  /** `full` (the default) waits for a random part of the time, so that many clients spread; `none` waits all of it. */
  readonly jitter?: 'full' | 'none'
  readonly random?: () => number
}

/** Returns the wait before attempt `attempt` (from 1), in milliseconds: exponential up to `max`. */
export function backoffDelay(attempt: number, options: Backoff): number {
  const { first, max, factor = 2, jitter = 'full', random = Math.random } = options
  const longest = Math.min(max, first * factor ** Math.min(attempt - 1, 100))
  return jitter === 'full' ? random() * longest : longest
}

/** Waits for the work, but at most `ms` milliseconds; later outcomes of the work are ignored. */
export async function withinTime(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([work, sleep(ms, done).catch(() => undefined)])
  done.abort()
}

/**
 * A moment on both clocks. The monotonic clock never jumps, but stops while the machine is suspended; the wall clock
 * continues then, but may be set back. Between two moments, at least the larger of both differences has passed.
 */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

export type Clock = () => Instant

export const systemClock: Clock = () => ({ monotonic: monotonic(), wall: Date.now() })

/**
 * The purpose of an alarm. `delay`: a job is delayed on the board. `pause`: a retry of a flow waits before its next attempt.
 * `deadline`: the limit of something that runs. `schedule`: the next time of a schedule. `review`: a board checks whether conductors know the flows of jobs that
 * other jobs wait behind; no work waits for it. `limit`: a call waits for tokens of a limit. `expiry`: a job goes to the trash if nobody has
 * started it by then.
 */
export type AlarmKind = 'delay' | 'pause' | 'deadline' | 'schedule' | 'limit' | 'review' | 'expiry'

/**
 * The clock and the alarms for delays, back-offs and deadlines. A board may have its own clock: a test advances it instead
 * of waiting. All code that works for a board uses the board's clock.
 *
 * Timeouts of calls (`timeout`) and periodic work always use the process' clock: they limit a caller's wait, and are no part
 * of the work.
 */
export interface AlarmClock {
  /** Returns the time in milliseconds since 1970. The clock may be set back. */
  now(): number
  /** Returns a time in milliseconds that never jumps back. Its zero has no meaning. */
  monotonic(): number
  /** Calls `ring` once after `ms` milliseconds, or a little earlier. Disposing of the result cancels the alarm. */
  alarm(ms: number, alarm: { readonly kind: AlarmKind; readonly ring: () => void }): Disposable
}

/** The process' own clock. An alarm of more than 24 days rings after 24 days: its receiver checks the time again. */
export const systemAlarmClock: AlarmClock = {
  now: () => Date.now(),
  monotonic,
  alarm: (ms, { ring }) => {
    const timer = setTimeout(ring, Math.min(ms, MAX_TIMER_MS))
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}
