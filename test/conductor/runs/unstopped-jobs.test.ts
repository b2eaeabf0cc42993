/** A job that was told to stop, and whose task goes on: the conductor says so, once. */
import { expect, test } from 'vitest'
import type { Conductor } from '../../../src/conductor/index.ts'
import type { StopIgnored } from '../../../src/conductor/runs/unstopped-jobs.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { input, linear, task } from '../../../src/index.ts'
import { workbench } from '../../../src/testing/index.ts'
import { startTestConductor } from '../conducting.ts'

function nextStopIgnored(conductor: Conductor): Promise<StopIgnored> {
  return new Promise((resolve) => conductor.on('stopIgnored', resolve))
}

test('a task past its deadline, or cancelled, that does not stop is reported with its name and why', async () => {
  const [begun, free] = [createDeferred(), createDeferred()]
  const hang = task('hang', {
    execute: async () => {
      begun.resolve()
      await free.promise
    },
  })
  const flow = linear('hang', input<object>(), hang)
  await using bench = await workbench({ flows: [flow] })
  const { board, persistence, clock } = bench
  const conductor = await startTestConductor({ board, persistence, flows: [flow] })
  const events: StopIgnored[] = []
  conductor.on('stopIgnored', (event) => events.push(event))
  const unheeded = nextStopIgnored(conductor)
  const job = await board.post(flow, {}, { deadline: '3s' })
  await begun.promise
  clock.advance('3s')
  expect(events).toEqual([])
  clock.advance('10s')
  const event = await unheeded
  expect(event).toMatchObject({ run: 1, tasks: ['hang'], reason: expect.stringContaining('not done within 3000 ms') })
  expect(event.job.uuid).toBe(job.uuid)
  clock.advance('1h')
  expect(events).toHaveLength(1)
  free.resolve()
})

test('one that heeds its signal, and reverts for long, is not reported', async () => {
  const [begun, reverting, free] = [createDeferred(), createDeferred(), createDeferred()]
  const slow = task('slow', {
    execute: async (_args, { signal }) => {
      begun.resolve()
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
    revert: async () => {
      reverting.resolve()
      await free.promise
    },
  })
  const flow = linear('slow', input<object>(), slow)
  await using bench = await workbench({ flows: [flow] })
  const { board, persistence, clock } = bench
  const conductor = await startTestConductor({ board, persistence, flows: [flow] })
  const events: StopIgnored[] = []
  conductor.on('stopIgnored', (event) => events.push(event))
  const job = await board.post(flow, {})
  await begun.promise
  await board.cancel(job)
  await reverting.promise
  clock.advance('1h')
  free.resolve()
  expect(await job.wait()).toBe('TRASHED')
  expect(events).toEqual([])
})
