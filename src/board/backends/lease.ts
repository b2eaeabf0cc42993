/**
 * The lease is the time until which this owner is certainly alive. Its key has a TTL, which was renewed at some time after
 * the request was sent. So the lease ends one TTL after the newest answered request was sent, less a margin for reactions.
 */
import { type Instant, startTimer, systemClock } from '../../core/time.ts'

const NEVER_EXTENDED: Instant = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }

export class OwnerLease {
  readonly #lengthMs: number
  readonly #onExpired: () => void
  #expiresAt = NEVER_EXTENDED
  #timer: NodeJS.Timeout | undefined

  /** @param over called once, when the lease expires: by a timer, or earlier by {@link isValid} */
  constructor(options: { readonly ttl: number; readonly over: () => void }) {
    this.#lengthMs = options.ttl - Math.min(options.ttl / 5, 2_000)
    this.#onExpired = options.over
  }

  /** Extends the lease after an answer to a request that was sent at this time. */
  extend(sentAt: Instant): void {
    const monotonic = sentAt.monotonic + this.#lengthMs
    if (monotonic <= this.#expiresAt.monotonic) return
    // An answer that was on its way while the machine was suspended proves nothing: only the wall clock includes that time.
    this.#expiresAt = { monotonic, wall: sentAt.wall + this.#lengthMs }
    this.#timer ??= this.#watch()
  }

  /** Returns whether the lease is valid at this instant. If it has expired, the callback is called first. */
  isValid(): boolean {
    const now = systemClock()
    if (this.#expiresAt.monotonic > now.monotonic && this.#expiresAt.wall > now.wall) return true
    this.#expire()
    return false
  }

  /** The time until it expires, in milliseconds; 0 or less if it has. */
  get leftMs(): number {
    const now = systemClock()
    return Math.min(this.#expiresAt.monotonic - now.monotonic, this.#expiresAt.wall - now.wall)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#expiresAt = NEVER_EXTENDED
  }

  /** Starts a timer for the present end of the lease. Extensions keep it: when it fires, it is set again if the lease is valid. */
  #watch(): NodeJS.Timeout {
    const timer = startTimer(
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
