/** Dependencies in Redis' keys: large fan-outs, answers that get lost, owners that die, and jobs that end behind the back of all boards. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { Job, JobBoard, PostOptions } from '../../../../src/board/index.ts'
import { Timeout, Unclaimable } from '../../../../src/core/errors.ts'
import { startNode } from '../../../support/node-process.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent, rejectionOf } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { type RedisPlace, redisPlace } from './places.ts'
import { ProxiedRedisBoard } from './proxied-board.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)
/** More than one script releases. */
const MANY = 2_500

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

function postAfter(board: JobBoard, name: string, after: PostOptions['after'] = [], options: PostOptions = {}) {
  return board.post('flow', {}, { ...options, name, after })
}

async function postMany(board: JobBoard, first: Job): Promise<readonly Job[]> {
  const items = Array.from({ length: MANY }, () => ({ flow: 'flow', store: {}, name: 'after', after: [first] }))
  const results = await board.postMany(items)
  expect(results.filter((result) => 'error' in result)).toEqual([])
  return results.flatMap((result) => ('job' in result ? [result.job] : []))
}

/** Ends all jobs on the board; returns how often each of them was claimed, and how they ended. */
async function performAll(board: JobBoard): Promise<{ readonly runs: number; readonly ends: ReadonlySet<string> }> {
  const ends = new Set<string>()
  let runs = 0
  for (let left = await board.countJobs(); left > 0; left = await board.countJobs()) {
    const claims = await board.claimNext({ max: 500 })
    runs += claims.length
    for (const end of await Promise.all(claims.map((claim) => claim.perform(() => undefined)))) ends.add(end)
  }
  return { runs, ends }
}

async function expectNothingLeft({ observer, key }: RedisPlace): Promise<void> {
  const names = ['waits', 'dependents', 'ending', 'resting', 'cancels', 'jobs', 'rows', 'order', 'held']
  for (const name of names) expect(await observer.exists(key(name)), name).toBe(0)
}

/** Removes a job as a release does that knows no dependencies: the jobs after it are not released. */
async function removeSilently({ observer, key }: RedisPlace, job: Job, { entry }: { entry?: string } = {}) {
  const id = jobIdFor(job)
  const removing = observer.multi().hdel(key('jobs'), id).hdel(key('rows'), id).zrem(key('order'), id)
  removing.zrem(key('uuids'), `${job.uuid}:${id}`)
  if (entry !== undefined) removing.hset(key('trash'), id, entry)
  await removing
    .rpush(key('log'), `${entry === undefined ? 'D' : 'T'}${id}`)
    .hincrby(key('board'), 'version', 1)
    .exec()
}

/** Makes the board look for such jobs: it is time for that. Resolves when it has looked at all: one request looks at some of them. */
async function lookAgain({ observer, key }: RedisPlace, board: JobBoard): Promise<void> {
  const before = `${Date.now() - 61_000}:`
  await observer.hset(key('board'), 'swept', before)
  const isDone = async () => {
    await refresh(board)
    const swept = await observer.hget(key('board'), 'swept')
    return (swept !== before && swept?.endsWith(':')) || (await observer.exists(key('dependents'))) === 0
  }
  while (!(await isDone())) await new Promise(setImmediate)
}

