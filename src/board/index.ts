/** Public exports of the board: posting jobs, listing them, and claiming each by one owner at a time. */

export type { Batch, BatchPostItem, BatchProgress, BatchView } from './api/batches/batch.ts'
export type { BatchCallback, BatchOptions } from './api/batches/batch-options.ts'
export type { BatchesOptions } from './api/batches/batches.ts'
export type { RegisteredEntity } from './api/entity-registry.ts'
export type { BoardEvents, JobEvent } from './api/events.ts'
export type { EndedJob, HistoryOptions } from './api/history.ts'
export type { Job } from './api/job.ts'
export type { JobBoard } from './api/job-board.ts'
export type { JobDependencies } from './api/job-dependencies.ts'
export type { JobResult, ResultLogbooks, ResultOptions } from './api/job-result.ts'
export type { JobsOptions } from './api/listed.ts'
export type {
  BoardOptions,
  CancelOptions,
  ClaimNextOptions,
  ClaimsOptions,
  PostAndClaimOptions,
  ReleaseOptions,
  WaitOptions,
} from './api/options.ts'
export type { PostManyOptions, PostManyResult, TypedPostItem as PostItem } from './api/posting/post-many.ts'
export type { PostedJob } from './api/posting/posted-job.ts'
export type { HoldOptions, ResourceHold } from './api/resource-hold.ts'
export type { RestoreOptions } from './api/restoring.ts'
export type { TrashedJob } from './api/trashed-job.ts'
export type { WaitingFor } from './api/waiting-for.ts'
export type { Cancellation, Entity, SessionState } from './backend.ts'
export type { Claim, PerformContext, Performed } from './claims/claim.ts'
export type { ReleasedClaim } from './claims/release-claim.ts'
export type { AbandonOptions, ConsumeOptions, TrashOptions } from './claims/settle-options.ts'
export type { DeclaredLimit, DeclaredLimits } from './limits/declare.ts'
export type {
  LimitKeyUse,
  Limits,
  LimitView,
  LimitViewOptions,
  PushBackOptions,
  TakeOptions,
} from './limits/limits.ts'
export type { LimitSettings } from './limits/settings.ts'
export type { Attempt } from './model/attempts.ts'
export type { PostBackOff } from './model/back-off.ts'
export { PRIORITIES, type Priority } from './model/claim-order.ts'
export type { DependencyEnd, PostDependency } from './model/dependencies.ts'
export type { BatchState, EndedBatchDetails } from './model/job-batch.ts'
export type { KeyOptions, KeyTakenReason, PostKey } from './model/key.ts'
export type { PostLimit } from './model/limits.ts'
export type { PostBatch } from './model/post-batch.ts'
export { type Details, type Posting, type PostOptions, SIZES, type Size, type SqlClient } from './model/posting.ts'
export type { Resources } from './model/resources.ts'
export { type OpenBoardOptions, openBoard } from './open.ts'
export type { ListedFlow } from './records/flow-outlines.ts'
export type { DeclaredSchedules } from './schedules/declare.ts'
export type { BackfillOptions, Resumed, ResumeScheduleOptions } from './schedules/manual-posts.ts'
export type { CatchUp, Overlap, ScheduleCounts, SkipReason } from './schedules/record.ts'
export { type DeclaredSchedule, type ScheduleChanges, type ScheduleOptions, schedule } from './schedules/schedule.ts'
export type { ScheduleFiring, ScheduleView } from './schedules/schedule-view.ts'
export type { PauseScheduleOptions, Schedules } from './schedules/schedules.ts'
