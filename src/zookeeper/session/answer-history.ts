/** What was asked when, in the order in which the answers were heard. */
import type { Instant } from '../../core/clock.ts'

export interface ReceivedAnswer {
  readonly sentAt: Instant
  /** On the monotonic clock. */
  readonly receivedAt: number
}

export interface AnswerHistoryOptions {
  /** Answers heard closer together than so many milliseconds may count as one: thousands come in every second. */
  readonly grain: number
  /** What was asked so many milliseconds before the newest is of no use any more. */
  readonly lifetime: number
}

export class AnswerHistory {
  readonly #options: AnswerHistoryOptions
  readonly #answers: ReceivedAnswer[] = []

  constructor(options: AnswerHistoryOptions) {
    this.#options = options
  }

  /** Called in the order of sending, and so of hearing. */
  add(next: ReceivedAnswer): void {
    const { grain, lifetime } = this.#options
    const answers = this.#answers
    const before = answers.at(-2)
    // The newer of two that count as one stands for both: it was heard later, which can only make it count later.
    if (before && next.receivedAt - before.receivedAt < grain) answers.pop()
    answers.push(next)
    const oldest = next.sentAt.monotonic - lifetime
    const useful = answers.findIndex(({ sentAt }) => sentAt.monotonic > oldest)
    if (useful > 0) answers.splice(0, useful)
  }

  /** Forgets whatever was heard by then; when the newest of it was sent. */
  takeUntil(heardBy: number): Instant | undefined {
    const later = this.#answers.findIndex(({ receivedAt }) => receivedAt > heardBy)
    if (later === 0) return undefined
    return this.#answers.splice(0, later < 0 ? this.#answers.length : later).at(-1)?.sentAt
  }

  clear(): void {
    this.#answers.length = 0
  }
}
