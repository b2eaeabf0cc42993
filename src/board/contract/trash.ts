/** The trash. */
import type { Failure } from '../../core/failure.ts'
import type { Dependency } from '../model/dependencies.ts'
import type { HistoryEntry } from '../model/ended-job.ts'
import type { Posting } from '../model/posting/posting.ts'

export interface BackendTrash {
  /** Trashes an unclaimed job in one transaction. Errors: NotConnected, NotFound, Unclaimable, OutcomeUnknown. */
  discard(discarded: DiscardRequest): Promise<void>
  /**
   * Moves a job from the trash behind the other jobs of its priority in one transaction, or does nothing because a job on which it would depend has left
   * the board. Errors: NotConnected, NotFound, Duplicate, OutcomeUnknown.
   */
  restore(entry: TrashedEntry, posting: Posting, options?: BackendRestoreOptions): Promise<RestoreOutcome>
  /** Deletes a job from the trash in one transaction. Errors: NotConnected, NotFound, OutcomeUnknown. */
  purge(entry: TrashedEntry): Promise<void>
  /**
   * Yields the entries of the trash, oldest first. Unreadable entries are left out and reported to the sink as errors. The trash is
   * read page by page (`backends/trash-pages.ts`): an entry that leaves before its page is read is left out, and later ones are not listed.
   */
  list(listing?: TrashListing): AsyncIterable<TrashedEntry>
  /** Returns the trash entry with this id; undefined where there is none or it is unreadable. One round trip. */
  entry(id: string): Promise<TrashedEntry | undefined>
  /**
   * Returns the newest readable trash entry with this uuid; undefined where there is none. One or two round trips however long the trash is;
   * where the servers keep the trash by id only, the first call of a process reads it once (`backends/trash-index.ts`). Errors: NotConnected.
   */
  find(uuid: string): Promise<TrashedEntry | undefined>
}

export type DiscardRequest = {
  readonly id: string
  readonly who: string
  readonly revision: number
  readonly posting: Posting
  readonly cancelRequested: boolean
  /** The entry that the end of the job adds to the history, as in `Settlement`. */
  readonly history?: HistoryEntry | undefined
  /** The time that the trash shows, of an entry that is copied from another board; the time of the transaction by default. */
  readonly at?: Date
} & TrashReason

/** The reason why a job is in the trash. */
export interface TrashReason {
  readonly reason: string
  readonly failure?: Failure
}

/** The jobs on the board after which a restored job is run. */
export interface BackendRestoreOptions {
  readonly after?: readonly Dependency[]
}

/** The outcome of a restoration. `gone`: the ids of jobs that have left the board, on which the job would depend. */
export type RestoreOutcome =
  | { readonly restored: true }
  | { readonly restored: false; readonly gone: readonly string[] }

/** The choice and the order of the entries of the trash that are listed: by default all, oldest first. */
export interface TrashListing {
  readonly newestFirst?: boolean
  /** The entry behind which the listing begins. Where it has left the trash, `position` entries are left out instead. */
  readonly after?: { readonly id: string; readonly position: number } | undefined
  /** Receives the number of all entries before the first is yielded. */
  readonly onCount?: (entries: number) => void
}

export interface TrashedEntry extends TrashReason {
  readonly id: string
  /** The revision of the entry: it is restored or purged as it was read, or not at all. */
  readonly revision: number
  readonly posting: Posting
  readonly who: string
  readonly at: Date
}
