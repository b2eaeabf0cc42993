import { type Instant, startTimer, systemClock } from '../../../../core/time.ts'

/** The time that an owner needs to stop after the end of its lease, in milliseconds; with a short TTL, a fifth of the TTL. */
const LEASE_MARGIN_MS = 3_000

/** The time for which a session is certainly alive: it ends one TTL after the last answered heartbeat was sent, less a margin. */
export class SessionLease {
  readonly #lengthMs: number
  #renewedAt: Instant = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }
  #timer: NodeJS.Timeout | undefined

  /** @param ttl the TTL of the session, in milliseconds */
  constructor(ttl: number) {
    this.#lengthMs = ttl - Math.min(ttl / 5, LEASE_MARGIN_MS)
  }

  /** Begins again, with a heartbeat that was sent at this time and has been answered. */
  renew(sentAt: Instant): void {
    this.#renewedAt = sentAt
  }

  /** The remaining time, in milliseconds; 0 or less if it is over. */
  get leftMs(): number {
    const { monotonic, wall } = systemClock()
    return this.#lengthMs - Math.max(monotonic - this.#renewedAt.monotonic, wall - this.#renewedAt.wall)
  }

  /** Asks at the end of the lease whether the session is alive, so that the end is noticed in time even if no other caller asks. */
  watch(isAlive: () => boolean): void {
    clearTimeout(this.#timer)
    this.#timer = startTimer(() => isAlive() && this.watch(isAlive), Math.max(this.leftMs, 1))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
