/** Isolated tasks in tests of users: in the process of the test, unless it gives them a pool. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { input, linear, runFlow, startConductor, task } from '../../src/index.ts'
import { runTask, workbench } from '../../src/testing/index.ts'
import * as flows from '../conductor/isolation/flows.ts'
import { compiled } from '../support/compiled.ts'

const POOL = {
  module: await compiled(fileURLToPath(new URL('../conductor/isolation/flows.ts', import.meta.url)), {
    library: 'built',
  }),
  max: 1,
}

const where = task('where', { provides: 'pid', isolate: true, execute: () => process.pid })
const flow = linear('where', input(), where)

test('a workbench runs them in the process of the test', async () => {
  await using bench = await workbench({ flows: [flow] })
  const job = await bench.board.post(flow, {})
  await bench.drain()
  expect(await bench.track(job)).toMatchObject({ status: 'done', results: { where: process.pid } })
})

test('a workbench with a pool runs them in child processes', async () => {
  await using bench = await workbench({ flows: [flows.greeting], services: flows.services, pool: POOL })
  const job = await bench.board.post(flows.greeting, { name: 'Ada' })
  await bench.drain({ within: '30s' })
  const tracked = await bench.track(job)
  if (tracked.status !== 'done') throw new Error(tracked.status)
  const [there, here] = tracked.results['here'] as number[]
  expect(here).toBe(process.pid)
  expect(there).not.toBe(here)
})

test('runTask, runFlow and conductors with pool: false run them here', async () => {
  expect(await runTask(where, {})).toBe(process.pid)
  expect((await runFlow(flow, {}, { pool: false })).results).toEqual({ pid: process.pid })
  await using bench = await workbench({ flows: [] })
  const { board, persistence } = bench
  await using _conductor = await startConductor({ board, persistence, flows: [flow], pool: false })
  const job = await board.post(flow, {})
  expect(await job.wait()).toBe('COMPLETE')
})
