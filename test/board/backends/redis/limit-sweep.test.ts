/** What is left of the keys of limits is removed by any owner that lives, also when no claim takes tokens any more. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fieldName } from '../../../../src/board/backends/redis/store/layout.ts'
import { Timeout } from '../../../../src/core/errors.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { rejectionOf } from '../../events.ts'
import { type RedisPlace, redisPlace } from './places.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const YEARS = { rate: { limit: 1, per: '36525d' } } as const

/** Resolves when some owner has swept since the call. */
async function whenSwept({ observer, key }: RedisPlace): Promise<void> {
  await observer.hdel(key('board'), 'limits-swept')
  while ((await observer.hget(key('board'), 'limits-swept')) === null);
}

async function keysIn({ observer, key }: RedisPlace): Promise<string[]> {
  return (await observer.zrange(key('rates'), 0, -1)).sort()
}

test('times that have passed, and those of keys that no limit concerns, are removed; others stay', async () => {
  await using place = await redisPlace(server, { parameters: '&ttl=1s' })
  await using board = await place.open()
  const long = `tenant/${'k'.repeat(300)}`
  await board.limits.set('quick/*', { rate: { limit: 1, per: 1 } })
  await board.limits.set('tenant/*', YEARS)
  await board.limits.set('tenant/7', YEARS)
  // Those that have passed are removed by the sweep alone.
  for (let number = 0; number < 40; number += 1)
    await place.observer.zadd(place.key('rates'), 1, fieldName(`old/${number}`))
  for (const key of ['quick/1', 'tenant/7', 'tenant/8', long]) await board.limits.take(key)
  await whenSwept(place)
  const kept = [fieldName('tenant/7'), fieldName('tenant/8'), fieldName(long)]
  expect(await keysIn(place)).toEqual(kept.sort())
  await board.limits.remove('tenant/*')
  await whenSwept(place)
  // The name of the long one is a hash: nobody can say whether a limit concerns it.
  expect(await keysIn(place)).toEqual([fieldName('tenant/7'), fieldName(long)].sort())
  expect(await rejectionOf(board.limits.take('tenant/7', { timeout: 0 }))).toBeInstanceOf(Timeout)
})

test('a limit whose name is a hash may concern any key', async () => {
  await using place = await redisPlace(server, { parameters: '&ttl=1s' })
  await using board = await place.open()
  const beginning = 'k'.repeat(300)
  await board.limits.set(`${beginning}*`, YEARS)
  await board.limits.set('api', YEARS)
  await board.limits.take(`${beginning}/1`)
  await board.limits.take('api')
  await board.limits.remove('api')
  await whenSwept(place)
  expect(await keysIn(place)).toHaveLength(2)
})

test('a key of another type keeps no owner from living', async () => {
  await using place = await redisPlace(server, { parameters: '&ttl=1s' })
  await using board = await place.open()
  await place.observer.set(place.key('rates'), 'x')
  await whenSwept(place)
  const job = await board.post('work', {})
  expect((await board.claim(job)).run).toBe(1)
})
