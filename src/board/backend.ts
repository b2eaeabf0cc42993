/**
 * What a board needs of the system that keeps it. Everything else (the live view, the queue, filters, events, waiting,
 * checks) is written once, in `JobBoard`.
 *
 * No connection, key or transaction type appears here. A **job id** is the backend's own name for a posting
 * (`job0000000042`), unique for ever on its board; users know a job by its uuid.
 *
 * Rules that every backend keeps, proven by `test/contract/board.ts`:
 *
 * 1. Each post, settle and element of `claim` is one atomic step: done, or refused with nothing changed. Its answer does not
 *    depend on steps that are requested at the same time, although a backend sends them together.
 * 2. A refusal is proven by committed state. When a connection drops in between, the backend finds out what happened, or
 *    answers OutcomeUnknown. It never sends a step again on another session.
 * 3. Once subscribed, the sink receives a change before the answer to any step that was committed after it, and receives it
 *    synchronously: when a claim is refused, the view already knows which board was faster.
 * 4. A change is reported once, in the order of commits, or the backend reports a gap.
 * 5. A claim grants everything that its posting asks for (the job, its resources, its limits) or nothing; its end frees all of it but
 *    the tokens of rates. While the board is paused no claim is granted.
 * 6. The end of a job and what follows from it for the jobs that depend on it (`model/dependencies.ts`) is one step. A job is not granted
 *    before all of its dependencies are met. If it is cancelled meanwhile, a job that ran before is granted, so that it can be reverted; a job
 *    that never ran is doomed: it is never granted, and goes to the trash (`claims/doomed-jobs.ts`).
 * 7. A job whose posting names a batch is counted by the transactions that post, end and restore it (`model/job-batch.ts`). The one that
 *    leaves a sealed batch without open jobs ends it, and posts its callback (`toBatchCallback`). If two jobs end at the same time, so that
 *    neither transaction sees the other, a further transaction may do it. The end of a job whose batch is no longer kept counts nowhere.
 * 8. A key is taken while its job is on the board, and until its window is over by the servers' clock (`model/key.ts`). The transaction of
 *    a post decides it, and of posts that find it free at the same time one takes it.
 */

import type { Failure } from '../core/failure.ts'
import type { Result } from '../core/result.ts'
import type { AlarmClock } from '../core/time.ts'
import type { ClaimOrderKey } from './model/claim-order.ts'
import type { Dependency } from './model/dependencies.ts'
import type { EndedJob, HistoryEntry } from './model/ended-job.ts'
import type { BatchCounts, BatchStatus, StoredBatch } from './model/job-batch.ts'
import type { ClaimLimits, LimitUse, TokenRequest, TokensTaken } from './model/limits.ts'
import type { Posting, SqlClient } from './model/posting.ts'
import type { RecordChange, RecordName, StoredRecord } from './model/record.ts'

export interface Backend {
  /** The URI without a password, for messages. */
  readonly uri: string
  readonly capabilities: BackendCapabilities
  /** Whether other programs than this library post and claim here too; known once the backend is open. */
  readonly shared?: boolean

  /** Milliseconds without a heartbeat after which a session expires; absent where a session lasts as long as its process. */
  readonly sessionTimeout?: number | undefined

  /** The clock for delays and deadlines of the board's jobs; by default the clock of the process. */
  readonly clock?: AlarmClock

  /**
   * Connects, and creates the board if it is missing. From then on the sink receives the session, errors, and whether the board is
   * paused as it was read last; changes only after {@link subscribe}. Takes as long for a long board as for an empty one.
   */
  open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void>
  /**
   * Reports every change and every pause from now on, beginning with a gap, on every connection and in every session until
   * {@link unsubscribe}. The first request is sent before the call returns. Errors: NotConnected, AccessDenied: nothing is reported.
   */
  subscribe(): Promise<void>
  /** Ends what {@link subscribe} began. Resolves also without a connection. */
  unsubscribe(): Promise<void>
  /**
   * Returns the present status of each of these jobs, and reports to `followed` of the sink that it has changed from now on. For a job
   * that is followed already, it returns the status only. A gap means that changes may have been missed: the caller follows the jobs
   * again. Errors: NotConnected.
   */
  follow(ids: readonly string[]): Promise<JobStatus[]>
  /** Ends what {@link follow} began. The end of a job does so, too. Errors: NotConnected. */
  unfollow(ids: readonly string[]): Promise<void>
  /** Ends the session, and with it every claim. Idempotent. */
  close(): Promise<void>

