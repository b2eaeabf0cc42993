/**
 * How long to wait before the next connection.
 *
 * Not at all when a good connection broke: after a change of leader the next server is ready at once, and a session is
 * short. Then longer and longer, and never in step with other clients, both while no server can be reached and while
 * connections are made and break again at once.
 */
import { backoffDelay } from '../../core/time.ts'

const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 2_000
/** A connection that held this long was a good one. */
const STEADY_AFTER_MS = 1_000

export class ReconnectBackoff {
  readonly #longest: number
  readonly #random: () => number
  #unreachable = 0
  #shortLived = 0

  /** @param sessionTimeout there have to be several attempts within it, or the session is lost to waiting */
  constructor(sessionTimeout: number, random: () => number = Math.random) {
    this.#longest = Math.min(MAX_PAUSE_MS, sessionTimeout / 6)
    this.#random = random
  }

  /** Milliseconds to wait after a connection that served for so long; undefined where it never came to that. */
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
