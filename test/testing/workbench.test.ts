import { describe, expect, test } from 'vitest'
import { backOff, input, linear, NonRetryable, openPersistence, runFlow, task, unordered } from '../../src/index.ts'
import { spyOn, workbench } from '../../src/testing/index.ts'

const noted = (did: string[]) =>
  linear(
    'noted',
    input<{ name: string }>(),
    task('first', { requires: ['name'], provides: 'text', execute: ({ name }: { name: string }) => `Hello, ${name}!` }),
    task('second', {
      requires: ['text'],
      execute: ({ text }: { text: string }, { run }) => {
        did.push(`run ${run}: ${text}`)
      },
    }),
  )

describe('drain', () => {
  test('works off what is on the board, in claim order, and says what became of it', async () => {
    const did: string[] = []
    const refuse = linear(
      'refuse',
      input(),
      task('refuse', {
        execute: () => {
          throw new NonRetryable('out of paper')
        },
      }),
    )
    const flow = noted(did)
    await using bench = await workbench({ flows: [flow, refuse] })
    expect(await bench.drain()).toEqual([])
    await bench.board.post(flow, { name: 'Ada' })
    const refused = await bench.board.post(refuse, {})
    const job = await bench.board.post(flow, { name: 'Grace' }, { priority: 'HIGH' })
    const drained = await bench.drain()
    expect(drained.map(({ job: { name }, settled, failure }) => [name, settled, failure?.message])).toEqual([
      ['noted', 'consumed', undefined],
      ['noted', 'consumed', undefined],
      ['refuse', 'trashed', 'out of paper'],
    ])
    expect(did).toEqual(['run 1: Hello, Grace!', 'run 1: Hello, Ada!'])
    expect(await bench.track(job)).toMatchObject({ status: 'done', results: { first: 'Hello, Grace!' } })
    expect(await bench.track(refused)).toMatchObject({ status: 'trashed' })
  })

  test('says what became of a job that could not even begin', async () => {
    const flow = noted([])
    await using bench = await workbench({ flows: [flow] })
    await bench.board.post('noted', {})
    expect(await bench.drain()).toMatchObject([{ settled: 'trashed', run: 1 }])
  })

  test('gives services, made for each drain where a function makes them', async () => {
    let made = 0
    let disposed = 0
    const used: unknown[] = []
    const flow = linear('uses', input(), task('use', { execute: (_, { services }) => void used.push(services) }))
    const services = () => {
      made += 1
      return {
        number: made,
        [Symbol.dispose]: () => {
          disposed += 1
        },
      }
    }
    await using bench = await workbench({ flows: [flow], services })
    for (let time = 0; time < 2; time += 1) {
      await bench.board.post(flow, {})
      await bench.drain()
    }
    expect(used).toMatchObject([{ number: 1 }, { number: 2 }])
    expect(disposed).toBe(2)
  })

  test('says which job never ends, and leaves it on the board', async () => {
    const hanging = linear(
      'hanging',
      input(),
      task('hang', {
        execute: (_, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      }),
    )
    await using bench = await workbench({ flows: [hanging] })
    const job = await bench.board.post(hanging, {})
    await expect(bench.drain({ within: 20 })).rejects.toThrow(/^not within 20 ms: still running: .*hanging/)
    expect(job.state).toBe('UNCLAIMED')
  })
})

describe('time stands still', () => {
  test('a delay is over when the clock says so', async () => {
    const did: string[] = []
    const flow = noted(did)
    await using bench = await workbench({ flows: [flow] })
    const job = await bench.board.post(flow, { name: 'Ada' }, { delay: '1d' })
    expect(await bench.drain()).toEqual([])
    bench.clock.advance('23h')
    expect(await bench.drain()).toEqual([])
    expect(await bench.track(job)).toMatchObject({ status: 'waiting' })
    bench.clock.advance('1h')
    expect(await bench.drain()).toMatchObject([{ settled: 'consumed' }])
  })

  test('no caller waits for the delay of a job that is not on the board any more', async () => {
    const flow = noted([])
    await using bench = await workbench({ flows: [flow] })
    const job = await bench.board.post(flow, { name: 'Ada' }, { delay: '1d' })
    expect(bench.clock.alarms).toMatchObject([{ kind: 'delay' }])
    await bench.board.cancel(job)
    expect(bench.clock.alarms).toEqual([])
    // Its poster claims it at once, whatever its head start says to others.
    await runFlow(flow, { name: 'Ada' }, { board: bench.board })
    expect(bench.clock.alarms).toEqual([])
  })

  test('a failed job rests until the clock is turned, or skips its rests', async () => {
    const failing = linear(
      'failing',
      input(),
      task('fail', {
        execute: (_, { run }) => {
          if (run < 3) throw new Error(`run ${run} failed`)
        },
      }),
    )
    await using bench = await workbench({ flows: [failing] })
    const options = { backOff: { first: '1m', factor: 2, jitter: 'none' } } as const
    await bench.board.post(failing, {}, options)
    expect(await bench.drain()).toMatchObject([{ settled: 'abandoned', failure: { message: 'run 1 failed' } }])
    expect(await bench.drain()).toEqual([])
    expect(await bench.clock.awaited('delay')).toBe(60_000)
    bench.clock.advance('1m')
    expect(await bench.drain()).toMatchObject([{ settled: 'abandoned', run: 2 }])
    const before = bench.clock.now()
    expect(await bench.drain({ skipDelays: true })).toMatchObject([{ settled: 'consumed', run: 3 }])
    expect(bench.clock.now() - before).toBe(120_000)
  })

  test('pauses of retries take no time, of several at once the shortest first', async () => {
    const did: string[] = []
    const branch = (name: string, pause: '1h' | '2h') =>
      linear(
        { name, retry: backOff({ name: `again-${name}`, attempts: 3, first: pause, max: pause, jitter: 'none' }) },
        input(),
        task(name, {
          execute: () => {
            did.push(name)
            if (did.filter((other) => other === name).length < 3) throw new Error('not yet')
          },
        }),
      )
    const flow = unordered('both', input(), branch('slow', '2h'), branch('quick', '1h'))
    await using bench = await workbench({ flows: [flow] })
    await bench.board.post(flow, {})
    const before = bench.clock.now()
    expect(await bench.drain()).toMatchObject([{ settled: 'consumed' }])
    expect(bench.clock.now() - before).toBe(4 * 3_600_000)
    expect(did.slice(2, 3)).toEqual(['quick'])
    expect(did).toHaveLength(6)
  })

  test.each(['task', 'job'] as const)('the deadline of a %s passes when the clock is turned', async (whose) => {
    const slow = linear(
      'slow',
      input(),
      task('slow', {
        ...(whose === 'task' ? { deadline: '30s' as const } : {}),
        execute: (_, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      }),
    )
    await using bench = await workbench({ flows: [slow] })
    await bench.board.post(slow, {}, { maxAttempts: 1, ...(whose === 'job' ? { deadline: '30s' } : {}) })
    const draining = bench.drain()
    expect(await bench.clock.awaited('deadline')).toBe(30_000)
    bench.clock.advance('30s')
    const [run] = await draining
    expect(run?.settled).toBe('trashed')
    expect(run?.failure?.message).toMatch(/not done within 30(s|000 ms)/)
  })

  test('the deadline of a job that is performed passes, too', async () => {
    await using bench = await workbench({ flows: [] })
    await bench.board.post('late', {}, { deadline: '10s', maxAttempts: 1 })
    const [claim] = await bench.board.claimNext()
    bench.clock.advance('4s')
    const performed = claim.perform(
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    expect(await bench.clock.awaited('deadline')).toBe(6_000)
    bench.clock.advance('6s')
    expect(await performed).toBe('trashed')
  })
})

describe('owners die', () => {
  test('after a task: the next owner runs it again, and what was recorded not', async () => {
    const did: string[] = []
    const flow = noted(did)
    await using bench = await workbench({ flows: [flow] })
    await bench.board.post(flow, { name: 'Ada' })
    const job = await bench.crash({ after: 'second' })
    expect(did).toEqual(['run 1: Hello, Ada!'])
    expect(job.state).toBe('UNCLAIMED')
    expect(await bench.drain()).toMatchObject([{ settled: 'consumed', run: 2 }])
    expect(did).toEqual(['run 1: Hello, Ada!', 'run 2: Hello, Ada!'])
    expect(job.attempts.map(({ who, ended }) => [who, ended])).toEqual([
      ['doomed', undefined],
      ['test', undefined],
    ])
  })

  test('during a task: its signal fires, and what it does after is not recorded', async () => {
    const heard: unknown[] = []
    const flow = linear(
      'long',
      input(),
      task('before', { execute: (_, { run }) => run }),
      task('long', {
        execute: (_, { signal, run }) => {
          if (run > 1) return run
          return new Promise((resolve) =>
            signal.addEventListener('abort', () => {
              heard.push(signal.reason)
              resolve(run)
            }),
          )
        },
      }),
    )
    await using bench = await workbench({ flows: [flow] })
    const job = await bench.board.post(flow, {})
    using spy = spyOn(bench.board)
    await bench.crash({ during: 'long' })
    await spy.reached(job, 'CLAIMED')
    expect(heard).toMatchObject([{ code: 'JOBBOARD_CLAIM_LOST' }])
    await bench.drain()
    expect(await bench.track(job)).toMatchObject({ status: 'done', results: { before: 1, long: 2 } })
  })

  test('a task that is over at once has died during it all the same', async () => {
    const did: string[] = []
    const flow = noted(did)
    await using bench = await workbench({ flows: [flow] })
    await bench.board.post(flow, { name: 'Ada' })
    await bench.crash({ during: 'second' })
    await bench.drain()
    expect(did).toEqual(['run 1: Hello, Ada!', 'run 2: Hello, Ada!'])
  })

  test('again and again, until it is too often', async () => {
    const flow = noted([])
    await using bench = await workbench({ flows: [flow] })
    const job = await bench.board.post(flow, { name: 'Ada' })
    for (let death = 0; death < 10; death += 1) await bench.crash({ after: 'second' })
    await bench.drain()
    expect(job.state).toBe('TRASHED')
  })

  test('only at a task that a run reaches', async () => {
    const flow = noted([])
    await using bench = await workbench({ flows: [flow] })
    await expect(bench.crash({ after: 'second' })).rejects.toThrow('no run came to task second')
    await expect(bench.crash({} as never)).rejects.toThrow('crash takes the name of a task')
  })
})

test('logbooks that were given stay open', async () => {
  const flow = noted([])
  await using persistence = await openPersistence('memory:')
  let uuid = ''
  {
    await using bench = await workbench({ flows: [flow], persistence })
    const job = await bench.board.post(flow, { name: 'Ada' })
    uuid = job.uuid
    await bench.drain()
  }
  expect((await persistence.getBook(uuid)).flows).toMatchObject([{ state: 'SUCCESS' }])
})

test('a board of another kind has no clock to turn, and owners that die', async () => {
  const flow = noted([])
  await using bench = await workbench({ flows: [flow], board: 'memory:of-the-test' })
  expect(() => bench.clock).toThrow('the time of memory:of-the-test is its server')
  const job = await bench.board.post(flow, { name: 'Ada' })
  await bench.crash({ during: 'first' })
  await bench.drain()
  expect(job.state).toBe('COMPLETE')
  await expect(bench.drain({ skipDelays: true })).rejects.toThrow('leave board out')
})

test('refuses options that make no sense', async () => {
  await expect(workbench({ flow: [] } as never)).rejects.toThrow('a workbench has no option "flow"')
  await expect(workbench({ flows: undefined } as never)).rejects.toThrow('flows has to be a list')
})
