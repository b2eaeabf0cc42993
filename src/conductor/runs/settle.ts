/** Carries out a verdict: tried until it is done, or the claim is lost. */
import type { Claim, Performed } from '../../board/index.ts'
import { isOutage } from '../../board/internal.ts'
import { settleWithRetries } from '../../core/async/settling.ts'
import { NotFound } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { backoffDelay } from '../../core/time.ts'
import type { Verdict } from './decide.ts'
import type { DisclosurePolicy } from './disclosure.ts'

const MAX_SETTLE_ATTEMPTS = 3

/** Of a job that is given back because of its logbook: long enough for others to come first, and short after an outage. */
const STORAGE_BACK_OFF_MS = { first: 500, max: 60_000 } as const

/** What became of a job here, as of one's own {@link Claim.perform}. */
export type Settled = Performed

/**
 * @param options.failed told of every try that failed for another reason than a missing connection
 * @param options.disclosure what of the reason that a settle itself fails goes to the board
 * @param options.leave once it has fired, what is refused again and again is left to the end of the session
 * @returns what became of the job here; `lost` when it is for others to settle
 */
export async function settle(
  claim: Claim,
  verdict: Verdict,
  options: { onError: (error: unknown) => void; leave: AbortSignal; disclosure: DisclosurePolicy },
): Promise<Settled> {
  let next = verdict
  const refused = (error: unknown, attempt: number): Settled | undefined => {
    if (error instanceof NotFound) return 'lost'
    options.onError(error)
    // Holding on to a job that cannot be settled as decided would keep it from everybody; given back uncharged, it
    // would come back for ever.
    next = {
      settle: 'abandon',
      failed: true,
      reason: options.disclosure.text(`it could not be settled: ${describeError(error)}`),
    }
    return options.leave.aborted && attempt >= MAX_SETTLE_ATTEMPTS ? 'lost' : undefined
  }
  return settleWithRetries(claim.stops, () => applyVerdict(claim, next), refused)
}

async function applyVerdict(claim: Claim, verdict: Verdict): Promise<Settled> {
  switch (verdict.settle) {
    case 'nothing':
      return 'lost'
    case 'consume':
      await claim.consume()
      return 'consumed'
    case 'abandon': {
      const newestRun = verdict.newestRun === undefined ? {} : { newestRun: verdict.newestRun }
      const delay = verdict.rests ? { delay: restAfter(claim) } : {}
      await claim.abandon({ reason: verdict.reason, failed: verdict.failed ?? false, ...newestRun, ...delay })
      return 'abandoned'
    }
    case 'fail':
      return claim.fail(verdict.failure)
    case 'trash':
      await claim.trash({ reason: verdict.reason, failure: verdict.failure })
      return 'trashed'
  }
}

/** Longer each time that it was given back in a row. */
function restAfter({ job }: Claim): number {
  // The newest attempt is the one under way.
  const before = job.attempts.slice(0, -1).filter((attempt) => !isOutage(attempt))
  const other = before.findLastIndex(({ ended }) => ended !== 'returned')
  return backoffDelay(before.length - other, STORAGE_BACK_OFF_MS)
}
