/** Retries operations of a storage that is away, without doing anything twice. */
import { StorageFailure } from '../core/errors.ts'
import { backoffDelay, monotonic, sleep } from '../core/time.ts'

export interface RetryPolicy {
  /** The time limit for retries. */
  readonly limitMs: number
  /** The signal that ends the retries: the present try is then the last one. */
  readonly signal: AbortSignal
  /** Returns whether an error is worth another try; by default a `retryable` StorageFailure. */
  readonly isTransient?: (error: unknown) => boolean
}

const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 2_000

/**
 * Repeats work that failed for a temporary reason (a `retryable` StorageFailure), with growing pauses, up to the time
 * limit. The failed work may have been done: repeating it must do nothing twice.
 *
 * @param work called with the number of the try, from 1
 * @throws the error of the last try
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