  /** Posts a job in one transaction. Errors: NotConnected, OutcomeUnknown, PayloadTooLarge, InvalidArgument. */
  post(request: PostRequest): Promise<Posted>
  /**
   * Posts in a transaction of the caller, which may be committed or rolled back. Absent where the backend has no such transactions.
   *
   * @throws InvalidArgument for a pool, and for a client that has no transaction open: nothing was posted
   */
  postInTransaction?(client: SqlClient, request: PostRequest): Promise<PostedInTransaction>
  /** Returns whether the transaction of {@link postInTransaction} is still open, or how it ended for the post. */
  transactionState?(transaction: string): Promise<TransactionState>
  /**
   * Claims jobs, one transaction each; resolves with one result for each. Errors: NotConnected, NotFound, Unclaimable, LimitReached,
   * LimitsChanged.
   */
  claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]>
  /**
   * Returns the revision of the board's limits. It changes with every change of a record of {@link LIMIT_KINDS}, in the same transaction,
   * and a claim with {@link ClaimRequest.limits} of another revision is refused with LimitsChanged. So no claim is granted by a former
   * limit. 0 if nothing was ever set. Errors: NotConnected.
   */
  limitsRevision(): Promise<number>
  /**
   * Returns the slots and tokens that claims have taken, of these keys or of all; at most `MAX_USED_KEYS`. Leaves out keys of which nothing
   * is taken. Errors: NotConnected.
   */
  limitUse(keys?: readonly string[]): Promise<readonly LimitUse[]>
  /**
   * Takes tokens of a key for calls outside of claims, in one transaction: for the calls in their order, up to the first one whose tokens
   * are not free. The tokens are not given back. A new rate is applied to the tokens that were taken by another one, also if none is free.
   * Works on a paused board. Errors: NotConnected, OutcomeUnknown, LimitsChanged at another revision of the limits.
   */
  takeTokens(request: TokenRequest): Promise<TokensTaken>
  /**
   * Replaces the posting of a job that nobody has ever claimed, at its revision, in one transaction: with it change its due time, its place
   * by priority, and the window of its key. Its id, and its place in the order of posts, stay. Errors:
   * NotConnected, NotFound, Unclaimable if it was claimed or changed meanwhile, OutcomeUnknown, PayloadTooLarge.
   */
  replace(request: ReplaceRequest): Promise<Replaced>
  /** Settles a claim in one transaction. Errors: NotConnected, ClaimLost, OutcomeUnknown. */
  settle(settlement: Settlement): Promise<void>
  /** Trashes an unclaimed job in one transaction. Errors: NotConnected, NotFound, Unclaimable, OutcomeUnknown. */
  discard(discarded: DiscardRequest): Promise<void>
  /**
   * Ends the claim of another owner, which is held at this revision, in one transaction: the job is unclaimed, and everything that the
   * claim was granted is free. The owner receives the change as it receives those of other jobs. Never called
   * where {@link BackendCapabilities.release} is false. Errors: NotConnected, OutcomeUnknown.
   */
  release(request: ReleaseRequest): Promise<ReleaseOutcome>
  /** Releases the resources of a claim that was removed by hand while its session lives. Absent where none can remain. */
  releaseOrphans?(left: OrphanedClaim): Promise<void>
  /**
   * Records a request that outlives the session of its caller: to cancel a job, or to pause or resume the board. Every claim
   * after it takes it into account. One transaction. Errors: NotConnected, NotFound, OutcomeUnknown.
   */
  request(request: CancelRequest | GateRequest): Promise<void>
  /**
   * Moves a job from the trash to the end of the queue in one transaction, or does nothing because a job on which it would depend has left
   * the board. Errors: NotConnected, NotFound, Duplicate, OutcomeUnknown.
   */
  restore(entry: TrashedEntry, posting: Posting, options?: RestoreOptions): Promise<RestoreOutcome>
  /** Deletes a job from the trash in one transaction. Errors: NotConnected, NotFound, OutcomeUnknown. */
  purge(entry: TrashedEntry): Promise<void>

  /**
   * Returns the ids of the jobs on the board on which this one still depends, and of those that depend on it; at most
   * {@link MAX_SHOWN_DEPENDENCIES} each. Errors: NotConnected.
   */
  dependencies(id: string): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }>
  /** Returns the newest jobs of the history, newest first, at most `limit`. Errors: NotConnected. */
  history(asked: { readonly limit: number }): Promise<readonly EndedJob[]>
  /** Returns the newest record of each of these jobs in the history. Errors: NotConnected. */
  endedJobs(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]>

  /** The batches of the board. Absent where there are none. */
  readonly batches?: BatchStore | undefined

  /** Lists the jobs on the board. Absent where there are sections. */
  list?(): Promise<BoardListing>
  /**
   * Lists the unclaimed jobs in one round trip, for processes that receive no changes. Absent where {@link sections} can do it, and
   * where changes cost the servers nothing, or cannot be stopped. Errors: NotConnected.
   */
  listUnclaimed?(): Promise<UnclaimedJobs>
  /**
   * Reads parts of the board, for boards that may be too long to keep in memory (`view/window.ts`). Absent where a view holds the
   * whole board.
   */
  readonly sections?: BoardSections
  /** Reads postings: one element per id, undefined where the posting is gone. */
  read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]>
  /** Returns the owner of the job; undefined where it is unclaimed. */
  owner(id: string): Promise<string | undefined>
  /** Returns the cancel request of the job, if there is one. */
  cancellation(id: string): Promise<Cancellation | undefined>
  /** Resolves when the sink has received every change that was committed before the call. */
  barrier(): Promise<void>
  /**
   * Yields the entries of the trash, oldest first. Unreadable entries are left out and reported to the sink as errors. The trash is
   * read page by page (`backends/trash-pages.ts`): an entry that leaves before its page is read is left out, and later ones are not listed.
   */
  trashed(listing?: TrashListing): AsyncIterable<TrashedEntry>
  /** Returns the trash entry with this id; undefined where there is none or it is unreadable. One round trip. */
  trashedEntry(id: string): Promise<TrashedEntry | undefined>
  /**
   * Returns the newest readable trash entry with this uuid; undefined where there is none. One or two round trips however long the trash is;
   * where the servers keep the trash by id only, the first call of a process reads it once (`backends/trash-index.ts`). Errors: NotConnected.
   */
  findTrashed(uuid: string): Promise<TrashedEntry | undefined>

  /** Changes records and posts jobs in one transaction: all or nothing. Errors: NotConnected, OutcomeUnknown, PayloadTooLarge. */
  write(request: WriteRequest): Promise<Written>
  /** Lists the records of a kind, ordered by their ids. Errors: NotConnected. */
  records(kind: string): Promise<StoredRecord[]>
  /** Returns the record; undefined if there is none. Errors: NotConnected. */
  record(name: RecordName): Promise<StoredRecord | undefined>
  /**
   * Reports changes of records of this kind to `records` of the sink until {@link unwatchRecords}, on every connection. A gap means that
   * changes may have been missed. Errors: NotConnected.
   */
  watchRecords(kind: string): Promise<void>
  /** Ends what {@link watchRecords} began. Resolves also without a connection. */
  unwatchRecords(kind: string): Promise<void>

  /**
   * Returns the program outside of the board that holds a resource of the posting; undefined if none does. Absent where other programs
   * cannot hold resources.
   */
  resourceHolder?(posting: Posting): Promise<ResourceHolder | undefined>
  /**
   * Registers an entity for as long as the session lasts. It replaces an entity of the same name and instance.
   *
   * @throws Duplicate while another living instance has the name
   */
  register(entity: Entity): Promise<void>
  unregister(entity: Entity): Promise<void>
  entities(kind: string): Promise<Entity[]>

  /**
   * Returns the time of the clock that delays are counted by, in milliseconds since 1970: the servers' clock, or that of this machine
   * until an answer has shown the servers'.
   */
  now(): number
  /**
   * Resolves when {@link now} is the servers' time; a round trip if no answer has shown it yet. Absent where it always is.
   * Errors: NotConnected.
   */
  readClock?(): Promise<void>
  /**
   * Makes the backend watch the lease of the session until the hold is disposed. It reports `lost` before another owner could
   * be granted what this session holds.
   */
  holdSession(): SessionHold
  /** Returns whether this session is certain to be alive at this instant, without a request; reports `lost` first if it is not. */
  alive(session: string): boolean
  /**
   * Returns for how many milliseconds this board's session is certain to be alive, without a request; undefined without a session.
   * Absent where this is not known.
   */
  sessionLeft?(): number | undefined
}

