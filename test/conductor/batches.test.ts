/** Conductors and batches: jobs of a batch add others, and the callback knows how the batch has ended. */
import { expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { type BatchRun, input, linear, openBoard, openPersistence, startConductor, task } from '../../src/index.ts'

test('jobs of a sealed batch add jobs to it, and the callback is told how it has ended', async () => {
  await using board = await openBoard('memory:')
  await using other = await openBoard('memory:')
  const seen: (BatchRun | undefined)[] = []
  const { promise: told, resolve } = createDeferred<BatchRun | undefined>()
  const page = linear(
    'page',
    input<{ depth: number }>(),
    task('read', {
      requires: ['depth'],
      execute: async ({ depth }: { depth: number }, { batch, job }) => {
        seen.push(batch)
        if (!batch || !job || depth === 0) return
        const asked = { batch: { uuid: batch.uuid, by: job.uuid } }
        await board.post('page', { depth: depth - 1 }, asked)
        await (await board.findBatch(batch.uuid)).post('page', { depth: depth - 1 })
      },
    }),
  )
  const report = linear('report', input<object>(), task('write', { execute: async (_, { batch }) => resolve(batch) }))
  const plain = linear(
    'plain',
    input<object>(),
    task('look', { execute: async (_, { batch }) => void seen.push(batch) }),
  )
  await using conductor = await startConductor({ board, persistence: 'memory:', flows: [page, report, plain] })
  const batch = await board.batch({ name: 'crawl', onDone: { flow: report } })
  await batch.post(page, { depth: 3 })
  await batch.seal()
  expect(await batch.wait({ timeout: '1m' })).toBe('done')
  const ended = { name: 'crawl', generation: 1, total: 15, done: 15, failed: 0 }
  expect(await told).toEqual({ uuid: batch.uuid, ended })
  expect(seen).toEqual(Array.from({ length: 15 }, () => ({ uuid: batch.uuid })))
  await (await board.post(plain, {})).wait()
  expect(seen.at(-1)).toBeUndefined()
  expect(await other.batches()).toEqual([])
  await conductor.stop()
})

test('a job that fails for the last time fails its batch', async () => {
  await using board = await openBoard('memory:')
  const { promise: told, resolve } = createDeferred<BatchRun | undefined>()
  const work = linear(
    'work',
    input<{ fails: boolean }>(),
    task('work', {
      requires: ['fails'],
      execute: async ({ fails }: { fails: boolean }) => {
        if (fails) throw new Error('it broke')
      },
    }),
  )
  const clean = linear('clean', input<object>(), task('clean', { execute: async (_, { batch }) => resolve(batch) }))
  await using conductor = await startConductor({ board, persistence: 'memory:', flows: [work, clean] })
  const batch = await board.batch({ name: 'import', onFailed: { flow: clean } })
  await batch.postMany([true, false, false].map((fails) => ({ flow: work, store: { fails }, maxAttempts: 1 })))
  await batch.seal()
  expect(await batch.wait({ timeout: '1m' })).toBe('failed')
  expect((await told)?.ended).toMatchObject({ total: 3, done: 2, failed: 1 })
  await conductor.stop()
})

test('the callbacks of batches with one key on two boards are both run, over the same logbooks', async () => {
  await using persistence = await openPersistence('memory:')
  const runs: unknown[] = []
  const report = linear('report', input<object>(), task('write', { execute: (_, { batch }) => void runs.push(batch) }))
  for (const name of ['first', 'second']) {
    await using board = await openBoard('memory:')
    const batch = await board.batch({ name, key: 'order 12', onDone: { flow: report } })
    await batch.seal()
    const conductor = await startConductor({ board, persistence, flows: [report], burst: true })
    await conductor.stopped
  }
  expect(runs).toMatchObject([{ ended: { name: 'first' } }, { ended: { name: 'second' } }])
})
