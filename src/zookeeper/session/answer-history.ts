/** Times of requests, in the order in which their answers were received. */
import type { Instant } from '../../core/clock.ts'

export interface ReceivedAnswer {
  readonly sentAt: Instant
  /** Time on the monotonic clock, in milliseconds. */
  readonly receivedAt: number
}

export interface AnswerHistoryOptions {
  /** Interval in milliseconds within which answers count as one: thousands arrive in every second. */
  readonly grain: number
  /** Age in milliseconds, relative to the newest request, from which entries are dropped. */
  readonly lifetime: number
}

export class AnswerHistory {
  readonly #options: AnswerHistoryOptions
  readonly #answers: ReceivedAnswer[] = []

  constructor(options: AnswerHistoryOptions) {
    this.#options = options
  }

  /** Adds an answer. Called in the order of sending, which is the order of receiving. */
  add(next: ReceivedAnswer): void {
    const { grain, lifetime } = this.#options
    const answers = this.#answers
    const before = answers.at(-2)
    // The newer of two answers that count as one replaces both: a later time of receipt can only make it count later.
    if (before && next.receivedAt - before.receivedAt < grain) answers.pop()
    answers.push(next)
    const oldest = next.sentAt.monotonic - lifetime
    const useful = answers.findIndex(({ sentAt }) => sentAt.monotonic > oldest)
    if (useful > 0) answers.splice(0, useful)
  }

  /** Removes the answers that were received by then; returns when the newest of their requests was sent. */
  takeUntil(receivedBy: number): Instant | undefined {
    const later = this.#answers.findIndex(({ receivedAt }) => receivedAt > receivedBy)
    if (later === 0) return undefined
    return this.#answers.splice(0, later < 0 ? this.#answers.length : later).at(-1)?.sentAt
  }

  clear(): void {
    this.#answers.length = 0
  }
}
