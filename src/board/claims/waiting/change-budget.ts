/**
 * Limits the changes that a process receives while it finds no job to claim.
 *
 * Every change of a board reaches every process that views it. On a busy board, many conductors without work cost the servers more
 * than the jobs do. So a process has a budget of changes, a token bucket: it refills with time, and a claim fills it up.
 */
import { monotonic } from '../../../core/time.ts'

export interface ChangeBudgetOptions {
  /** The number of changes that may be received at once. About five belong to one job. */
  readonly burst: number
  /** The number of changes by which the budget refills in a second: traffic below that never spends it. */
  readonly perSecond: number
  /** The longest time in milliseconds for which a spent budget refills: so much of what was received counts. */
  readonly maxRefillMs: number
}

const DEFAULTS: ChangeBudgetOptions = { burst: 2_000, perSecond: 500, maxRefillMs: 600_000 }

export class ChangeBudget {
  readonly #options: ChangeBudgetOptions
  /** Negative when more was received than the budget allows. */
  #left: number
  /** The time of the last refill, in milliseconds on the monotonic clock. */
  #refilledAt = monotonic()
  /** The number that was received when the budget was last charged. */
  #charged = 0

  constructor(options: ChangeBudgetOptions = DEFAULTS) {
    this.#options = options
    this.#left = options.burst
  }

  /** Fills the budget. @param received the number received since the board was opened, which is not charged */
  fill(received: number): void {
    this.#left = this.#options.burst
    this.#refilledAt = monotonic()
    this.#charged = received
  }

  /** Charges what was received since the last call. @param received the number received since the board was opened */
  charge(received: number): void {
    const { burst, perSecond, maxRefillMs } = this.#options
    const now = monotonic()
    const refilled = ((now - this.#refilledAt) * perSecond) / 1_000
    const left = Math.min(burst, this.#left + refilled) - (received - this.#charged)
    this.#left = Math.max(left, -(maxRefillMs * perSecond) / 1_000)
    this.#refilledAt = now
    this.#charged = received
  }

  /** Leaves out what was received since the last call, because no caller waited. @param received as for {@link charge} */
  skip(received: number): void {
    this.#charged = received
  }

  get isSpent(): boolean {
    return this.#left < 0
  }

  /** The time in milliseconds after which the budget is full again, if nothing is received until then. */
  get refillMs(): number {
    const { burst, perSecond, maxRefillMs } = this.#options
    return Math.min(maxRefillMs, ((burst - this.#left) * 1_000) / perSecond)
  }
}