describe('dependencies on Redis', () => {
  test('leave no keys behind', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const second = await postAfter(board, 'second', [first])
    await postAfter(board, 'third', [first, second])
    await postAfter(board, 'fourth', [{ uuid: second.uuid, on: 'settled' }], { delay: '1h' })
    const fifth = await postAfter(board, 'fifth', [second])
    await board.cancel(fifth)
    await (await claimed(board, 'first')).consume()
    await (await claimed(board, 'second')).trash()
    const [fourth] = await all(board.jobs())
    if (!fourth) throw new Error('the fourth job rests')
    await board.cancel(fourth)
    await expectNothingLeft(place)
  })

  test('steps of one batch know each other: a post, the end on which it depends, and others that end with it', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    for (let round = 0; round < 5; round++) {
      const [a, b] = await Promise.all([postAfter(board, 'a'), postAfter(board, 'b')])
      const [one, two] = await Promise.all([board.claim(a), board.claim(b)])
      const before = await postAfter(board, 'before', [a, b])
      const [beside] = await Promise.all([postAfter(board, 'beside', [a, b]), one.consume(), two.consume()])
      const claims = await Promise.all([before, beside].map((job) => board.claim(job)))
      await Promise.all(claims.map((claim) => claim.consume()))
    }
    await expectNothingLeft(place)
  })

  test('the delay of a job counts from its post, and a cancelled job is due at once', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const late = await postAfter(board, 'late', [first], { delay: '1h', priority: 'HIGH' })
    const { observer, key } = place
    expect(await observer.zscore(key('resting'), jobIdFor(late))).toBe('inf')
    await (await board.claim(first)).consume()
    const due = Number(await observer.zscore(key('resting'), jobIdFor(late)))
    expect(due).toBeGreaterThan(Date.now() + 3_000_000)
    await using other = await place.openUnviewed()
    expect(await rejectionOf(other.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
    await board.cancel(late)
    expect(await late.wait()).toBe('TRASHED')
    await expectNothingLeft(place)
  })

  variant.each(['consume', 'trash'] as const)(
    'more jobs than one script releases are all released with the other one, once (%s)',
    { timeout: 60_000 },
    async (how) => {
      await using place = await redisPlace(server)
      await using board = await place.open()
      await using other = await place.open()
      const first = await postAfter(board, 'first')
      const jobs = await postMany(board, first)
      const claim = await other.claim(await other.find(first.ref))
      await claim[how]()
      if (how === 'consume') expect(await performAll(board)).toEqual({ runs: MANY, ends: new Set(['consumed']) })
      const ends = await Promise.all(jobs.map((job) => job.wait()))
      expect(new Set(ends)).toEqual(new Set([how === 'consume' ? 'COMPLETE' : 'TRASHED']))
      await expectNothingLeft(place)
    },
  )

  variant(
    'an owner that dies while it releases many jobs leaves the rest to any board',
    { timeout: 60_000 },
    async () => {
      await using setup = await ProxiedRedisBoard.set(server)
      const { board, other, place } = setup
      const first = await postAfter(board, 'first')
      await postMany(board, first)
      const claim = await board.claim(first)
      const owner = await place.ownerOf(board)
      // The board does not receive the answer, so it sends nothing more.
      const ended = nextEvent(other, 'trashed')
      setup.proxy.mode = 'swallow-replies'
      claim.trash({ reason: 'it broke' }).catch(() => undefined)
      await ended
      await place.observer.del(place.key(`owner:${owner}`))
      const left = await all(other.jobs({ ensureFresh: true }))
      expect(await rejectionOf(other.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
      expect(new Set(await Promise.all(left.map((job) => job.wait())))).toEqual(new Set(['TRASHED']))
      const [, second] = await all(other.trashed())
      expect(second?.reason).toContain(`job ${first.uuid} (first), on which it depends, is in the trash: it broke`)
      await expectNothingLeft(place)
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
    },
  )

  variant(
    'a job is posted and cancelled while many jobs after the same one are still released',
    {
      timeout: 60_000,
    },
    async () => {
      await using setup = await ProxiedRedisBoard.set(server)
      const { board, other, place } = setup
      const first = await postAfter(board, 'first')
      await postMany(board, first)
      const last = await postAfter(board, 'last', [first])
      const claim = await board.claim(first)
      const ended = nextEvent(other, 'consumed')
      setup.proxy.mode = 'swallow-replies'
      claim.consume().catch(() => undefined)
      await ended
      await other.cancel(await other.find(last.ref))
      const late = await postAfter(other, 'late', [first.uuid])
      expect(await other.dependencies(late)).toMatchObject({ waitsFor: [] })
      await (await other.claim(late)).consume()
      await refresh(other)
      expect(await performAll(other)).toEqual({ runs: MANY, ends: new Set(['consumed']) })
      await expectNothingLeft(place)
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
    },
  )

  variant('an owner that is killed leaves the jobs after its job waiting, until the next owner ends it', async () => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    const first = await postAfter(nextOwner, 'first')
    const second = await postAfter(nextOwner, 'second', [first])
    await using owner = await startNode(CLAIMER, [`${place.uri}&ttl=1s`])
    await owner.says('claimed')
    await refresh(nextOwner)
    const abandoned = nextEvent(nextOwner, 'abandoned')
    owner.signal('SIGKILL')
    await abandoned
    expect(await rejectionOf(nextOwner.claim(second))).toBeInstanceOf(Unclaimable)
    const claim = await nextOwner.claim(first)
    expect(claim.run).toBe(2)
    await claim.consume()
    await (await nextOwner.claim(second)).consume()
    await expectNothingLeft(place)
  })

  test('a post of which the answer is lost waits, also where the other job has ended before it is found out', async () => {
    for (const how of ['consume', 'trash'] as const) {
      await using setup = await ProxiedRedisBoard.set(server)
      const { board, other, place, proxy } = setup
      const first = await postAfter(board, 'first')
      const { acting } = await setup.doneUnheard(() => postAfter(board, 'second', [first]))
      await (await other.claim(await other.find(first.ref)))[how]()
      proxy.mode = 'pass'
      proxy.resetAll()
      await acting
      expect(await performAll(other)).toMatchObject({ runs: how === 'consume' ? 1 : 0 })
      await expectNothingLeft(place)
    }
  })

  test('a post that is refused because the other job has ended is done, once, also where that answer is lost', async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, other, place, proxy } = setup
    const first = await postAfter(board, 'first')
    await (await other.claim(await other.find(first.ref))).consume()
    // The reference names a job that has left: the post is refused, and only then the history is asked.
    const { acting } = await setup.doneUnheard(() => board.post('flow', {}, { name: 'second', after: [first.ref] }))
    proxy.mode = 'pass'
    proxy.resetAll()
    await acting
    expect(await performAll(other)).toEqual({ runs: 1, ends: new Set(['consumed']) })
    await expectNothingLeft(place)
  })
})

