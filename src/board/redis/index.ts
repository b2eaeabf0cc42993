/** `redis://127.0.0.1:6379/0?prefix=taskflow&ttl=10s`, and others: `place.ts`. */
import { type Logger, silent } from '../../core/log.ts'
import type { ResourceUri } from '../../core/uri.ts'
import type { Backend } from '../backend.ts'
import { RedisBackend } from './backend.ts'
import { type RedisTls, redisPlace } from './place.ts'

/** @throws InvalidArgument when the URI names no server, or what cannot be a board, or files that cannot be read */
export async function redisBackend(
  uri: ResourceUri,
  options: { readonly create?: boolean; readonly tls?: RedisTls; readonly log?: Logger },
): Promise<Backend> {
  const { create, tls, log = silent } = options
  const place = await redisPlace(uri, tls ? { tls } : {})
  return new RedisBackend({ place, log, ...(create === undefined ? {} : { create }) })
}
