/** What the option `onError`, and `posting.retry` of a flow, choose for jobs that have failed, and what becomes of them if these fail themselves. */
import { describe, expect, test } from 'vitest'
import {
  type ErrorHandler,
  type FailedRun,
  type Failure,
  input,
  linear,
  NonRetryable,
  OutOfMemory,
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

async function failOnce(
  onError: ErrorHandler | readonly ErrorHandler[],
  error: 'plain' | 'final' | 'none',
  { maxAttempts = 2 } = {},
) {
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
  ['names a duration as a time', () => ({ retryAt: '1h' }) as never],
  ['names a time as a duration', () => ({ retryAfter: NOW }) as never],
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

test('of several the first answer holds, and one that fails is skipped', async () => {
  const asked: string[] = []
  const answers = (name: string, answer: ReturnType<ErrorHandler>): ErrorHandler => {
    return () => {
      asked.push(name)
      return answer
    }
  }
  const failing: ErrorHandler = () => {
    asked.push('failing')
    throw new Error('no Sentry')
  }
  const handlers = [answers('silent', undefined), failing, answers('first', 'trash'), answers('second', 'retry')]
  await using failed = await failOnce(handlers, 'plain')
  expect([failed.settled, asked]).toEqual(['trashed', ['silent', 'failing', 'first']])
})

describe('posting.retry', () => {
  type Retry = (attempt: number, failure: Failure) => string | number | Date | undefined

  function flaky(retry: Retry, posting: object = {}, error = () => new Error('busy')) {
    const fail = task('fail', {
      execute: () => {
        throw error()
      },
    })
    return linear({ name: 'flaky', posting: { ...posting, retry: retry as never } }, input(), fail)
  }

  test('chooses the pause after each failed run until it answers trash, however many there are', async () => {
    const asked: [number, string][] = []
    const flow = flaky((attempt, { message }) => {
      asked.push([attempt, message])
      return attempt < 25 ? `${attempt}m` : 'trash'
    })
    await using bench = await workbench({ flows: [flow] })
    const job = await bench.board.post(flow, {})
    for (let run = 1; run < 25; run += 1) {
      await bench.drain()
      bench.clock.advance(`${run}m`)
    }
    await bench.drain()
    const [trashed] = await all(bench.board.trashed())
    expect(asked).toEqual(Array.from({ length: 25 }, (_, index) => [index + 1, 'busy']))
    expect(trashed).toMatchObject({ uuid: job.uuid, runs: 25, failedAttempts: 25 })
    expect(trashed?.attempts).toHaveLength(10)
    expect(trashed?.omittedAttempts).toEqual({ failed: 15, returned: 0, lost: 0 })
  })

  test('may answer with a time, and with nothing for the back-off', async () => {
    let first = NOW
    const flow = flaky((attempt) => (attempt === 1 ? first : undefined), {
      backOff: { first: '7m', factor: 1, jitter: 'none' },
    })
    await using bench = await workbench({ flows: [flow] })
    first = new Date(bench.clock.now() + 3_600_000)
    const job = await bench.board.post(flow, {})
    await bench.drain()
    for (const [pause, runs] of [
      ['59m', 1],
      ['1m', 2],
      ['6m', 2],
      ['1m', 3],
    ] as const) {
      bench.clock.advance(pause)
      await bench.drain()
      expect([pause, job.runs]).toEqual([pause, runs])
    }
  })

  test('is not asked about a NonRetryable, nor after an answer of onError, and keeps to maxAttempts', async () => {
    let asked = 0
    const count: Retry = () => {
      asked += 1
      return '1m'
    }
    const cases = [
      { flow: flaky(count, {}, () => new NonRetryable('404')), options: {}, runs: 1, times: 0 },
      { flow: flaky(count), options: { onError: () => 'trash' as const }, runs: 1, times: 0 },
      { flow: flaky(count, { maxAttempts: 2 }), options: {}, runs: 2, times: 2 },
    ]
    for (const { flow, options, runs, times } of cases) {
      asked = 0
      await using bench = await workbench({ flows: [flow], ...options })
      await bench.board.post(flow, {})
      await bench.drain()
      bench.clock.advance('1m')
      await bench.drain()
      const [trashed] = await all(bench.board.trashed())
      expect([trashed?.runs, asked]).toEqual([runs, times])
    }
  })

  test('may be async, and one that rejects changes nothing', async () => {
    const answers = [async () => 'trash', async () => Promise.reject(new Error('no network'))]
    const found: unknown[] = []
    for (const answer of answers) {
      const flow = flaky(answer as never, { backOff: { first: '5m', jitter: 'none' } })
      await using bench = await workbench({ flows: [flow] })
      const job = await bench.board.post(flow, {})
      found.push(await bench.drain().then(() => job.state, String))
    }
    expect(found).toEqual(['TRASHED', expect.stringContaining('no network')])
  })

  test('leaves a job that was out of memory in the queue to which it was moved', async () => {
    const flow = flaky(
      () => '1m',
      {},
      () => new OutOfMemory('too large', { nextQueue: 'large' }),
    )
    await using bench = await workbench({ flows: [flow] })
    const job = await bench.board.post(flow, {}, { queue: 'small' })
    await bench.drain()
    expect([job.queue, job.state]).toEqual(['large', 'UNCLAIMED'])
    bench.clock.advance('1m')
    await bench.drain()
    expect(job.state).toBe('TRASHED')
  })

  test.each([
    [Number.NaN, 'flow flaky: posting.retry'],
    [-1, 'flow flaky: posting.retry'],
    ['soon', 'flow flaky: posting.retry'],
    [new Date(8.64e15), 'flow flaky: posting.retry: the time until'],
    [new Date(Number.NaN), "flow flaky: posting.retry must return a duration, a Date, 'trash' or nothing"],
  ])('names the flow of an answer that is not valid: %s', async (answer, says) => {
    const flow = flaky(() => answer, { backOff: { first: '5m', jitter: 'none' } })
    await using bench = await workbench({ flows: [flow] })
    await bench.board.post(flow, {})
    await expect(bench.drain()).rejects.toThrow(says)
  })

  test('must be a function, and an answer that is none changes nothing', async () => {
    expect(() => flaky('10m' as never)).toThrow(
      'flow flaky: posting.retry must be a function of the number of failed runs and the failure',
    )
    const flow = flaky((() => ['soon']) as never, { backOff: { first: '5m', jitter: 'none' } })
    await using bench = await workbench({ flows: [flow] })
    await bench.board.post(flow, {})
    await expect(bench.drain()).rejects.toThrow("posting.retry must return a duration, a Date, 'trash' or nothing")
    expect((await all(bench.board.jobs()))[0]?.attempts).toMatchObject([{ reason: 'Error: busy' }])
  })
})