export interface SessionHold extends Disposable {
  /**
   * Resolves with the id of the session as soon as it, or the next one, is certain to be alive; nearly always at once.
   *
   * @throws NotConnected
   */
  whenAlive(): Promise<string>
}

/** The capabilities of a backend. A request for a missing one is refused and never emulated. */
export interface BackendCapabilities {
  readonly keys: boolean
  readonly resources: boolean
  readonly delays: boolean
  /** Whether jobs that nobody starts can expire. */
  readonly expiry: boolean
  /** Whether claims take slots and tokens of limits. */
  readonly limits: boolean
  /** Whether jobs can depend on others. */
  readonly dependencies: boolean
  /** Whether the board keeps a history of the jobs that have ended. */
  readonly history: boolean
  /** Whether the board counts the jobs of batches. */
  readonly batches: boolean
  /** Whether a claim can be taken away from its owner. */
  readonly release: boolean
}

/** The capabilities of a backend that lacks none. */
export const ALL_CAPABILITIES: BackendCapabilities = {
  keys: true,
  resources: true,
  delays: true,
  expiry: true,
  limits: true,
  dependencies: true,
  history: true,
  batches: true,
  release: true,
}

/** The most jobs that {@link Backend.dependencies} returns of each kind. */
export const MAX_SHOWN_DEPENDENCIES = 1_000

