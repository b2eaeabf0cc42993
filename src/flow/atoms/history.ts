/** The history of a retry: the attempts so far, each with its value and its failures. */
import type { Failure } from '../../core/failure.ts'
import { countAttempts, countForgotten, expandAttempts, type KeptAttempt, type RetryAttempt } from './kept-history.ts'

export type { RetryAttempt } from './kept-history.ts'

/**
 * The attempts of a retry so far. If there are more than 19, the record keeps the first 3 and the last 16 whole. The others have values,
 * but no failures (see `kept-history.ts`).
 */
export class History<R = unknown> {
  /** The failure of the retry itself, if it failed. */
  readonly failure: Failure | undefined
  readonly #kept: readonly KeptAttempt<R>[]
  #attempts: readonly RetryAttempt<R>[] | undefined

  constructor(kept: readonly KeptAttempt<R>[], failure?: Failure) {
    this.#kept = kept
    this.failure = failure
  }

  /** The attempts, oldest first; the last is under way, or failed just now. */
  get attempts(): readonly RetryAttempt<R>[] {
    this.#attempts ??= expandAttempts(this.#kept) as readonly RetryAttempt<R>[]
    return this.#attempts
  }

  get length(): number {
    return countAttempts(this.#kept)
  }

  /** The values of the attempts, oldest first. If there are very many different values, the oldest are undefined. */
  get provided(): readonly R[] {
    return this.attempts.map(({ value }) => value)
  }

  /** @internal The number of attempts whose values are not known any more. */
  get forgotten(): number {
    return countForgotten(this.#kept)
  }

  /**
   * Returns whether an atom failed with this error, or because of it.
   *
   * @param error the name of an error's class, or its `code`
   * @param options.attempt counted from 0, or from the end if negative; of all attempts by default
   * @param options.includeRetry whether the failure of the retry itself counts
   * @example history.causedBy('TimeoutError', { attempt: -1 })
   */
  causedBy(error: string, options: { readonly attempt?: number; readonly includeRetry?: boolean } = {}): boolean {
    const { attempt, includeRetry = false } = options
    const one = attempt === undefined ? undefined : this.attempts.at(attempt)
    const chosen = attempt === undefined ? this.attempts : one ? [one] : []
    const failures = chosen.flatMap((each) => each.failures.map(({ failure }) => failure))
    if (includeRetry && this.failure) failures.push(this.failure)
    const counted = attempt === undefined ? this.#kept.flatMap(({ omitted }) => omitted?.errors ?? []) : []
    return failures.some((failure) => isCausedBy(failure, error)) || counted.some(([name]) => name === error)
  }
}

function isCausedBy({ name, code, causes = [] }: Failure, error: string): boolean {
  return name === error || code === error || causes.some((cause) => isCausedBy(cause, error))
}
