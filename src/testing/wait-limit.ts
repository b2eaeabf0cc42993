/** Time limits of waits in tests, in real time: a test that hangs reports what it waits for. */
import { abortAfter, followSignals, rejectOnAbort } from '../core/async/abort.ts'
import { Timeout } from '../core/errors.ts'
import type { Duration } from '../core/time.ts'

/** The time limit of a wait. */
export interface WaitLimit {
  /** The limit, in real time; 5 s by default. */
  readonly within?: Duration
}

/**
 * Resolves as `wait` does, within the limit.
 *
 * @param late returns the message: the awaited event, and what happened instead
 * @throws Timeout
 */
export async function withinLimit<T>(
  { within: limit = '5s' }: WaitLimit,
  wait: (options: { signal: AbortSignal }) => Promise<T>,
  late: () => string,
): Promise<T> {
  using stop = followSignals([])
  using _timer = abortAfter(stop, limit, (time) => new Timeout(`not within ${time}: ${late()}`))
  return await rejectOnAbort(wait(stop), stop.signal)
}
