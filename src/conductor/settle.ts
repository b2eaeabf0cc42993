/** Carries out a verdict: tried until it is done, or the claim is lost. */
import type { Claim } from '../board/index.ts'
import { ClaimLost, JobboardError, NotFound } from '../core/errors.ts'
import { describeError } from '../core/failure.ts'
import { backoff, sleep } from '../core/time.ts'
import type { Verdict } from './decide.ts'

const LAST_TRIES = 3

export type Settled = 'consumed' | 'abandoned' | 'trashed' | 'lost'

/**
 * @param options.failed told of every try that failed for another reason than a missing connection
 * @param options.leave once it has fired, what is refused again and again is left to the end of the session
 * @returns what became of the job here; `lost` when it is for others to settle
 */
export async function settle(
  claim: Claim,
  verdict: Verdict,
  options: { failed: (error: unknown) => void; leave: AbortSignal },
): Promise<Settled> {
  let next = verdict
  for (let attempt = 1; !claim.lost.aborted; attempt += 1) {
    try {
      return await carryOut(claim, next)
    } catch (error) {
      if (error instanceof ClaimLost || error instanceof NotFound) return 'lost'
      if (!(error instanceof JobboardError && error.retryable)) {
        options.failed(error)
        // Holding on to a job that cannot be settled as decided would keep it from everybody; given back uncharged, it
        // would come back for ever.
        next = { settle: 'abandon', failed: true, reason: `it could not be settled: ${describeError(error)}` }
        if (options.leave.aborted && attempt >= LAST_TRIES) return 'lost'
      }
      await sleep(backoff(attempt, { first: 50, max: 2_000 }), { signal: claim.lost }).catch(() => undefined)
    }
  }
  return 'lost'
}

async function carryOut(claim: Claim, verdict: Verdict): Promise<Settled> {
  switch (verdict.settle) {
    case 'nothing':
      return 'lost'
    case 'consume':
      await claim.consume()
      return 'consumed'
    case 'abandon': {
      const newestRun = verdict.newestRun === undefined ? {} : { newestRun: verdict.newestRun }
      await claim.abandon({ reason: verdict.reason, failed: verdict.failed ?? false, ...newestRun })
      return 'abandoned'
    }
    case 'fail':
      return claim.fail(verdict.failure)
    case 'trash':
      await claim.trash({ reason: verdict.reason, failure: verdict.failure })
      return 'trashed'
  }
}
