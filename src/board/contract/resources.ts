/** Resources that claims have left, and resources that programs outside of the board hold. */
import type { Posting } from '../model/posting/posting.ts'

export interface BackendResources {
  /** Releases the resources of a claim that was removed by hand while its session lives. Does nothing where none can remain. */
  freeOrphans(left: OrphanedClaim): Promise<void>
  /**
   * Returns the program outside of the board that holds a resource of the posting; undefined if none does, and where other programs
   * cannot hold resources.
   */
  holder(posting: Posting): Promise<ResourceHolder | undefined>
}

/** A program outside of the board that holds a resource. */
export interface ResourceHolder {
  readonly resource: string
  /** The process of the database server that holds the lock. */
  readonly pid: number
  /** The name under which the program has connected; may be empty. */
  readonly application: string
}

/** The resources that are still held for a claim that was removed by hand. */
export interface OrphanedClaim {
  readonly id: string
  readonly posting: Posting
  readonly fence: bigint
  /** The mark of the claim, as in `ClaimGrant`. */
  readonly mark?: bigint
}
