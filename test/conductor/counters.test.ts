/** What a conductor counts, and what its entity and its health say of it. */
import { expect, onTestFinished, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { input, linear, openBoard, startConductor, task } from '../../src/index.ts'

test('a conductor counts its runs by how they ended, and the time that they took', async () => {
  await using board = await openBoard('memory:')
  const [begun, over] = [createDeferred(), createDeferred()]
  const flow = linear(
    'flow',
    input<{ how: string }>(),
    task('work', {
      requires: ['how'],
      execute: async ({ how }: { how: string }, { signal }) => {
        if (how === 'fail') throw new Error('it fails')
        if (how === 'done') return
        begun.resolve()
        await over.promise
        signal.throwIfAborted()
      },
    }),
  )
  const conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flow], concurrency: 1, health: { port: 0 } },
  })
  onTestFinished(() => conductor.stop())
  expect(conductor.counts).toEqual({ done: 0, failed: 0, other: 0, workedMs: 0 })
  for (const how of ['done', 'done']) await (await board.post(flow, { how })).wait()
  await (await board.post(flow, { how: 'fail' }, { maxAttempts: 1 })).wait()
  const cancelled = await board.post(flow, { how: 'wait' })
  await begun.promise
  const before = conductor.counts
  expect(before).toMatchObject({ done: 2, failed: 1, other: 0 })
  expect(before.workedMs).toBeGreaterThan(0)
  await board.cancel(cancelled, { reason: 'not needed' })
  over.resolve()
  await cancelled.wait()
  await expect.poll(() => conductor.counts).toMatchObject({ done: 2, failed: 1, other: 1 })
  expect(await (await fetch(`${conductor.healthUrl}/healthz`)).json()).toMatchObject({ counts: { done: 2, failed: 1 } })
})

test('the entity has the counts, and since when the conductor stops', async () => {
  await using board = await openBoard('memory:')
  const [begun, over] = [createDeferred(), createDeferred()]
  const flow = linear(
    'flow',
    input(),
    task('work', {
      execute: async () => {
        begun.resolve()
        await over.promise
      },
    }),
  )
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [flow] })
  const metadata = async () => (await board.entities('conductor'))[0]?.metadata
  expect(await metadata()).toMatchObject({ counts: { done: 0 }, reportedAt: expect.any(Date) })
  expect(await metadata()).not.toHaveProperty('drainingSince')
  await board.post(flow, {})
  await begun.promise
  const stopping = conductor.stop()
  await expect.poll(metadata, { timeout: 10_000 }).toMatchObject({ state: 'draining', drainingSince: expect.any(Date) })
  over.resolve()
  await stopping
})
