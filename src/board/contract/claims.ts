/** Claims: how they are granted, and how they end. */
import type { HeldBackWrite } from '../../core/async/held-back-write.ts'
import type { Result } from '../../core/result.ts'
import type { HistoryEntry } from '../model/ended-job.ts'
import type { ClaimLimits } from '../model/limits.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { TrashReason } from './trash.ts'

export interface BackendClaims {
  /**
   * Claims jobs, one transaction each; resolves with one result for each. Errors: NotConnected, NotFound, Unclaimable, LimitReached,
   * LimitsChanged.
   */
  claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]>
  /** Settles a claim in one transaction. Errors: NotConnected, ClaimLost, OutcomeUnknown. */
  settle(settlement: Settlement): Promise<void>
  /** The place of logbooks whose writes a settlement can include; absent if there is none. */
  readonly recordedPlace?: string
  /**
   * Ends the claim of another owner, which is held at this revision, in one transaction: the job is unclaimed, and everything that the
   * claim was granted is free. The owner receives the change as it receives the changes of other jobs. Never called
   * on a board that is shared. Errors: NotConnected, OutcomeUnknown.
   */
  release(request: ReleaseRequest): Promise<ReleaseOutcome>
  /** Returns the owner of the job; undefined where it is unclaimed. */
  owner(id: string): Promise<string | undefined>
}

export interface ClaimRequest {
  readonly id: string
  readonly who: string
  /** The revision of the posting when the job was chosen; the claim is refused if it has changed since. */
  readonly revision: number
  /** The posting that the claim writes: with the next run and its attempt. */
  readonly posting: Posting
  /** The limits whose slots and tokens the claim takes; absent on a board without limits. */
  readonly limits?: ClaimLimits
}

export interface ClaimGrant {
  readonly session: string
  /** The revision of the posting that this claim wrote; settlements are checked against it. */
  readonly revision: number
  /**
   * The fence grows with every claim of the board: of two claims of a job, or of a resource, the later one has the larger
   * fence. The server's clock raises it, so that a board that was created again or restored continues above earlier fences.
   */
  readonly fence: bigint
  /** The mark by which the backend recognizes what this claim created, where the fence does not identify it. */
  readonly mark?: bigint
  /** The new arrival time of each key with a rate, as in `model/limits.ts`. */
  readonly arrivals?: readonly { readonly key: string; readonly arrivalMs: number }[]
}

/** The end of a claim, in the session and at the revision that granted it. */
export type Settlement = {
  readonly id: string
  readonly who: string
  readonly session: string
  readonly revision: number
  /** The posting that the settlement writes, on the board or in the trash. */
  readonly posting: Posting
  /** Whether the view knows of a cancel request for the job; the request is removed together with the job. */
  readonly cancelRequested: boolean
  /** The entry that the end of the job adds to the history; absent for an abandon, and where the board keeps none. */
  readonly history?: HistoryEntry | undefined
} /** `results`: encoded results that the history keeps; they are in `history` already. */ /** `record`: the end of the flow in its logbook. If it is refused, nothing is done. */ & (
  | {
      readonly kind: 'consume'
      readonly results?: Uint8Array | undefined
      readonly record?: HeldBackWrite | undefined
    }
  /**
   * `held`: the posting of the claim, whose resources it holds, where the posting that is written has others. `movedTo`: the queue of the
   * posting, where the claimed one had another.
   */
  | { readonly kind: 'abandon'; readonly held?: Posting; readonly movedTo?: string }
  | ({ readonly kind: 'trash' } & TrashReason)
)

/** The end of the claim of another owner. */
export interface ReleaseRequest {
  readonly id: string
  /** The revision of the posting that the claim wrote. */
  readonly revision: number
  /** The posting that is written: the claim's, with the end of its attempt. */
  readonly posting: Posting
}

/** The outcome of a {@link ReleaseRequest}. `changed`: the job is not at this revision any more. `gone`: it has left the board. */
export type ReleaseOutcome = 'released' | 'unclaimed' | 'changed' | 'gone'
