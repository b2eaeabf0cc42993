/** Waiting for a storage that is away, without doing anything twice. */
import { StorageFailure } from '../core/errors.ts'
import { backoff, monotonic, sleep } from '../core/time.ts'

export interface Patience {
  /** How long to go on trying, in milliseconds. */
  readonly limit: number
  /** Ends the waiting: what is being tried is the last try. */
  readonly signal: AbortSignal
  /** What is worth another try; a StorageFailure that is `retryable` by default. */
  readonly isPassing?: (error: unknown) => boolean
}

const FIRST = 50
const LONGEST = 2_000

/**
 * Repeats what has failed for a passing reason (a StorageFailure that is `retryable`), with growing pauses, up to the
 * limit. What is repeated may have been done: it must do nothing twice.
 *
 * @param work is told the number of the try, from 1
 * @throws what the last try has thrown
 */
export async function patiently<T>(patience: Patience, work: (attempt: number) => Promise<T>): Promise<T> {
  const { limit, signal, isPassing = isRetryable } = patience
  const end = monotonic() + limit
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt)
    } catch (error) {
      const pause = backoff(attempt, { first: FIRST, max: LONGEST })
      if (!isPassing(error) || signal.aborted || monotonic() + pause > end) throw error
      await sleep(pause, { signal }).catch(() => undefined)
    }
  }
}

function isRetryable(error: unknown): boolean {
  return error instanceof StorageFailure && error.retryable
}
