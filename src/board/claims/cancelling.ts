/** Cancels jobs, and delivers cancel requests to the claims that this board object holds. */
import { Cancelled, Unclaimable } from '../../core/errors.ts'
import type { Backend, Cancellation, StoredJob } from '../contract/index.ts'
import { refusalError } from '../contract/refusals.ts'
import { Job } from '../jobs/job.ts'
import { readJob } from '../jobs/read-jobs.ts'
import type { JobEntry } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'
import type { Claim } from './claim.ts'
import { cancellationReason, NO_REASON } from './claim-options.ts'
import type { HeldClaims } from './held-claims.ts'
import type { Settler } from './settling.ts'

export interface CancellerOptions {
  readonly backend: Pick<Backend, 'jobs' | 'signals'>
  readonly view: Pick<LiveView, 'applyOwnChange'>
  readonly held: Pick<HeldClaims, 'of'>
  readonly settler: Pick<Settler, 'discard' | 'doomed'>
  readonly who: string
}

/** The reason of a cancellation, and the person or program that asks for it: this process by default. */
export interface CancelReason {
  readonly who?: string | undefined
  readonly reason: string
}

/** The cancel requests that one board object makes and receives. */
export class Canceller {
  readonly #options: CancellerOptions

  constructor(options: CancellerOptions) {
    this.#options = options
  }

  /** Trashes a job that was never run; for other jobs, records a cancel request. @throws NotFound */
  async cancel(job: Job, { who = this.#options.who, ...request }: CancelReason): Promise<void> {
    const { backend, view } = this.#options
    const reason = request.reason.toWellFormed()
    const entry = Job.entryFor(job)
    const { id, ended, claimed } = entry
    if (ended || id === undefined) throw refusalError(String(job), { why: 'gone' })
    const hasRun = claimed || (entry.stored?.posting.runs ?? 0) > 0
    let stored = hasRun ? undefined : await readJob(entry, backend)
    while (stored?.posting.runs === 0) {
      if (await this.#trashNeverRun(entry, stored, { who, reason })) return
      // Another post with its key may have replaced the posting: then a request alone would leave the job on the board until the next claim.
      const [found] = await backend.jobs.read([id])
      if (!found || 'error' in found || found.revision === stored.revision) break
      stored = found
    }
    await backend.signals.cancel({ id, job: String(job), who, reason })
    view.applyOwnChange(entry, 'cancelled')
  }

  /** Handles a cancel request for a job. This board object may hold its claim or not. */
  requested(entry: JobEntry): void {
    const { held, settler } = this.#options
    const claim = held.of(entry)
    if (claim && entry.id !== undefined) void this.#notify(entry.id, claim)
    else if (!claim) settler.doomed.noteShown(entry)
  }

  /** Cancels a claim that was just granted, for a job whose cancel was requested before. */
  async deliverEarlier(id: string, claim: Claim): Promise<void> {
    await this.#notify(id, claim)
    claim.noteCancelledBefore()
  }

  /** Trashes a job that never ran; returns false if it has another revision: it was claimed, or its posting was replaced. */
  async #trashNeverRun(entry: JobEntry, stored: StoredJob, cancellation: Cancellation): Promise<boolean> {
    const { settler, view } = this.#options
    const { id, revision, posting } = stored
    const { cancelRequested } = entry
    const reason = cancellationReason(cancellation)
    try {
      await settler.discard(entry, { id, revision, posting, cancelRequested, reason })
      view.applyOwnChange(entry, 'trashed')
      return true
    } catch (error) {
      if (error instanceof Unclaimable) return false
      throw error
    }
  }

  /** Cancels the claim. The name and reason in the request are for people: without them the claim is cancelled, too. */
  async #notify(id: string, claim: Claim): Promise<void> {
    const request = await this.#options.backend.signals.cancellation(id).catch(() => undefined)
    const trashReason = cancellationReason(request ?? { who: 'an unknown owner', reason: NO_REASON })
    claim.requestCancel(new Cancelled(`${claim.job}: ${trashReason}`, { trashReason }))
  }
}
