/** What becomes of a batch whose jobs are restored or purged, that is cancelled or tried again; and what is refused. */
import { describe, expect, test } from 'vitest'
import type { Batch, JobBoard, TrashedJob } from '../../../src/board/index.ts'
import { InvalidArgument, InvalidPosting, InvalidState, NotFound, PayloadTooLarge } from '../../../src/core/errors.ts'
import { newUuid } from '../../../src/core/uuid.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { rejectionOf, whenAborted } from '../../board/events.ts'
import { all, claimed, namesOn } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import { createBatch, end, postTo, takeCallback } from './batches.ts'

async function trashedOf(board: JobBoard, name: string): Promise<TrashedJob> {
  const found = (await all(board.trashed())).find((job) => job.name === name)
  if (found) return found
  throw new Error(`${name} is in the trash`)
}

/** A batch of which `good` is done and `bad` has failed, after its callback. */
async function failedBatch(board: JobBoard): Promise<Batch> {
  const batch = await createBatch(board)
  for (const name of ['good', 'bad']) await postTo(batch, name)
  await batch.seal()
  await end(board, 'good')
  await end(board, 'bad', 'trash')
  await takeCallback(board, 'some failed')
  return batch
}

/** Ends other jobs until the history of the board does not know this one any more. */
async function forget(board: JobBoard, uuid: string): Promise<void> {
  const isKnown = () =>
    board.post('flow', {}, { name: 'other', after: [uuid] }).catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error
    })
  while (await isKnown()) await end(board, 'other')
}

