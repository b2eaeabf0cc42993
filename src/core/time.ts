/** Durations as people write them, clocks, and waits that can be aborted. */
import { setTimeout as wait } from 'node:timers/promises'
import { InvalidArgument, isDate } from './errors.ts'

/** A duration: milliseconds, or a number with its unit: `250`, `'10s'`, `'1.5h'`. Instants are `Date`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The longest time that a Node timer can wait; Node fires a longer one after 1 ms. {@link startTimer} has no such limit. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** 100 years: an instant at this distance from now is still a valid `Date`. */
export const MAX_DURATION_MS = 36_525 * 86_400_000

/** The last instant that a `Date` can have, in milliseconds since 1970. */
const MAX_DATE_MS = 8.64e15

/**
 * Returns the instant as a `Date`. For an instant that no `Date` can have, returns the nearest valid one: an invalid `Date` throws when it
 * is formatted.
 */
export function toDate(ms: number): Date {
  return new Date(Math.max(-MAX_DATE_MS, Math.min(ms, MAX_DATE_MS)))
}

/** Returns whether the value is a time since 1970 in milliseconds that a `Date` can have. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_DATE_MS
}

/**
 * Compares two numbers. Refuses NaN: a list that is sorted with NaN is in no order around it.
 *
 * @throws RangeError for NaN
 */
export function compareNumbers(a: number, b: number): number {
  if (a < b) return -1
  if (a > b) return 1
  if (a === b) return 0
  throw new RangeError(`${Number.isNaN(a) ? a : b} has no place in an order`)
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
  const shown = formatInvalidDuration(duration)
  if (typeof value === 'number' && value > MAX_DURATION_MS)
    throw new InvalidArgument(`${what}: ${shown} is more than the maximum of 100 years; omit it for no limit`)
  throw new InvalidArgument(
    `${what}: ${shown} is not a duration; write milliseconds or a number with ms, s, m, h or d, such as '10s'`,
  )
}

/**
 * Converts a duration to milliseconds for a time limit that drivers and servers apply with their own timers.
 *
 * @throws InvalidArgument for an invalid duration, or one longer than such a timer can wait
 */
export function toTimerMs(duration: Duration | string, what: string): number {
  const ms = toMilliseconds(duration, what)
  if (ms <= MAX_TIMER_MS) return ms
  throw new InvalidArgument(
    `${what} must be at most ${MAX_TIMER_MS} ms (24 days), got ${formatDuration(duration as Duration)}`,
  )
}

function formatInvalidDuration(duration: unknown): string {
  if (typeof duration === 'string') return JSON.stringify(duration)
  if (isDate(duration)) return 'an instant (a Date)'
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

/**
 * Starts a timer as `setTimeout` does, for any time: a time longer than a Node timer can wait is waited for in equal parts.
 * Each duration that a user can choose goes through here, or through {@link sleep} and {@link timeoutSignal}.
 */
export function startTimer(callback: () => void, ms: number): NodeJS.Timeout {
  if (ms <= MAX_TIMER_MS) return setTimeout(callback, ms)
  const total = Math.min(ms, Number.MAX_SAFE_INTEGER)
  let left = Math.ceil(total / MAX_TIMER_MS)
  const endPart = () => {
    left -= 1
    if (left > 0) timer.refresh()
    else callback()
  }
  const timer = setTimeout(endPart, Math.ceil(total / left))
  return timer
}

/** Starts an interval as `setInterval` does. One longer than a Node timer can wait fires more often, once in 24 days. */
export function startInterval(callback: () => void, ms: number): NodeJS.Timeout {
  return setInterval(callback, Math.min(ms, MAX_TIMER_MS))
}

/** Returns a signal that fires after `ms` milliseconds, as `AbortSignal.timeout` does, for any time. It keeps no process alive. */
export function timeoutSignal(ms: number): AbortSignal {
  if (ms <= MAX_TIMER_MS) return AbortSignal.timeout(ms)
  const controller = new AbortController()
  const reason = new DOMException('The operation was aborted due to timeout', 'TimeoutError')
  startTimer(() => controller.abort(reason), ms).unref()
  return controller.signal
}

/** Resolves after `ms` milliseconds; rejects with the signal's reason if that fires first. */
export async function sleep(ms: number, options: { signal?: AbortSignal } = {}): Promise<void> {
  const { signal } = options
  signal?.throwIfAborted()
  try {
    let left = ms
    for (; left > MAX_TIMER_MS; left -= MAX_TIMER_MS) await wait(MAX_TIMER_MS, undefined, signal ? { signal } : {})
    await wait(left, undefined, signal ? { signal } : {})
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
 * `deadline`: the limit of something that runs. `schedule`: the next time of a schedule. `review`: a board checks whether conductors know the flows
 * of jobs that other jobs wait behind; no work waits for it. `limit`: a call waits for tokens of a limit. `expiry`: a job goes to the trash if it was
 * not started by then.
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

/** Sets an alarm for periodic work. It keeps no process alive: there may be no caller that waits for it. */
export function alarmInBackground(clock: AlarmClock, ms: number, ring: () => void): Disposable {
  if (clock !== systemAlarmClock) return clock.alarm(ms, { kind: 'review', ring })
  const timer = startTimer(ring, ms).unref()
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}

/** The process' own clock. */
export const systemAlarmClock: AlarmClock = {
  now: () => Date.now(),
  monotonic,
  alarm: (ms, { ring }) => {
    const timer = startTimer(ring, ms)
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}
