/** Fields that somebody has written into the keys of a board by hand: none keeps another job from being done. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fieldName } from '../../../../src/board/backends/redis/store/layout.ts'
import { encode } from '../../../../src/core/codec.ts'
import { postingRecord } from '../../../support/poison.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { jobIdFor } from '../../boards.ts'
import { claimed, refresh } from '../../jobs.ts'
import { type RedisPlace, redisPlace } from './places.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

type Write = (place: RedisPlace, id: string) => Promise<unknown>
const LONG_ID = `job${'9'.repeat(400)}`
const posting = () => Buffer.from(encode(postingRecord(), 'msgpack'))

const WRITES: readonly (readonly [what: string, write: Write])[] = [
  ['an id of many digits', ({ observer, key }) => observer.hset(key('jobs'), LONG_ID, posting())],
  ['an id without digits', ({ observer, key }) => observer.hset(key('jobs'), 'x', posting())],
  ['an empty id', ({ observer, key }) => observer.hset(key('jobs'), '', posting())],
  ['an id with colons', ({ observer, key }) => observer.hset(key('jobs'), 'a:b:c', posting())],
  ['an id with a plus', ({ observer, key }) => observer.hset(key('jobs'), '+', posting())],
  ['the id __proto__', ({ observer, key }) => observer.hset(key('jobs'), '__proto__', posting())],
  ['an id that is small', ({ observer, key }) => observer.hset(key('jobs'), 'job1', posting())],
  ['a score of infinity', ({ observer, key }, id) => observer.zadd(key('order'), 'inf', id)],
  ['a score below all', ({ observer, key }, id) => observer.zadd(key('order'), '-inf', id)],
  ['a score that is no whole number', ({ observer, key }, id) => observer.zadd(key('order'), '1.5', id)],
  ['a place in the order without a posting', ({ observer, key }) => observer.zadd(key('order'), '1', 'job1')],
  ['a rest for ever', ({ observer, key }, id) => observer.zadd(key('resting'), 'inf', id)],
  ['a rest since ever', ({ observer, key }, id) => observer.zadd(key('resting'), '-inf', id)],
  ['a rest without a posting', ({ observer, key }) => observer.zadd(key('resting'), '1.5', 'x')],
  ['an empty row', ({ observer, key }, id) => observer.hset(key('rows'), id, '')],
  ['a row that is no row', ({ observer, key }, id) => observer.hset(key('rows'), id, 'x')],
  [
    'a row with a revision of many digits',
    ({ observer, key }, id) => observer.hset(key('rows'), id, `${'9'.repeat(400)}:1:1:`),
  ],
  ['a row with a revision that is no number', ({ observer, key }, id) => observer.hset(key('rows'), id, 'x:1:1:')],
  ['a row with times that are no numbers', ({ observer, key }, id) => observer.hset(key('rows'), id, '0:x:y:')],
  ['a row of an owner that is not there', ({ observer, key }, id) => observer.hset(key('rows'), id, '0:1:1:x+')],
  ['a row without a posting', ({ observer, key }) => observer.hset(key('rows'), 'x', '')],
  [
    'grants that are no record',
    ({ observer, key }, id) => observer.multi().hset(key('granted'), id, 'x').hset(key('rows'), id, '0:1:1:+').exec(),
  ],
  ['a claim that names no owner', ({ observer, key }, id) => observer.hset(key('held'), id, '')],
  ['a claim of no job', ({ observer, key }) => observer.hset(key('held'), 'x', 'x:y')],
  ['a cancellation that is no record', ({ observer, key }, id) => observer.hset(key('cancels'), id, '')],
  ['an owner without an id', ({ observer, key }) => observer.zadd(key('owners'), 0, '')],
  ['an owner that is long dead', ({ observer, key }) => observer.zadd(key('owners'), '-inf', 'x')],
  ['an owner that lives for ever', ({ observer, key }) => observer.zadd(key('owners'), 'inf', 'x')],
  ['a key that names no job', ({ observer, key }) => observer.hset(key('keys'), '["k"]', '')],
  ['a wait of no job', ({ observer, key }) => observer.hset(key('waits'), 'x', 'x')],
  ['a wait for no job', ({ observer, key }, id) => observer.hset(key('waits'), id, '2:0:=job1;')],
  ['a dependent without a colon', ({ observer, key }) => observer.zadd(key('dependents'), 0, 'x')],
  ['a dependent with a score', ({ observer, key }, id) => observer.zadd(key('dependents'), 7, `${id}:x`, 0, `${id}:y`)],
  ['an end that is not finished', ({ observer, key }, id) => observer.hset(key('ending'), id, 'x', '', '')],
  ['a time of the last look that is none', ({ observer, key }) => observer.hset(key('board'), 'swept', 'x')],
  ['a history that is no record', ({ observer, key }) => observer.hset(key('history'), 'x', 'x')],
  ['an end without a history', ({ observer, key }) => observer.zadd(key('ended'), 'inf', 'x', '-inf', 'y')],
  ['a batch that is none', ({ observer, key }) => observer.hset(key('batches'), 'x', 'x', 'x:state', 'x', '', '')],
  ['a batch without a definition', ({ observer, key }) => observer.hset(key('batches'), 'x:state', '1:1:0:0:0:0:')],
  ['a job of no batch', ({ observer, key }, id) => observer.hset(key('members'), id, '', 'x', 'x:y', 'y', ':')],
  [
    'an open job of no batch',
    ({ observer, key }, id) => observer.zadd(key('batch-jobs'), 0, 'x', 7, 'x:o:y', 0, `x:f:${id}`),
  ],
  ['an order of no batches', ({ observer, key }) => observer.zadd(key('batch-order'), 'inf', 'x', '-inf', 'y')],
  ['ends of no batches', ({ observer, key }) => observer.zadd(key('ended-batches'), 'inf', 'x', '-inf', 'y')],
  ['rates that are none', ({ observer, key }) => observer.hset(key('intervals'), '["k"]', 'x', 'y', '', '', '-1 0')],
  ['a shared resource that is not counted', ({ observer, key }) => observer.hset(key('shared'), 'x', 'x')],
  ...['', 'P', 'Px:1:y', 'P:::', `P${LONG_ID}`, 'z', 'C', 'D', 'X__proto__', 'T', 'R', 'Rx:1:y'].map(
    (entry): [string, Write] => [
      `the change ${JSON.stringify(entry.slice(0, 9))}`,
      ({ observer, key }) => observer.multi().rpush(key('log'), entry).hincrby(key('board'), 'version', 1).exec(),
    ],
  ),
]

describe('a changed record in the place of the grants of a job', () => {
  test.each([
    ['bytes that are no record', Buffer.from([0xc1])],
    ['lists of other things', Buffer.from(encode([[['a'], 7], [{}]], 'msgpack'))],
    ['a text', Buffer.from(encode('x', 'msgpack'))],
  ])('%s keeps neither this job nor another from being settled', { timeout: 8_000 }, async (_, bytes) => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const resources = { exclusive: ['disk'], shared: ['net'] }
    for (const name of ['a', 'b']) await board.post('flow', {}, { name, ...(name === 'a' ? { resources } : {}) })
    const [a, b] = [await claimed(board, 'a'), await claimed(board, 'b')]
    await place.observer.hset(place.key('granted'), jobIdFor(a.job), bytes)
    await Promise.all([a.consume(), b.consume()])
    expect(await place.jobIds()).toEqual([])
  })

  test('a count of a shared resource that is no number begins anew', { timeout: 8_000 }, async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await board.post('flow', {}, { name: 'a', resources: { shared: ['net'] } })
    await refresh(board)
    await place.observer.hset(place.key('shared'), fieldName('net'), 'x')
    await (await claimed(board, 'a')).consume()
    expect(await place.observer.hlen(place.key('shared'))).toBe(0)
  })
})

describe('an innocent job is done beside', () => {
  test.each(WRITES)('%s', { timeout: 8_000 }, async (_, write) => {
    await using place = await redisPlace(server, { parameters: '&ttl=2s' })
    await using board = await place.open()
    const before = await board.post('flow', {}, { name: 'victim' })
    await refresh(board)
    const [id = ''] = await place.jobIds()
    await write(place, id)
    await refresh(board)
    await using late = await place.open()
    for (const each of [board, late]) {
      const job = await each.post('flow', {}, { name: 'innocent', priority: 'LOW' })
      await refresh(each)
      for await (const _ of each.jobs()) void before
      await (await claimed(each, 'innocent')).consume()
      expect(await job.wait()).toBe('COMPLETE')
      for await (const _ of each.trashed()) void before
      await each.entities('conductor')
      expect((await each.history())[0]).toMatchObject({ name: 'innocent' })
      const batch = await each.batch({ name: 'innocent' })
      await batch.seal()
      expect((await each.batches()).find(({ uuid }) => uuid === batch.uuid)).toMatchObject({ state: 'done' })
    }
  })
})
