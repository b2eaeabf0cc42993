/**
 * Until when this owner is certain to be alive: its key has a TTL, and was given it anew at some time after the request was
 * sent. So the lease ends one TTL after the newest answered request was sent, less a margin for whoever acts on it.
 */
import { type Instant, systemClock } from '../../../core/clock.ts'

const NEVER_EXTENDED: Instant = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }

export class OwnerLease {
  readonly #lengthMs: number
  readonly #onExpired: () => void
  #expiresAt = NEVER_EXTENDED
  #timer: NodeJS.Timeout | undefined

  /** @param over told once, when the lease is over; by a timer, or by {@link isValid} where that is sooner */
  constructor(options: { readonly ttl: number; readonly over: () => void }) {
    this.#lengthMs = options.ttl - Math.min(options.ttl / 5, 2_000)
    this.#onExpired = options.over
  }

  /** A request that was sent then has been answered. */
  extend(sentAt: Instant): void {
    const monotonic = sentAt.monotonic + this.#lengthMs
    if (monotonic <= this.#expiresAt.monotonic) return
    // An answer that was on its way while the machine was suspended proves nothing: only the wall clock knows.
    this.#expiresAt = { monotonic, wall: sentAt.wall + this.#lengthMs }
    this.#timer ??= this.#watch()
  }

  /** Whether it lasts at this instant. Tells of its end first. */
  isValid(): boolean {
    const now = systemClock()
    if (this.#expiresAt.monotonic > now.monotonic && this.#expiresAt.wall > now.wall) return true
    this.#expire()
    return false
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#expiresAt = NEVER_EXTENDED
  }

  /** One timer for many extensions: it looks when the lease was to end as it was set. */
  #watch(): NodeJS.Timeout {
    const timer = setTimeout(
      () => {
        this.#timer = undefined
        if (this.isValid()) this.#timer = this.#watch()
      },
      Math.max(1, this.#expiresAt.monotonic - systemClock().monotonic),
    )
    return timer.unref()
  }

  #expire(): void {
    if (this.#expiresAt === NEVER_EXTENDED) return
    this.stop()
    this.#onExpired()
  }
}
