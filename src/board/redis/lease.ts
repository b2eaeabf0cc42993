/**
 * Until when this owner is certain to be alive: its key has a TTL, and was given it anew at some time after the request was
 * sent. So the lease ends one TTL after the newest answered request was sent, less a margin for whoever acts on it.
 */
import { monotonic } from '../../core/time.ts'

export class Lease {
  readonly #length: number
  readonly #over: () => void
  #until = Number.NEGATIVE_INFINITY
  /** The same on the wall clock, which goes on while the machine is suspended. */
  #wallUntil = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /** @param over told once, when the lease is over; by a timer, or by {@link holds} where that is sooner */
  constructor(options: { readonly ttl: number; readonly over: () => void }) {
    this.#length = options.ttl - Math.min(options.ttl / 5, 2_000)
    this.#over = options.over
  }

  /** A request that was sent then has been answered. */
  extend(sentAt: number): void {
    const until = sentAt + this.#length
    if (until <= this.#until) return
    this.#until = until
    this.#wallUntil = Date.now() + until - monotonic()
    this.#timer ??= this.#watch()
  }

  /** Whether it lasts at this instant. Tells of its end first. */
  holds(): boolean {
    if (this.#until > monotonic() && this.#wallUntil > Date.now()) return true
    this.#end()
    return false
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#until = this.#wallUntil = Number.NEGATIVE_INFINITY
  }

  /** One timer for many extensions: it looks when the lease was to end as it was set. */
  #watch(): NodeJS.Timeout {
    const timer = setTimeout(
      () => {
        this.#timer = undefined
        if (this.holds()) this.#timer = this.#watch()
      },
      Math.max(1, this.#until - monotonic()),
    )
    return timer.unref()
  }

  #end(): void {
    if (this.#until === Number.NEGATIVE_INFINITY) return
    this.stop()
    this.#over()
  }
}
