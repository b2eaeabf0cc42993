/** Boards whose waiting postings are larger than the window of a view: nobody who uses one notices, in what order or what they get. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import type { Job, JobBoard, Posting, PostOptions } from '../../../../src/board/index.ts'
import { Timeout } from '../../../../src/core/errors.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { usual as test, variant } from '../../../variant.ts'
import { nextEvent } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { type RedisPlace, redisPlace } from './places.ts'

const TEXT = 'x'.repeat(1_000)
const LARGE = 1_200

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

describe('a view with room for ten postings', () => {
  let place: RedisPlace
  let board: JobBoard
  let poster: JobBoard

  const open = (postings: number) =>
    place.openAt(server.uri.slice('redis://'.length), { parameters: `&windowBytes=${postings * LARGE}` })

  beforeEach(async () => {
    place = await redisPlace(server)
    board = await open(10)
    poster = await place.open()
  })

  afterEach(async () => {
    await Promise.all([board.close(), poster.close()])
    await place[Symbol.asyncDispose]()
  })

  const post = (name: string, options: PostOptions = {}) =>
    poster.post('flow', { name, text: TEXT }, { name, ...options })

  async function postMany(count: number, options: (n: number) => PostOptions = () => ({})): Promise<string[]> {
    const names = Array.from({ length: count }, (_, n) => `${n}`)
    for (const [n, name] of names.entries()) await post(name, options(n))
    await refresh(board)
    return names
  }

  /** In the order in which they were claimed, until nothing is left. */
  async function consumeAll(on: JobBoard, options: { max?: number } = {}): Promise<string[]> {
    const taken: string[] = []
    while ((on.jobCount ?? 0) > 0) {
      for (const claim of await on.claimNext(options)) {
        expect(claim.job.details.store).toEqual({ name: claim.job.name, text: TEXT })
        taken.push(claim.job.name)
        await claim.consume()
      }
    }
    return taken
  }

  variant('gives 300 of them all in order', async () => {
    const names = await postMany(300)
    expect(await consumeAll(board, { max: 3 })).toEqual(names)
  })

  variant('keeps to the order of priorities, also of those that come while others are taken', async () => {
    const priorities = ['VERY_LOW', 'HIGH', 'NORMAL', 'VERY_HIGH', 'LOW'] as const
    await postMany(60, (n) => ({ priority: priorities[n % 5] ?? 'NORMAL' }))
    const taken: string[] = []
    const expected: string[] = []
    while ((board.jobCount ?? 0) > 0) {
      if (taken.length < 40) await post(`late ${taken.length}`, { priority: priorities[taken.length % 5] ?? 'NORMAL' })
      await refresh(board)
      expected.push((await namesOn(poster))[0] ?? '')
      const [claim] = await board.claimNext()
      taken.push(claim.job.name)
      await claim.consume()
    }
    expect(taken).toHaveLength(100)
    expect(taken).toEqual(expected)
  })

  test('gives one that is larger than all that there is room for, and what comes after it', async () => {
    const large = await poster.post('flow', { text: 'x'.repeat(50_000) }, { name: 'large' })
    await postMany(20)
    const claim = await claimed(board, 'large')
    expect(claim.job.uuid).toBe(large.uuid)
    expect(claim.job.details.store).toEqual({ text: 'x'.repeat(50_000) })
    await claim.consume()
    expect(await consumeAll(board)).toHaveLength(20)
  })

  variant('shares them with another, each job run once', async () => {
    const names = await postMany(300)
    const other = await open(3)
    const taken = await Promise.all([board, other].map((one) => work(one, { until: () => poster.jobCount === 0 })))
    expect(taken.flat().sort()).toEqual(names.toSorted())
    expect(Math.min(...taken.map(({ length }) => length))).toBeGreaterThan(0)
    await other.close()
  })

  async function work(on: JobBoard, { until }: { until: () => boolean }): Promise<string[]> {
    const over = new AbortController()
    const stop = poster.on('consumed', () => until() && over.abort())
    const taken: string[] = []
    for await (const claim of on.claims({ signal: over.signal })) {
      taken.push(claim.job.name)
      await claim.consume()
    }
    stop()
    return taken
  }

  test('runs those that want one resource in turn, and others past them', async () => {
    const names = await postMany(40, () => ({ resources: { exclusive: ['disk'] } }))
    await post('free')
    await refresh(board)
    const [first] = await board.claimNext()
    expect(first.job.name).toBe('0')
    const [free] = await board.claimNext()
    expect(free.job.name).toBe('free')
    await free.consume()
    await first.consume()
    expect(await consumeAll(board)).toEqual(names.slice(1))
  })

  test('gives those that rested when they are due', async () => {
    const names = await postMany(30, () => ({ delay: 50 }))
    expect(await consumeAll(board)).toEqual(names)
  })

  describe('asked about what is not in memory', () => {
    let last: Job

    beforeEach(async () => {
      await postMany(40, (n) => (n === 39 ? { key: 'key', resources: { shared: ['net'] } } : {}))
      last = await poster.find((await all(poster.jobs())).at(-1)?.uuid ?? '')
    })

    test('lists all of it', async () => {
      const jobs = await all(board.jobs())
      expect(jobs.map(({ details }) => details.store)).toEqual(jobs.map(({ name }) => ({ name, text: TEXT })))
      expect(jobs).toHaveLength(40)
    })

    test('lists it as it is when it is asked for, without what has gone meanwhile', async () => {
      const names: string[] = []
      for await (const job of board.jobs()) {
        names.push(job.name)
        expect(job.details.store).toBeDefined()
        if (job.name !== '2') continue
        for (const { job } of await poster.claimNext({ max: 39 })) await poster.consume(job)
        await refresh(board)
      }
      expect(names).toEqual(['0', '1', '2', '39'])
    })

    test('finds it', async () => {
      const found = await board.find(last.uuid)
      expect(found.details).toEqual(last.details)
      // The poster only estimates the server's clock until the posting is read.
      expect(Math.abs(Number(found.postedAt) - Number(last.postedAt))).toBeLessThan(1_000)
    })

    test('claims it before its turn', async () => {
      const claim = await board.claim(last)
      expect(claim.job.details).toEqual(last.details)
      await claim.abandon()
      expect((await poster.find(last.uuid)).details).toEqual(last.details)
    })

    test('trashes it with all of it, and has it back', async () => {
      await board.cancel(last)
      const [trashed] = await all(board.trashed())
      expect(trashed?.details).toEqual(last.details)
      if (trashed) await board.restore(trashed)
      await refresh(board)
      expect((await board.find(last.uuid)).details).toEqual(last.details)
    })

    test('answers a post of its key with it', async () => {
      const job = await board.post('flow', {}, { key: 'key' })
      expect(job.created).toBe(false)
      expect(job.details).toEqual(last.details)
    })

    test('posts into it, and gives the poster the whole', async () => {
      const job = await board.post('flow', { text: TEXT }, { name: 'own' })
      expect(job.details.store).toEqual({ text: TEXT })
      expect((await board.find(job.uuid)).details.store).toEqual({ text: TEXT })
      expect((await claimed(board, 'own')).job.details.store).toEqual({ text: TEXT })
    })
  })

  test('finds what is at the end for a caller that wants nothing else', async () => {
    await postMany(40)
    await poster.post('rare', { text: TEXT }, { name: 'rare' })
    const [claim] = await board.claimNext({ accept: ({ details }) => details.flow === 'rare' })
    expect(claim.job.name).toBe('rare')
    expect(claim.job.details.store).toEqual({ text: TEXT })
  })

  test('goes on in order after its session has ended', async () => {
    const names = await postMany(60)
    await board.claimNext()
    // Not the loss of the claim: the other board may release it first, and a job is read again before it is chosen.
    const lost = nextEvent(board, 'state', ({ state }) => state === 'lost')
    await place.expire(board)
    await lost
    expect(await consumeAll(board)).toEqual(names)
  })

  describe('of jobs that nobody accepts', () => {
    const MANY = 60
    const LONG = 'x'.repeat(5_000)

    beforeEach(async () => {
      const post = (n: number) => poster.post('flow', { n, text: LONG }, { name: `${n}` })
      for (let n = 0; n < MANY; n += 1) await post(n)
    })

    test('a caller that reads the stores finds its job behind all others, with the whole store', async () => {
      const accept = ({ details }: Posting) => Object(details.store).n === MANY - 1
      const [claim] = await board.claimNext({ accept })
      expect(claim.job.details.store).toEqual({ n: MANY - 1, text: LONG })
      await claim.consume()
      await expect(board.claimNext({ accept, timeout: 0 })).rejects.toThrow(Timeout)
    })

    test('jobs are listed, found, cancelled and claimed with their details, of which the view keeps none', async () => {
      await expect(board.claimNext({ accept: () => false, timeout: 0 })).rejects.toThrow(Timeout)
      const jobs = await all(board.jobs())
      expect(jobs.map(({ details }) => Object(details.store))).toEqual(jobs.map((_, n) => ({ n, text: LONG })))
      const last = jobs.at(-1)
      const found = await board.find(last?.uuid ?? '')
      expect(found.details.store).toEqual({ n: MANY - 1, text: LONG })
      await board.cancel(found)
      const [trashed] = await all(board.trashed())
      expect(trashed?.details.store).toEqual({ n: MANY - 1, text: LONG })
      const claim = await board.claim(await board.find(jobs[MANY - 2]?.uuid ?? ''))
      expect(claim.job.details.store).toEqual({ n: MANY - 2, text: LONG })
    })
  })
})
