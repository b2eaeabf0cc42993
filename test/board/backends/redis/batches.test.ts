/** Batches in Redis' keys: last jobs that end at the same time, answers that get lost, owners that die, and what is left and removed. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { Batch, JobBoard, TrashedJob } from '../../../../src/board/index.ts'
import { decodeBatch, toBatchCallback, toBatchUuid } from '../../../../src/board/model/job-batch.ts'
import { decodePosting } from '../../../../src/board/model/posting/posting-codec.ts'
import { InvalidState, NotFound } from '../../../../src/core/errors.ts'
import { createBatch, end, postTo, takeCallback } from '../../../contract/board/batches.ts'
import { count } from '../../../support/counts.ts'
import { startNode } from '../../../support/node-process.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { usual as test, variant } from '../../../variant.ts'
import { nextEvent, nextSession, rejectionOf } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { type RedisPlace, redisPlace } from './places.ts'
import { ProxiedRedisBoard } from './proxied-board.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)
/** The keys of what is counted: empty when all jobs of all batches are done. */
const COUNTED = ['members', 'batch-jobs']
const BATCH_KEYS = ['batches', 'batch-order', 'ended-batches', ...COUNTED]

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

async function trashedIn(board: JobBoard, batch: Batch): Promise<TrashedJob[]> {
  return (await all(board.trashed())).filter((job) => job.batch === batch.uuid)
}

async function expectNothingCounted({ observer, key }: RedisPlace): Promise<void> {
  for (const name of COUNTED) expect(await observer.exists(key(name)), name).toBe(0)
}

/** Posts jobs to the batch and ends them, on each of the boards. */
async function postAndEnd(boards: readonly JobBoard[], batch: Batch, size: number, how: 'consume' | 'trash') {
  const items = Array.from({ length: size }, (_, n) => ({ flow: 'flow', store: {}, name: `${n}` }))
  let left = size
  const work = async (board: JobBoard) => {
    while (left > 0) {
      const accept = ({ batch: counted }: { readonly batch?: string }) => counted === batch.uuid
      const claims = await board.claimNext({ max: 200, timeout: 100, accept }).catch(() => [])
      left -= claims.length
      await Promise.all(claims.map((claim) => claim[how]()))
    }
  }
  const working = boards.map(work)
  const results = await batch.postMany(items)
  expect(results.filter((result) => 'error' in result)).toEqual([])
  await batch.seal()
  await Promise.all(working)
}