describe('a job that has ended without releasing those after it', () => {
  test('by a release that knows no dependencies: they are released by any board', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    await postAfter(board, 'second', [first])
    await removeSilently(place, first)
    await lookAgain(place, board)
    await (await claimed(board, 'second')).consume()
    await expectNothingLeft(place)
  })

  test('in the trash: they are cancelled', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const second = await postAfter(board, 'second', [first])
    await postAfter(board, 'third', [{ uuid: first.uuid, on: 'settled' }])
    await removeSilently(place, first, { entry: '1:x' })
    await lookAgain(place, board)
    expect(await (await claimed(board, 'third')).perform(() => undefined)).toBe('consumed')
    expect(await second.wait()).toBe('TRASHED')
    const trashed = (await all(board.trashed())).find(({ uuid }) => uuid === second.uuid)
    expect(trashed?.reason).toContain(`${jobIdFor(first)}, on which it depends, is in the trash`)
  })

  test('because its posting was removed by hand: they are released with it', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const second = await postAfter(board, 'second', [first])
    await place.removeRaw(first)
    await refresh(board)
    await (await board.claim(second)).consume()
    await expectNothingLeft(place)
  })

  test('is looked for among many others that have not ended, at most once a minute', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const firsts = await Promise.all(Array.from({ length: 450 }, (_, n) => postAfter(board, `first ${n}`)))
    await board.postMany(firsts.map((first) => ({ flow: 'flow', store: {}, name: 'second', after: [first] })))
    await lookAgain(place, board)
    const last = firsts.at(-1)
    if (!last) throw new Error('there are many')
    await removeSilently(place, last)
    await refresh(board)
    expect(await rejectionOf(board.claimNext({ accept: ({ name }) => name === 'second', timeout: 0 }))).toBeInstanceOf(
      Timeout,
    )
    const next = claimed(board, 'second')
    await lookAgain(place, board)
    await (await next).consume()
    expect(await namesOn(board)).toHaveLength(firsts.length - 1 + firsts.length - 1)
  })
})

describe('damaged dependencies', () => {
  test.each(['x', '', '2:0', '9'.repeat(400)])(
    '%j is reported, and that job waits until it is cancelled',
    async (value) => {
      await using place = await redisPlace(server)
      await using board = await place.open()
      const errors: string[] = []
      board.on('error', ({ error }) => errors.push(String(error)))
      const first = await postAfter(board, 'first')
      const second = await postAfter(board, 'second', [first])
      const third = await postAfter(board, 'third', [first])
      await place.observer.hset(place.key('waits'), jobIdFor(second), value)
      await (await board.claim(first)).consume()
      await (await board.claim(third)).consume()
      expect(errors).toEqual([expect.stringContaining(`the field ${jobIdFor(second)} of ${place.key('waits')}`)])
      expect(await rejectionOf(board.claim(second))).toBeInstanceOf(Unclaimable)
      await board.cancel(second)
      expect(await second.wait()).toBe('TRASHED')
      await expectNothingLeft(place)
    },
  )

  test('a member of the dependents that names no job is removed', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await place.observer.zadd(place.key('dependents'), 0, 'x', 0, 'a:b', 0, ':')
    await refresh(board)
    await board.post('flow', {}, { name: 'job' })
    await (await claimed(board, 'job')).consume()
    await expectNothingLeft(place)
  })
})
