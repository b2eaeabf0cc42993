/** Boards: posting work, seeing it, and owning it one at a time. */

/** @internal `isOutage` is for conductors. */
export { type Attempt, isOutage } from './attempts.ts'
export type { PostBackOff } from './back-off.ts'
export type { Cancellation, Entity, SessionState } from './backend.ts'
/** @internal For conductors, and for what removes logbooks. */
export { boardId } from './board-id.ts'
export type { Claim, PerformContext, Performed } from './claims/claim.ts'
export type { AbandonOptions, TrashOptions } from './claims/settle-options.ts'
export type { RegisteredEntity } from './entity-registry.ts'
export type { BoardEvents, JobEvent } from './events.ts'
export type { Job } from './job.ts'
export type { JobBoard } from './job-board.ts'
export type { JobsOptions } from './listed.ts'
/** @internal For `jobboard/testing`. */
export { memoryTestBackend } from './memory-place.ts'
export { type OpenBoardOptions, openBoard } from './open.ts'
export type {
  BoardOptions,
  CancelOptions,
  ClaimNextOptions,
  ClaimsOptions,
  PostAndClaimOptions,
  WaitOptions,
} from './options.ts'
export type { PostedJob } from './poster.ts'
export { type Details, type Posting, type PostOptions, SIZES, type Size, type SqlClient } from './posting.ts'
export { PRIORITIES, type Priority } from './priority.ts'
/** @internal For `jobboard doctor`. */
export { type RedisServerInfo, redisServerInfo } from './redis/facts.ts'
export type { Resources } from './resources.ts'
export type { TrashedJob } from './trashed-job.ts'
export type { WaitingFor } from './waiting-for.ts'
