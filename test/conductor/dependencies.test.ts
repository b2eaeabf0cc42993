/** What tasks read of the jobs after which their job is run: `ctx.dependencies`. */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import {
  type Conductor,
  type ConductorPool,
  type EndedDependency,
  encrypted,
  type JobBoard,
  openBoard,
  openPersistence,
  type Persistence,
  runFlow,
  startConductor,
} from '../../src/index.ts'
import { fakeContext } from '../../src/testing/index.ts'
import { compiled } from '../support/compiled.ts'
import { collecting, failing, isolatedCollecting, kept, logged } from './isolation/dependency-flows.ts'

const POOL: ConductorPool = {
  module: await compiled(fileURLToPath(new URL('./isolation/dependency-flows.ts', import.meta.url)), {
    library: 'built',
  }),
  max: 1,
}
const FLOWS = [collecting, isolatedCollecting, kept, logged, failing]

function conduct(board: JobBoard, persistence: Persistence, flows = FLOWS): Promise<Conductor> {
  return startConductor({ board, persistence, flows, pool: POOL })
}

interface Ends {
  readonly pid: number
  readonly ends: readonly EndedDependency[]
}

test.each([collecting, isolatedCollecting])(
  'flow $name reads outcomes and results, in the order of `after`',
  async (flow) => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await using _conductor = await conduct(board, persistence)
    const first = await board.post(kept, { a: 1 }, { name: 'first' })
    const second = await board.post(logged, { a: 2 }, { name: 'second' })
    const third = await board.post(failing, {}, { name: 'third', maxAttempts: 1 })
    const last = await board.post(flow, {}, { after: [second, { uuid: third.uuid, on: 'settled' }, first] })
    const { results } = await board.result(last, { flow, persistence })
    const { pid, ends } = results.read as Ends
    expect(pid === process.pid).toBe(flow === collecting)
    expect(ends).toEqual([
      { uuid: second.uuid, name: 'second', outcome: 'COMPLETE', reason: undefined, results: { sum: 3 } },
      {
        ...{ uuid: third.uuid, name: 'third', outcome: 'TRASHED' },
        reason: expect.stringContaining('no paper'),
        results: undefined,
      },
      { uuid: first.uuid, name: 'first', outcome: 'COMPLETE', reason: undefined, results: { sum: 2 } },
    ])
  },
)

test('results of a flow that is unknown here, and that the board does not keep, are undefined', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const job = await board.post(logged, { a: 2 })
  await using _elsewhere = await conduct(board, persistence, [logged])
  expect(await job.wait()).toBe('COMPLETE')
  await using _here = await conduct(board, persistence, [collecting])
  const last = await board.post(collecting, {}, { after: [job] })
  const { results } = await board.result(last, { flow: collecting, persistence })
  expect((results.read as Ends).ends).toEqual([
    { uuid: job.uuid, name: 'logged', outcome: 'COMPLETE', reason: undefined, results: undefined },
  ])
})

test('a job that has left the history is known from its logbook, and without that not at all', async () => {
  await using board = await openBoard('memory:', { keepHistory: 1 })
  await using persistence = await openPersistence('memory:')
  const inLogbook = await board.post(logged, { a: 2 })
  const byHand = await board.post('by-hand', {})
  const last = await board.post(collecting, {}, { after: [inLogbook, byHand] })
  await (await board.claim(byHand)).consume()
  await using _conductor = await conduct(board, persistence)
  const { results } = await board.result(last, { flow: collecting, persistence })
  expect((results.read as Ends).ends).toEqual([
    { uuid: inLogbook.uuid, name: 'logged', outcome: 'COMPLETE', reason: undefined, results: { sum: 3 } },
    { uuid: byHand.uuid, name: undefined, outcome: undefined, reason: undefined, results: undefined },
  ])
})

test('results that a codec has sealed are read with the codec of the conductor', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:', { codec: encrypted({ key: randomBytes(32) }) })
  await using _conductor = await conduct(board, persistence)
  const job = await board.post(kept, { a: 1 })
  const last = await board.post(collecting, {}, { after: [job] })
  const { results } = await board.result(last, { flow: collecting, persistence })
  expect((results.read as Ends).ends).toMatchObject([{ results: { sum: 2 } }])
})

test('a flow in the foreground reads the dependencies of its job', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  await using _conductor = await conduct(board, persistence, [kept])
  const job = await board.post(kept, { a: 1 })
  await job.wait()
  const { results } = await runFlow(collecting, {}, { board, persistence, job: { after: [job] } })
  expect((results.read as Ends).ends).toMatchObject([{ uuid: job.uuid, results: { sum: 2 } }])
})

test('a job that depends on none, and a flow without a board, read an empty list', async () => {
  expect((await runFlow(collecting, {})).results.read).toEqual({ pid: process.pid, ends: [] })
  await using board = await openBoard('memory:')
  expect((await runFlow(collecting, {}, { board })).results.read).toEqual({ pid: process.pid, ends: [] })
})

test('a task alone reads the dependencies that its test has given', async () => {
  const end = { uuid: 'x', name: 'first', outcome: 'COMPLETE', reason: undefined, results: { sum: 2 } } as const
  expect(await fakeContext({ dependencies: [end] }).dependencies.read()).toEqual([end])
  const ctx = fakeContext()
  expect(await ctx.dependencies.read()).toEqual([])
  ctx.abort(new Error('stopped'))
  await expect(ctx.dependencies.read()).rejects.toThrow('stopped')
})
