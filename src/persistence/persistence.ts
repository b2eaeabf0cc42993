/**
 * The contract of logbooks: where they are kept, and who may write to them.
 *
 * **Only the newest run writes.** An owner acquires a flow with its run number before it reads the flow. From then on
 * every write of an older run is refused with ClaimLost and changes nothing, also when the two race; the check and the
 * write are one step of the backend. An acquire whose run is not above the stored one is refused with `Fenced`,
 * unless it has the same claim (a repetition after a lost answer).
 *
 * **A write that was reported as done is durable**, and later steps may rely on it. A write that failed with
 * StorageFailure may or may not have been done; the writer must not continue with the next step. The write that ends a flow is an exception where
 * {@link AcquireRequest.settledOn} says so, and where {@link AcquireRequest.holdBack} takes it.
 *
 * The contract is tested for every backend by `test/contract/persistence.ts`.
 */

import type { HeldBackWrite } from '../core/async/held-back-write.ts'
import type { FlowState } from '../core/states.ts'
import type { BookQuery } from './book-query.ts'
import type { AtomDetail, BookDetail, FlowDetail, LogBook, Meta } from './models.ts'

/** The job to which results belong: the UUIDs of its logbook and of its flow. */
export interface ResultPlace {
  readonly book: string
  readonly flow: string
}

/** The results of a flow for the board: as they are, or sealed by the codecs that are named. */
export type SealableResults =
  | { readonly values: Readonly<Record<string, unknown>> }
  | { readonly sealed: { readonly by: readonly string[]; readonly bytes: Uint8Array } }

/**
 * The storage of logbooks, opened by `openPersistence`. Every backend accepts writes of the newest run only, and does
 * nothing twice.
 */
export interface Persistence extends AsyncDisposable {
  /** The URI it was opened with, without a password, for messages. */
  readonly uri: string

  /** Whether the results and errors of tasks are encrypted; false where it is absent. */
  readonly encrypts?: boolean

  /** Seals the results of a flow for the board (`keepResults`), by the codecs. Absent where no codec can be in use. */
  sealResults?(values: Readonly<Record<string, unknown>>, place: ResultPlace): SealableResults
  /**
   * Undoes {@link sealResults}.
   *
   * @throws SealedLogbook when the codecs cannot read the results, or did not seal what they must have sealed
   */
  unsealResults?(kept: SealableResults, place: ResultPlace): Readonly<Record<string, unknown>>

  /**
   * Calls `listener` with the error whenever the storage is away and a read or write will be repeated, until the returned function is
   * called. Absent where nothing is repeated.
   */
  onRetry?(listener: (error: Error) => void): () => void

  /** Opens the storage. @throws StorageFailure when it cannot be reached or written to */
  open(): Promise<void>

  /** Closes the storage; idempotent. Waits for the writes in progress. Flow logs cannot be used afterwards. */
  close(): Promise<void>

  /** Creates an empty book. Resolves to false, and changes nothing, when the book exists already. */
  createBook(book: BookRequest): Promise<boolean>

  /** Changes the given keys of a book's meta. @throws NotFound */
  updateBook(uuid: string, change: { readonly meta: Meta }): Promise<void>

  /**
   * Creates a flow that has not run yet, and its book where that is missing. Resolves to false, and changes nothing,
   * when the flow exists already.
   */
  createFlow(request: FlowRequest): Promise<boolean>

  /**
   * Makes this run the only writer of the flow, and returns the flow as its predecessor left it. Creates book and flow
   * where they are missing.
   *
   * @throws Fenced when another claim's run is the same or newer
   */
  acquire(request: AcquireRequest): Promise<FlowLog>

  /** Reads a book with its flows. @throws NotFound */
  getBook(uuid: string): Promise<LogBook>

  /**
   * Lists books without their flows; all books by default. The order is the backend's own, and stable. Omits books that
   * are damaged or were written by a newer release; {@link getBook} reports the error.
   */
  listBooks(query?: BookQuery): AsyncIterable<BookDetail>

  /**
   * Removes the book with everything in it. With `unchangedSince`, only if nothing of it has changed since then;
   * otherwise it resolves to false. A run that acquires the flow at the same moment may find the book removed, and is
   * then refused.
   *
   * @throws NotFound
   */
  destroyBook(uuid: string, options?: { readonly unchangedSince?: Date }): Promise<boolean>
}

export interface BookRequest {
  readonly uuid: string
  readonly name: string
  readonly meta?: Meta
}

export interface FlowRequest {
  /** The book. Its meta is kept when this request creates the book; an existing book is not changed. */
  readonly book: BookRequest
  readonly flow: { readonly uuid: string; readonly name: string; readonly version: string }
  /** The meta of the flow. */
  readonly meta?: Meta
}

export interface AcquireRequest {
  /** The book. Its meta is kept when this request creates the book; an existing book is not changed. */
  readonly book: BookRequest
  readonly flow: { readonly uuid: string; readonly name: string; readonly version: string }
  /** The run number of the claim, from 1. */
  readonly run: number
  /** A unique identifier of this claim, forever: an acquire that is repeated after a lost answer has the same one. */
  readonly claim: string
  /**
   * The URI of the board where the job is settled after the write that ends the flow. Logbooks in the same file as the board report that
   * write before it is on the disk, which saves a wait: the settlement makes it durable, and a power cut before the settlement may undo it.
   */
  readonly settledOn?: string
  /**
   * Whether the flow is begun at once. If `run` is 1 as well, logbooks in Postgres make the flow together with the first write, which saves a
   * transaction: `acquire` resolves without a request, and the first write is refused in its place. Other logbooks ignore it.
   */
  readonly beginsAtOnce?: boolean
  /**
   * Called in place of the write that ends the flow as SUCCESS, where the logbooks can leave it to the board: see {@link HeldBackWrite}. Returns whether
   * the caller has it done, with the settlement or alone; then the write is reported as done.
   */
  readonly holdBack?: (write: HeldBackWrite) => boolean
}

/** The right of one run to write to one flow. */
export interface FlowLog extends AsyncDisposable {
  /** The flow as it was when it was acquired. */
  readonly flow: FlowDetail

  /**
   * Records one transition atomically and durably, in the order of the calls.
   *
   * @throws ClaimLost when a newer run has acquired the flow, and in all later calls. The write is not visible,
   * unless the two raced and it is part of the flow that the newer run received
   * @throws StorageFailure when the storage is away (`retryable`) or refuses for good
   * @throws InvalidArgument when a result is not plain data
   */
  write(transition: Transition): Promise<void>

  /** Releases the resources of the log; idempotent. The run remains the newest. */
  close(): Promise<void>
}

export interface Transition {
  readonly state?: FlowState
  /** The keys of the flow's meta that are replaced. */
  readonly meta?: Meta
  /** The atoms to replace by name, or to add. */
  readonly atoms?: readonly AtomDetail[]
}