describe('batches on Redis', () => {
  test('keep nothing of a job that is done, and a board without batches has no keys of them', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await board.post('flow', {}, { name: 'alone' })
    await end(board, 'alone')
    for (const name of BATCH_KEYS) expect(await place.observer.exists(place.key(name)), name).toBe(0)
    const batch = await createBatch(board)
    for (const name of ['a', 'b', 'c']) await postTo(batch, name)
    expect(await place.observer.hlen(place.key('members'))).toBe(3)
    await batch.seal()
    for (const name of ['a', 'b']) await end(board, name)
    expect(await place.observer.hlen(place.key('members'))).toBe(1)
    await end(board, 'c', 'trash')
    expect(await place.observer.hlen(place.key('members'))).toBe(0)
    expect(await place.observer.zcard(place.key('batch-jobs'))).toBe(1)
    await takeCallback(board, 'some failed')
    await batch.retryFailed()
    await end(board, 'c')
    await takeCallback(board, 'all done')
    await expectNothingCounted(place)
  })

  test.each(['consume', 'trash'] as const)(
    'the callback is the posting that its creator would make (%s)',
    async (how) => {
      await using place = await redisPlace(server)
      await using board = await place.open()
      const details = { endedBatch: 7, at: new Date(0), bytes: new Uint8Array([0xc1, 0, 0xff]), text: 'ü:\0\n' }
      const callback = { flow: 'flow', store: { deep: [{ x: 1.5 }] }, name: 'täsk', priority: 'HIGH', details } as const
      const [onDone, onFailed] = [
        callback,
        { ...callback, delay: 1_500.25, limits: ['a'], backOff: { first: '1m' } } as const,
      ]
      const batch = await board.batch({ name: 'ü'.repeat(100), onDone, onFailed })
      const { observer, key } = place
      const definition = decodeBatch(batch.uuid, (await observer.hgetBuffer(key('batches'), batch.uuid)) ?? Buffer.of())
      for (const name of ['a', 'b']) await postTo(batch, name)
      await batch.seal()
      await end(board, 'a')
      for (let generation = 1; generation <= 3; generation++) {
        await end(board, 'b', how)
        const [id = ''] = await place.jobIds()
        const bytes = (await observer.hgetBuffer(key('jobs'), id)) ?? Buffer.of()
        const counts = how === 'trash' ? { total: 2, done: 1, failed: 1 } : { total: 2, done: 2, failed: 0 }
        const expected = toBatchCallback(definition, { generation, sealed: true, ...counts })
        expect(decodePosting(bytes, 'msgpack')).toEqual(expected)
        const due = await observer.zscore(key('resting'), id)
        if (how === 'trash') expect(Number(due)).toBeGreaterThan(Date.now() - 60_000)
        const job = await board.find(expected?.uuid ?? '')
        expect(job).toMatchObject({ name: 'täsk', priority: 'HIGH', uuid: expected?.uuid })
        await board.cancel(job)
        const [bad] = await trashedIn(board, batch)
        if (!bad) break
        await board.restore(bad)
      }
    },
  )

  test('a batch with a key whose state is damaged can be neither read nor created: that is said, and not tried for ever', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await place.observer.hset(place.key('batches'), `${toBatchUuid('import')}:state`, 'damaged')
    const refused = await rejectionOf(board.batch({ name: 'albums', key: 'import' }))
    expect(refused).toBeInstanceOf(InvalidState)
    expect(String(refused)).toContain('(albums), which has the key, can neither be read nor created again')
  })

  test('steps of one script know each other: posts, ends, the seal, and a refused post', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    for (let round = 0; round < 5; round++) {
      const batch = await createBatch(board)
      const [a, b] = await Promise.all([postTo(batch, 'a'), postTo(batch, 'b')])
      const [one, two] = await Promise.all([board.claim(a), board.claim(b)])
      const [, , late, progress] = await Promise.all([
        one.consume(),
        two[round % 2 ? 'consume' : 'trash'](),
        postTo(batch, 'c', { uuid: a.uuid }).catch((error: unknown) => error),
        batch.seal(),
        rejectionOf(postTo(batch, 'd', {})),
      ])
      expect(progress.sealed).toBe(true)
      if (!(late instanceof Error)) await end(board, 'c')
      expect(await batch.wait()).toBe(round % 2 ? 'done' : 'failed')
      await takeCallback(board, round % 2 ? 'all done' : 'some failed')
    }
  })

  variant('two last jobs that end at the same time on two boards post one callback', async () => {
    await using place = await redisPlace(server)
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 50, long: 2_000 }); round++) {
      const batch = await createBatch(here)
      await Promise.all([postTo(batch, 'a'), postTo(batch, 'b')])
      await batch.seal()
      const [a, b] = [await claimed(here, 'a'), await claimed(there, 'b')]
      await Promise.all([a.consume(), b.consume()])
      // The script of the later end has posted it: nobody has to look again.
      expect(await batch.progress()).toMatchObject({ total: 2, done: 2, state: 'done', generation: 1 })
      expect(await takeCallback(there, 'all done')).toMatchObject({ total: 2, generation: 1 })
    }
    await expectNothingCounted(place)
  })

  test('a seal at the same time as the last end ends the batch once', async () => {
    await using place = await redisPlace(server)
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 50, long: 2_000 }); round++) {
      const batch = await createBatch(here)
      await postTo(batch, 'job')
      const claim = await claimed(there, 'job')
      await Promise.all([batch.seal(), claim.consume()])
      expect(await batch.progress()).toMatchObject({ state: 'done', generation: 1 })
      expect(await takeCallback(here, 'all done')).toMatchObject({ total: 1, done: 1 })
    }
  })

  test('a job that is added by the last one while that ends is refused or counted', async () => {
    await using place = await redisPlace(server)
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 50, long: 2_000 }); round++) {
      const batch = await createBatch(here)
      const last = await postTo(batch, 'last')
      await batch.seal()
      const claim = await claimed(here, 'last')
      const adding = there
        .post('flow', {}, { name: 'added', batch: { uuid: batch.uuid, by: last.uuid } })
        .catch((error: unknown) => error)
      const [added] = await Promise.all([adding, claim.consume()])
      const isAdded = !(added instanceof Error)
      if (!isAdded) expect(added).toBeInstanceOf(InvalidState)
      else await end(there, 'added')
      const total = isAdded ? 2 : 1
      expect(await takeCallback(here, 'all done')).toMatchObject({ total, done: total, generation: 1 })
    }
  })

  variant('restoring at the same time as the last end: the batch ends as often as it was opened', async () => {
    await using place = await redisPlace(server)
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 30, long: 1_000 }); round++) {
      const batch = await createBatch(here)
      for (const name of ['bad', 'last']) await postTo(batch, name)
      await batch.seal()
      await end(here, 'bad', 'trash')
      const claim = await claimed(here, 'last')
      const [trashed] = await trashedIn(there, batch)
      if (!trashed) throw new Error('it is in the trash')
      await Promise.all([there.restore(trashed), claim.consume()])
      await end(here, 'bad')
      const { generation } = await batch.progress()
      const names = (await namesOn(here)).sort()
      expect(names).toEqual(generation === 1 ? ['all done'] : ['all done', 'some failed'])
      for (const name of names) await end(here, name)
      expect(await batch.progress()).toMatchObject({ total: 2, done: 2, failed: 0, state: 'done' })
    }
    await expectNothingCounted(place)
  })

  variant('thousands of jobs of several owners end in one callback', { timeout: 120_000 }, async () => {
    await using place = await redisPlace(server)
    await using here = await place.open()
    await using there = await place.open()
    const size = count({ test: 5_000, long: 100_000 })
    const batch = await createBatch(here)
    const waiting = (await there.findBatch(batch.uuid)).wait({ timeout: '1m' })
    await postAndEnd([here, there], batch, size, 'consume')
    expect(await waiting).toBe('done')
    expect(await takeCallback(there, 'all done')).toMatchObject({ total: size, done: size, failed: 0 })
    await expectNothingCounted(place)
  })

  variant('thousands of failed jobs are tried again together', { timeout: 120_000 }, async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const size = count({ test: 1_200, long: 20_000 })
    const batch = await createBatch(board)
    await postAndEnd([board], batch, size, 'trash')
    await takeCallback(board, 'some failed')
    expect(await batch.retryFailed()).toHaveLength(size)
    expect(await batch.progress()).toMatchObject({ open: size, failed: 0, generation: 2, sealed: true })
    expect(await batch.cancel({ reason: 'enough' })).toMatchObject({ open: size, sealed: true, state: 'cancelled' })
    // They have run before: their next owners revert what they did.
    for (let left = size; left > 0; ) {
      const claims = await board.claimNext({ max: 200 })
      left -= claims.length
      const ends = await Promise.all(claims.map((claim) => claim.perform(() => expect.unreachable())))
      expect(new Set(ends)).toEqual(new Set(['trashed']))
    }
    expect(await batch.wait()).toBe('cancelled')
    expect(await batch.progress()).toMatchObject({ open: 0, failed: size, generation: 2 })
    expect(await namesOn(board)).toEqual([])
  })
})

