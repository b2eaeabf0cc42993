/** Waiting for a storage that is away, without doing anything twice. */
import { StorageFailure } from '../core/errors.ts'
import { backoffDelay, monotonic, sleep } from '../core/time.ts'

export interface RetryPolicy {
  /** How long to go on trying, in milliseconds. */
  readonly limitMs: number
  /** Ends the waiting: what is being tried is the last try. */
  readonly signal: AbortSignal
  /** What is worth another try; a StorageFailure that is `retryable` by default. */
  readonly isTransient?: (error: unknown) => boolean
}

const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 2_000

/**
 * Repeats what has failed for a passing reason (a StorageFailure that is `retryable`), with growing pauses, up to the
 * limit. What is repeated may have been done: it must do nothing twice.
 *
 * @param work is told the number of the try, from 1
 * @throws what the last try has thrown
 */
export async function retryTransient<T>(policy: RetryPolicy, work: (attempt: number) => Promise<T>): Promise<T> {
  const { limitMs, signal, isTransient = isRetryable } = policy
  const end = monotonic() + limitMs
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt)
    } catch (error) {
      const pause = backoffDelay(attempt, { first: FIRST_PAUSE_MS, max: MAX_PAUSE_MS })
      if (!isTransient(error) || signal.aborted || monotonic() + pause > end) throw error
      await sleep(pause, { signal }).catch(() => undefined)
    }
  }
}

function isRetryable(error: unknown): boolean {
  return error instanceof StorageFailure && error.retryable
}
