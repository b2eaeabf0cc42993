/**
 * The servers' clock, estimated from answers: the answer to a write contains the server's time of that write.
 *
 * An answer takes time to arrive, so each sample is a little behind. Of the newest samples, the least delayed one
 * is used; older samples expire, because clocks drift and are set.
 */
import { monotonic } from '../../core/time.ts'

/** The minimum time for which a sample is used. */
const SAMPLE_PERIOD_MS = 5 * 60_000

export class ServerClock {
  #since = Number.NEGATIVE_INFINITY
  /**
   * The best offset of the server's clock to the monotonic clock in this period; the next field has the offset of the period
   * before.
   */
  #offsetMs: number | undefined
  #previousOffsetMs: number | undefined

  /** Whether there is a sample. */
  get isKnown(): boolean {
    return this.#offsetMs !== undefined || this.#previousOffsetMs !== undefined
  }

  /** Adds a sample. @param time the server's time in an answer that just arrived, in milliseconds since 1970 */
  observe(time: number): void {
    const now = monotonic()
    if (now - this.#since > SAMPLE_PERIOD_MS) {
      this.#previousOffsetMs = this.#offsetMs
      this.#offsetMs = undefined
      this.#since = now
    }
    this.#offsetMs = Math.max(this.#offsetMs ?? Number.NEGATIVE_INFINITY, time - now)
  }

  /**
   * Returns the server's time in milliseconds since 1970, or the time of this machine as long as there is no sample.
   */
  now(): number {
    const offset = Math.max(
      this.#offsetMs ?? Number.NEGATIVE_INFINITY,
      this.#previousOffsetMs ?? Number.NEGATIVE_INFINITY,
    )
    return this.isKnown ? monotonic() + offset : Date.now()
  }
}