describe('an owner that dies', () => {
  variant('by a kill leaves its job open, and its next owner ends the batch', async () => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    const batch = await createBatch(nextOwner)
    const job = await postTo(batch, 'job')
    await batch.seal()
    await using owner = await startNode(CLAIMER, [`${place.uri}&ttl=1s`])
    await owner.says('claimed')
    await refresh(nextOwner)
    const abandoned = nextEvent(nextOwner, 'abandoned')
    owner.signal('SIGKILL')
    await abandoned
    expect(await batch.progress()).toMatchObject({ total: 1, open: 1, state: 'running' })
    const claim = await nextOwner.claim(job)
    expect(claim.run).toBe(2)
    await claim.consume()
    expect(await takeCallback(nextOwner, 'all done')).toMatchObject({ total: 1, done: 1 })
    await expectNothingCounted(place)
  })

  test.each(['consume', 'trash'] as const)(
    'after the last end was counted, and before it knows that: the batch has ended once (%s)',
    async (how) => {
      await using setup = await ProxiedRedisBoard.set(server)
      const { board, other, place, proxy } = setup
      const batch = await createBatch(other)
      await postTo(batch, 'job')
      await batch.seal()
      const claim = await claimed(board, 'job')
      const owner = await place.ownerOf(board)
      const reborn = nextSession(board)
      const { acting } = await setup.doneUnheard(() => claim[how]())
      await place.observer.del(place.key(`owner:${owner}`))
      proxy.mode = 'pass'
      proxy.resetAll()
      await reborn
      await acting.catch(() => undefined)
      const [name, counts] =
        how === 'consume'
          ? (['all done', { done: 1, failed: 0 }] as const)
          : (['some failed', { done: 0, failed: 1 }] as const)
      expect(await batch.progress()).toMatchObject({ total: 1, ...counts, open: 0, generation: 1 })
      expect(await takeCallback(other, name)).toMatchObject({ total: 1, ...counts })
    },
  )
})

