/**
 * The servers' clock, as answers show it: the answer to what was just written says what time it was there.
 *
 * An answer takes its time, so each sample is a little behind; the one that is the least behind counts, of the newest ones,
 * because clocks drift and are set.
 */
import { monotonic } from '../core/time.ts'

/** How long a sample counts, at least, in milliseconds. */
const PERIOD = 5 * 60_000

export class ServerClock {
  #since = Number.NEGATIVE_INFINITY
  /** How far the server's clock is ahead of the monotonic one: the best of this period, and of the one before. */
  #ahead: number | undefined
  #aheadBefore: number | undefined

  /** @param time when an answer that just came was made, in milliseconds since 1970 */
  observe(time: number): void {
    const now = monotonic()
    if (now - this.#since > PERIOD) {
      this.#aheadBefore = this.#ahead
      this.#ahead = undefined
      this.#since = now
    }
    this.#ahead = Math.max(this.#ahead ?? Number.NEGATIVE_INFINITY, time - now)
  }

  /** In milliseconds since 1970; this machine's own clock as long as no server has told. */
  now(): number {
    if (this.#ahead === undefined) return Date.now()
    return monotonic() + Math.max(this.#ahead, this.#aheadBefore ?? Number.NEGATIVE_INFINITY)
  }
}
