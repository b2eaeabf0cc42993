/** What is published on a board's channel: the scripts' own is applied, anybody else's only makes the board look. */
import { readFile } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodePostingWithin } from '../../../../src/board/backends/redis/store/encodings.ts'
import { SCRIPTS } from '../../../../src/board/backends/redis/store/scripts.ts'
import { encode } from '../../../../src/core/codec.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent } from '../../events.ts'
import { claimed, namesOn, refresh } from '../../jobs.ts'
import { postingOf } from '../zookeeper/bare-backends.ts'
import { exerciseBoard } from './life.ts'
import { type RedisPlace, redisPlace } from './places.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Another tenant of the server, who has no right to any key of the board, and to every channel (the default of Redis 6.2). */
async function stranger(place: RedisPlace): Promise<Redis> {
  await place.observer.call('ACL', 'SETUSER', 'evil', 'on', '>evil', 'resetkeys', 'allchannels', '+publish', '+ping')
  return new Redis({ port: server.port, username: 'evil', password: 'evil', enableReadyCheck: false })
}

function packed(value: unknown): Buffer {
  return Buffer.from(encode(value, 'msgpack'))
}

describe('a publication that the board did not make', () => {
  test('ends no process, whatever its shape', async () => {
    await using place = await redisPlace(server)
    const warnings: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) })
    await using board = await place.open({ log })
    const evil = await stranger(place)
    const uncaught: unknown[] = []
    const caught = (error: unknown) => uncaught.push(error)
    process.on('uncaughtException', caught)
    const version = Number(await place.observer.hget(place.key('board'), 'version'))
    const shapes = [
      ...[
        [version + 1, [7]],
        [version + 1, 'text'],
        [version + 1, [null]],
        [version + 1, [['D']]],
      ],
      ...[[{}, ['Djob1']], [Number.NaN, []], [], {}, 'text', 7, null, [2 ** 60, ['Djob1']]],
    ]
    for (const shape of shapes) await evil.publish(place.key('changes'), packed(shape))
    await evil.publish(place.key('changes'), Buffer.from([0xc1, 0x00, 0xff]))
    await evil.publish(place.key('changes'), Buffer.concat([Buffer.alloc(40, '0'), packed([version + 1, [7]])]))
    // Behind all of these, on the same connection.
    const posted = nextEvent(board, 'posted')
    await board.post('flow', {}, { name: 'innocent' })
    await posted
    await refresh(board)
    await (await claimed(board, 'innocent')).consume()
    process.off('uncaughtException', caught)
    evil.disconnect()
    expect(uncaught).toEqual([])
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('is not signed with the secret of the board')
    expect(warnings[0]).toContain(place.key('changes'))
  })

  test('forges no end of a job, no claim, no release, no pause', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open({ who: 'board' })
    await using other = await place.open({ who: 'other' })
    const job = await board.post('flow', {}, { name: 'job' })
    await refresh(board)
    const evil = await stranger(place)
    const states: string[] = []
    void job.wait().then((state) => states.push(state))
    for (const kind of ['consumed', 'trashed', 'claimed', 'abandoned'] as const) board.on(kind, () => states.push(kind))
    const id = jobIdFor(job)
    for (const entry of [`D${id}`, `C${id}`, `L${id}`, `T${id}`, 'G1', 'Pjob77']) {
      const version = Number(await place.observer.hget(place.key('board'), 'version'))
      // A long list of entries covers every version.
      await evil.publish(place.key('changes'), packed([version + 1, [entry]]))
      await evil.publish(place.key('changes'), packed([version + 1_000, Array.from({ length: 1_000 }, () => entry)]))
    }
    const posted = nextEvent(board, 'posted', (event) => event.job.name === 'after')
    await other.post('flow', {}, { name: 'after' })
    await posted
    expect(await namesOn(board, { onlyUnclaimed: true })).toEqual(['job', 'after'])
    expect(states).toEqual([])
    expect((await board.find(job.uuid)).state).toBe('UNCLAIMED')
    await (await claimed(board, 'job')).consume()
    evil.disconnect()
  })
})

