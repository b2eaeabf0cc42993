/** What becomes of an operation when the connection breaks in the middle of it: found out, exactly. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { redisBackend } from '../../../../src/board/backends/redis/index.ts'
import { createDeferred } from '../../../../src/core/async/abort.ts'
import { ClaimLost, NotFound, OutcomeUnknown } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { startProxy } from '../../../support/proxy.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { usual as test, variant } from '../../../variant.ts'
import { nextEvent, nextSession, recordEvents, rejectionOf, whenLost } from '../../events.ts'
import { namesOn, refresh } from '../../jobs.ts'
import { openReplacing, replaceUnheard } from '../../lost-replacement.ts'
import { takeUnheard } from '../../lost-tokens.ts'
import { claimOn, OPERATIONS } from './operations.ts'
import { redisPlace } from './places.ts'
import { ProxiedRedisBoard, waitForStableConnection } from './proxied-board.ts'

/** After how many more requests the connection breaks again. */
const CUTS = [1, 2, 3, 4, 5]

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe('a connection that breaks', () => {
  describe.each(OPERATIONS)('in $name', (operation) => {
    test('after it was done: the result is what it would have been, and nothing is done twice', async () => {
      await using setup = await ProxiedRedisBoard.set(server)
      const act = await operation.ready(setup)
      const history = recordEvents(setup.other)
      const { acting } = await setup.doneUnheard(act)
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
      await operation.check(setup, await acting)
      await refresh(setup.other)
      expect(history.filter((told) => told === 'posted job').length).toBeLessThanOrEqual(1)
      expect(setup.errors).toEqual([])
    })

    test('before it arrived: it is done after all, once', async () => {
      await using setup = await ProxiedRedisBoard.set(server)
      const act = await operation.ready(setup)
      setup.proxy.mode = 'blackhole'
      const sent = setup.proxy.nextRequest()
      const acting = act()
      await sent
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
      await operation.check(setup, await acting)
      expect(setup.errors).toEqual([])
    })

    test('while there is no connection: it is done when there is one', async () => {
      await using setup = await ProxiedRedisBoard.set(server)
      const act = await operation.ready(setup)
      const away = nextEvent(setup.board, 'state', ({ state }) => state === 'disconnected')
      setup.proxy.mode = 'refuse'
      setup.proxy.resetAll()
      await away
      const acting = act()
      setup.proxy.mode = 'pass'
      await operation.check(setup, await acting)
    })

    variant.each(CUTS)('and breaks again after %d more requests while it is being found out', async (cut) => {
      await using setup = await ProxiedRedisBoard.set(server)
      const { acting } = await setup.doneUnheard(await operation.ready(setup))
      let over = false
      const cutting = async () => {
        for (let request = 0; request < cut; request++) await setup.proxy.nextRequest()
        if (!over) setup.proxy.resetAll()
      }
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
      void cutting()
      const result = await acting
      over = true
      await waitForStableConnection(setup.board)
      await operation.check(setup, result)
    })

    test('and whose session ends before it can be found out: the outcome is unknown, and the error says so', async () => {
      await using setup = await ProxiedRedisBoard.set(server)
      const { board, place, proxy } = setup
      const act = await operation.ready(setup)
      const owner = await place.ownerOf(board)
      const { acting } = await setup.doneUnheard(act)
      const reborn = nextSession(board)
      proxy.mode = 'refuse'
      proxy.resetAll()
      await place.observer.del(place.key(`owner:${owner}`))
      proxy.mode = 'pass'
      const failure = await rejectionOf(acting)
      expect(failure).toBeInstanceOf(OutcomeUnknown)
      expect(String((failure as Error).message)).toMatch(operation.says)
      await reborn
      await waitForStableConnection(board)
      // What the former owner held is free.
      expect(await place.observer.exists(place.key('held'))).toBe(operation.name.includes('runs') ? 1 : 0)
      expect(await namesOn(setup.other)).toEqual(await namesOn(board))
    })
  })

  test('after it was done, and Redis takes no writes when it is asked again: it is known to be done, and asked no more', async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, other, place, proxy } = setup
    const { acting } = await setup.doneUnheard(() => board.post('flow', {}, { name: 'first' }))
    const asked = createDeferred()
    // The look has been answered by then: it is the batch that is refused.
    const back = new Promise<void>((resolve) => {
      const off = board.on('state', ({ state }) => {
        if (state !== 'connected') return
        off()
        proxy.manner = { until: asked.promise }
        resolve()
      })
    })
    proxy.mode = 'pass'
    proxy.resetAll()
    await back
    try {
      await place.observer.config('SET', 'min-replicas-to-write', '1')
      proxy.manner = {}
      asked.resolve()
      expect(await acting).toMatchObject({ name: 'first' })
    } finally {
      await place.observer.config('SET', 'min-replicas-to-write', '0')
    }
    await waitForStableConnection(board)
    const second = await board.post('flow', {}, { name: 'second' })
    expect(await other.find(second.uuid)).toMatchObject({ name: 'second' })
    expect(await place.jobIds()).toHaveLength(2)
  })

  test('a replacement whose answer is lost is found to be done, once', async () => {
    await using place = await redisPlace(server)
    await using other = await place.open()
    await using proxy = await startProxy({ port: server.port })
    const uri = parseUri(place.uri.replace(/:\d+\//, `:${proxy.port}/`), 'board')
    await using board = await openReplacing(await redisBackend(uri, {}), () => {
      proxy.mode = 'swallow-replies'
    })
    const { replacing, uuid } = await replaceUnheard(board, other)
    proxy.mode = 'pass'
    proxy.resetAll()
    expect(await replacing).toMatchObject({ created: false, because: 'waiting', replaced: true, uuid })
    const [id = ''] = await place.jobIds()
    expect(await place.observer.hget(place.key('rows'), id)).toMatch(/^1:/)
    const [claim] = await other.claimNext()
    expect(claim.job.details.store).toEqual({ n: 2 })
    await claim.consume()
    expect(await other.post('flow', {}, { key: 'sync' })).toMatchObject({ because: 'window', uuid })
  })

  test('tokens whose answer is lost are taken once', async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, other, proxy } = setup
    const loseAnswers = () => {
      proxy.mode = 'swallow-replies'
    }
    const { taking } = await takeUnheard({ board, other, loseAnswers })
    proxy.mode = 'pass'
    proxy.resetAll()
    await taking
  })

  test('a job that was done by others before the answer to its post was found out is known to be done', async () => {
    for (const settle of ['consume', 'trash'] as const) {
      await using setup = await ProxiedRedisBoard.set(server)
      const { board, other, proxy } = setup
      proxy.mode = 'swallow-replies'
      const posting = board.post('flow', {}, { name: 'job' })
      const [claim] = await other.claimNext()
      await claim[settle]()
      proxy.mode = 'pass'
      proxy.resetAll()
      const job = await posting
      expect(job.uuid).toBe(claim.job.uuid)
      expect(await job.wait()).toBe(settle === 'consume' ? 'COMPLETE' : 'TRASHED')
      expect(await rejectionOf(board.claim(job))).toBeInstanceOf(NotFound)
    }
  })

  test("a claim of another, while one's own was on its way, is a claim that was refused", async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, other, proxy } = setup
    const job = await board.post('flow', {}, { name: 'job' })
    const seen = await other.find(job.uuid)
    proxy.mode = 'blackhole'
    const sent = proxy.nextRequest()
    const acting = rejectionOf(board.claim(job))
    await sent
    const claim = await other.claim(seen)
    proxy.mode = 'pass'
    proxy.resetAll()
    expect(await acting).toMatchObject({ code: 'JOBBOARD_UNCLAIMABLE', message: expect.stringContaining('other') })
    await claim.consume()
  })

  test('a settle that was never sent when the session ended is a claim lost, and changes nothing', async () => {
    for (const settle of ['consume', 'abandon', 'trash'] as const) {
      await using setup = await ProxiedRedisBoard.set(server)
      const { board, other, place, proxy } = setup
      const claim = await claimOn(board)
      const owner = await place.ownerOf(board)
      const [lost, reborn] = [whenLost(claim), nextSession(board)]
      const away = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
      proxy.mode = 'refuse'
      proxy.resetAll()
      await away
      expect(claim.lost.aborted).toBe(false)
      const settling = rejectionOf(claim[settle]())
      await place.observer.del(place.key(`owner:${owner}`))
      proxy.mode = 'pass'
      expect(await settling).toBeInstanceOf(ClaimLost)
      expect(await lost).toBeInstanceOf(ClaimLost)
      await reborn
      const [taken] = await other.claimNext()
      expect(taken.run).toBe(2)
      expect(await place.trashIds()).toEqual([])
    }
  })
})
