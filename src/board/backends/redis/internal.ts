/** What the rest of this project needs of Redis boards, and their users do not. */
export { type RedisServerInfo, redisServerInfo } from './facts.ts'
