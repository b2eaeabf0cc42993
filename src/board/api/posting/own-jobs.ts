/** Posts jobs that this process claims itself, and holds of resources, which are such jobs. */
import { Duplicate } from '../../../core/errors.ts'
import { newUuid } from '../../../core/uuid.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import type { ClaimParts } from '../../claims/assemble-claims.ts'
import type { Claim } from '../../claims/claim.ts'
import type { Reservation } from '../../model/posting/post-options.ts'
import type { Lookup } from '../lookup.ts'
import { type PostAndClaimOptions, postAndClaimSettings } from '../options.ts'
import { type HoldOptions, ResourceHold, toHoldPost } from '../resource-hold.ts'
import type { Poster } from './poster.ts'

/** The delay of a job that is reserved for its poster: other boards do not claim the job before, and it expires long before. */
const RESERVED_FOR_POSTER = '365d'

export interface OwnJobsOptions {
  readonly poster: Poster
  readonly lookup: Pick<Lookup, 'find'>
  readonly claims: Pick<ClaimParts, 'claimer' | 'incarnation'>
}

/** The jobs that one board object posts for itself. */
export class OwnJobs {
  readonly #options: OwnJobsOptions

  constructor(options: OwnJobsOptions) {
    this.#options = options
  }

  /** Posts a job and claims it here. @throws as `JobBoard.postAndClaim` */
  async postAndClaim(flow: AnyFlow | string, store: object, options: PostAndClaimOptions): Promise<Claim> {
    const { post, wait } = postAndClaimSettings(options)
    const { poster, lookup, claims } = this.#options
    wait.signal?.throwIfAborted()
    const reservation = this.#reserve()
    const { uuid = newUuid() } = post
    const own = {
      post: async () => {
        const job = await poster.post(flow, store, { ...post, uuid }, reservation)
        if (job.created) return job
        throw new Duplicate(`${job} with the same key is already on the board; nothing was posted`)
      },
      find: post.uuid === undefined ? () => lookup.find(uuid) : undefined,
    }
    return claims.claimer.claimOwnPost(own, wait)
  }

  /** Waits for resources and owns them. @throws as `JobBoard.hold` */
  async hold(options: HoldOptions): Promise<ResourceHold> {
    const { flow, post } = toHoldPost(options)
    return new ResourceHold(await this.postAndClaim(flow, {}, post))
  }

  /** Reserves a job for this process. */
  #reserve(): Reservation {
    const { incarnation } = this.#options.claims
    incarnation.register()
    return { delay: RESERVED_FOR_POSTER, reservedFor: incarnation.id }
  }
}
