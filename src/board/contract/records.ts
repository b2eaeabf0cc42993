/** Records, which change together with posts. */
import type { RecordChange, RecordName, StoredRecord } from '../model/record.ts'
import type { Posted, PostRequest } from './jobs.ts'

export interface BackendRecords {
  /** Changes records and posts jobs in one transaction: all or nothing. Errors: NotConnected, OutcomeUnknown, PayloadTooLarge. */
  write(request: WriteRequest): Promise<Written>
  /** Lists the records of a kind, ordered by their ids. Errors: NotConnected. */
  list(kind: string): Promise<StoredRecord[]>
  /** Returns the record; undefined if there is none. Errors: NotConnected. */
  get(name: RecordName): Promise<StoredRecord | undefined>
  /**
   * Reports changes of records of this kind to `records` of the sink until {@link unwatch}, on every connection. A gap means that
   * changes may have been missed. Errors: NotConnected.
   */
  watch(kind: string): Promise<void>
  /** Ends what {@link watch} began. Resolves also without a connection. */
  unwatch(kind: string): Promise<void>
}

/** Changes of records, and posts, that are done together or not at all. */
export interface WriteRequest {
  readonly changes: readonly RecordChange[]
  readonly posts: readonly PostRequest[]
}

export type Written =
  | {
      readonly done: true
      /** The new revision of each changed record; undefined for a removed record. */
      readonly revisions: readonly (number | undefined)[]
      /** The outcome of each post: each was created. */
      readonly posted: readonly Posted[]
    }
  /**
   * The answer if nothing was changed: a record is at another revision, the key of a post is taken, or a job on which a post would depend has left the
   * board.
   */
  | {
      readonly done: false
      readonly conflict: RecordName | { readonly key: string } | { readonly gone: readonly string[] }
    }