/** The receiver of what a backend reports. Called synchronously; never throws. */
export interface BackendSink {
  changes(batch: readonly BoardChange[]): void
  /**
   * Reports that followed jobs have changed. The changes are only hints, because they may be repeated, and any client of some servers can
   * send them: the caller follows the jobs again, which returns their status. `trashed` also says how a job ended that is gone by then,
   * because its trash entry was restored or purged at once.
   */
  followed(batch: readonly BoardChange[]): void
  /**
   * Reports that these records have changed, or may have; without names, that any record of a watched kind may have. The changes are only
   * hints: the receiver reads the records.
   */
  records(names?: readonly RecordName[]): void
  /**
   * Reports that a watched batch has changed, or may have; without a uuid, that each of them may have. A hint: the receiver reads the
   * batch.
   */
  batchChanged(uuid?: string): void
  /** Reports that changes may have been missed: an open view lists the board again. */
  gap(): void
  /** Reports whether the board is paused: once it is known, and, while subscribed, whenever it changes. */
  paused(paused: boolean): void
  session(event: BoardSessionEvent): void
  /** Reports the number of jobs on the board after the last reported change; a backend with sections reports it at each gap. */
  jobCount(jobs: number): void
  /**
   * Reports the jobs that a transaction of this backend object has cancelled because another job ended. Called before the answer to the
   * transaction. Some of the jobs may have run before.
   */
  doomed(ids: readonly string[]): void
  /** Returns whether a job with this uuid may be on the board; false only where all reports so far exclude it. */
  mayExist(uuid: string): boolean
  /** Reports a fault with which the board still works, or the end of such a fault. */
  health(event: HealthEvent): void
  /** Reports an error of the background work. */
  error(error: Error): void
}

/**
 * `notificationMissed`: changes were read that no notification had announced (`backends/notification-canary.ts`). `notificationsArrive`:
 * notifications arrive again. `backendStopped`: a server process was asked to end, and did not.
 */
export type HealthEvent = 'notificationMissed' | 'notificationsArrive' | 'backendStopped'

/** The status of a job: on the board, in the trash, or neither. */
export type JobStatus =
  | 'gone'
  | 'trashed'
  | { readonly claimed: boolean; readonly cancelled: boolean; readonly revision: number }

export type BoardChange = {
  /** `ready`: all dependencies of the job are met. */
  readonly kind: 'posted' | 'updated' | 'ready' | 'gone' | 'claimed' | 'released' | 'trashed' | 'cancelled'
  readonly id: string
  /** The queue key of a posted or ready job, or of one whose posting was replaced, where there are sections. */
  readonly at?: QueueKey
  /** Set where the change may have been reported before; it is not counted twice. */
  readonly again?: true
}

/** The place of a job in claim order and its due time: all that decides whether a view has to hold the job. */
export interface QueueKey extends ClaimOrderKey {
  /**
   * The due time in milliseconds on the backend's clock; 0 for at once, as for a job with a cancel request; infinite for a job that waits
   * for others.
   */
  readonly dueAt: number
}

/** A job without its posting. */
export interface JobSummary extends QueueKey {
  readonly claimed: boolean
  readonly cancelled: boolean
}

