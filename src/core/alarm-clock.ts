/**
 * The clock and the alarms for delays, back-offs and deadlines. A board may have its own clock: a test advances it instead
 * of waiting. All code that works for a board uses the board's clock.
 *
 * Timeouts of calls (`timeout`) and periodic work always use the process' clock: they limit a caller's wait, and are no part
 * of the work.
 */
import { MAX_TIMER_MS, monotonic } from './time.ts'

/**
 * The purpose of an alarm. `delay`: a job is delayed on the board. `pause`: a retry of a flow waits before its next attempt.
 * `deadline`: the limit of something that runs. `review`: a board checks whether conductors know the flows of jobs that
 * other jobs wait behind; no work waits for it.
 */
export type AlarmKind = 'delay' | 'pause' | 'deadline' | 'review'

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
