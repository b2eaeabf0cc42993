/** Settles a claim with retries, until it is settled or lost: an owner keeps its job while its connection is interrupted. */
import { ClaimLost, JobboardError, NotConnected, OutcomeUnknown } from '../errors.ts'
import { backoffDelay, sleep } from '../time.ts'
import { type Stoppable, toAbortSignal } from './stop.ts'

/**
 * Calls `settle` until it resolves, or the claim is lost.
 *
 * @param settle called again, after a pause, when there is no connection or the outcome of the last attempt is unknown
 * @param refused called with every other error and the number of the attempt. It throws, returns the end of the job, or
 * returns undefined to try again
 * @returns `lost` when another owner has to settle the job; `unknown` when one of the attempts may have settled it
 */
export async function settleWithRetries<T>(
  claim: { readonly lost: Stoppable },
  settle: () => Promise<T>,
  refused: (error: unknown, attempt: number) => T | undefined,
): Promise<T | 'lost' | 'unknown'> {
  let unknown = false
  for (let attempt = 1; !claim.lost.aborted; attempt += 1) {
    try {
      return await settle()
    } catch (error) {
      if (error instanceof ClaimLost) break
      if (error instanceof OutcomeUnknown) unknown = true
      else if (!isTransient(error)) {
        const end = refused(error, attempt)
        if (end !== undefined) return end
      }
    }
    await sleep(backoffDelay(attempt, { first: 50, max: 2_000 }), { signal: toAbortSignal(claim.lost) }).catch(
      () => undefined,
    )
  }
  return unknown ? 'unknown' : 'lost'
}

/** Whether another attempt may succeed. The error of a closed board is NotConnected, too; it loses its claims soon after. */
function isTransient(error: unknown): boolean {
  return error instanceof NotConnected || (error instanceof JobboardError && error.retryable)
}
