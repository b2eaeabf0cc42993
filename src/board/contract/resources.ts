/** Resources that programs outside of the board hold. */
import type { Posting } from '../model/posting.ts'

export interface BackendResources {
  /**
   * Returns the program outside of the board that holds a resource of the posting; undefined if none does, and where other programs
   * cannot hold resources.
   */
  resourceHolder(posting: Posting): Promise<ResourceHolder | undefined>
}

/** A program outside of the board that holds a resource. */
export interface ResourceHolder {
  readonly resource: string
  /** The process of the database server that holds the lock. */
  readonly pid: number
  /** The name under which the program has connected; may be empty. */
  readonly application: string
}
