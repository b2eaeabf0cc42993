/** Owners on Redis that die, and one that only seems to. A subscriber of Redis sees every job go. */
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { decode } from '../../../src/core/codec.ts'
import { redisPlace } from '../../board/backends/redis/places.ts'
import { startRedis } from '../../support/redis.ts'
import { everyJobOnce, type RemovalCounter } from './exactly-once.ts'

test('every job on Redis is consumed exactly once', async () => {
  await using server = await startRedis()
  await using place = await redisPlace(server)
  await using poster = await place.open({ who: 'poster' })
  await using gone = await goneCounter(server.uri, place.key('changes'))
  await everyJobOnce({ poster, ownersUri: `${place.uri}&ttl=4s`, gone })
  expect(await place.jobIds()).toEqual([])
  expect(await place.trashIds()).toEqual([])
  for (const key of ['rows', 'order', 'held']) expect(await place.observer.exists(place.key(key)), key).toBe(0)
})

/** Hears what is published: every change, with how many there have been. */
async function goneCounter(uri: string, channel: string): Promise<RemovalCounter & AsyncDisposable> {
  const redis = new Redis(uri)
  const gone = new Map<string, number>()
  const missed: string[] = []
  const enough = createDeferred()
  let wanted = Number.POSITIVE_INFINITY
  let version: number | undefined
  redis.on('messageBuffer', (_: Buffer, message: Buffer) => {
    // Behind the signature, 40 hexadecimal digits.
    const [to, entries] = decode(message.subarray(40), 'msgpack') as [number, string[]]
    if (version !== undefined && version !== to - entries.length) missed.push(`missed what came before ${to}`)
    version = to
    for (const entry of entries) {
      if (!/^[DT]/.test(entry)) continue
      gone.set(entry.slice(1), (gone.get(entry.slice(1)) ?? 0) + 1)
    }
    if (gone.size >= wanted) enough.resolve()
  })
  await redis.subscribe(channel)
  return {
    reached: async (jobs) => {
      wanted = jobs
      if (gone.size < wanted) await enough.promise
    },
    twice: () => [...missed, ...[...gone].filter(([, times]) => times > 1).map(([id]) => id)],
    [Symbol.asyncDispose]: async () => redis.disconnect(),
  }
}
