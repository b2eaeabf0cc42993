/** Exports for other parts of this project; they are not part of the public interface. */
export { type RedisServerInfo, redisServerInfo } from './store/server-info.ts'
