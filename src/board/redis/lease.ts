/**
 * Until when this owner is certain to be alive: its key has a TTL, and was given it anew at some time after the request was
 * sent. So the lease ends one TTL after the newest answered request was sent, less a margin for whoever acts on it.
 */
import { type Instant, systemClock } from '../../core/clock.ts'

const NEVER: Instant = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }

export class Lease {
  readonly #length: number
  readonly #over: () => void
  #until = NEVER
  #timer: NodeJS.Timeout | undefined

  /** @param over told once, when the lease is over; by a timer, or by {@link holds} where that is sooner */
  constructor(options: { readonly ttl: number; readonly over: () => void }) {
    this.#length = options.ttl - Math.min(options.ttl / 5, 2_000)
    this.#over = options.over
  }

  /** A request that was sent then has been answered. */
  extend(sentAt: Instant): void {
    const monotonic = sentAt.monotonic + this.#length
    if (monotonic <= this.#until.monotonic) return
    // An answer that was on its way while the machine was suspended proves nothing: only the wall clock knows.
    this.#until = { monotonic, wall: sentAt.wall + this.#length }
    this.#timer ??= this.#watch()
  }

  /** Whether it lasts at this instant. Tells of its end first. */
  holds(): boolean {
    const now = systemClock()
    if (this.#until.monotonic > now.monotonic && this.#until.wall > now.wall) return true
    this.#end()
    return false
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#until = NEVER
  }

  /** One timer for many extensions: it looks when the lease was to end as it was set. */
  #watch(): NodeJS.Timeout {
    const timer = setTimeout(
      () => {
        this.#timer = undefined
        if (this.holds()) this.#timer = this.#watch()
      },
      Math.max(1, this.#until.monotonic - systemClock().monotonic),
    )
    return timer.unref()
  }

  #end(): void {
    if (this.#until === NEVER) return
    this.stop()
    this.#over()
  }
}