export function batchChangesContract({ open }: Place): void {
  describe('a job that is restored', () => {
    test('opens a batch that has ended, whose later end posts the callback of its generation', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const batch = await failedBatch(here)
      await there.restore(await trashedOf(there, 'bad'))
      expect(await batch.progress()).toMatchObject({
        ...{ total: 2, done: 1, failed: 0, open: 1 },
        ...{ state: 'running', generation: 2, sealed: true, endedAt: undefined },
      })
      expect((await here.find((await all(here.jobs({ ensureFresh: true })))[0]?.uuid ?? '')).batch).toBe(batch.uuid)
      await end(there, 'bad', 'trash')
      expect(await takeCallback(here, 'some failed')).toMatchObject({ generation: 2, failed: 1 })
      await here.restore(await trashedOf(here, 'bad'))
      const waiting = batch.wait()
      await end(here, 'bad')
      expect(await waiting).toBe('done')
      expect(await takeCallback(there, 'all done')).toMatchObject({ generation: 3, total: 2, done: 2, failed: 0 })
      expect(await batch.progress()).toMatchObject({ total: 2, done: 2, generation: 3 })
    })

    test('is open again in a batch that has not ended', async () => {
      const board = await open()
      const batch = await createBatch(board)
      for (const name of ['good', 'bad']) await postTo(batch, name)
      await batch.seal()
      await end(board, 'bad', 'trash')
      expect(await batch.progress()).toMatchObject({ failed: 1, open: 1 })
      await board.restore(await trashedOf(board, 'bad'))
      expect(await batch.progress()).toMatchObject({ total: 2, failed: 0, open: 2, generation: 1 })
      await end(board, 'bad')
      await end(board, 'good')
      expect(await takeCallback(board, 'all done')).toMatchObject({ generation: 1, total: 2, done: 2 })
    })

    test('has another callback than before', async () => {
      const board = await open()
      const batch = await createBatch(board)
      await postTo(batch, 'bad')
      await batch.seal()
      const uuids = new Set<string>()
      for (let generation = 1; generation <= 3; generation++) {
        await end(board, 'bad', 'trash')
        for await (const job of board.jobs({ ensureFresh: true, name: 'some failed' })) uuids.add(job.uuid)
        await board.restore(await trashedOf(board, 'bad'))
      }
      expect(uuids.size).toBe(3)
      expect((await namesOn(board)).filter((name) => name === 'some failed')).toHaveLength(3)
    })
  })

  test('purging a job changes no number', async () => {
    const board = await open()
    const batch = await failedBatch(board)
    const before = await batch.progress()
    await board.purge(await trashedOf(board, 'bad'))
    expect(await batch.progress()).toEqual(before)
    expect(await batch.retryFailed()).toEqual([])
    expect(await batch.progress()).toEqual(before)
    expect(await namesOn(board)).toEqual([])
  })

  describe('the failed jobs', () => {
    test('are restored together, and their batch ends when all of them have', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const batch = await createBatch(here)
      for (const name of ['a', 'b', 'c', 'd']) await postTo(batch, name)
      await batch.seal()
      for (const name of ['a', 'b', 'c']) await end(there, name, 'trash')
      await end(here, 'd')
      await takeCallback(here, 'some failed')
      await here.purge(await trashedOf(here, 'c'))
      const restored = await (await there.findBatch(batch.uuid)).retryFailed()
      expect(restored.map(({ name }) => name).sort()).toEqual(['a', 'b'])
      const progress = await batch.progress()
      expect(progress).toMatchObject({ total: 4, done: 1, failed: 1, open: 2, state: 'running', generation: 2 })
      await end(here, 'a')
      expect(await namesOn(there)).toEqual(['b'])
      await end(there, 'b')
      expect(await takeCallback(here, 'some failed')).toMatchObject({ generation: 2, done: 3, failed: 1 })
      await rejectionOf(postTo(batch, 'late'))
    })

    test('are restored after those on which they depend', async () => {
      const board = await open()
      const batch = await createBatch(board)
      const first = await postTo(batch, 'first')
      await postTo(batch, 'second', { after: [first] })
      await batch.seal()
      await end(board, 'first', 'trash')
      await takeCallback(board, 'some failed')
      expect((await batch.retryFailed()).map(({ name }) => name)).toEqual(['first', 'second'])
      await end(board, 'first')
      await end(board, 'second')
      expect(await takeCallback(board, 'all done')).toMatchObject({ total: 2, done: 2, generation: 2 })
    })

    test('are restored but one whose key is taken, which the call names', async () => {
      const board = await open()
      const batch = await createBatch(board)
      const first = await postTo(batch, 'first', { key: 'taken' })
      const others = Array.from({ length: 201 }, (_, n) => `${n}`)
      for (const job of [first, ...(await Promise.all(others.map((name) => postTo(batch, name))))])
        await (await board.claim(job)).trash()
      await board.post('flow', {}, { key: 'taken' })
      const refused = { code: 'JOBBOARD_DUPLICATE', message: expect.stringContaining(first.uuid) }
      expect(await rejectionOf(batch.retryFailed())).toMatchObject(refused)
      expect(await batch.progress()).toMatchObject({ total: 202, open: 201, failed: 1, sealed: false })
    })

    test('are restored but one that depends on a job which is not known any more', async () => {
      const board = await open({ keepHistory: 2 })
      const batch = await createBatch(board)
      const lost = await board.post('flow', {}, { name: 'lost' })
      await postTo(batch, 'after it', { after: [lost] })
      await end(board, 'lost')
      await end(board, 'after it', 'trash')
      await postTo(batch, 'alone')
      await end(board, 'alone', 'trash')
      await forget(board, lost.uuid)
      expect(await rejectionOf(batch.retryFailed())).toMatchObject({
        code: 'JOBBOARD_NOT_FOUND',
        message: expect.stringContaining(lost.uuid),
      })
      expect(await batch.progress()).toMatchObject({ open: 1, failed: 1 })
    })

    test('are not restored while a job with the same uuid is open in the batch, which counts it once', async () => {
      const board = await open()
      const batch = await createBatch(board)
      const uuid = newUuid()
      await postTo(batch, 'first', { uuid })
      await end(board, 'first', 'trash')
      await postTo(batch, 'second', { uuid })
      await batch.seal()
      const refused = { code: 'JOBBOARD_DUPLICATE', message: expect.stringContaining(batch.uuid) }
      expect(await rejectionOf(board.restore(await trashedOf(board, 'first')))).toMatchObject(refused)
      expect(await batch.progress()).toMatchObject({ total: 2, done: 0, failed: 1, open: 1 })
      await end(board, 'second')
      expect(await takeCallback(board, 'some failed')).toMatchObject({ total: 2, done: 1, failed: 1 })
      await board.restore(await trashedOf(board, 'first'))
      await end(board, 'first')
      expect(await takeCallback(board, 'all done')).toMatchObject({ done: 2, generation: 2 })
    })

    test('of a batch that is not sealed are restored, and it stays open', async () => {
      const board = await open()
      const batch = await createBatch(board)
      await postTo(batch, 'bad')
      await end(board, 'bad', 'trash')
      await batch.retryFailed()
      expect(await batch.progress()).toMatchObject({ sealed: false, total: 1, failed: 0, open: 1, generation: 1 })
    })
  })

  describe('a batch that is cancelled', () => {
    test('takes no jobs, cancels those that it has, and posts no callback', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const batch = await createBatch(here)
      const same = await there.findBatch(batch.uuid)
      for (const name of ['done', 'running', 'waiting']) await postTo(batch, name)
      await end(there, 'done')
      const running = await claimed(here, 'running')
      const cancelled = whenAborted(running.cancelled)
      const progress = await same.cancel({ reason: 'not needed' })
      expect(progress).toMatchObject({ state: 'cancelled', sealed: true, reason: 'not needed', endedAt: undefined })
      expect(progress).toMatchObject({ total: 3, done: 1, failed: 1, open: 1 })
      expect(String(await cancelled)).toContain('not needed')
      // Not even from the job that runs.
      expect(String(await rejectionOf(postTo(batch, 'late')))).toContain('not needed')
      const waiting = batch.wait()
      expect(await running.perform(() => expect.unreachable())).toBe('trashed')
      expect(await waiting).toBe('cancelled')
      expect((await same.progress()).endedAt).toBeInstanceOf(Date)
      expect(await namesOn(there)).toEqual([])
      expect(await batch.cancel()).toMatchObject({ state: 'cancelled', reason: 'not needed' })
    })

    test('without jobs has ended', async () => {
      const board = await open()
      const batch = await createBatch(board)
      expect(await batch.cancel()).toMatchObject({ state: 'cancelled', endedAt: expect.any(Date), total: 0 })
      expect(await batch.wait()).toBe('cancelled')
      expect(await namesOn(board)).toEqual([])
    })

    test('is not changed if it has ended before', async () => {
      const board = await open()
      const batch = await createBatch(board)
      await batch.seal()
      await takeCallback(board, 'all done')
      expect(await batch.cancel()).toMatchObject({ state: 'done', reason: undefined })
    })

    test('is run again by trying its jobs again', async () => {
      const board = await open()
      const batch = await createBatch(board)
      for (const name of ['a', 'b']) await postTo(batch, name)
      await batch.cancel({ reason: 'not yet' })
      expect(await batch.wait()).toBe('cancelled')
      expect(await batch.retryFailed()).toHaveLength(2)
      expect(await batch.progress()).toMatchObject({ state: 'running', generation: 2, reason: undefined, open: 2 })
      for (const name of ['a', 'b']) await end(board, name)
      expect(await takeCallback(board, 'all done')).toMatchObject({ generation: 2, done: 2 })
    })
  })

  test('the newest batches are listed with their progress', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open()])
    expect(await here.batches()).toEqual([])
    const batches: Batch[] = []
    for (const name of ['first', 'second', 'third']) batches.push(await here.batch({ name, meta: { name } }))
    const [first] = batches
    if (!first) throw new Error('there are three')
    await postTo(first, 'job')
    await batches[1]?.seal()
    const [third, second, oldest, ...others] = await there.batches()
    expect(others).toEqual([])
    expect(third).toMatchObject({ name: 'third', state: 'open', who: 'here', meta: { name: 'third' } })
    expect(second).toMatchObject({ name: 'second', state: 'done' })
    expect(oldest).toMatchObject({ uuid: first.uuid, name: 'first', total: 1, createdAt: first.createdAt })
    expect((await there.batches({ limit: 2 })).map(({ name }) => name)).toEqual(['third', 'second'])
  })

  describe('bad input is refused:', () => {
    test('a batch that the board does not have', async () => {
      const board = await open()
      expect(await rejectionOf(board.findBatch(newUuid()))).toBeInstanceOf(NotFound)
      for (const batch of [newUuid(), { uuid: newUuid() }])
        expect(await rejectionOf(board.post('flow', {}, { batch }))).toBeInstanceOf(NotFound)
      const results = await board.postMany([{ flow: 'flow', store: {}, batch: newUuid() }])
      expect(results[0]).toMatchObject({ error: expect.any(NotFound) })
      for (const uuid of ['', 7, undefined])
        expect(await rejectionOf(board.findBatch(uuid as string))).toBeInstanceOf(InvalidArgument)
      expect(await namesOn(board)).toEqual([])
    })

    test('options of a batch', async () => {
      const board = await open()
      const onDone = { flow: 'flow' }
      const wrong: unknown[] = [
        ...[undefined, {}, { name: '' }, { name: 7 }, { name: 'x'.repeat(2_000) }, { name: 'x', uuid: 'y' }],
        ...[
          { name: 'x', meta: 7 },
          { name: 'x', meta: [] },
          { name: 'x', onEnd: onDone },
        ],
        ...[
          { name: 'x', key: '' },
          { name: 'x', key: 'a', uuid: newUuid() },
        ],
        ...[
          { name: 'x', onDone: 'flow' },
          { name: 'x', onDone: { ...onDone, key: 'one' } },
        ],
        ...[
          { name: 'x', onDone: { store: {} } },
          { name: 'x', onFailed: { ...onDone, after: [newUuid()] } },
        ],
      ]
      for (const options of wrong) {
        const error = await rejectionOf(board.batch(options as { name: string }))
        expect(error, JSON.stringify(options)).toBeInstanceOf(InvalidArgument)
      }
      const keyed = linear(
        { name: 'keyed', posting: { key: 'one' } },
        input<object>(),
        task('a', { execute: () => undefined }),
      )
      expect(String(await rejectionOf(board.batch({ name: 'x', onDone: { flow: keyed } })))).toContain('key')
      const priority = board.batch({ name: 'x', onDone: { ...onDone, priority: 'TOP' as 'HIGH' } })
      expect(await rejectionOf(priority)).toBeInstanceOf(InvalidPosting)
      const large = board.batch({ name: 'x', meta: { text: 'x'.repeat(300_000) } })
      expect(await rejectionOf(large)).toBeInstanceOf(PayloadTooLarge)
      const { uuid } = await board.batch({ name: 'x' })
      expect(await rejectionOf(board.batch({ name: 'y', uuid }))).toMatchObject({ code: 'JOBBOARD_DUPLICATE' })
      expect(await board.batches()).toHaveLength(1)
      for (const limit of [0, 1.5, 10_001, 'all'])
        expect(await rejectionOf(board.batches({ limit: limit as number }))).toBeInstanceOf(InvalidArgument)
    })

    test('options of a post', async () => {
      const board = await open()
      const { uuid } = await createBatch(board)
      for (const batch of ['import', 7, {}, { uuid: 'x' }, { uuid, by: 'x' }, []])
        expect(await rejectionOf(board.post('flow', {}, { batch: batch as string }))).toBeInstanceOf(InvalidPosting)
      const batch = await board.findBatch(uuid)
      const named = { batch: uuid } as object
      expect(await rejectionOf(batch.post('flow', {}, named))).toBeInstanceOf(InvalidArgument)
      for (const items of [7, [{ flow: 'flow', store: {}, ...named }]])
        expect(await rejectionOf(batch.postMany(items as never))).toBeInstanceOf(InvalidArgument)
      expect(await batch.postMany([])).toEqual([])
      expect(await batch.progress()).toMatchObject({ total: 0 })
    })

    test('a board that is closed', async () => {
      const board = await open()
      const batch = await createBatch(board)
      await board.close()
      for (const call of [() => batch.seal(), () => batch.progress(), () => batch.wait(), () => board.batches()])
        expect(await rejectionOf(call())).toBeInstanceOf(InvalidState)
    })
  })
}
