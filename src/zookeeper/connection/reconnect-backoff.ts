/**
 * Computes the pause before the next connection.
 *
 * There is none when a good connection broke: after a change of leader the next server is ready at once, and a session
 * is short. Then pauses grow, with jitter, both while no server can be reached and while connections are made and break
 * at once.
 */
import { backoffDelay } from '../../core/time.ts'

const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 2_000
/** Duration after which a connection counts as a good one. */
const STEADY_AFTER_MS = 1_000

export class ReconnectBackoff {
  readonly #longest: number
  readonly #random: () => number
  #unreachable = 0
  #shortLived = 0

  /** @param sessionTimeout several attempts must fit into it, or the session expires while the client waits */
  constructor(sessionTimeout: number, random: () => number = Math.random) {
    this.#longest = Math.min(MAX_PAUSE_MS, sessionTimeout / 6)
    this.#random = random
  }

  /**
   * Returns the milliseconds to wait after a connection that served for that long; undefined means that it never
   * served.
   */
  pauseAfter(served: number | undefined): number {
    if (served === undefined) this.#unreachable++
    else {
      this.#unreachable = 0
      this.#shortLived = served > STEADY_AFTER_MS ? 0 : this.#shortLived + 1
    }
    const failures = this.#unreachable + this.#shortLived
    return failures <= 1
      ? 0
      : backoffDelay(failures - 1, { first: FIRST_PAUSE_MS, max: this.#longest, random: this.#random })
  }
}
