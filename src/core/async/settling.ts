/** Settling is tried until it is done or the claim is lost: an owner that nobody hears for a moment still owns its job. */
import { ClaimLost, JobboardError, NotConnected, OutcomeUnknown } from '../errors.ts'
import { backoffDelay, sleep } from '../time.ts'
import { type Stoppable, toAbortSignal } from './stop.ts'

/**
 * @param settle tried again, after a pause, when there is no connection or nobody can tell what became of the last try
 * @param refused told of every other failure, and which try it was: throws, says what the job's end is, or, with
 * undefined, has it tried again
 * @returns `lost` when it is for others to settle; `unknown` when one of the tries may have been the end of the job
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

/** A board that was closed is not connected for good, and its claims are lost in a moment. */
function isTransient(error: unknown): boolean {
  return error instanceof NotConnected || (error instanceof JobboardError && error.retryable)
}
