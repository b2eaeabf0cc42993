/** What other folders of this project need of boards, and users do not. */

export { type RedisServerInfo, redisServerInfo } from './backends/redis/internal.ts'
export { memoryTestBackend } from './memory-place.ts'
export { isOutage } from './model/attempts.ts'
export { boardId } from './model/board-id.ts'
