/** What the option `onError` chooses for jobs that have failed, and what becomes of them if it fails itself. */
import { expect, test } from 'vitest'
import {
  type ErrorHandler,
  type FailedRun,
  type Failure,
  input,
  linear,
  NonRetryable,
  openBoard,
  startConductor,
  task,
} from '../../../src/index.ts'
import { workbench } from '../../../src/testing/index.ts'
import { all } from '../../board/jobs.ts'

const NOW = new Date('2026-01-01T00:00:00Z')

const crawl = linear(
  'crawl',
  input<{ error: 'plain' | 'final' | 'none' }>(),
  task('fetch', {
    requires: ['error'],
    execute: ({ error }: { error: string }) => {
      if (error === 'plain') throw new Error('503')
      if (error === 'final') throw new NonRetryable('404')
    },
  }),
)

async function failOnce(onError: ErrorHandler, error: 'plain' | 'final' | 'none', { maxAttempts = 2 } = {}) {
  const board = await openBoard('memory:')
  const conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [crawl], onError, onFailure: 'retry' },
  })
  // A second run would change what the caller looks at.
  const backOff = { first: '1h', max: '1h', jitter: 'none' } as const
  const job = await board.post(crawl, { error }, { maxAttempts, backOff })
  const settled = await new Promise<string>((resolve) => {
    conductor.on('settled', (event) => resolve(event.settled))
  })
  const [waiting] = await all(board.jobs())
  const [trashed] = await all(board.trashed())
  return {
    ...{ job, settled, waiting, trashed },
    [Symbol.asyncDispose]: async () => {
      await conductor.stop()
      await board.close()
    },
  }
}

test('is asked once for each failed run, with the whole failure, and not for one that succeeds', async () => {
  const asked: [Failure, FailedRun][] = []
  const onError: ErrorHandler = (failure, run) => void asked.push([failure, run])
  await using failed = await failOnce(onError, 'plain')
  expect(failed).toMatchObject({ settled: 'abandoned', waiting: { uuid: failed.job.uuid } })
  expect(asked).toMatchObject([
    [
      { name: 'Error', message: '503', stack: expect.any(String) },
      { run: 1, isFinal: false },
    ],
  ])
  await using _ = await failOnce(onError, 'none')
  expect(asked).toHaveLength(1)
})

test.each<[string, ErrorHandler, 'plain' | 'final', object]>([
  ['nothing', () => undefined, 'plain', { settled: 'abandoned' }],
  ['retry', () => 'retry', 'final', { settled: 'trashed' }],
  [
    'trash',
    () => Promise.resolve('trash' as const),
    'plain',
    { settled: 'trashed', trashed: { failure: { message: '503' } } },
  ],
  ['a delay', () => ({ retryAfter: '1h' }), 'final', { settled: 'abandoned' }],
  ['a past time', () => ({ retryAt: NOW }), 'plain', { settled: 'abandoned' }],
])('chooses what becomes of the job: %s', async (_, onError, error, expected) => {
  await using failed = await failOnce(onError, error)
  expect(failed).toMatchObject(expected)
})

test('a time at which the job is tried again is kept, on the clock of the board', async () => {
  let runs = 0
  const flow = linear(
    'flow',
    input(),
    task('fail', {
      execute: () => {
        runs += 1
        throw new Error('busy')
      },
    }),
  )
  const onError: ErrorHandler = () => ({ retryAfter: '1h' })
  await using bench = await workbench({ flows: [flow], onError })
  await bench.board.post(flow, {})
  await bench.drain()
  bench.clock.advance('59m')
  await bench.drain()
  expect(runs).toBe(1)
  bench.clock.advance('1m')
  await bench.drain()
  expect(runs).toBe(2)
})

test('attempts that are used up end a job whatever is chosen', async () => {
  await using failed = await failOnce(() => ({ retryAfter: 0 }), 'plain', { maxAttempts: 1 })
  expect(failed.settled).toBe('trashed')
})

test.each<[string, ErrorHandler]>([
  [
    'throws',
    () => {
      throw new Error('no Sentry')
    },
  ],
  ['rejects', async () => Promise.reject(new Error('no Sentry'))],
  ['answers nonsense', () => ({ retryAt: 'tomorrow' }) as never],
  ['names no duration', () => ({ retryAfter: 'soon' }) as never],
  ['names a time that never comes', () => ({ retryAt: new Date(8.64e15) })],
  ['answers with a list', () => ['trash'] as never],
])('a handler that %s changes nothing', async (_, onError) => {
  await using failed = await failOnce(onError, 'plain')
  expect(failed.settled).toBe('abandoned')
  await expect.poll(() => failed.waiting?.attempts).toMatchObject([{ ended: 'failed', reason: 'Error: 503' }])
})

test('a handler that does not answer keeps the job for ten seconds', async () => {
  await using bench = await workbench({ flows: [crawl], onError: () => new Promise(() => undefined) })
  await bench.board.post(crawl, { error: 'plain' })
  const draining = bench.drain()
  expect(await bench.clock.awaited('deadline')).toBe(10_000)
  bench.clock.advance('10s')
  // A drain reports what went wrong beside the jobs.
  await expect(draining).rejects.toThrow('onError has not answered within')
  expect((await all(bench.board.jobs()))[0]?.attempts).toMatchObject([{ reason: 'Error: 503' }])
})
