/** Tokens of limits that tasks take, in the process of the conductor and in its children. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, vi } from 'vitest'
import {
  type AnyFlow,
  type ConductorPool,
  describeError,
  InvalidArgument,
  input,
  type JobBoard,
  linear,
  openBoard,
  runFlow,
  startConductor,
  Timeout,
  task,
} from '../../src/index.ts'
import { fakeContext, workbench } from '../../src/testing/index.ts'
import { rejectionOf } from '../board/events.ts'
import { newFile, pidsIn, sendSignal } from '../pool/pools.ts'
import { compiled } from '../support/compiled.ts'
import { usual as test, variant } from '../variant.ts'
import { calling, waiting } from './isolation/limit-flows.ts'

const POOL: ConductorPool = {
  module: await compiled(fileURLToPath(new URL('./isolation/limit-flows.ts', import.meta.url)), { library: 'built' }),
  max: 1,
}

const conduct = (board: JobBoard, flow: AnyFlow, pool: ConductorPool | false = POOL) =>
  startConductor({ board, persistence: 'memory:', flows: [flow], pool })

const callApi = (count: number, options = {}) =>
  linear(
    'calls',
    input<Record<never, never>>(),
    task('call', {
      provides: 'took',
      ...options,
      execute: async (_args, { limits }) => {
        for (let call = 0; call < count; call += 1) await limits.take('api', { cost: 2 })
        return count
      },
    }),
  )

test('a task takes tokens of the board of its job, at its rate', async () => {
  await using bench = await workbench({ flows: [callApi(3)] })
  await bench.board.limits.set('api', { rate: { limit: 1, per: '1m', burst: 2 } })
  await bench.board.post('calls', {})
  const begun = bench.clock.now()
  expect(await bench.drain()).toMatchObject([{ settled: 'consumed' }])
  // Two tokens were there, and four have come back.
  expect(bench.clock.now() - begun).toBe(240_000)
})

test('a task that waits for tokens is ended by its deadline', async () => {
  await using bench = await workbench({ flows: [callApi(2, { deadline: '10s' })] })
  await bench.board.limits.set('api', { concurrency: 0 })
  const job = await bench.board.post('calls', {}, { maxAttempts: 1 })
  const draining = bench.drain()
  await bench.clock.awaited('deadline')
  bench.clock.advance('10s')
  const [run] = await draining
  expect(run).toMatchObject({ settled: 'trashed', failure: { code: 'JOBBOARD_TIMEOUT' } })
  expect(job.state).toBe('TRASHED')
})

test('a cancelled job waits for no tokens', async () => {
  await using board = await openBoard('memory:')
  await board.limits.set('api', { concurrency: 0 })
  await using conductor = await conduct(board, callApi(1), false)
  const started = new Promise<void>((resolve) => conductor.on('started', () => resolve()))
  const job = await board.post('calls', {})
  await started
  await board.cancel(job, { reason: 'not needed' })
  expect(await job.wait()).toBe('TRASHED')
})

test('without a board tokens are free; what is misspelt is refused all the same', async () => {
  expect(await runFlow(callApi(3), {})).toMatchObject({ results: { took: 3 } })
  const misspelt = linear(
    'misspelt',
    input<Record<never, never>>(),
    task('call', { execute: async (_args, { limits }) => limits.take('api', { costs: 2 } as object) }),
  )
  expect(await rejectionOf(runFlow(misspelt, {}))).toBeInstanceOf(InvalidArgument)
})

test('a flow that runs in the foreground takes tokens of its board', async () => {
  await using board = await openBoard('memory:')
  await board.limits.set('api', { rate: { limit: 4, per: '1h', burst: 4 } })
  await runFlow(callApi(2), {}, { board })
  expect(await rejectionOf(board.limits.take('api', { timeout: 0 }))).toBeInstanceOf(Timeout)
})

test('a task alone has limits in its context, which note what it takes', async () => {
  const ctx = fakeContext()
  await ctx.limits.take('api')
  await ctx.limits.take('api', { cost: 5 })
  ctx.abort(new Error('stopped'))
  await expect(ctx.limits.take('api')).rejects.toThrow('stopped')
  expect(ctx.taken).toEqual([
    { key: 'api', cost: 1 },
    { key: 'api', cost: 5 },
  ])
})

test('an isolated task takes tokens of the board of its conductor, and errors keep their class', async () => {
  await using board = await openBoard('memory:')
  await board.limits.set('api', { rate: { limit: 4, per: '1h', burst: 4 } })
  const { results } = await runFlow(calling, { calls: 3 }, { board, pool: POOL })
  expect(results.called.pid).not.toBe(process.pid)
  expect(results.called).toMatchObject({ isKnown: true, text: expect.stringContaining('non-empty') })
  await board.limits.take('api', { timeout: 0 })
  expect(await rejectionOf(board.limits.take('api', { timeout: 0 }))).toBeInstanceOf(Timeout)
})

variant('a child that is killed while it waits for tokens takes none', async () => {
  await using board = await openBoard('memory:')
  await board.limits.set('api', { concurrency: 0 })
  await using _conductor = await conduct(board, waiting)
  const file = await newFile()
  const job = await board.post(waiting, { file }, { maxAttempts: 1 })
  const [pid = 0] = await pidsIn(file, 1)
  sendSignal(pid, 'SIGKILL')
  expect(await job.wait()).toBe('TRASHED')
  await board.limits.set('api', { rate: { limit: 1, per: '1h' } })
  await board.limits.take('api', { timeout: 0 })
})

variant('a cancel ends the wait of an isolated task with the reason of its signal', async () => {
  await using board = await openBoard('memory:')
  await board.limits.set('api', { concurrency: 0 })
  await using _conductor = await conduct(board, waiting)
  const file = await newFile()
  const job = await board.post(waiting, { file })
  await pidsIn(file, 1)
  await board.cancel(job, { reason: 'not needed' })
  expect(await job.wait()).toBe('TRASHED')
  await vi.waitFor(() => expect(readFileSync(file, 'utf8')).toContain('ended true'), { timeout: 10_000 })
  expect(describeError(await rejectionOf(board.limits.take('api', { timeout: 0 })))).toContain('no token')
})
