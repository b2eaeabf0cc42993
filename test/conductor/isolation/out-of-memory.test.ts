/** What follows when the child of a task is out of memory. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type ConductorPool, InvalidArgument, openBoard, startConductor, task } from '../../../src/index.ts'
import { compiled } from '../../support/compiled.ts'
import * as flows from './memory-flows.ts'

const MODULE = await compiled(fileURLToPath(new URL('./memory-flows.ts', import.meta.url)), { library: 'built' })
const SMALL: ConductorPool = { module: MODULE, max: 1, memory: '250MB' }
const LARGE: ConductorPool = { module: MODULE, max: 1 }

test.each([
  ['retry', flows.retried, 3],
  ['fail', flows.failed, 1],
] as const)('with `%s`, a task runs as often as its retry says', async (_choice, flow, executions) => {
  await using board = await openBoard('memory:')
  await using conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], pool: SMALL })
  let died = 0
  conductor.on('childDied', ({ outOfMemory }) => {
    if (outOfMemory) died += 1
  })
  const job = await board.post(flow, {}, { maxAttempts: 1 })
  expect(await job.wait()).toBe('TRASHED')
  expect(died).toBe(executions)
  for await (const { failure } of board.trashed()) expect(JSON.stringify(failure)).toContain('JOBBOARD_OUT_OF_MEMORY')
})

test('with a queue, another conductor with larger children does the job', async () => {
  await using board = await openBoard('memory:')
  const shared = { board, persistence: 'memory:', flows: [flows.enlarged] }
  await using _small = await startConductor({ ...shared, name: 'small', queues: ['default'], pool: SMALL })
  await using _large = await startConductor({ ...shared, name: 'large', queues: ['large'], pool: LARGE })
  const job = await board.post(flows.enlarged, {}, { backOff: { first: 0 } })
  expect(await job.wait()).toBe('COMPLETE')
  expect(job.queue).toBe('large')
  expect(job.attempts[0]).toMatchObject({ ended: 'failed', reason: expect.stringContaining('OutOfMemory: child 1') })
})

test('in the queue to which it would be moved, the job is trashed', async () => {
  await using board = await openBoard('memory:')
  await using _small = await startConductor({ board, persistence: 'memory:', flows: [flows.enlarged], pool: SMALL })
  const job = await board.post(flows.enlarged, {}, { queue: 'large', maxAttempts: 9 })
  expect(await job.wait()).toBe('TRASHED')
  expect(job.attempts).toHaveLength(1)
})

test.each(['never', { queue: '' }, { size: 'large', queue: 'large' }, { queue: 'large', more: 1 }, 5])(
  'onOutOfMemory %j is refused',
  (choice) => {
    const make = () => task('t', { execute: () => 1, isolate: { onOutOfMemory: choice as 'fail' } })
    expect(make).toThrow(InvalidArgument)
    expect(make).toThrow("task t: isolate.onOutOfMemory must be 'retry', 'fail', or { queue: NAME }")
  },
)
