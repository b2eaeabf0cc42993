/** Carries out a verdict: tries until it is done, or until the claim is lost. */
import type { Claim, Performed } from '../../board/index.ts'
import { isOutage } from '../../board/internal.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import type { HeldBackWrite } from '../../core/async/held-back-write.ts'
import { settleWithRetries } from '../../core/async/retry.ts'
import { NonRetryable, NotFound, PayloadTooLarge, UnsupportedCapability } from '../../core/errors.ts'
import { describeError, failureOf } from '../../core/failure.ts'
import { defined } from '../../core/options.ts'
import { backoffDelay } from '../../core/time.ts'
import type { Verdict } from './decide.ts'
import type { DisclosurePolicy } from './disclosure.ts'

const MAX_SETTLE_ATTEMPTS = 3

/**
 * The back-off of a job that is given back because of its logbook: long enough for others to come first, and short
 * after an outage.
 */
const STORAGE_BACK_OFF_MS = { first: 500, max: 60_000 } as const

/** The result for the job, as for {@link Claim.perform}. */
export type Settled = Performed

/**
 * Settles a claim as the verdict says.
 *
 * @param options.onError called with the error of every try that failed, except when the claim was lost
 * @param options.disclosure the policy for the reason of a failed settlement on the board
 * @param options.leave after it has fired, a settlement that is refused again and again is left to the end of the
 * session
 * @returns the result for the job; `lost` when others settle it
 */
export async function settle(
  claim: Claim,
  verdict: Verdict,
  options: { onError: (error: unknown) => void; leave: Stoppable; disclosure: DisclosurePolicy },
): Promise<Settled> {
  let next = verdict
  const refused = (error: unknown, attempt: number): Settled | undefined => {
    if (error instanceof NotFound) return 'lost'
    options.onError(error)
    const isImpossible = error instanceof UnsupportedCapability || error instanceof PayloadTooLarge
    if ('added' in next && isImpossible) {
      next = toTrash(
        options.disclosure.text(`the resources or limits that its flow declares cannot be added: ${error.message}`),
      )
      return undefined
    }
    // A job that cannot be settled as decided must not be held, because no owner could claim it; given back uncharged,
    // it would come back forever.
    next = {
      settle: 'abandon',
      failed: true,
      reason: options.disclosure.text(`settling failed: ${describeError(error)}`),
    }
    return options.leave.aborted && attempt >= MAX_SETTLE_ATTEMPTS ? 'lost' : undefined
  }
  return settleWithRetries(claim.stops, () => applyVerdict(claim, next), refused)
}

/**
 * Consumes a job and records the end of its flow in one transaction. Tries until it is done, or until the claim is lost.
 *
 * @returns the result for the job; undefined if the board or the logbook has refused: then nothing was done
 */
export async function consumeWithRecord(
  claim: Claim,
  { results, record }: { readonly results?: Uint8Array | undefined; readonly record: HeldBackWrite },
): Promise<Settled | undefined> {
  const consume = async () => {
    await claim.consumeWith(results, record)
    return 'consumed' as const
  }
  const refused = (error: unknown) => (error instanceof NotFound ? 'lost' : 'refused')
  const settled = await settleWithRetries<Settled | 'refused'>(claim.stops, consume, refused)
  return settled === 'refused' ? undefined : settled
}

async function applyVerdict(claim: Claim, verdict: Verdict): Promise<Settled> {
  switch (verdict.settle) {
    case 'nothing':
      return 'lost'
    case 'consume':
      await claim.consumeWith(verdict.results)
      return 'consumed'
    case 'abandon': {
      const { reason, failed = false, newestRun, added } = verdict
      if (added) {
        await claim.amend(added, reason)
        return 'abandoned'
      }
      const delay = verdict.rests ? restAfter(claim) : verdict.delay
      await claim.abandon({ reason, failed, ...defined({ newestRun, delay }) })
      return 'abandoned'
    }
    case 'fail':
      return claim.fail(verdict.failure)
    case 'trash':
      await claim.trash({ reason: verdict.reason, failure: verdict.failure })
      return 'trashed'
  }
}

function toTrash(reason: string): Verdict {
  return { settle: 'trash', reason, failure: failureOf(new NonRetryable(reason)) }
}

/** Returns the delay: longer after each consecutive return. */
function restAfter({ job }: Claim): number {
  // The newest attempt is the present one.
  const before = job.attempts.slice(0, -1).filter((attempt) => !isOutage(attempt))
  const other = before.findLastIndex(({ ended }) => ended !== 'returned')
  return backoffDelay(before.length - other, STORAGE_BACK_OFF_MS)
}
