/** What becomes of a job whose task is refused by another system: it waits, uncharged, and the key of the limit is pushed back for all jobs. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import {
  InvalidArgument,
  input,
  type Job,
  type JobBoard,
  linear,
  openBoard,
  runFlow,
  startConductor,
  TooManyRequests,
  type TooManyRequestsOptions,
  task,
  times,
} from '../../src/index.ts'
import { rejectionOf } from '../board/events.ts'
import { newFile } from '../pool/pools.ts'
import { compiled } from '../support/compiled.ts'
import { usual as test, variant } from '../variant.ts'
import { refusedOnce } from './isolation/flows.ts'

interface Calls {
  readonly calls: string[]
  /** The number of calls that the other system still refuses. */
  refusals: number
}

function paymentFlow(state: Calls, { key, retryAfter = '150ms' }: TooManyRequestsOptions = {}) {
  const prepare = task('prepare', {
    provides: 'prepared',
    execute: async () => {
      state.calls.push('prepare')
      return true
    },
  })
  const pay = task('pay', {
    onInterrupted: 'fail',
    execute: async () => {
      state.calls.push('pay')
      state.refusals -= 1
      if (state.refusals >= 0) throw new TooManyRequests({ key, retryAfter })
    },
    revert: () => state.calls.push('unpay'),
  })
  return linear({ name: 'payment', retry: times(2) }, input<Record<never, never>>(), prepare, pay)
}

async function conduct(board: JobBoard, flow: ReturnType<typeof paymentFlow>) {
  const conductor = await startConductor({
    board,
    persistence: 'memory:',
    flows: [flow],
  })
  onTestFinished(() => conductor.stop())
  return conductor
}

test('a refused task begins again after the time, and nothing is charged, reverted or repeated', async () => {
  await using board = await openBoard('memory:')
  const state: Calls = { calls: [], refusals: 2 }
  const conductor = await conduct(board, paymentFlow(state))
  const settled: string[] = []
  conductor.on('settled', (event) => settled.push(event.settled))
  const begin = Date.now()
  const job = await board.post('payment', {}, { maxAttempts: 1 })
  expect(await job.wait()).toBe('COMPLETE')
  expect(state.calls).toEqual(['prepare', 'pay', 'pay', 'pay'])
  await conductor.stop()
  expect(settled).toEqual(['abandoned', 'abandoned', 'consumed'])
  expect(Date.now() - begin).toBeGreaterThanOrEqual(300)
})

test('no other job of the key starts before the time, and jobs of other keys do', async () => {
  await using board = await openBoard('memory:')
  const state: Calls = { calls: [], refusals: 1 }
  const conductor = await conduct(board, paymentFlow(state, { key: 'api', retryAfter: '1s' }))
  const errors: unknown[] = []
  conductor.on('error', (error) => errors.push(error))
  const starts: [Job, number][] = []
  conductor.on('started', ({ job }) => starts.push([job, Date.now()]))
  const returned = new Promise<void>((resolve) => void conductor.on('settled', () => resolve()))
  const first = await board.post('payment', {}, { limits: ['api'] })
  await returned
  const { held } = await board.limits.show('api')
  expect(held).toMatchObject({ reason: expect.stringContaining('too many requests for api') })
  const until = held?.until?.getTime() ?? 0
  const [second, free] = await Promise.all([
    board.post('payment', {}, { limits: ['api'] }),
    board.post('payment', {}, { limits: ['other'] }),
  ])
  for (const job of [free, first, second]) expect(await job.wait()).toBe('COMPLETE')
  const startOf = (job: Job) => starts.findLast(([each]) => each.uuid === job.uuid)?.[1] ?? 0
  expect(startOf(free)).toBeLessThan(until)
  expect(startOf(second)).toBeGreaterThanOrEqual(until - 1)
  expect(startOf(first)).toBeGreaterThanOrEqual(until - 1)
  expect(errors).toEqual([])
})

test('a refusal while the flow is undone is a failure: a cancelled job ends', async () => {
  await using board = await openBoard('memory:')
  let begun = () => {}
  const running = new Promise<void>((resolve) => {
    begun = resolve
  })
  const call = task('call', {
    execute: async (_, { signal }) => {
      begun()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw new TooManyRequests({ retryAfter: '1h' })
    },
  })
  const flow = linear('calls', input<Record<never, never>>(), call)
  await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [flow] })
  const job = await board.post(flow, {})
  await running
  await board.cancel(job, { reason: 'not needed' })
  expect(await job.wait()).toBe('TRASHED')
})

variant('a refusal in a child process is one as well', async () => {
  await using board = await openBoard('memory:')
  const file = await newFile()
  const pool = {
    module: await compiled(fileURLToPath(new URL('./isolation/flows.ts', import.meta.url)), { library: 'built' }),
  }
  await using conductor = await startConductor({ board, persistence: 'memory:', flows: [refusedOnce], pool })
  const settled: string[] = []
  conductor.on('settled', (event) => settled.push(event.settled))
  const job = await board.post(refusedOnce, { file })
  expect(await job.wait()).toBe('COMPLETE')
  expect(readFileSync(file, 'utf8')).toBe('call\ncall\n')
  await conductor.stop()
  expect(settled).toEqual(['abandoned', 'consumed'])
  expect((await board.limits.show('child/api').catch(() => undefined))?.set).toBeUndefined()
})

test('runFlow throws it: the caller decides when to try again', async () => {
  const flow = linear(
    'call',
    input<Record<never, never>>(),
    task('call', {
      execute: () => {
        throw new TooManyRequests({ key: 'api', retryAfter: '1m' })
      },
    }),
  )
  const error = await rejectionOf(runFlow(flow, {}))
  expect(error).toBeInstanceOf(TooManyRequests)
  expect(error).toMatchObject({
    key: 'api',
    retryAfter: 60_000,
    message: 'too many requests for api: try again in 1m',
  })
})

test('a time that is none is refused', () => {
  for (const retryAfter of ['soon' as '1s', Number.NaN, -1])
    expect(() => new TooManyRequests({ retryAfter })).toThrow(InvalidArgument)
})

test.each([
  ['', /key must be a non-empty text, got string/],
  [7 as unknown as string, /key must be a non-empty text, got number/],
  ['half \ud800', /key "half \\ud800" has half of a surrogate pair/],
])('the key %j, which cannot be one, is refused', (key, message) => {
  expect(() => new TooManyRequests({ key })).toThrow(InvalidArgument)
  expect(() => new TooManyRequests({ key })).toThrow(message)
})
