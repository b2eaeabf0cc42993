/** Reads facts about a Redis server, for `jobboard doctor`. */
import { parseUri } from '../../../../core/uri.ts'
import { loadDriver } from './clients.ts'
import { RedisConnection } from './connection.ts'
import { RedisLayout } from './layout.ts'
import { parseRedisLocation } from './location.ts'
import { toList } from './replies.ts'

export interface RedisServerInfo {
  readonly version: string
  /** `master` or `slave`. */
  readonly role: string
  /** The eviction policy for keys when memory is full; only `noeviction` is safe for jobs. */
  readonly eviction: string
  /** Size in bytes. */
  readonly usedMemory: number
  /** Limit in bytes; 0 means that there is no limit. */
  readonly mostMemory: number
  /** Whether the server writes an append-only file. */
  readonly appends: boolean
  /** The server's clock, in milliseconds since 1970. */
  readonly now: number
  /** The times before and after the clock was read, in milliseconds since 1970 on this machine's clock. */
  readonly asked: readonly [before: number, after: number]
}

/**
 * Reads the facts over a connection of its own, in two round trips. In a cluster, one server answers.
 *
 * @throws InvalidArgument for the URI; the error of the driver or of the server
 */
export async function redisServerInfo(
  uri: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<RedisServerInfo> {
  const location = await parseRedisLocation(parseUri(uri, 'board'))
  const { channel } = new RedisLayout(location.prefix)
  const options = { location, channel, timeoutMs: location.ttl, onMessage: () => undefined, signal }
  const connection = await RedisConnection.open(await loadDriver(location), options)
  try {
    const info = String(await connection.command('info'))
    const before = Date.now()
    const [seconds, micros] = toList(await connection.command('time')).map(Number)
    const now = (seconds ?? 0) * 1_000 + (micros ?? 0) / 1_000
    return { ...parseInfo(info), now, asked: [before, Date.now()] }
  } finally {
    connection.disconnect(new Error('all facts were read'))
  }
}

/** Parses lines of the form `name:value`. */
function parseInfo(info: string): Omit<RedisServerInfo, 'now' | 'asked'> {
  const facts = new Map(info.split(/\r?\n/).map((line) => line.split(':', 2) as [string, string | undefined]))
  return {
    version: facts.get('redis_version') ?? 'of an unknown version',
    role: facts.get('role') ?? 'master',
    eviction: facts.get('maxmemory_policy') ?? 'noeviction',
    usedMemory: Number(facts.get('used_memory') ?? 0),
    mostMemory: Number(facts.get('maxmemory') ?? 0),
    appends: facts.get('aof_enabled') === '1',
  }
}
