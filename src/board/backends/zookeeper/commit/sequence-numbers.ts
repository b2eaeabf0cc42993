/**
 * Numbers for postings when ZooKeeper's own numbers are nearly used up.
 *
 * ZooKeeper numbers sequential znodes by the number of children created in their folder, a signed 32-bit number to
 * which locks contribute too. At the limit every further sequential create is refused. From 80 % of the limit on,
 * posters create numbers of 20 digits themselves. These are longer than ZooKeeper's ten digits, so they sort after
 * them; among themselves they sort by time, as far as clocks agree. The claim order is decided by the transaction that
 * posted, not by the digits.
 */

import { randomInt } from 'node:crypto'
import { NodeExists } from '../../../../zookeeper/index.ts'
import type { TransactionStep } from './transaction.ts'

const MAX_SEQUENCE = 2 ** 31 - 1
const SWITCH_FRACTION = 0.8
/** The count of numbers per millisecond, before the numbers run ahead of the clock. */
const NUMBERS_PER_MS = 10_000n
const DIGITS = 20
/** The number of digits of ZooKeeper's own numbers. */
const SERVER_DIGITS = 10
const RANDOM_DIGITS = 3

export class SequenceNumbers {
  readonly #folder: string
  readonly #count: () => number | undefined
  readonly #switchAt: number
  #newest = 0n
  /** The number of postings that were refused because their numbers were taken. */
  #taken = 0
  /** The newest count that was known; at first the count at the opening of the board, later often the count of an own posting. */
  #lastKnown: number | undefined

  /**
   * @param options.newPosting the path without digits
   * @param options.count the number of children created and deleted so far, if it is known
   * @param options.created that number when the board was opened, used while no later one is known
   * @param options.from the count from which numbers are created here
   */
  constructor(options: { newPosting: string; count: () => number | undefined; created?: number; from?: number }) {
    this.#folder = options.newPosting
    this.#count = options.count
    this.#lastKnown = options.created
    this.#switchAt = options.from ?? MAX_SEQUENCE * SWITCH_FRACTION
  }

  /** Notes the path of a posting that ZooKeeper has numbered: a board that only posts knows the count from its own postings. */
  note(path: string): void {
    const digits = path.slice(this.#folder.length)
    if (digits.length <= SERVER_DIGITS) this.#lastKnown = Number(digits)
  }

  /**
   * Notes that a step was refused. If the step creates a posting, and another program has created the znode with the number that ZooKeeper
   * gives next, then {@link next} returns a path with a number of its own. ZooKeeper counts this posting, too, and so skips the taken number.
   */
  noteRefused(error: Error, step: TransactionStep | 'guard' | undefined): void {
    if (step === undefined || step === 'guard' || step.op.type !== 'create') return
    if (error instanceof NodeExists && step.op.sequential && step.op.path === this.#folder) this.#taken += 1
  }

  /** Returns the path of the next posting, or undefined as long as ZooKeeper numbers postings. */
  next(): string | undefined {
    if (this.#taken > 0) {
      this.#taken -= 1
      return this.own()
    }
    this.#lastKnown = this.#count() ?? this.#lastKnown
    const count = this.#lastKnown
    // The count wraps around at its limit.
    if (count === undefined || (count >= 0 && count < this.#switchAt)) return undefined
    return this.own()
  }

  /** Returns the path of the next posting with a number that is created here, for a posting whose path has to be known before. */
  own(): string {
    // The numbers never decrease: jobs that are posted in one transaction are ordered by their digits.
    const now = BigInt(Date.now()) * NUMBERS_PER_MS
    this.#newest = now > this.#newest ? now : this.#newest + 1n
    const chance = String(randomInt(10 ** RANDOM_DIGITS)).padStart(RANDOM_DIGITS, '0')
    return `${this.#folder}${String(this.#newest).padStart(DIGITS - RANDOM_DIGITS, '0')}${chance}`
  }
}