test('the users of the guide can do what their boards need, and publish nowhere else', async () => {
  await using place = await redisPlace(server)
  const guide = await readFile(new URL('../../../../docs/guides/redis.md', import.meta.url), 'utf8')
  const [, recipe = ''] = /^redis-cli ACL SETUSER jobs (.+?)\n```/ms.exec(guide) ?? []
  const words = recipe
    .replace(/\\\n|'/g, '')
    .replace('>PASSWORD', '>secret')
    .trim()
    .split(/\s+/)
  const rules = words.map((word) => word.replace('{taskflow}', `{${place.prefix}}`))
  await place.observer.call('ACL', 'SETUSER', 'jobs', ...rules)
  const uri = `redis://jobs:secret@127.0.0.1:${server.port}/1?prefix=${place.prefix}`
  await exerciseBoard(uri)
  const user = new Redis({ port: server.port, username: 'jobs', password: 'secret', enableReadyCheck: false })
  await expect(user.publish('{another}:changes', 'x')).rejects.toThrow(/NOPERM/)
  await expect(user.hgetall('{another}:board')).rejects.toThrow(/NOPERM/)
  await expect(user.flushall()).rejects.toThrow(/NOPERM/)
  user.disconnect()
})

describe('a publication of the board', () => {
  test('is applied without a question to the server', async () => {
    await using place = await redisPlace(server)
    await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=60s' })
    await using other = await place.open({ who: 'other' })
    await refresh(board)
    const secret = String(await place.observer.hget(place.key('board'), 'secret'))
    expect(secret).toMatch(/^[0-9a-f]{32}$/)
    const asked = await monitored(server)
    const posted = nextEvent(board, 'posted')
    await other.post('flow', {}, { name: 'job' })
    await posted
    expect(asked.scripts()).not.toContain(SCRIPTS.renew.load().sha)
    asked.stop()
  })

  test('by an older release, which signs nothing, is found all the same', async () => {
    await using place = await redisPlace(server)
    await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=60s' })
    await refresh(board)
    const waiting = board.claimNext()
    const { observer, key } = place
    await observer
      .multi()
      .hset(key('jobs'), 'job1', Buffer.from(encodePostingWithin(postingOf({ name: 'old' }))))
      .hset(key('rows'), 'job1', '0:1:1:')
      .zadd(key('order'), 1, 'job1')
      .rpush(key('log'), 'Pjob1')
      .hincrby(key('board'), 'version', 1)
      .publish(key('changes'), packed([1, ['Pjob1']]))
      .exec()
    const [claim] = await waiting
    expect(claim.job.name).toBe('old')
    await claim.consume()
  })

  test('is signed on a board that an older release has made, once a newer one is there', async () => {
    await using place = await redisPlace(server)
    await place.observer.hset(place.key('board'), { format: '1', paused: '0', version: '0' })
    await using board = await place.open()
    const secret = await place.observer.hget(place.key('board'), 'secret')
    await using _other = await place.open()
    expect(secret).toMatch(/^[0-9a-f]{32}$/)
    expect(await place.observer.hget(place.key('board'), 'secret')).toBe(secret)
    await board.post('flow', {})
  })
})

interface Monitored {
  scripts(): string[]
  stop(): void
}

/** Every script that the server runs from now on. */
async function monitored({ port }: RedisServer): Promise<Monitored> {
  // The monitor is a connection of its own: this one would stay open, and complain when the server ends.
  const monitor = await new Redis({ port, lazyConnect: true }).monitor()
  const seen: string[] = []
  monitor.on('monitor', (_: string, [command = '', sha = '']: string[]) => {
    if (/^eval/i.test(command)) seen.push(sha)
  })
  return { scripts: () => seen, stop: () => monitor.disconnect() }
}
