/** The history of a retry: the attempts so far, each with its value and its failures. */
import type { Failure } from '../../core/failure.ts'

/** An attempt, as plain data in the record of the retry. */
export interface RetryAttempt<R = unknown> {
  /** The result of the retry's `execute` for this attempt. */
  readonly value: R
  /** The first failure of each atom, in order of time. */
  readonly failures: readonly { readonly atom: string; readonly failure: Failure }[]
}

/** The attempts of a retry so far: each with its value and its failures. */
export class History<R = unknown> {
  /** The attempts, oldest first; the last is under way, or failed just now. */
  readonly attempts: readonly RetryAttempt<R>[]
  /** The failure of the retry itself, if it failed. */
  readonly failure: Failure | undefined

  constructor(attempts: readonly RetryAttempt<R>[], failure?: Failure) {
    this.attempts = attempts
    this.failure = failure
  }

  get length(): number {
    return this.attempts.length
  }

  /** The values of the attempts, oldest first. */
  get provided(): readonly R[] {
    return this.attempts.map(({ value }) => value)
  }

  /**
   * Whether an atom failed with this error, or because of it.
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
