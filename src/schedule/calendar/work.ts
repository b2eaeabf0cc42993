/**
 * The budget of a computation. A rule, its exclusions and its bounds share one budget, so that no stored rule can keep the process from its
 * other work.
 */
import { InvalidArgument } from '../../core/errors.ts'

/** The units of one computation. A unit is a day, a time or a step that is checked. Several units together take a microsecond. */
const MAX_UNITS = 100_000

/** The budget of one computation. */
export class Work {
  readonly #what: string
  #left: number

  /** @param what the rule, for the error */
  constructor(what: string, units = MAX_UNITS) {
    this.#what = what
    this.#left = units
  }

  /** Whether more than half is spent: computations that need not be exact stop then. */
  get isHalfSpent(): boolean {
    return this.#left < MAX_UNITS / 2
  }

  /** Spends units of the budget. @throws InvalidArgument if there are not enough left */
  spend(units = 1): void {
    this.#left -= units
    if (this.#left < 0)
      throw new InvalidArgument(
        `${this.#what} takes too long to compute: more than ${MAX_UNITS} days and times were looked at; use a narrower rule, a shorter FREQ, or dates in exclude`,
      )
  }
}
