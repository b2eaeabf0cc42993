/** What a retry knows of the attempts so far: the value it gave each, and what failed in it. */
import type { Failure } from '../../core/failure.ts'

/** Plain data, as it is kept in the record of the retry. */
export interface RetryAttempt<R = unknown> {
  /** What the retry's `execute` returned for this attempt. */
  readonly value: R
  /** The first failure of each atom, in the order in which they came. */
  readonly failures: readonly { readonly atom: string; readonly failure: Failure }[]
}

/** What a retry has tried so far: a value for each attempt, and what failed in it. */
export class History<R = unknown> {
  /** Oldest first; the last is the one under way, or the one that failed just now. */
  readonly attempts: readonly RetryAttempt<R>[]
  /** Why the retry itself failed, if it did. */
  readonly failure: Failure | undefined

  constructor(attempts: readonly RetryAttempt<R>[], failure?: Failure) {
    this.attempts = attempts
    this.failure = failure
  }

  get length(): number {
    return this.attempts.length
  }

  /** What was given to each attempt. */
  get provided(): readonly R[] {
    return this.attempts.map(({ value }) => value)
  }

  /**
   * Whether an atom failed of this error, or because of it.
   *
   * @param error the name of an error's class, or its `code`
   * @param options.attempt counted from 0, or from the end if negative; of all attempts by default
   * @param options.includeRetry whether the failure of the retry itself counts
   * @example history.causedBy('TimeoutError', { attempt: -1 })
   */
  causedBy(error: string, options: { readonly attempt?: number; readonly includeRetry?: boolean } = {}): boolean {
    const { attempt, includeRetry = false } = options
    const one = attempt === undefined ? undefined : this.attempts.at(attempt)
    const asked = attempt === undefined ? this.attempts : one ? [one] : []
    const failures = asked.flatMap((each) => each.failures.map(({ failure }) => failure))
    if (includeRetry && this.failure) failures.push(this.failure)
    return failures.some((failure) => isCausedBy(failure, error))
  }
}

function isCausedBy({ name, code, causes = [] }: Failure, error: string): boolean {
  return name === error || code === error || causes.some((cause) => isCausedBy(cause, error))
}
