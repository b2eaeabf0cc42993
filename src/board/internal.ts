/** Exports of the board for other folders of this project, not for users. */

export { type RedisServerInfo, redisServerInfo } from './backends/redis/internal.ts'
export { memoryTestBackend } from './memory-place.ts'
export { countTrailingDeaths, isOutage, isSuspect } from './model/attempts.ts'
export { boardId } from './model/board-id.ts'
export { type AddedDeclarations, missingDeclarations, toDeclared } from './model/declared.ts'
export { type FlowReference, isKnownToAny, toFlowReference } from './model/flow-reference.ts'
export { encodeKeptResults } from './model/kept-results.ts'
export { type DeclaredSchedules, toDeclaredSchedules } from './schedules/declare.ts'
export type { Fired } from './schedules/firing.ts'
export { CATCH_UPS, OVERLAPS } from './schedules/record.ts'
export { toScheduledRun } from './schedules/scheduled-post.ts'
export type { Scheduler } from './schedules/scheduler.ts'
