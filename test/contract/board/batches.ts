/** Batches: each job is counted once to its end, however it ends and whoever ends it, and the last one posts the callback, once. */
import { describe, expect, test } from 'vitest'
import type { Batch, BatchOptions, JobBoard, PostOptions } from '../../../src/board/index.ts'
import { Duplicate, InvalidState, NotFound, Timeout } from '../../../src/core/errors.ts'
import { newUuid } from '../../../src/core/uuid.ts'
import { nextSession, rejectionOf, whenAborted } from '../../board/events.ts'
import { all, claimed, namesOn } from '../../board/jobs.ts'
import { count } from '../../support/counts.ts'
import type { Place } from '../board.ts'

const CALLBACKS = {
  onDone: { flow: 'flow', store: { how: 'done' }, name: 'all done' },
  onFailed: { flow: 'flow', store: { how: 'failed' }, name: 'some failed' },
} as const

/** Creates a batch with callbacks whose names are `all done` and `some failed`. */
export function createBatch(board: JobBoard, options: Partial<BatchOptions> = {}): Promise<Batch> {
  return board.batch({ name: 'import', ...CALLBACKS, ...options })
}

/** Posts a job of this name to the batch. */
export function postTo(batch: Batch, name: string, options: Omit<PostOptions, 'name' | 'batch'> = {}) {
  return batch.post('flow', {}, { ...options, name })
}

/** Claims the job of this name, and ends it. */
export async function end(board: JobBoard, name: string, how: 'consume' | 'trash' = 'consume'): Promise<void> {
  await (await claimed(board, name))[how]()
}

/** Consumes the callback of this name, which must be the only job on the board; returns what it says about the batch. */
export async function takeCallback(board: JobBoard, name: 'all done' | 'some failed'): Promise<unknown> {
  expect(await namesOn(board)).toEqual([name])
  const claim = await claimed(board, name)
  await claim.consume()
  return claim.job.details['endedBatch']
}

