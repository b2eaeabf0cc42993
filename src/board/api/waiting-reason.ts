/** Finds out why a job waits, with what only this board object knows: refused claims, and who has paused the board. */
import type { ClaimParts } from '../claims/assemble-claims.ts'
import { Job } from '../jobs/job.ts'
import { readTokenReason, type WaitingFor } from '../jobs/waiting-for.ts'
import type { LimitBook } from '../limits/limit-book.ts'
import type { Limits } from '../limits/limits.ts'
import { describePause } from '../records/pause-record.ts'
import type { BackendEventRouter } from './events/backend-event-router.ts'
import type { Lookup } from './lookup.ts'
import type { Pausing } from './pausing.ts'

export interface WaitingReasonParts {
  readonly lookup: Lookup
  readonly claims: Pick<ClaimParts, 'held' | 'rejected'>
  readonly limitBook: LimitBook
  readonly limits: Limits
  readonly router: Pick<BackendEventRouter, 'paused'>
  readonly pausing: Pick<Pausing, 'origin'>
  readonly who: string
}

/** Returns the known reason why the job is not run. @throws NotFound, NotConnected */
export async function findWaitingReason(job: Job, parts: WaitingReasonParts): Promise<WaitingFor | undefined> {
  const { lookup, claims, limitBook, limits, router, pausing, who } = parts
  // Changes come by a watch: without this, a key that this process has just held or resumed would be as it was before.
  if (limitBook.revision !== undefined) await limitBook.refresh().catch(() => undefined)
  const { suspects } = claims.held
  const reason = await lookup.waitingFor(job, {
    paused: () => router.paused,
    suspects: { place: suspects, who },
  })
  // The reason is certain without the record of the pause, which only adds the person and the cause.
  if (reason?.kind === 'pause' && reason.queue === undefined)
    return { ...reason, text: describePause(await pausing.origin().catch(() => undefined)) }
  const own = reason ? undefined : await lookup.toOwnEntry(job)
  const refusal = own && claims.rejected.refusalOf(Job.entryFor(own))
  if (refusal) return { kind: 'refusal', text: `its claim was refused, and is tried again: ${refusal.message}` }
  if (reason || !limits.isSupported || job.state !== 'UNCLAIMED') return reason
  return readTokenReason(job, limits)
}
