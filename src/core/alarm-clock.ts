/**
 * What time it is, and being woken at a time: what delays, back-offs and deadlines go by. A board may have a clock of its
 * own, which is how a test turns the time instead of waiting for it; whoever works for a board goes by the board's.
 *
 * What somebody is ready to wait for an answer (`timeout`), and what is done again and again, goes by the process' time
 * everywhere: that is the patience of whoever waits, and no part of the work.
 */
import { MAX_TIMER_MS, monotonic } from './time.ts'

/**
 * What an alarm is set for. `delay`: a job rests on the board. `pause`: a retry of a flow waits before its next attempt.
 * `deadline`: the limit of something that runs. `review`: a board looks whether conductors know the flows of jobs that
 * others wait behind; no work waits for it.
 */
export type AlarmKind = 'delay' | 'pause' | 'deadline' | 'review'

export interface AlarmClock {
  /** In milliseconds since 1970; may be set back. */
  now(): number
  /** In milliseconds since no particular time; never jumps back. */
  monotonic(): number
  /** Rings once, so many milliseconds from now, or a little earlier; never, once it was disposed of. */
  alarm(ms: number, alarm: { readonly kind: AlarmKind; readonly ring: () => void }): Disposable
}

/** The process' own. What would ring after more than 24 days rings then: who is woken too early looks at the time. */
export const systemAlarmClock: AlarmClock = {
  now: () => Date.now(),
  monotonic,
  alarm: (ms, { ring }) => {
    const timer = setTimeout(ring, Math.min(ms, MAX_TIMER_MS))
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}