describe('batches that have ended', () => {
  variant(
    'are kept up to a thousand; jobs of others end, and are restored, without one',
    {
      timeout: 60_000,
    },
    async () => {
      await using place = await redisPlace(server)
      await using board = await place.open()
      const { observer, key } = place
      const first = await createBatch(board, { name: 'first' })
      // More entries than one script removes.
      await postAndEnd([board], first, 1_200, 'trash')
      await takeCallback(board, 'some failed')
      const open = await board.batch({ name: 'open' })
      await Promise.all(Array.from({ length: 1_000 }, async (_, n) => (await board.batch({ name: `${n}` })).seal()))
      while ((await observer.zcard(key('ended-batches'))) > 1_000) await refresh(board)
      expect(await rejectionOf(first.progress())).toBeInstanceOf(NotFound)
      expect(await open.progress()).toMatchObject({ state: 'open' })
      expect(await observer.exists(key('batch-jobs'))).toBe(0)
      expect(await observer.zcard(key('batch-order'))).toBe(1_001)
      expect(await observer.hlen(key('batches'))).toBe(2 * 1_001)
      expect(await board.batches({ limit: 10_000 })).toHaveLength(1_001)
      for (const call of [() => postTo(first, 'late'), () => first.retryFailed(), () => first.seal()])
        expect(await rejectionOf(call())).toBeInstanceOf(NotFound)
      const [trashed] = await trashedIn(board, first)
      if (!trashed) throw new Error('it is in the trash')
      await board.restore(trashed)
      await end(board, trashed.name)
      await expectNothingCounted(place)
      expect(await namesOn(board)).toEqual([])
    },
  )

  test('are removed by any board, when the one that ended the last of them has died', { timeout: 60_000 }, async () => {
    await using setup = await ProxiedRedisBoard.set(server)
    const { board, other, place, proxy } = setup
    const { observer, key } = place
    await Promise.all(Array.from({ length: 1_000 }, async (_, n) => (await other.batch({ name: `${n}` })).seal()))
    const batch = await board.batch({ name: 'last' })
    const owner = await place.ownerOf(board)
    await setup.doneUnheard(() => batch.seal())
    await observer.del(key(`owner:${owner}`))
    while ((await observer.zcard(key('ended-batches'))) > 1_000) await refresh(other)
    expect(await other.batches({ limit: 10_000 })).toHaveLength(1_000)
    proxy.mode = 'pass'
    proxy.resetAll()
  })
})

