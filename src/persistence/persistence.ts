/**
 * Where logbooks live, and who may write to them.
 *
 * **The newest run writes, nobody else.** An owner acquires a flow with its run number before it reads it. From then on
 * every write of an older run is refused with ClaimLost and changes nothing, also when the two race; the check and the
 * write are one step of the backend. An acquire whose run is not above the stored one is refused with {@link Fenced},
 * unless it comes from the very same claim (a lost answer, asked again).
 *
 * **A write that was reported as done is durable**, and what follows it may rely on it. A write that failed with
 * StorageFailure may or may not have been done; the writer must not go on to the next step.
 *
 * The contract is proven for every backend by `test/contract/persistence.ts`.
 */

import type { FlowState } from '../core/states.ts'
import type { BookQuery } from './book-query.ts'
import type { AtomDetail, BookDetail, FlowDetail, LogBook, Meta } from './models.ts'

/**
 * Where logbooks are. Opened by `openPersistence`; every backend obeys the newest run, and does nothing twice.
 */
export interface Persistence extends AsyncDisposable {
  /** For people: the URI it was opened with, without a password. */
  readonly uri: string

  /** Whether what tasks return and throw is encrypted there; false where nothing is said. */
  readonly encrypts?: boolean

  /** @throws StorageFailure when it cannot be reached or written to */
  open(): Promise<void>

  /** Idempotent; awaits the writes under way. Flow logs handed out are of no use afterwards. */
  close(): Promise<void>

  /** Makes an empty book. Resolves to false, and changes nothing, when it is there already. */
  createBook(book: BookRequest): Promise<boolean>

  /** Changes the keys of a book's meta that are named here. @throws NotFound */
  updateBook(uuid: string, change: { readonly meta: Meta }): Promise<void>

  /**
   * Makes a flow that nobody has run yet, and its book where that is missing. Resolves to false, and changes nothing,
   * when the flow is there already.
   */
  createFlow(request: FlowRequest): Promise<boolean>

  /**
   * Makes this run the only writer of the flow, and hands out the flow as its predecessor left it. Makes book and flow
   * where they are missing.
   *
   * @throws Fenced when another claim's run is the same or newer
   */
  acquire(request: AcquireRequest): Promise<FlowLog>

  /** @throws NotFound */
  getBook(uuid: string): Promise<LogBook>

  /**
   * Without their flows; all of them by default. In an order that stays the same, of the backend's own. What is damaged, or
   * was written by a newer release, is left out; {@link getBook} tells of it.
   */
  listBooks(query?: BookQuery): AsyncIterable<BookDetail>

  /**
   * Removes the book with everything in it. With `unchangedSince`, only if nothing of it has changed after that: else it
   * resolves to false. A run that acquires the flow in that very moment may find it gone, and is then refused.
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
  /** Its meta is kept where this makes the book; a book that is there stays as it is. */
  readonly book: BookRequest
  readonly flow: { readonly uuid: string; readonly name: string; readonly version: string }
  /** The flow's. */
  readonly meta?: Meta
}

export interface AcquireRequest {
  /** Its meta is kept where this makes the book; a book that is there stays as it is. */
  readonly book: BookRequest
  readonly flow: { readonly uuid: string; readonly name: string; readonly version: string }
  /** From 1; the run number of the claim. */
  readonly run: number
  /** Tells this claim from every other, forever: an acquire that is repeated after a lost answer carries the same. */
  readonly claim: string
}

/** The right of one run to write to one flow. */
export interface FlowLog extends AsyncDisposable {
  /** As it stood when it was acquired. */
  readonly flow: FlowDetail

  /**
   * Records one transition: all of it or nothing, durably, in the order of the calls.
   *
   * @throws ClaimLost when a newer run has acquired the flow, now and ever after. Nobody sees such a write, unless the
   * two raced and it is part of what the newer run was handed
   * @throws StorageFailure when the storage is away (`retryable`) or refuses for good
   * @throws InvalidArgument when a result is no plain data
   */
  write(transition: Transition): Promise<void>

  /** Frees what the log holds open; idempotent. The run stays the newest. */
  close(): Promise<void>
}

export interface Transition {
  readonly state?: FlowState
  /** Replaces the keys it names. */
  readonly meta?: Meta
  /** Each replaces the atom of its name, or adds it. */
  readonly atoms?: readonly AtomDetail[]
}
