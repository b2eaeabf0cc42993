/**
 * How long this session is certain to be alive.
 *
 * A server forgets a session when it has heard nothing of it for its timeout. It heard the newest request that was
 * answered, at the earliest when that was sent. So the lease ends one timeout after that sending, less a margin for what
 * the owner still has to do when it learns of the end. Silence does not shorten it, and hope does not lengthen it.
 */
import type { Instant } from './clock.ts'

/** A tick of a server that was left at its default. */
const USUAL_TICK = 2_000

export class Lease {
  readonly #length: number
  #from: Instant

  /**
   * @param timeout what the server granted, in milliseconds
   * @param attachedAt when the request that was granted was sent
   */
  constructor(timeout: number, attachedAt: Instant) {
    this.#length = timeout - Math.min(timeout / 5, USUAL_TICK)
    this.#from = attachedAt
  }

  /** An answer came to a request that was sent then. */
  answered(sentAt: Instant): void {
    if (sentAt.monotonic > this.#from.monotonic) this.#from = sentAt
  }

  /** Milliseconds left by the clock that is further ahead; 0 or less when it is over. */
  remaining(now: Instant): number {
    const passed = Math.max(now.monotonic - this.#from.monotonic, now.wall - this.#from.wall)
    return this.#length - passed
  }
}
