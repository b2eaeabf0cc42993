/** How long a test waits for what it waits for: in real time, so that a test that hangs says for what. */
import { abortAfter, followSignals, rejectOnAbort } from '../core/async/abort.ts'
import { Timeout } from '../core/errors.ts'
import type { Duration } from '../core/time.ts'

/** How long a test waits before it is told for what in vain. */
export interface WaitLimit {
  /** How long to wait, in real time; 5 s by default. */
  readonly within?: Duration
}

/**
 * What `wait` resolves to.
 *
 * @param late says what was waited for, and what there was instead
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
