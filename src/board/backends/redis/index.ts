/** Opens Redis boards by URI, such as `redis://127.0.0.1:6379/0?prefix=taskflow&ttl=10s`; `store/location.ts` describes all forms. */
import { type Logger, silentLog } from '../../../core/log.ts'
import type { ResourceUri } from '../../../core/uri.ts'
import type { Backend } from '../../contract/index.ts'
import { RedisBackend } from './backend.ts'
import { parseRedisLocation, type RedisTls } from './store/location.ts'

/**
 * Creates the backend for a URI.
 *
 * @throws InvalidArgument if the URI names no server or an invalid board, or files that cannot be read
 */
export async function redisBackend(
  uri: ResourceUri,
  options: { readonly create?: boolean; readonly tls?: RedisTls; readonly log?: Logger },
): Promise<Backend> {
  const { create, tls, log = silentLog } = options
  const location = await parseRedisLocation(uri, tls ? { tls } : {})
  return new RedisBackend({ location, log, ...(create === undefined ? {} : { create }) })
}
