/** What was asked when, in the order in which the answers were heard. */
import type { Instant } from '../core/clock.ts'

export interface Heard {
  readonly sentAt: Instant
  /** On the monotonic clock. */
  readonly heardAt: number
}

export interface TrailOptions {
  /** Answers heard closer together than so many milliseconds may count as one: thousands come in every second. */
  readonly grain: number
  /** What was asked so many milliseconds before the newest is of no use any more. */
  readonly lifetime: number
}

export class Trail {
  readonly #options: TrailOptions
  readonly #heard: Heard[] = []

  constructor(options: TrailOptions) {
    this.#options = options
  }

  /** Called in the order of sending, and so of hearing. */
  add(next: Heard): void {
    const { grain, lifetime } = this.#options
    const heard = this.#heard
    const before = heard.at(-2)
    // The newer of two that count as one stands for both: it was heard later, which can only make it count later.
    if (before && next.heardAt - before.heardAt < grain) heard.pop()
    heard.push(next)
    const oldest = next.sentAt.monotonic - lifetime
    const useful = heard.findIndex(({ sentAt }) => sentAt.monotonic > oldest)
    if (useful > 0) heard.splice(0, useful)
  }

  /** Forgets whatever was heard by then; when the newest of it was sent. */
  takeUntil(heardBy: number): Instant | undefined {
    const later = this.#heard.findIndex(({ heardAt }) => heardAt > heardBy)
    if (later === 0) return undefined
    return this.#heard.splice(0, later < 0 ? this.#heard.length : later).at(-1)?.sentAt
  }

  clear(): void {
    this.#heard.length = 0
  }
}
