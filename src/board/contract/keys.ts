/** Keys, by which a job replaces a waiting job. */
import type { Posting } from '../model/posting/posting.ts'

export interface BackendKeys {
  /**
   * Replaces the posting of a job that was never claimed, at its revision, in one transaction: with it change its due time, its place
   * by priority, and the window of its key. Its id, and its place in the order of posts, stay. A cancel request of the job stays, too, where
   * the transaction cannot check that there is none (ZooKeeper). Errors: NotConnected, NotFound, OutcomeUnknown, PayloadTooLarge; Unclaimable
   * if it was claimed, changed or cancelled meanwhile.
   */
  replace(request: ReplaceRequest): Promise<Replaced>
}

/** A post that did nothing, because its key is taken. */
export interface KeyTaken {
  readonly created: false
  /** The uuid of the job that has the key, if that job is still on the board, or the window of the key is not over. */
  readonly uuid?: string
  /** The revision of the key. */
  readonly revision: number
  /** The id of a job that has left the board, whose window is not over: the key cannot be taken over. */
  readonly inWindowOf?: string
}

/** The new posting of a job that waits. */
export interface ReplaceRequest {
  readonly id: string
  /** The revision of the posting that is replaced. */
  readonly revision: number
  /** The revision of the key, as the refused post reported it. */
  readonly keyRevision: number
  /** The new posting, with the uuid and the key of the job. */
  readonly posting: Posting
  /** The window of the key from this write on, in milliseconds; absent for none. */
  readonly window?: number
}

export interface Replaced {
  readonly revision: number
  /** The counted size of the posting, as in `StoredJob`. */
  readonly bytes: number
}
