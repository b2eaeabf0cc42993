/** What a Redis says of itself, for whoever looks after it. */
import { parseUri } from '../../../core/uri.ts'
import { loadDriver, RedisConnection } from './connection.ts'
import { Layout } from './layout.ts'
import { parseRedisLocation } from './place.ts'
import { toList } from './replies.ts'

export interface RedisServerInfo {
  readonly version: string
  /** `master` or `slave`. */
  readonly role: string
  /** What becomes of keys when its memory is full; `noeviction` is the only one that is safe for jobs. */
  readonly eviction: string
  /** In bytes. */
  readonly usedMemory: number
  /** In bytes; 0 is without a limit. */
  readonly mostMemory: number
  /** Whether it appends what it is told to a file. */
  readonly appends: boolean
  /** In milliseconds since 1970. */
  readonly now: number
  /** When it was asked for the time, and when it had answered, in milliseconds since 1970 on this machine's clock. */
  readonly asked: readonly [before: number, after: number]
}

/**
 * A connection of its own and two round trips. Of a cluster one server tells.
 *
 * @throws InvalidArgument for the URI; what the driver says, or what the server answered
 */
export async function redisServerInfo(
  uri: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<RedisServerInfo> {
  const place = await parseRedisLocation(parseUri(uri, 'board'))
  const { channel } = new Layout(place.prefix)
  const options = { location: place, channel, timeoutMs: place.ttl, onMessage: () => undefined, signal }
  const connection = await RedisConnection.open(await loadDriver(place), options)
  try {
    const info = String(await connection.command('info'))
    const before = Date.now()
    const [seconds, micros] = toList(await connection.command('time')).map(Number)
    const now = (seconds ?? 0) * 1_000 + (micros ?? 0) / 1_000
    return { ...parseInfo(info), now, asked: [before, Date.now()] }
  } finally {
    connection.disconnect(new Error('nothing more is asked'))
  }
}

/** `name:value`, a line each. */
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
