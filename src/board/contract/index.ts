/**
 * The interface between a board and the system that keeps it. Everything else (the live view, the queue, filters, events, waiting,
 * checks) is written once, in `JobBoard`.
 *
 * No connection, key or transaction type appears here. A **job id** is the backend's own name for a posting
 * (`job0000000042`), unique for ever on its board; users know a job by its uuid.
 *
 * A backend is made of roles. `backends/redis/limits.ts` implements the interface of `contract/limits.ts`, and so on: the files have the
 * same names in the folder of each backend.
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
 * 7. A job whose posting names a batch is counted by the transactions that post, end and restore it (`model/job-batch.ts`). The transaction that
 *    leaves a sealed batch without open jobs ends it, and posts its callback (`toBatchCallback`). If two jobs end at the same time, so that
 *    neither transaction sees the other, a further transaction may do it. The end of a job whose batch is no longer kept counts nowhere.
 * 8. A key is taken while its job is on the board, and until its window is over by the servers' clock (`model/key.ts`). The transaction of
 *    a post decides it, and of posts that find it free at the same time one takes it.
 */
import type { BackendBatches } from './batches.ts'
import type { BackendCallerTransactions } from './caller-transactions.ts'
import type { BackendChanges } from './changes.ts'
import type { BackendClaims } from './claims.ts'
import type { BackendDependencies } from './dependencies.ts'
import type { BackendEntities } from './entities.ts'
import type { BackendHistory } from './history.ts'
import type { BackendJobs } from './jobs.ts'
import type { BackendKeys } from './keys.ts'
import type { BackendLimits } from './limits.ts'
import type { BackendRecords } from './records.ts'
import type { BackendResources } from './resources.ts'
import type { BackendSections } from './sections.ts'
import type { BackendClock, BackendSession } from './session.ts'
import type { BackendSignals } from './signals.ts'
import type { BackendTrash } from './trash.ts'

export type { BackendBatches, BatchChange, BatchJobs, NewBatch } from './batches.ts'
export type { BackendCallerTransactions, PostedInTransaction, TransactionState } from './caller-transactions.ts'
export type { BackendChanges } from './changes.ts'
export type { BackendClaims, ClaimGrant, ClaimRequest, ReleaseOutcome, ReleaseRequest, Settlement } from './claims.ts'
export { type BackendDependencies, type KnownDependencies, MAX_SHOWN_DEPENDENCIES } from './dependencies.ts'
export type { BackendEntities, Entity } from './entities.ts'
export type { BackendHistory } from './history.ts'
export type {
  BackendJobs,
  BoardListing,
  DependencyGone,
  Posted,
  PostRequest,
  StoredJob,
  UnclaimedJobs,
  UnreadableJob,
} from './jobs.ts'
export type { BackendKeys, KeyTaken, Replaced, ReplaceRequest } from './keys.ts'
export type { BackendLimits } from './limits.ts'
export type { BackendRecords, WriteRequest, Written } from './records.ts'
export type { BackendResources, OrphanedClaim, ResourceHolder } from './resources.ts'
export type { BackendSections, JobSummary, QueueCount } from './sections.ts'
export type { BackendClock, BackendSession, LeaseWatch } from './session.ts'
export type { BackendSignals, Cancellation, CancelRequest } from './signals.ts'
export type {
  BackendSink,
  BoardChange,
  BoardSessionEvent,
  HealthEvent,
  JobStatus,
  QueueKey,
  SessionState,
} from './sink.ts'
export type {
  BackendRestoreOptions,
  BackendTrash,
  DiscardRequest,
  RestoreOutcome,
  TrashedEntry,
  TrashListing,
  TrashReason,
} from './trash.ts'

export interface Backend {
  /** The URI without a password, for messages. */
  readonly uri: string
  /**
   * Whether other programs than this library post and claim here, too; known once the backend is open. They would not respect what a job
   * asks for (`claims/supported.ts`), take no slots of limits, write no history, and would not notice that a claim was taken away: a shared
   * board has none of that. {@link dependencies}, {@link history} and {@link batches} are then the roles of `unsupported.ts`.
   */
  readonly shared: boolean
  readonly session: BackendSession
  readonly clock: BackendClock
  readonly changes: BackendChanges
  readonly jobs: BackendJobs
  /**
   * Reads parts of the board, for boards that may be too long to keep in memory (`view/window.ts`). Undefined where a view holds the
   * whole board.
   */
  readonly sections: BackendSections | undefined
  readonly keys: BackendKeys
  readonly claims: BackendClaims
  readonly signals: BackendSignals
  readonly trash: BackendTrash
  readonly limits: BackendLimits
  readonly resources: BackendResources
  readonly dependencies: BackendDependencies
  readonly history: BackendHistory
  readonly batches: BackendBatches
  readonly records: BackendRecords
  readonly entities: BackendEntities
  readonly callerTransactions: BackendCallerTransactions
}
