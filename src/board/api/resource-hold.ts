/**
 * Owns resources without work of a job, for a script or a service that must be alone for a while.
 *
 * A hold is a job that this process posts and claims, so that it waits in the line of its resources, and every backend frees them if the
 * process dies. It runs at most once: nobody could go on with it. While it waits, its posting names this process (`reservedFor`): once the
 * process does not live, the job expires.
 */

import { settleWithRetries } from '../../core/async/retry.ts'
import { ClaimLost, InvalidArgument, JobboardError, NotFound } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import type { Claim } from '../claims/claim.ts'
import type { WaitOptions } from '../jobs/job.ts'
import type { Priority } from '../model/claim-order.ts'
import { HOLD_FLOW } from '../model/expiry.ts'
import { parseResources, type Resources } from '../model/resources.ts'
import type { PostAndClaimOptions } from './options.ts'

/** The resources to own, the name of the hold, and how long to wait for it. */
export type HoldOptions = Resources &
  WaitOptions & {
    /** The name of the job in lists and in `waitingFor` of others; `hold` by default. */
    readonly name?: string
    /** The priority in the line of its resources; `NORMAL` by default. */
    readonly priority?: Priority
  }

/** The post of the job that a hold is. @throws InvalidArgument, InvalidPosting */
export function toHoldPost(options: HoldOptions): { readonly flow: string; readonly post: PostAndClaimOptions } {
  const known = { exclusive: true, shared: true, name: true, priority: true, timeout: true, signal: true } as const
  assertOptions(options, known, 'hold')
  const { exclusive, shared, name = 'hold', ...others } = options
  const resources = parseResources({ exclusive, shared })
  if (!resources) throw new InvalidArgument("hold: name at least one resource, such as { exclusive: ['disk'] }")
  return { flow: HOLD_FLOW, post: { ...others, name, resources, onOwnerLost: 'fail', limits: 'none' } }
}

/**
 * Resources that this process owns until it releases them, or loses its session.
 *
 * @example
 * await using hold = await board.hold({ exclusive: ['repo/fedora'] })
 * await rebuild({ signal: hold.lost })
 */
export class ResourceHold implements AsyncDisposable {
  readonly #claim: Claim

  /** @internal */
  constructor(claim: Claim) {
    this.#claim = claim
  }

  /** The resources. */
  get resources(): Resources {
    return this.#claim.job.resources
  }

  /** The fence: of two owners of a resource, the later one has the larger fence. */
  get fence(): bigint {
    return this.#claim.fence
  }

  /** The signal that fires when the resources are lost, as with the end of the session. Stop then: another owner may have them. */
  get lost(): AbortSignal {
    return this.#claim.lost
  }

  /** The signal that fires when somebody cancels the hold (`jobboard cancel`): stop, and release the resources. */
  get cancelled(): AbortSignal {
    return this.#claim.cancelled
  }

  /** Returns if the resources are owned at this instant; no request. @throws ClaimLost */
  assertHeld(): void {
    this.#claim.assertHeld()
  }

  /**
   * Frees the resources. Tries again while the connection is interrupted. Does nothing where they were freed before.
   *
   * @throws ClaimLost when they were lost before
   */
  async release(): Promise<void> {
    if (this.#claim.settled) return
    const outcome = await settleWithRetries<'released'>(
      this.#claim,
      async () => {
        await this.#claim.consumeWith(undefined)
        return 'released'
      },
      (error) => {
        // This was called before, and is under way.
        if (error instanceof NotFound) return 'released'
        throw error
      },
    )
    if (outcome === 'lost') throw new ClaimLost(`${this.#claim.job}: its resources were lost before they were freed`)
  }

  /** Frees the resources, unless they are lost. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch((error: unknown) => {
      if (!(error instanceof JobboardError)) throw error
    })
  }
}