/** Reads parts of a board, each as it is at some moment during the call. */
export interface BoardSections {
  /** The approximate number of jobs of the head of the board that a view holds. */
  readonly window: number
  /** The approximate number of bytes of their postings that a view holds. */
  readonly windowBytes: number
  /**
   * Returns up to `limit` jobs behind `after` in claim order. With `due`, claimed and delayed jobs are left out. `end` in the
   * answer is true if there are no more.
   */
  range(asked: { readonly after?: ClaimOrderKey | undefined; readonly limit: number; readonly due: boolean }): Promise<{
    readonly jobs: readonly JobSummary[]
    readonly end: boolean
    /** The time of the backend's clock by which they were due. */
    readonly at: number
  }>
  /** Returns up to `limit` delayed jobs that become due later than `after`, in the order of their due times. */
  delayed(asked: { readonly after: number; readonly limit: number }): Promise<readonly JobSummary[]>
  claimed(): Promise<readonly JobSummary[]>
  /** Returns one status for each id. */
  statusOf(ids: readonly string[]): Promise<readonly ('there' | 'trashed' | 'gone')[]>
  /** Returns the id of the job with this uuid. */
  find(uuid: string): Promise<string | undefined>
}

/** Keeps the batches of a board. Posts, ends and restorations of jobs count them: see rule 7. */
export interface BatchStore {
  /** Creates an empty batch in one transaction. Errors: NotConnected, Duplicate, OutcomeUnknown. */
  create(batch: NewBatch): Promise<void>
  /** Returns a batch; undefined if there is none. Errors: NotConnected. */
  find(uuid: string): Promise<StoredBatch | undefined>
  /** Returns the newest batches by their creation, newest first, at most `limit`. Errors: NotConnected. */
  list(asked: { readonly limit: number }): Promise<readonly StoredBatch[]>
  /**
   * Changes the status of a batch in one transaction, which also ends the batch if it is sealed and no job of it is open. Does nothing
   * where the change has no effect. Returns its numbers and its status after it. Errors: NotConnected, NotFound, OutcomeUnknown.
   */
  change(uuid: string, change: BatchChange): Promise<BatchCounts & BatchStatus>
  /** Returns the jobs of a batch that are open, and those that have failed. Errors: NotConnected, NotFound. */
  jobs(uuid: string): Promise<BatchJobs>
  /**
   * Reports to `batchChanged` of the sink when the status of this batch may have changed, on every connection, until {@link unwatch}.
   * Errors: NotConnected.
   */
  watch(uuid: string): Promise<void>
  /** Ends what {@link watch} began. Resolves also without a connection. */
  unwatch(uuid: string): Promise<void>
}

/**
 * `connected`: operations succeed. `disconnected`: no operation succeeds, claims are still held. `lost`: the session has ended,
 * and with it every claim that it held; a new session with another id follows. `closed`: the backend is closed.
 */
export type SessionState = 'connected' | 'disconnected' | 'lost' | 'closed'

export interface BoardSessionEvent {
  readonly state: SessionState
  /** The id of the session, unique among the sessions of this backend object. It is not secret and can be logged. */
  readonly session: string
  readonly reason?: Error
}

export interface PostRequest {
  readonly posting: Posting
  /** The revision of the key, as `Posted` reported it, of a job that has left the board: the post takes the key over. */
  readonly takeOver?: number
  /** The jobs on the board after which the job is run; without those that are known to have ended as the job needs it. */
  readonly after?: readonly Dependency[]
  /**
   * The uuid of an open job of the posting's batch on whose behalf the job is posted: the batch may be sealed. A post to a batch is refused
   * with NotFound if the board has no such batch; with InvalidState if it is sealed and there is no such open job, or if it is cancelled;
   * with Duplicate if a job with the same uuid is open in it.
   */
  readonly member?: string
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
  /** The uuids of those that have not ended. */
  readonly open: readonly string[]
  /** The ids of those that have ended in the trash; they may have been purged from it. */
  readonly failed: readonly string[]
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
  /** The counted size of the posting, as in {@link StoredJob}. */
  readonly bytes: number
}

/** The result of a post in a transaction of the caller, with the name of the transaction, by which its end can be looked up. */
export type PostedInTransaction = Posted & { readonly transaction: string }

/**
 * The state of a post in a transaction of the caller. `rolled back`: as a whole, or to a savepoint before the post. `unknown`: the
 * server has no record of the transaction any more. Ask within a day of the post: after that, `rolled back` may also mean that the
 * record was deleted.
 */
