/** Servers that are killed and come back, with their data or without, and servers that take no writes. */
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import { openBoard } from '../../../../src/board/index.ts'
import { ClaimLost, OutcomeUnknown, WritesRefused } from '../../../../src/core/errors.ts'
import { daemonLog } from '../../../../src/core/log.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent, nextSession, rejectionOf, whenLost } from '../../events.ts'
import { namesOn, refresh } from '../../jobs.ts'
import { checkLoopOverRestart, restartedUnderLoad } from '../../restarts.ts'
import { redisPlace } from './places.ts'

const DURABLE = { appendonly: 'yes', appendfsync: 'always' }

describe('a Redis that keeps its data', () => {
  variant('is killed and comes back twice under load: every job is done, once', async () => {
    await using server = await startRedis({ config: DURABLE })
    await using place = await redisPlace(server)
    await restartedUnderLoad(server, () => place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=30s' }))
  })

  variant.each([
    ['less', '30s', ['consumed', 'consumed']],
    ['more', '2s', [expect.stringMatching(/^(lost|unknown)$/), 'consumed', 'consumed']],
  ])("one's own loop outlives it when it is away for %s than the TTL", async (away, ttl, endings) => {
    await using server = await startRedis({ config: DURABLE })
    await using place = await redisPlace(server)
    await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: `&ttl=${ttl}` })
    expect(await checkLoopOverRestart(board, { server, away })).toEqual(endings)
  })
})

describe('a Redis that comes back empty', () => {
  test('has lost every claim and says so, and the board goes on', async () => {
    await using server = await startRedis()
    await using place = await redisPlace(server)
    await using board = await place.open({ who: 'board' })
    await using other = await place.open({ who: 'other' })
    for (const name of ['held', 'waiting']) await board.post('flow', {}, { name, resources: { exclusive: [name] } })
    await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
    const [claim] = await board.claimNext()
    const errors: string[] = []
    for (const each of [board, other]) each.on('error', ({ error }) => errors.push(error.message))
    const [lost, ...back] = [whenLost(claim), nextSession(board), nextSession(other)]
    await server.restart()
    expect(await lost).toBeInstanceOf(ClaimLost)
    await Promise.all(back)
    expect(await rejectionOf(claim.consume())).toBeInstanceOf(ClaimLost)
    expect(errors).toEqual([expect.stringContaining('came back without its data')])
    expect(await namesOn(board)).toEqual([])
    while ((await other.entities('conductor')).length === 0) await refresh(board)
    await other.post('flow', {}, { name: 'new', resources: { exclusive: ['held'] } })
    const [taken] = await board.claimNext()
    expect(taken.fence).toBeGreaterThan(claim.fence)
    await taken.consume()
  })

  variant('under load: no job is done twice, whatever became of those that were posted', async () => {
    await using server = await startRedis()
    await using place = await redisPlace(server)
    await using poster = await place.open()
    await using worker = await place.open()
    poster.on('error', () => undefined)
    worker.on('error', () => undefined)
    const done: string[] = []
    const finished = new AbortController()
    const working = (async () => {
      for await (const claim of worker.claims({ signal: finished.signal })) {
        if ((await claim.perform(() => undefined)) === 'consumed') done.push(claim.job.uuid)
        if (claim.job.name === 'last') finished.abort()
      }
    })()
    let restarted: Promise<void> | undefined
    for (let number = 0; number < 200; number++) {
      if (number === 100) restarted = server.restart()
      await poster.post('flow', {}).catch((error: unknown) => expect(error).toBeInstanceOf(OutcomeUnknown))
    }
    await restarted
    await poster.post('flow', {}, { name: 'last' })
    await working
    expect(new Set(done).size).toBe(done.length)
    expect(done.length).toBeGreaterThan(50)
  })

  test('or was emptied by hand while everybody was connected', async () => {
    await using server = await startRedis()
    await using place = await redisPlace(server)
    await using board = await place.open()
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    const reported = nextEvent(board, 'error')
    const back = nextSession(board)
    await place.observer.flushall()
    expect(await rejectionOf(claim.consume())).toMatchObject({
      code: expect.stringMatching(/CLAIM_LOST|OUTCOME_UNKNOWN/),
    })
    expect((await reported).error.message).toContain('it was emptied')
    await back
    await (await board.claim(await board.post('flow', {}))).consume()
  })
})

