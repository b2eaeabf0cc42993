/** Batches of jobs. */
import type { BatchCounts, BatchStatus, StoredBatch } from '../model/job-batch.ts'

/** Keeps the batches of a board. Posts, ends and restorations of jobs count them: see rule 7. */
export interface BackendBatches {
  /** Creates an empty batch in one transaction. Errors: NotConnected, Duplicate, OutcomeUnknown. */
  create(batch: NewBatch): Promise<void>
  /** Returns a batch; undefined if there is none. Errors: NotConnected. */
  find(uuid: string): Promise<StoredBatch | undefined>
  /** Returns the newest batches by their creation, newest first, at most `limit`. Errors: NotConnected. */
  list(options: { readonly limit: number }): Promise<readonly StoredBatch[]>
  /**
   * Changes the status of a batch in one transaction, which also ends the batch if it is sealed and no job of it is open. Does nothing
   * where the change has no effect. Returns its numbers and its status after it. Errors: NotConnected, NotFound, OutcomeUnknown.
   */
  change(uuid: string, change: BatchChange): Promise<BatchCounts & BatchStatus>
  /** Returns the open and the failed jobs of a batch. Errors: NotConnected, NotFound. */
  jobs(uuid: string): Promise<BatchJobs>
  /**
   * Reports to `batchChanged` of the sink when the status of this batch may have changed, on every connection, until {@link unwatch}.
   * Errors: NotConnected.
   */
  watch(uuid: string): Promise<void>
  /** Ends what {@link watch} began. Resolves also without a connection. */
  unwatch(uuid: string): Promise<void>
}

/** A batch to create. */
export type NewBatch = Pick<StoredBatch, 'uuid' | 'bytes'>

/**
 * A change of the status of a batch. `seal`: no more jobs. `cancel`: nor any from its jobs, and no callback; has no effect on a batch that
 * has ended. `reopen`: takes jobs again, in the next generation if it has ended; ends a cancel request, too. `carry`: has this status and
 * this total from now on, as on the board from which it was copied; a batch that has ended posts no callback, because that board did.
 */
export type BatchChange =
  | { readonly kind: 'seal' | 'reopen' }
  | ({ readonly kind: 'carry'; readonly total: number } & BatchStatus)
  | { readonly kind: 'cancel'; readonly who: string; readonly reason: string }

/** The jobs of a batch that have not been done. */
export interface BatchJobs {
  /** The uuids of the jobs that have not ended. */
  readonly open: readonly string[]
  /** The ids of the jobs that have ended in the trash; some may have been purged from it. */
  readonly failed: readonly string[]
}
