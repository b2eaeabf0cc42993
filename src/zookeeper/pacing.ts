/**
 * How long to wait before the next connection.
 *
 * Not at all when a good connection broke: after a change of leader the next server is ready at once, and a session is
 * short. Then longer and longer, and never in step with other clients, both while no server can be reached and while
 * connections are made and break again at once.
 */
import { backoff } from '../core/time.ts'

const FIRST = 50
const LONGEST = 2_000
/** A connection that held this long was a good one. */
const STEADY_AFTER = 1_000

export class Pacing {
  readonly #longest: number
  readonly #random: () => number
  #unreachable = 0
  #shortLived = 0

  /** @param sessionTimeout there have to be several attempts within it, or the session is lost to waiting */
  constructor(sessionTimeout: number, random: () => number = Math.random) {
    this.#longest = Math.min(LONGEST, sessionTimeout / 6)
    this.#random = random
  }

  /** Milliseconds to wait after a connection that served for so long; undefined where it never came to that. */
  after(served: number | undefined): number {
    if (served === undefined) this.#unreachable++
    else {
      this.#unreachable = 0
      this.#shortLived = served > STEADY_AFTER ? 0 : this.#shortLived + 1
    }
    const failures = this.#unreachable + this.#shortLived
    return failures <= 1 ? 0 : backoff(failures - 1, { first: FIRST, max: this.#longest, random: this.#random })
  }
}
