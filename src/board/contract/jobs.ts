/** Jobs on the board: how they are posted, listed and read. */
import type { Dependency } from '../model/dependencies.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { KeyTaken } from './keys.ts'

export interface BackendJobs {
  /** Posts a job in one transaction. Errors: NotConnected, OutcomeUnknown, PayloadTooLarge, InvalidArgument. */
  post(request: PostRequest): Promise<Posted>
  /** Lists the jobs on the board. Absent where there are sections. */
  list?(): Promise<BoardListing>
  /**
   * Lists the unclaimed jobs in one round trip, for processes that receive no changes. Absent where `Backend.sections` can do it, and
   * where changes cost the servers nothing, or cannot be stopped. Errors: NotConnected.
   */
  listUnclaimed?(): Promise<UnclaimedJobs>
  /** Reads postings: one element per id, undefined where the posting is gone. */
  read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]>
}

export interface PostRequest {
  readonly posting: Posting
  /** The revision of the key, as `Posted` reported it, of a job that has left the board: the post takes the key over. */
  readonly takeOver?: number
  /** The jobs on the board after which the job is run. Excludes dependencies that are already met. */
  readonly after?: readonly Dependency[]
  /**
   * The uuid of an open job of the posting's batch on whose behalf the job is posted: the batch may be sealed. A post to a batch is refused
   * with NotFound if the board has no such batch; with InvalidState if it is sealed and there is no such open job, or if it is cancelled;
   * with Duplicate if a job with the same uuid is open in it.
   */
  readonly member?: string
}

/** A post that did nothing, because jobs on which it would depend have left the board. */
export interface DependencyGone {
  readonly created: false
  /**
   * The ids of these jobs: all that are known to have left, so that a job that collects a thousand others is not refused for each of them.
   */
  readonly gone: readonly string[]
}

export type Posted =
  | DependencyGone
  | {
      readonly created: true
      /** Absent if the answer was lost and the job has left the board since. */
      readonly id?: string
      /** Whether the job has left the board for the trash. */
      readonly trashed?: boolean
      readonly revision: number
      readonly order: bigint
      /** The counted size of the posting, as in {@link StoredJob}. */
      readonly bytes: number
    }
  | KeyTaken

export interface BoardListing {
  readonly jobs: readonly string[]
  readonly claimed: ReadonlySet<string>
  /** The ids in the trash. */
  readonly trashed: ReadonlySet<string>
  /** The ids of the jobs that have a cancel request. */
  readonly cancelled: ReadonlySet<string>
}

export interface UnclaimedJobs {
  /** The ids of all unclaimed jobs, including delayed jobs. */
  readonly jobs: readonly string[]
  /** The ids of jobs that have a cancel request: they are due in spite of their delay. */
  readonly cancelled: ReadonlySet<string>
  /** The ids of the jobs that wait for others; absent where there are no dependencies. */
  readonly waiting?: ReadonlySet<string>
}

export interface StoredJob {
  readonly id: string
  readonly posting: Posting
  readonly revision: number
  /** Whether the job depends on others that have not ended. */
  readonly waits?: true
  /** The posting order: smaller is older. Jobs posted in one transaction have the same, and their ids decide. */
  readonly order: bigint
  /** The time of the post in milliseconds since 1970, by the backend's clock. */
  readonly postedAt: number
  /** The time of the last write in milliseconds since 1970, by the backend's clock; delays count from it. */
  readonly writtenAt: number
  /** The size of the posting as counted against memory limits: its encoded size, or more if it takes unusually much memory. */
  readonly bytes: number
}

export interface UnreadableJob {
  readonly id: string
  readonly error: Error
  /** The encoded size, where it is known; callers that read many postings at once limit their batches by it. */
  readonly bytes?: number
}