export function batchesContract({ open, expire }: Place): void {
  test('each end is counted, and the last one posts the callback', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const batch = await createBatch(here, { meta: { month: '2026-10' } })
    expect(await batch.progress()).toEqual({
      ...{ total: 0, done: 0, failed: 0, open: 0, state: 'open', sealed: false, generation: 1 },
      ...{ endedAt: undefined, reason: undefined },
    })
    const found = await there.findBatch(batch.uuid)
    expect(found).toMatchObject({ name: 'import', who: 'here', meta: { month: '2026-10' } })
    const first = await postTo(batch, 'first')
    expect(first.batch).toBe(batch.uuid)
    await postTo(found, 'second')
    await there.post('flow', {}, { name: 'third', batch: batch.uuid })
    await there.post('flow', {}, { name: 'fourth', batch })
    await here.post('flow', {}, { name: 'other' })
    expect(await namesOn(there, { batch: batch.uuid })).toEqual(['first', 'second', 'third', 'fourth'])
    await end(there, 'first')
    await end(there, 'other', 'trash')
    expect(await batch.progress()).toMatchObject({ total: 4, done: 1, failed: 0, open: 3, state: 'open' })
    expect(await found.seal()).toMatchObject({ sealed: true, state: 'running', open: 3 })
    await end(here, 'second')
    await end(there, 'third')
    const last = await claimed(here, 'fourth')
    expect(await namesOn(there)).toEqual(['fourth'])
    await last.consume()
    expect(await found.progress()).toMatchObject({ total: 4, done: 4, failed: 0, open: 0, state: 'done' })
    expect((await batch.progress()).endedAt?.getTime()).toBeGreaterThan(batch.createdAt.getTime() - 60_000)
    const told = { uuid: batch.uuid, name: 'import', generation: 1, total: 4, done: 4, failed: 0 }
    expect(await takeCallback(there, 'all done')).toEqual(told)
    expect(await namesOn(here)).toEqual([])
  })

  test('jobs that end before the seal are counted, and the seal posts the callback', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const batch = await createBatch(here)
    for (const name of ['first', 'second']) {
      await postTo(batch, name)
      await end(there, name)
    }
    expect(await batch.progress()).toMatchObject({ total: 2, done: 2, open: 0, state: 'open', endedAt: undefined })
    expect(await namesOn(there)).toEqual([])
    expect(await batch.seal()).toMatchObject({ total: 2, done: 2, state: 'done' })
    expect(await batch.wait()).toBe('done')
    expect(await takeCallback(there, 'all done')).toMatchObject({ total: 2 })
  })

  test('an empty batch that is sealed is done at once; sealed twice it is done once', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const batch = await createBatch(here)
    const same = await there.findBatch(batch.uuid)
    const seals = await Promise.all([batch.seal(), same.seal(), batch.seal()])
    for (const progress of seals) expect(progress).toMatchObject({ total: 0, sealed: true, generation: 1 })
    expect(await batch.seal()).toMatchObject({ total: 0, state: 'done', generation: 1 })
    expect(await takeCallback(there, 'all done')).toMatchObject({ total: 0, done: 0, failed: 0 })
  })

  test('a batch without callbacks ends, too', async () => {
    const board = await open()
    const batch = await board.batch({ name: 'quiet' })
    await postTo(batch, 'first')
    await batch.seal()
    await end(board, 'first', 'trash')
    expect(await batch.wait()).toBe('failed')
    expect(await namesOn(board)).toEqual([])
  })

  test('the options of a callback are those of its posting', async () => {
    const board = await open()
    const onDone = { flow: 'flow', name: 'late', delay: '1h', priority: 'HIGH', maxAttempts: 7 } as const
    const batch = await board.batch({ name: 'import', onDone: { ...onDone, details: { kind: 'end' } } })
    await batch.seal()
    const [job] = await all(board.jobs({ ensureFresh: true }))
    expect(job).toMatchObject({ name: 'late', priority: 'HIGH', maxAttempts: 7, batch: undefined, runs: 0 })
    expect(job?.details).toMatchObject({ flow: 'flow', store: {}, kind: 'end', endedBatch: { uuid: batch.uuid } })
    expect(job?.delayedUntil?.getTime()).toBeGreaterThan(Date.now() + 3_000_000)
  })

  describe('a job is counted once, and as failed, when it', () => {
    test('is trashed by its owner', async () => {
      await expectFailed(await open(), async (board) => (await claimed(board, 'job')).trash({ reason: 'it broke' }))
    })

    test('has failed too often', async () => {
      await expectFailed(await open(), async (board) => {
        for (let run = 0; run < 3; run++) await (await claimed(board, 'job')).perform(() => Promise.reject(new Error()))
      })
    })

    test('is cancelled before it ever ran', async () => {
      await expectFailed(await open(), async (board) => {
        for await (const job of board.jobs({ name: 'job' })) await board.cancel(job)
      })
    })

    test('is cancelled while it runs', async () => {
      await expectFailed(await open(), async (board) => {
        const claim = await claimed(board, 'job')
        await board.cancel(claim.job)
        await whenAborted(claim.cancelled)
        await claim.perform(() => expect.unreachable())
      })
    })

    test('is not started in time', async () => {
      await expectFailed(await open(), waitForEnd, { expiresAfter: 100 })
    })

    test('loses its owner, and must not run again', async () => {
      const [board, nextOwner] = await Promise.all([open(), open()])
      const fail = async (_: JobBoard, batch: Batch) => {
        await claimed(board, 'job')
        const next = nextSession(board)
        await expire(board)
        await next
        await waitForEnd(nextOwner, batch, 'job')
      }
      await expectFailed(nextOwner, fail, { onOwnerLost: 'fail' })
    })

    test('depends on a job that failed', async () => {
      const board = await open()
      const first = await board.post('flow', {}, { name: 'first' })
      await expectFailed(board, () => end(board, 'first', 'trash'), { after: [first] })
    })

    /** Waits for jobs as a conductor does, which ends those that must not run. */
    async function waitForEnd(board: JobBoard, batch: Batch, claims = ''): Promise<void> {
      const stop = new AbortController()
      const accept = ({ name }: { readonly name: string }) => name === claims
      const looking = board.claimNext({ accept, signal: stop.signal }).catch(() => undefined)
      expect(await batch.wait()).toBe('failed')
      stop.abort()
      await looking
    }

    async function expectFailed(
      board: JobBoard,
      fail: (board: JobBoard, batch: Batch) => Promise<unknown>,
      options: Omit<PostOptions, 'name' | 'batch'> = {},
    ): Promise<void> {
      const batch = await createBatch(board)
      await postTo(batch, 'done')
      await postTo(batch, 'job', options)
      await end(board, 'done')
      await batch.seal()
      await fail(board, batch)
      expect(await batch.progress()).toMatchObject({ total: 2, done: 1, failed: 1, open: 0, state: 'failed' })
      expect(await takeCallback(board, 'some failed')).toMatchObject({ total: 2, done: 1, failed: 1 })
    }
  })

  test('neither a failed run nor a lost owner is an end', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const batch = await createBatch(here)
    await postTo(batch, 'job')
    await batch.seal()
    await (await claimed(here, 'job')).abandon({ failed: true })
    expect(await batch.progress()).toMatchObject({ total: 1, open: 1, state: 'running' })
    const lost = await claimed(here, 'job')
    await expire(here)
    const claim = await claimed(there, 'job')
    expect(await batch.progress()).toMatchObject({ total: 1, open: 1 })
    await claim.consume()
    await rejectionOf(lost.consume())
    expect(await batch.progress()).toMatchObject({ total: 1, done: 1, open: 0, state: 'done' })
    expect(await takeCallback(there, 'all done')).toMatchObject({ total: 1 })
  })

  describe('a sealed batch', () => {
    test('takes jobs only from its own jobs that have not ended', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const batch = await createBatch(here)
      const same = await there.findBatch(batch.uuid)
      const first = await postTo(batch, 'first')
      await batch.seal()
      for (const each of [batch, same]) expect(await rejectionOf(postTo(each, 'late'))).toBeInstanceOf(InvalidState)
      const claim = await claimed(here, 'first')
      // The board has claimed a job of the batch.
      await postTo(batch, 'second')
      expect(await rejectionOf(postTo(same, 'late'))).toBeInstanceOf(InvalidState)
      await there.post('flow', {}, { name: 'third', batch: { uuid: batch.uuid, by: first.uuid } })
      const strange = there.post('flow', {}, { name: 'late', batch: { uuid: batch.uuid, by: newUuid() } })
      expect(await rejectionOf(strange)).toBeInstanceOf(InvalidState)
      await claim.consume()
      const after = there.post('flow', {}, { name: 'late', batch: { uuid: batch.uuid, by: first.uuid } })
      expect(await rejectionOf(after)).toBeInstanceOf(InvalidState)
      expect(await batch.progress()).toMatchObject({ total: 3, done: 1, open: 2, state: 'running' })
      await end(there, 'second')
      await end(there, 'third')
      expect(await rejectionOf(postTo(batch, 'late'))).toBeInstanceOf(InvalidState)
      expect(await takeCallback(here, 'all done')).toMatchObject({ total: 3 })
    })

    test('grows from within, and ends once', async () => {
      const boards = await Promise.all([open(), open()])
      const batch = await createBatch(boards[0])
      await postTo(batch, '1')
      await batch.seal()
      const work = async (board: JobBoard) => {
        const own = await board.findBatch(batch.uuid)
        while ((await batch.progress()).endedAt === undefined) {
          const [claim] = await board
            .claimNext({ timeout: 100, accept: ({ batch: counted }) => counted === batch.uuid })
            .catch(() => [])
          const level = claim?.job.name.length ?? 4
          if (level < 4) await Promise.all(['1', '2', '3'].map((name) => postTo(own, `${claim?.job.name}${name}`)))
          await claim?.consume()
        }
      }
      await Promise.all(boards.map(work))
      expect(await batch.progress()).toMatchObject({ total: 40, done: 40, state: 'done', generation: 1 })
      expect(await takeCallback(boards[1], 'all done')).toMatchObject({ total: 40 })
    })
  })

  test('of jobs that end at the same time, one posts the callback, each time', async () => {
    const boards = await Promise.all([open(), open()])
    const [here, there] = boards
    for (let round = 0; round < count({ test: 10, long: 500 }); round++) {
      const batch = await createBatch(here)
      await Promise.all([postTo(batch, 'a'), postTo(batch, 'b'), postTo(batch, 'c')])
      await batch.seal()
      const claims = [await claimed(here, 'a'), await claimed(there, 'b'), await claimed(here, 'c')]
      const [first, second, third] = claims
      await Promise.all([first?.consume(), second?.[round % 3 === 0 ? 'trash' : 'consume'](), third?.consume()])
      const state = round % 3 === 0 ? 'failed' : 'done'
      expect(await batch.wait({ timeout: '20s' })).toBe(state)
      expect(await takeCallback(there, state === 'done' ? 'all done' : 'some failed')).toMatchObject({ total: 3 })
    }
  })

  test('posts, ends and the seal at the same time are counted', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const size = count({ test: 60, long: 5_000 })
    const batch = await createBatch(here)
    const items = Array.from({ length: size }, (_, n) => ({ flow: 'flow', store: {}, name: `job ${n}` }))
    const posting = batch.postMany(items)
    let failed = 0
    const work = async (board: JobBoard) => {
      while ((await batch.progress()).endedAt === undefined) {
        const isMember = ({ batch: counted }: { readonly batch?: string }) => counted === batch.uuid
        const claims = await board.claimNext({ max: 7, timeout: 50, accept: isMember }).catch(() => [])
        const fails = (name: string) => name.endsWith('7')
        await Promise.all(claims.map((claim) => (fails(claim.job.name) ? claim.trash() : claim.consume())))
        failed += claims.filter(({ job }) => fails(job.name)).length
      }
    }
    const working = Promise.all([work(here), work(there)])
    expect((await posting).filter((result) => 'error' in result)).toEqual([])
    await batch.seal()
    await working
    expect(failed).toBe(items.filter(({ name }) => name.endsWith('7')).length)
    expect(await batch.progress()).toMatchObject({ total: size, failed, done: size - failed, open: 0, state: 'failed' })
    expect(await takeCallback(here, 'some failed')).toMatchObject({ total: size, failed })
  })

  test('jobs of one transaction are counted, or none is posted', async () => {
    const board = await open()
    const batch = await createBatch(board)
    const item = (name: string, options: Omit<PostOptions, 'name' | 'client'> = {}) => ({
      ...{ flow: 'flow', store: {}, name },
      ...options,
    })
    const foreign = board.postMany([item('a', { batch }), item('b', { batch: newUuid() })], { atomic: true })
    expect(await rejectionOf(foreign)).toBeInstanceOf(NotFound)
    const uuid = newUuid()
    const twice = batch.postMany([item('a', { uuid }), item('b', { uuid })], { atomic: true })
    expect(await rejectionOf(twice)).toBeInstanceOf(Duplicate)
    expect(await batch.progress()).toMatchObject({ total: 0 })
    await batch.postMany([item('a'), item('b')], { atomic: true })
    expect(await batch.seal()).toMatchObject({ total: 2, open: 2 })
    expect(await rejectionOf(batch.postMany([item('c')], { atomic: true }))).toBeInstanceOf(InvalidState)
    expect(await namesOn(board)).toEqual(['a', 'b'])
  })

  test('a job whose key is taken is not counted, nor one that is refused', async () => {
    const board = await open()
    const batch = await createBatch(board)
    const first = await postTo(batch, 'first', { key: 'one' })
    expect(await postTo(batch, 'second', { key: 'one' })).toMatchObject({ uuid: first.uuid, created: false })
    await rejectionOf(postTo(batch, 'third', { after: [newUuid()] }))
    expect(await rejectionOf(postTo(batch, 'fourth', { uuid: first.uuid }))).toBeInstanceOf(Duplicate)
    expect(await batch.progress()).toMatchObject({ total: 1, open: 1 })
    await end(board, 'first')
    await postTo(batch, 'fifth', { key: 'one' })
    expect(await batch.progress()).toMatchObject({ total: 2, done: 1, open: 1 })
  })

  test('of calls with the same key, one creates the batch, also when it has ended', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const asked = [here, there, here, there].map((board, at) => board.batch({ name: `batch ${at}`, key: 'album 7' }))
    const batches = await Promise.all(asked)
    expect(new Set(batches.map(({ uuid }) => uuid)).size).toBe(1)
    const [first, ...others] = batches.filter(({ created }) => created)
    expect(others).toEqual([])
    expect(batches.map(({ name, who }) => [name, who])).toEqual(batches.map(() => [first?.name, first?.who]))
    expect((await here.batch({ name: 'import', key: 'album 8' })).created).toBe(true)
    await first?.seal()
    const again = await there.batch({ name: 'import', key: 'album 7' })
    expect([again.uuid, again.created, (await again.progress()).state]).toEqual([first?.uuid, false, 'done'])
    await expect(postTo(again, 'late')).rejects.toThrow(InvalidState)
  })

  test('a job that its poster claims is counted', async () => {
    const board = await open()
    const batch = await createBatch(board)
    const claim = await board.postAndClaim('flow', {}, { batch })
    await batch.seal()
    await claim.consume()
    expect(await batch.progress()).toMatchObject({ total: 1, done: 1, state: 'done' })
  })

  describe('a wait', () => {
    test('resolves with the state, whether the batch ends before, during or after the call', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const batch = await createBatch(here)
      const same = await there.findBatch(batch.uuid)
      const waits = [batch.wait(), same.wait(), same.wait({ timeout: '1m' })]
      await postTo(batch, 'first')
      await end(there, 'first')
      waits.push(same.wait())
      await batch.seal()
      waits.push(batch.wait(), same.wait())
      expect(await Promise.all(waits)).toEqual(Array.from({ length: 6 }, () => 'done'))
    })

    test('ends with its timeout, its signal, and the board', async () => {
      const board = await open()
      const batch = await createBatch(board)
      await postTo(batch, 'first')
      const late = await rejectionOf(batch.wait({ timeout: 1 }))
      expect(late).toBeInstanceOf(Timeout)
      expect(String(late)).toContain(`batch ${batch.uuid} (import)`)
      const stop = new AbortController()
      const stopped = rejectionOf(batch.wait({ signal: stop.signal }))
      const closed = rejectionOf(batch.wait())
      stop.abort(new Error('enough'))
      expect(String(await stopped)).toContain('enough')
      await board.close()
      expect(await closed).toBeInstanceOf(InvalidState)
    })
  })
}
