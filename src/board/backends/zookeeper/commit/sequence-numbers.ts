/**
 * Numbers for postings, near the end of ZooKeeper's own.
 *
 * ZooKeeper numbers sequential znodes by their folder's count of children made, a signed 32-bit number which locks use up
 * too; at its end every sequential create is refused, for good. From 80 % on posters make numbers of 20 digits themselves:
 * longer than any of ZooKeeper's ten, so they are later in digits too; in time's order, as far as clocks agree. What comes
 * first is decided by the transaction that posted, not by digits.
 */
import { randomInt } from 'node:crypto'

const MAX_SEQUENCE = 2 ** 31 - 1
const SWITCH_FRACTION = 0.8
/** So many in a millisecond, before the numbers run ahead of the clock. */
const NUMBERS_PER_MS = 10_000n
const DIGITS = 20
const RANDOM_DIGITS = 3

export class SequenceNumbers {
  readonly #folder: string
  readonly #count: () => number | undefined
  readonly #switchAt: number
  #newest = 0n

  /**
   * @param options.newPosting the path, without digits
   * @param options.count how many children were made and taken away so far, if that is known
   * @param options.from from which count on numbers are made here
   */
  constructor(options: { newPosting: string; count: () => number | undefined; from?: number }) {
    this.#folder = options.newPosting
    this.#count = options.count
    this.#switchAt = options.from ?? MAX_SEQUENCE * SWITCH_FRACTION
  }

  /** The path of the next posting; undefined where ZooKeeper still numbers. */
  next(): string | undefined {
    const count = this.#count()
    // At its end the count wraps around.
    if (count === undefined || (count >= 0 && count < this.#switchAt)) return undefined
    // Never backwards: what is posted in one transaction is put in order by its digits.
    const now = BigInt(Date.now()) * NUMBERS_PER_MS
    this.#newest = now > this.#newest ? now : this.#newest + 1n
    const chance = String(randomInt(10 ** RANDOM_DIGITS)).padStart(RANDOM_DIGITS, '0')
    return `${this.#folder}${String(this.#newest).padStart(DIGITS - RANDOM_DIGITS, '0')}${chance}`
  }
}