describe('what is changed by hand', () => {
  test('a posting that was removed counts as done', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const batch = await createBatch(board)
    const [job] = [await postTo(batch, 'removed'), await postTo(batch, 'other')]
    await batch.seal()
    await end(board, 'other', 'trash')
    await place.removeRaw(job)
    await refresh(board)
    expect(await batch.progress()).toMatchObject({ total: 2, done: 1, failed: 1, open: 0, state: 'failed' })
    expect(await takeCallback(board, 'some failed')).toMatchObject({ total: 2 })
  })

  test('a publication of another client is a hint', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const batch = await createBatch(board)
    const waiting = batch.wait()
    await batch.progress()
    for (const message of [batch.uuid, '', 'x'])
      await place.observer.publish(`${place.key('changes')}:batches`, message)
    expect(await batch.progress()).toMatchObject({ state: 'open' })
    await batch.seal()
    expect(await waiting).toBe('done')
  })

  test.each(['x', '', '1:1:0:x:0:1:', `${'9'.repeat(400)}`])(
    'a state of %j is reported, and the jobs of the batch end as others do',
    async (state) => {
      await using place = await redisPlace(server)
      await using board = await place.open()
      const errors: string[] = []
      board.on('error', ({ error }) => errors.push(String(error)))
      const batch = await createBatch(board)
      for (const name of ['a', 'b']) await postTo(batch, name)
      await place.observer.hset(place.key('batches'), `${batch.uuid}:state`, state)
      await end(board, 'a')
      await end(board, 'b', 'trash')
      expect(errors).toEqual([expect.stringContaining(`the field ${batch.uuid}:state of ${place.key('batches')}`)])
      expect(await rejectionOf(batch.progress())).toBeInstanceOf(NotFound)
      expect(await rejectionOf(postTo(batch, 'c'))).toBeInstanceOf(NotFound)
      expect(await namesOn(board)).toEqual([])
      await expectNothingCounted(place)
    },
  )

  test('a callback that is none is reported, and the batch ends without it', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const batch = await createBatch(board)
    await postTo(batch, 'job')
    await batch.seal()
    await place.observer.hset(place.key('batches'), `${batch.uuid}:done`, 'x')
    const reported = nextEvent(board, 'error')
    await end(board, 'job')
    expect(String((await reported).error)).toContain(`the field ${batch.uuid}:done of ${place.key('batches')}`)
    expect(await batch.progress()).toMatchObject({ state: 'done' })
    expect(await namesOn(board)).toEqual([])
  })

  test.each(BATCH_KEYS)('a key %s of another type refuses the steps that need it, and no other', async (name) => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const batch = await createBatch(board)
    const job = await postTo(batch, 'job')
    await batch.seal()
    const { observer, key } = place
    await observer.rename(key(name), key('aside')).catch(() => undefined)
    await observer.set(key(name), 'x')
    const claim = await board.claim(job)
    const ending = await claim.consume().catch((error: unknown) => error)
    if (ending instanceof Error) expect(ending).toMatchObject({ code: 'JOBBOARD_WRITES_REFUSED' })
    await observer.del(key(name))
    await observer.rename(key('aside'), key(name)).catch(() => undefined)
    if (ending instanceof Error) await claim.consume()
    expect(await batch.progress()).toMatchObject({ done: 1, state: 'done' })
    await takeCallback(board, 'all done')
  })
})
