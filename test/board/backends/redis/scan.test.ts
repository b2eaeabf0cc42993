/** What nobody was told of is found all the same; what arrives late changes nothing. */
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodePostingWithin } from '../../../../src/board/backends/redis/store/encodings.ts'
import { RedisLayout } from '../../../../src/board/backends/redis/store/layout.ts'
import { SCRIPTS } from '../../../../src/board/backends/redis/store/scripts.ts'
import { decode, encode } from '../../../../src/core/codec.ts'
import { startProxy } from '../../../support/proxy.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { nextEvent } from '../../events.ts'
import { claimed, namesOn, refresh } from '../../jobs.ts'
import { postingOf } from '../zookeeper/bare-backends.ts'
import { type RedisPlace, redisPlace } from './places.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** A batch as an owner would send it: one post, under that number. */
async function commit(
  place: RedisPlace,
  owner: string,
  { number, serial = number }: { number: number; serial?: number },
): Promise<{ accepted: boolean; id: unknown }> {
  const layout = new RedisLayout(place.prefix)
  const posting = Buffer.from(encodePostingWithin(postingOf({ name: `of batch ${number}` })))
  const args = [
    owner,
    layout.channel,
    packed([number, 0, 10_000, true, serial]),
    packed([['post', 2, 1, 'uuid', null]]),
    packed([posting.length]),
    posting,
  ]
  const answer = await place.observer.callBuffer(
    'eval',
    SCRIPTS.commit.load().lua,
    String(layout.keys(owner).length),
    ...layout.keys(owner),
    ...args,
  )
  const [head, answers] = answer as [Buffer, Buffer | undefined]
  const [accepted] = decode(head, 'msgpack') as [boolean]
  const [first] = answers ? (decode(answers, 'msgpack') as [[boolean, unknown]]) : []
  return { accepted, id: first?.[1] }
}

function packed(value: unknown): Buffer {
  return Buffer.from(encode(value, 'msgpack'))
}

describe('a board on Redis', () => {
  test('finds by its scan what was never published', async () => {
    await using place = await redisPlace(server)
    await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=1500ms' })
    const waiting = board.claimNext()
    const { observer, key } = place
    await observer
      .multi()
      .hset(key('jobs'), 'job1', Buffer.from(encodePostingWithin(postingOf({ name: 'quiet' }))))
      .hset(key('rows'), 'job1', '0:1:1:')
      .zadd(key('order'), 1, 'job1')
      .rpush(key('log'), 'Pjob1')
      .hincrby(key('board'), 'version', 1)
      .exec()
    const [claim] = await waiting
    expect(claim.job.name).toBe('quiet')
    await claim.consume()
    expect(await place.jobIds()).toEqual([])
  })

  test('finds postings that were put there, or taken away, by hand', async () => {
    await using place = await redisPlace(server)
    await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=1500ms' })
    const job = await board.post('flow', {}, { name: 'taken', key: 'one', resources: { exclusive: ['disk'] } })
    await claimed(board, 'taken')
    const [gone, came] = [nextEvent(board, 'consumed'), nextEvent(board, 'posted')]
    await place.removeRaw(job)
    expect((await gone).job.name).toBe('taken')
    await place.observer.hset(place.key('jobs'), 'job7', Buffer.from(encodePostingWithin(postingOf({ name: 'put' }))))
    expect((await came).job.name).toBe('put')
    for (const key of ['held', 'granted', 'exclusive']) expect(await place.observer.exists(place.key(key)), key).toBe(0)
    await (await claimed(board, 'put')).consume()
  })

  test('keeps its claims when the connection breaks while it mends what was done by hand', async () => {
    await using place = await redisPlace(server)
    await using proxy = await startProxy({ port: server.port })
    await using board = await place.openAt(proxy.hosts, { parameters: '&ttl=3s' })
    await board.post('flow', {}, { name: 'held' })
    const claim = await claimed(board, 'held')
    const { observer, key } = place
    proxy.manner = { delay: 40 }
    await observer.hset(key('jobs'), 'job7', Buffer.from(encodePostingWithin(postingOf({ name: 'put' }))))
    while ((await observer.hexists(key('rows'), 'job7')) === 0) await turn()
    // Mended, and the answer is on its way.
    const back = nextEvent(board, 'state', ({ state }) => state !== 'disconnected')
    proxy.resetAll()
    proxy.manner = {}
    expect((await back).state).toBe('connected')
    await claim.consume()
    await (await claimed(board, 'put')).consume()
  })

  test('notices a pause, and its end, that the log does not hold any more', async () => {
    await using place = await redisPlace(server)
    await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=30s' })
    const { observer, key } = place
    for (const look of [() => refresh(board), () => board.post('flow', {}).catch(() => undefined)]) {
      for (const paused of [true, false]) {
        // As when so much has happened since, unheard, that it was cut off.
        await observer
          .multi()
          .hset(key('board'), 'paused', paused ? '1' : '0')
          .hincrby(key('board'), 'version', 100_000)
          .del(key('log'))
          .exec()
        await look()
        expect(board.paused).toBe(paused)
      }
    }
  })

  test('lists again when it has missed more than the log holds', async () => {
    await using place = await redisPlace(server)
    await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=30s' })
    await board.post('flow', {}, { name: 'before' })
    await place.observer.hincrby(place.key('board'), 'version', 100_000)
    await place.observer.del(place.key('log'))
    await board.post('flow', {}, { name: 'after' })
    expect(await namesOn(board)).toEqual(['before', 'after'])
  })

  test('keeps a log that does not grow for ever', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await place.observer.rpush(place.key('log'), ...Array(19_999).fill('?'))
    await place.observer.hincrby(place.key('board'), 'version', 19_999)
    for (let number = 0; number < 3; number++) await (await board.claim(await board.post('flow', {}))).consume()
    expect(await place.observer.llen(place.key('log'))).toBeLessThanOrEqual(10_010)
    await refresh(board)
    expect(await board.countJobs()).toBe(0)
  })
})

describe('a batch', () => {
  test('that comes twice is done once, and answered as before', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const owner = await place.ownerOf(board)
    const number = Number(await place.observer.hget(place.key(`owner:${owner}`), 'number')) + 1
    const first = await commit(place, owner, { number })
    expect(first).toEqual({ accepted: true, id: expect.stringMatching(/^job\d+$/) })
    expect(await commit(place, owner, { number })).toEqual(first)
    // Another one with its number: whose answers these are it is not told.
    expect((await commit(place, owner, { number, serial: number + 7 })).accepted).toBe(false)
    expect(await place.jobIds()).toEqual([first.id])
  })

  test('that comes late, too early, or of an owner that is gone, changes nothing', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const owner = await place.ownerOf(board)
    const number = Number(await place.observer.hget(place.key(`owner:${owner}`), 'number'))
    for (const other of [number - 1, number + 2])
      expect((await commit(place, owner, { number: other })).accepted).toBe(false)
    expect((await commit(place, 'nobody', { number: 1 })).accepted).toBe(false)
    expect(await place.jobIds()).toEqual([])
    expect(await place.observer.exists(place.key('owner:nobody'))).toBe(0)
  })
})
