/**
 * The servers' clock, as answers show it: the answer to what was just written says what time it was there.
 *
 * An answer takes its time, so each sample is a little behind; the one that is the least behind counts, of the newest ones,
 * because clocks drift and are set.
 */
import { monotonic } from '../../core/time.ts'

/** How long a sample counts, at least, in milliseconds. */
const SAMPLE_PERIOD_MS = 5 * 60_000

export class ServerClock {
  #since = Number.NEGATIVE_INFINITY
  /** How far the server's clock is ahead of the monotonic one: the best of this period, and of the one before. */
  #offsetMs: number | undefined
  #previousOffsetMs: number | undefined

  /** @param time when an answer that just came was made, in milliseconds since 1970 */
  observe(time: number): void {
    const now = monotonic()
    if (now - this.#since > SAMPLE_PERIOD_MS) {
      this.#previousOffsetMs = this.#offsetMs
      this.#offsetMs = undefined
      this.#since = now
    }
    this.#offsetMs = Math.max(this.#offsetMs ?? Number.NEGATIVE_INFINITY, time - now)
  }

  /** In milliseconds since 1970; this machine's own clock as long as no server has told. */
  now(): number {
    if (this.#offsetMs === undefined) return Date.now()
    return monotonic() + Math.max(this.#offsetMs, this.#previousOffsetMs ?? Number.NEGATIVE_INFINITY)
  }
}
