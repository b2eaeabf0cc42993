/** Owners that die, hang, or only seem to: their claims pass on, once, and nothing of theirs counts afterwards. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { createDeferred, type Deferred } from '../../../../src/core/async/abort.ts'
import { encode } from '../../../../src/core/codec.ts'
import { OutcomeUnknown } from '../../../../src/core/errors.ts'
import { compiled } from '../../../support/compiled.ts'
import { startNode } from '../../../support/node-process.ts'
import { startProxy } from '../../../support/proxy.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { usual as test, variant } from '../../../variant.ts'
import { nextEvent, nextSession, rejectionOf, whenLost } from '../../events.ts'
import { claimed, namesOn, refresh } from '../../jobs.ts'
import { checkLimitsInOutage } from '../../outage-limits.ts'
import { checkDisconnectedOwner, checkStoppedOwner } from '../../takeovers.ts'
import { redisPlace } from './places.ts'
import { ProxiedRedisBoard } from './proxied-board.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)
const CHILD = fileURLToPath(new URL('../../board-child.ts', import.meta.url))

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe('an owner on Redis', () => {
  variant('whose process was stopped for longer than its TTL finds out before it does anything', async () => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    await checkStoppedOwner({ nextOwner, uri: `${place.uri}&ttl=2s` })
  })

  test('calls keep their time limits while nothing is answered, and what was given up is in the trash when the servers are back', async () => {
    await using setup = await ProxiedRedisBoard.set(server, { ttl: '60s' })
    await checkLimitsInOutage(setup)
  })

  variant('that is killed loses its job to another, with a larger fence', async () => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    await nextOwner.post('flow', {}, { resources: { exclusive: ['disk'], shared: ['net'] } })
    await using owner = await startNode(CLAIMER, [`${place.uri}&ttl=1s`])
    await owner.says('claimed')
    await refresh(nextOwner)
    const abandoned = nextEvent(nextOwner, 'abandoned')
    owner.signal('SIGKILL')
    await abandoned
    const [claim] = await nextOwner.claimNext()
    expect(claim).toMatchObject({ who: 'next-owner', run: 2 })
    await claim.consume()
    expect(await place.observer.exists(place.key('exclusive'), place.key('shared'), place.key('granted'))).toBe(0)
  })

  test('of which a look is sent again, whole, behind a batch lives on', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open({ who: 'owner' })
    await board.post('flow', {}, { name: 'job' })
    const claim = await claimed(board, 'job')
    // As on a server that was started just now: it knows the script of batches, and that of looks it does not know yet.
    await place.observer.script('FLUSH')
    await board.post('flow', {})
    const looking = refresh(board)
    await board.post('flow', {})
    await looking
    expect(claim.lost.reason).toBeUndefined()
    await claim.consume()
  })

  test('that leaves while it looks does not come back as another', async () => {
    await using place = await redisPlace(server)
    await using other = await place.open({ who: 'other' })
    await using proxy = await startProxy({ port: server.port })
    const board = await place.openAt(proxy.hosts, { who: 'leaver', parameters: '&ttl=1500ms' })
    await place.observer.script('FLUSH')
    // Joining and looking are known again, leaving is not: it is sent twice, and others may come between.
    await using _third = await place.open({ who: 'third' })
    await refresh(other)
    const [open, states]: [Deferred<void>, string[]] = [createDeferred(), []]
    const closed = nextEvent(board, 'state', ({ state }) => state === 'closed')
    board.on('state', ({ state }) => states.push(state))
    proxy.manner = { until: open.promise }
    await proxy.nextRequest()
    const closing = board.close()
    await closed
    proxy.manner = {}
    open.resolve()
    await closing
    expect(states).toEqual(['closed'])
    await refresh(other)
    expect(await place.observer.zcard(place.key('owners'))).toBe(2)
  })

  test('that nothing gets through to has lost its claim before another gets it', async () => {
    await using setup = await ProxiedRedisBoard.set(server, { ttl: '2s' })
    const { board: owner, other: nextOwner, place, proxy } = setup
    await checkDisconnectedOwner({ owner, nextOwner, proxy })
    expect(await place.jobIds()).toEqual([])
  })

  test('keeps its claims on another connection, as long as its key lives', async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, other, proxy } = setup
    await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    const states: string[] = []
    board.on('state', ({ state }) => states.push(state))
    const back = nextEvent(board, 'state', ({ state }) => state === 'connected')
    proxy.resetAll()
    await back
    expect(states).toEqual(['disconnected', 'connected'])
    expect(await namesOn(other, { onlyUnclaimed: true })).toEqual([])
    expect(await other.entities('conductor')).toHaveLength(1)
    await claim.consume()
    expect(claim.lost.aborted).toBe(false)
  })

  variant(
    'whose settle did not get through in time does not know of it, and does not disturb the new owner',
    async () => {
      await using setup = await ProxiedRedisBoard.set(server, { ttl: '2s' })
      const { board, other, place, proxy } = setup
      await board.post('flow', {}, { name: 'job' })
      const [claim] = await board.claimNext()
      const [inherited, back] = [other.claimNext(), nextSession(board)]
      proxy.mode = 'blackhole'
      const settling = rejectionOf(claim.consume())
      const [taken] = await inherited
      expect(await settling).toBeInstanceOf(OutcomeUnknown)
      proxy.mode = 'pass'
      await back
      expect(await place.jobIds()).toHaveLength(1)
      expect(taken.lost.aborted).toBe(false)
      await taken.consume()
    },
  )

  test('that Redis has forgotten some of, for a fail-over say, is no owner any more', async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, other, place } = setup
    for (const name of ['a', 'b']) await board.post('flow', {}, { name })
    const claim = await claimed(board, 'a')
    const owner = await place.ownerOf(board)
    const [lost, back] = [whenLost(claim), nextSession(board)]
    // As a replica would have it that was behind when it became master.
    await place.observer.hincrby(place.key(`owner:${owner}`), 'number', -1)
    await board.post('flow', {}, { name: 'c' }).catch((error: unknown) => expect(error).toBeInstanceOf(OutcomeUnknown))
    await lost
    await back
    await refresh(other)
    const [taken] = await other.claimNext()
    expect(taken.job.name).toBe('a')
  })

  test('whose number another batch of its own has taken, after a reported refusal, is no owner any more', async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, place } = setup
    const key = place.key(`owner:${await place.ownerOf(board)}`)
    const back = nextSession(board)
    // As if the batch before had been refused on this connection, and its bytes had come over the one before that since.
    const number = Number(await place.observer.hget(key, 'number')) + 1
    const answers = Buffer.from(encode([[true, 'job1']], 'msgpack'))
    await place.observer.hset(key, { number, serial: 1_000_000, answers })
    expect(await rejectionOf(board.post('flow', {}, { name: 'job' }))).toBeInstanceOf(OutcomeUnknown)
    await back
    expect(await namesOn(board)).toEqual([])
  })

  variant('that leaves while its server is away waits a moment for an answer, and no longer', async () => {
    await using own = await startRedis()
    await using place = await redisPlace(own)
    const board = await place.openAt(`127.0.0.1:${own.port}`, { parameters: '&ttl=1h' })
    await own.pause()
    const posting = rejectionOf(board.post('flow', {}))
    await board.close()
    expect(await posting).toBeInstanceOf(OutcomeUnknown)
    await own.resume()
  })

  variant('races with others of its kind, in processes of their own, and each job is one owner’s', async () => {
    await using place = await redisPlace(server)
    const names = ['one', 'two', 'three']
    const child = await compiled(CHILD)
    const said = await Promise.all(
      names.map((name) =>
        text(spawn(process.execPath, [child, place.uri, name], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout),
      ),
    )
    expect(said.map((line) => line.trim()).sort()).toEqual([...names].sort())
    expect(await place.jobIds()).toEqual([])
  })

  test('holds resources only as long as its key lives, however late its end is noticed', async () => {
    await using place = await redisPlace(server)
    await using mortal = await place.open({ who: 'mortal' })
    await using nextOwner = await place.open({ who: 'next-owner' })
    await mortal.post('flow', {}, { name: 'first', resources: { exclusive: ['disk'] } })
    await claimed(mortal, 'first')
    const second = await nextOwner.post('flow', {}, { name: 'second', resources: { exclusive: ['disk'] } })
    const owner = await place.ownerOf(mortal)
    // Gone by itself, and nobody is told.
    await place.observer
      .multi()
      .del(place.key(`owner:${owner}`))
      .zadd(place.key('owners'), 0, owner)
      .exec()
    await refresh(nextOwner)
    await (await claimed(nextOwner, 'first')).consume()
    await (await nextOwner.claim(second)).consume()
  })

  test('sees that its proxy is gone for good, and says so when it is asked', async () => {
    const proxy = await startProxy({ port: server.port })
    await using place = await redisPlace(server)
    await using board = await place.openAt(proxy.hosts, { parameters: '&ttl=1s' })
    const lost = nextEvent(board, 'state', ({ state }) => state === 'lost')
    await proxy.close()
    await lost
    expect(await rejectionOf(board.post('flow', {}))).toMatchObject({ code: 'JOBBOARD_NOT_CONNECTED' })
    expect(await rejectionOf(refresh(board))).toMatchObject({ code: 'JOBBOARD_NOT_CONNECTED' })
  })
})