describe('a Redis that takes no writes', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  test('shows the participants of an owner that joined while it was full, when it is not any more', async () => {
    await using server = await startRedis()
    await using place = await redisPlace(server)
    await using board = await place.open()
    const errors: unknown[] = []
    board.on('error', ({ error }) => errors.push(error))
    await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
    const owner = await place.ownerOf(board)
    const [reported, back] = [nextEvent(board, 'error'), nextSession(board)]
    await place.observer.config('SET', 'maxmemory', '1')
    await place.observer.del(place.key(`owner:${owner}`))
    await refresh(board).catch(() => undefined)
    await back
    await reported
    expect(errors).toEqual([expect.any(WritesRefused)])
    expect(await board.entities('conductor')).toEqual([])
    await place.observer.config('SET', 'maxmemory', '0')
    while ((await board.entities('conductor')).length === 0) await refresh(board)
    expect(errors).toHaveLength(1)
  })

  test('because its memory is full refuses posts by name, and lets jobs be done', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    for (const name of ['a', 'b', 'c']) await board.post('flow', {}, { name })
    const [first] = await board.claimNext()
    await place.observer.config('SET', 'maxmemory', '1')
    try {
      const failures = await Promise.all([1, 2].map(() => rejectionOf(board.post('flow', {}))))
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(WritesRefused)
        expect(String(failure)).toContain('raise maxmemory')
      }
      const [second] = await board.claimNext()
      // In one batch with a post that is refused.
      const [refused] = await Promise.allSettled([board.post('flow', {}), first.consume(), second.abandon()])
      expect(refused.status).toBe('rejected')
      expect(await namesOn(board)).toEqual(['b', 'c'])
      while ((board.jobCount ?? 0) > 0) for (const claim of await board.claimNext()) await claim.trash()
      await using _late = await place.open()
    } finally {
      await place.observer.config('SET', 'maxmemory', '0')
    }
    await board.post('flow', {})
    expect(await namesOn(board)).toEqual(['flow'])
  })

  test('because too few replicas are with it says so, and loses nothing that was there', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await board.post('flow', {}, { name: 'job' })
    const [claim] = await board.claimNext()
    await place.observer.config('SET', 'min-replicas-to-write', '1')
    try {
      expect(await rejectionOf(board.post('flow', {}))).toBeInstanceOf(WritesRefused)
      expect(String(await rejectionOf(claim.consume()))).toContain('min-replicas-to-write')
      expect(claim.lost.aborted).toBe(false)
    } finally {
      await place.observer.config('SET', 'min-replicas-to-write', '0')
    }
    await claim.consume()
    expect(await place.jobIds()).toEqual([])
  })

  test('because it became a replica is taken for one that is away, until it is master again', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await board.post('flow', {}, { name: 'job' })
    const away = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
    await place.observer.call('REPLICAOF', '127.0.0.1', '1')
    const posting = board.post('flow', {}, { name: 'later' })
    expect((await away).reason?.message).toMatch(/READONLY|MASTERDOWN/)
    const back = nextEvent(board, 'state', ({ state }) => state === 'connected')
    await place.observer.call('REPLICAOF', 'NO', 'ONE')
    await Promise.all([back, posting])
    expect(await namesOn(board)).toEqual(['job', 'later'])
  })
})

describe('a Redis that is not for everybody', () => {
  test('says who is not let in, and prints no password', async () => {
    await using server = await startRedis()
    const admin = new Redis(server.uri)
    await admin.call('ACL', 'SETUSER', 'ada', 'on', '>p@ss', '~{mine}:*', '&{mine}:*', '+@all')
    const at = (text: string, prefix = 'mine') => `redis://${text}127.0.0.1:${server.port}/0?prefix=${prefix}`
    const wrong = String(await rejectionOf(openBoard(at('ada:wrong@'))))
    expect(wrong).toMatch(/AccessDenied: redis:\/\/ada:\*\*\*@.*does not accept the credentials/)
    expect(wrong).not.toContain('wrong@')
    {
      await using board = await openBoard(at('ada:p%40ss@'))
      await (await board.claim(await board.post('flow', {}))).consume()
      expect(board.uri).not.toContain('p%40ss')
    }
    const elsewhere = await rejectionOf(openBoard(at('ada:p%40ss@', 'theirs')))
    expect(elsewhere).toMatchObject({
      code: 'JOBBOARD_ACCESS_DENIED',
      message: expect.stringContaining('lacks a right'),
    })
    await admin.call('ACL', 'SETUSER', 'default', 'off')
    admin.disconnect()
    const nobody = await rejectionOf(openBoard(at('')))
    expect(nobody).toMatchObject({
      code: 'JOBBOARD_ACCESS_DENIED',
      message: expect.stringContaining('write user:password@'),
    })
  })

  variant('and one that is not there is not connected to, and says so in time', async () => {
    await using server = await startRedis()
    await server.kill()
    const failure = await rejectionOf(openBoard(`${server.uri}/0`, { signal: AbortSignal.timeout(30_000) }))
    expect(failure).toMatchObject({ code: 'JOBBOARD_NOT_CONNECTED', message: expect.stringContaining('ECONNREFUSED') })
  })

  test('and has no board there: a look makes none', async () => {
    await using server = await startRedis()
    const failure = await rejectionOf(openBoard(`${server.uri}/0?prefix=none`, { create: false }))
    expect(failure).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
    const observer = new Redis(server.uri)
    expect(await observer.keys('*')).toEqual([])
    observer.disconnect()
  })
})

test('a Redis that evicts keys when its memory is full is reported when a board opens, and with damage that is found', async () => {
  await using server = await startRedis({ config: { 'maxmemory-policy': 'allkeys-lru' } })
  await using place = await redisPlace(server)
  const warnings: string[] = []
  const log = daemonLog({ level: 'warn', stream: { write: (line) => void warnings.push(line) } })
  await using board = await place.open({ log })
  const evicts = /evicts keys .*allkeys-lru.*set maxmemory-policy noeviction/
  expect(warnings).toEqual([expect.stringMatching(evicts)])
  expect((await nextEvent(board, 'error')).error.message).toMatch(evicts)
  const damaged = nextEvent(board, 'error', ({ error }) => error.message.includes('can be the cause'))
  const job = await board.post('flow', {}, { resources: { exclusive: ['disk'] } })
  await board.claim(job)
  await place.observer.hset(place.key('granted'), jobIdFor(job), 'garbage')
  await place.expire(board)
  expect((await damaged).error.message).toContain('this Redis evicts keys (maxmemory-policy allkeys-lru)')
})

test('a password that the server does not need is a line of the log, and the driver prints nothing to the terminal', async () => {
  await using server = await startRedis()
  await using place = await redisPlace(server)
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) })
  const printed = vi.spyOn(console, 'warn')
  try {
    await using board = await place.openAt(`:secret@127.0.0.1:${server.port}`, { log })
    await board.post('flow', {})
    expect(lines.filter((line) => line.includes('needs no password'))).toHaveLength(1)
    expect(lines.join()).not.toContain('secret')
    expect(printed).not.toHaveBeenCalled()
  } finally {
    printed.mockRestore()
  }
})