export type TransactionState = 'open' | 'committed' | 'rolled back' | 'unknown'

/** The jobs on the board after which a restored job is run. */
export interface RestoreOptions {
  readonly after?: readonly Dependency[]
}

/** What became of a restoration: `gone` are the ids of jobs that have left the board, on which the job would depend. */
export type RestoreOutcome =
  | { readonly restored: true }
  | { readonly restored: false; readonly gone: readonly string[] }

/** Changes of records, and posts, that are done together or not at all. */
export interface WriteRequest {
  readonly changes: readonly RecordChange[]
  readonly posts: readonly PostRequest[]
}

export type Written =
  | {
      readonly done: true
      /** The new revision of each changed record; undefined for one that was removed. */
      readonly revisions: readonly (number | undefined)[]
      /** What became of each post: each was created. */
      readonly posted: readonly Posted[]
    }
  /**
   * Nothing was changed: a record is at another revision, the key of a post is taken, or a job on which a post would depend has left the
   * board.
   */
  | {
      readonly done: false
      readonly conflict: RecordName | { readonly key: string } | { readonly gone: readonly string[] }
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
  /** The mark of the claim, as in {@link ClaimGrant}. */
  readonly mark?: bigint
}

/** Ends a claim, in the session and at the revision that granted it. */
export type Settlement = {
  readonly id: string
  readonly who: string
  readonly session: string
  readonly revision: number
  /** The posting that the settlement writes, on the board or in the trash. */
  readonly posting: Posting
  /** Whether the view knows of a cancel request for the job; the request is removed together with the job. */
  readonly cancelRequested: boolean
  /** What the end of the job adds to the history; absent for an abandon, and where the board keeps none. */
  readonly history?: HistoryEntry
} /** `results`: encoded results that the history keeps; they are in `history` already. */ & (
  | { readonly kind: 'consume'; readonly results?: Uint8Array }
  /** `held`: the posting of the claim, whose resources it holds, where the posting that is written has others. */
  | { readonly kind: 'abandon'; readonly held?: Posting }
  | ({ readonly kind: 'trash' } & TrashReason)
)

/** Ends the claim of another owner. */
export interface ReleaseRequest {
  readonly id: string
  /** The revision of the posting that the claim wrote. */
  readonly revision: number
  /** The posting that is written: the claim's, with the end of its attempt. */
  readonly posting: Posting
}

/** What became of a {@link ReleaseRequest}: `changed`: the job is not at this revision any more. `gone`: it has left the board. */
export type ReleaseOutcome = 'released' | 'unclaimed' | 'changed' | 'gone'

export type DiscardRequest = {
  readonly id: string
  readonly who: string
  readonly revision: number
  readonly posting: Posting
  readonly cancelRequested: boolean
  /** As in {@link Settlement}. */
  readonly history?: HistoryEntry
  /** The time that the trash shows, of an entry that is copied from another board; the time of the transaction by default. */
  readonly at?: Date
} & TrashReason

/** A request to cancel a job, on whichever process it runs. A second request changes nothing. */
export interface CancelRequest extends Cancellation {
  readonly kind: 'cancel'
  readonly id: string
  /** The job's uuid and name, for error messages. */
  readonly job: string
}

/** The owner name of the board that requested the cancel, and the reason. */
export interface Cancellation {
  readonly who: string
  readonly reason: string
}

export interface GateRequest {
  readonly kind: 'gate'
  readonly paused: boolean
}

/** Why a job is in the trash. */
export interface TrashReason {
  readonly reason: string
  readonly failure?: Failure
}

export interface BoardListing {
  readonly jobs: readonly string[]
  readonly claimed: ReadonlySet<string>
  /** The ids in the trash. */
  readonly trashed: ReadonlySet<string>
  /** The ids of the jobs that have a cancel request. */
  readonly cancelled: ReadonlySet<string>
}

export interface UnclaimedJobs {
  /** The ids of all unclaimed jobs, including those that are delayed. */
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

/** Which entries of the trash are listed, and in which order: by default all, oldest first. */
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

/** A participant that is shown on the board while its session lives, such as a conductor. */
export interface Entity {
  readonly kind: string
  readonly name: string
  /** The id by which an object distinguishes its own entity, left by an earlier session, from that of another one. */
  readonly instance: string
  readonly metadata: Readonly<Record<string, unknown>>
}
