/** Requests about a job that the caller names: its claim, settlement, cancellation and release. The job may have another owner. */
import type { ClaimParts } from '../claims/assemble-claims.ts'
import type { Claim } from '../claims/claim.ts'
import {
  assertCancelOptions,
  assertReleaseOptions,
  type CancelOptions,
  NO_REASON,
  type ReleaseOptions,
} from '../claims/claim-options.ts'
import { type ReleasedClaim, releaseClaim } from '../claims/release-claim.ts'
import type { Backend } from '../contract/index.ts'
import { refusalError } from '../contract/refusals.ts'
import { Job } from '../jobs/job.ts'
import type { PostSettings } from '../settings/post-settings.ts'
import type { LiveView } from '../view/live-view.ts'
import type { BackendEventRouter } from './events/backend-event-router.ts'
import type { Lookup } from './lookup.ts'

export interface JobRequestsOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly lookup: Lookup
  readonly postSettings: PostSettings
  readonly claims: ClaimParts
  readonly router: Pick<BackendEventRouter, 'paused'>
  readonly who: string
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
}

/** The requests of one board object about single jobs. */
export class JobRequests {
  readonly #options: JobRequestsOptions

  constructor(options: JobRequestsOptions) {
    this.#options = options
  }

  /** Claims the job. @throws Unclaimable, NotFound */
  async claim(job: Job): Promise<Claim> {
    const { view, lookup, claims, router, signal } = this.#options
    using _view = view.hold()
    const own = await lookup.toOwnEntry(job)
    await view.whenEntered({ signal })
    using _held = await view.extent.pin(Job.entryFor(own))
    if (!lookup.isCurrent(own)) await lookup.refresh()
    if (router.paused) throw refusalError(String(job), { why: 'paused' })
    return claims.givenJobs.claim(own)
  }

  /** Returns the claim of the job. @throws NotFound when the job is unclaimed, NotOwner when another board object holds the claim */
  async findClaim(job: Job): Promise<Claim> {
    const { view, lookup, signal } = this.#options
    const { held } = this.#options.claims
    if (held.holds(Job.entryFor(job))) return held.find(job)
    using _view = view.hold()
    const own = await lookup.toOwnEntry(job)
    if (!held.holds(Job.entryFor(own))) await view.whenEntered({ signal })
    return held.find(own)
  }

  /** Cancels the job. @throws NotFound when it has left the board */
  async cancel(job: Job | string, options: CancelOptions): Promise<void> {
    assertCancelOptions(options)
    const { lookup, claims } = this.#options
    const { by: who, reason = NO_REASON } = options
    await claims.canceller.cancel(await lookup.resolve(job), { who, reason })
  }

  /** Takes the claim of the job away from its owner. @throws as `JobBoard.release` */
  async release(job: Job | string, options: ReleaseOptions): Promise<ReleasedClaim> {
    assertReleaseOptions(options)
    const { backend, view, lookup, claims } = this.#options
    const { by: who = this.#options.who } = options
    return releaseClaim(await lookup.resolve(job), options, {
      ...{ backend, view, who },
      withSettings: async (posting) => {
        const { postSettings } = this.#options
        await postSettings.whenKnown()
        return postSettings.rules.applyTo(posting)
      },
      discard: (from, request) => claims.settler.discard(from, request),
    })
  }
}
