/** A conductor on several boards: which jobs it claims next, the slots that they share, and what is refused. */
import { pino } from 'pino'
import { describe, expect, onTestFinished, vi } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { InvalidArgument, NotConnected } from '../../../src/core/errors.ts'
import {
  type ConductorBoard,
  type ConductorOptions,
  openBoard,
  openPersistence,
  schedule,
  startConductor,
} from '../../../src/index.ts'
import { refresh } from '../../board/jobs.ts'
import { freePort } from '../../support/ports.ts'
import { usual as test, variant } from '../../variant.ts'
import { boards, singleTaskFlow, startTestConductor } from '../conducting.ts'

const nothing = singleTaskFlow('nothing', () => 1)

/** Boards of different places, by name, with so many jobs each. */
async function boardsWith(jobs: Readonly<Record<string, number>>, flow = nothing): Promise<JobBoard[]> {
  const opened: JobBoard[] = []
  for (const [name, count] of Object.entries(jobs)) {
    const [board] = await boards(name)
    for (let n = 0; n < count; n += 1) await board.post(flow, { n }, { name })
    opened.push(board)
  }
  return opened
}

/** Runs a conductor until nothing is left. @returns the names of the jobs in the order of their ends */
async function runAll(given: NonNullable<ConductorOptions['boards']>, options: Partial<ConductorOptions> = {}) {
  const order: string[] = []
  const { hooks, ...rest } = options
  const conductor = await startTestConductor({
    ...{ boards: given, persistence: 'memory:', flows: [nothing], concurrency: 1, burst: true, name: 'several' },
    ...rest,
    hooks: { ...hooks, settled: ({ job }) => void order.push(job.name) },
  })
  await conductor.stopped
  return order
}

describe('what is claimed next', () => {
  test('in order: the jobs of earlier boards first', async () => {
    const given = await boardsWith({ urgent: 5, normal: 5, bulk: 5 })
    const order = await runAll(given)
    expect(order).toEqual([...Array(5).fill('urgent'), ...Array(5).fill('normal'), ...Array(5).fill('bulk')])
  })

  test('in order: a job that comes to an earlier board is next', async () => {
    const [urgent, bulk] = (await boardsWith({ urgent: 0, bulk: 4 })) as [JobBoard, JobBoard]
    const flow = singleTaskFlow('nothing', async ({ n }) => {
      // The conductor watches the first board, and sees the job before the slot is free.
      if (n === 1) await urgent.post(nothing, { n: 100 }, { name: 'urgent' })
    })
    expect(await runAll([urgent, bulk], { flows: [flow] })).toEqual(['bulk', 'bulk', 'urgent', 'bulk', 'bulk'])
  })

  test('by weight: a share of the claims while all boards have jobs', async () => {
    const [large, small] = (await boardsWith({ large: 60, small: 60 })) as [JobBoard, JobBoard]
    const order = await runAll([{ board: large, weight: 3 }, { board: small }])
    const both = order.slice(0, 80)
    expect(both.filter((name) => name === 'large')).toHaveLength(60)
    for (let end = 4; end <= 80; end += 4)
      expect(both.slice(0, end).filter((name) => name === 'small')).toHaveLength(end / 4)
  })

  test('by weight: a busy board does not starve one that waits, with many slots', async () => {
    const [large, small] = (await boardsWith({ large: 1_000, small: 10 })) as [JobBoard, JobBoard]
    const weighted = [
      { board: large, weight: 9 },
      { board: small, weight: 1 },
    ]
    // The work waits for something, as all work does: else nothing but this board's jobs would run in the process.
    const flow = singleTaskFlow('nothing', () => new Promise((resolve) => setImmediate(resolve)))
    const order = await runAll(weighted, { concurrency: 10, flows: [flow] })
    expect(order).toHaveLength(1_010)
    expect(order.lastIndexOf('small')).toBeLessThan(150)
  })
})

test.each([
  { concurrency: 1, weights: [undefined, undefined, undefined] },
  { concurrency: 3, weights: [undefined, undefined, undefined] },
  { concurrency: 3, weights: [5, 2, 1] },
  { concurrency: 7, weights: [1, 1, 1] },
])('never runs more jobs than slots: $concurrency, $weights', async ({ concurrency, weights }) => {
  const starts: number[] = []
  let running = 0
  const flow = singleTaskFlow('counted', async ({ n }) => {
    running += 1
    starts.push(running)
    for (let turn = 0; turn < n % 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    running -= 1
  })
  const opened = await boardsWith({ a: 40, b: 40, c: 40 }, flow)
  const given = opened.map((board, index): ConductorBoard => {
    const weight = weights[index]
    return weight === undefined ? { board } : { board, weight }
  })
  // More jobs come while it runs.
  const posting = (async () => {
    for (let n = 0; n < 60; n += 1) await opened[n % 3]?.post(flow, { n })
  })()
  const conductor = await startTestConductor({
    boards: given,
    persistence: 'memory:',
    flows: [flow],
    concurrency,
    name: 'x',
  })
  const done = createDeferred()
  let ended = 0
  conductor.on('settled', () => {
    ended += 1
    if (ended === 180) done.resolve()
  })
  ended += conductor.counts.done
  if (ended === 180) done.resolve()
  await Promise.all([posting, done.promise])
  expect(starts).toHaveLength(180)
  expect(Math.max(...starts)).toBe(concurrency)
})

test('it is shown on each board, with the jobs and counts of this board', async () => {
  const [a, b] = (await boardsWith({ a: 2, b: 1 })) as [JobBoard, JobBoard]
  const conductor = await startTestConductor({ boards: [a, b], persistence: 'memory:', flows: [nothing], name: 'both' })
  await expect.poll(() => conductor.counts.done).toBe(3)
  await conductor.stop()
  expect(conductor.counts).toMatchObject({ done: 3, failed: 0, other: 0 })
  const again = await startTestConductor({ boards: [a, b], persistence: 'memory:', flows: [nothing], name: 'both' })
  for (const board of [a, b]) expect(await board.entities('conductor')).toMatchObject([{ name: 'both' }])
  await again.stop()
  for (const board of [a, b]) expect(await board.entities('conductor')).toEqual([])
})

test('events name the board of the job', async () => {
  const [a, b] = (await boardsWith({ a: 1, b: 1 })) as [JobBoard, JobBoard]
  const seen: [string, JobBoard][] = []
  const conductor = await startConductor({
    ...{ boards: [a, b], persistence: 'memory:', flows: [nothing], burst: true, concurrency: 1, name: 'several' },
    hooks: { settled: ({ job, board }) => void seen.push([job.name, board]) },
  })
  await conductor.stopped
  expect(seen.map(([name, board]) => [name, board === a ? 'a' : 'b'])).toEqual([
    ['a', 'a'],
    ['b', 'b'],
  ])
})

test('a pause holds all boards, and resume goes on', async () => {
  const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
  const conductor = await startTestConductor({
    boards: [a, b],
    persistence: 'memory:',
    flows: [nothing],
    name: 'paused',
  })
  conductor.pause()
  const jobs = [await a.post(nothing, { n: 1 }), await b.post(nothing, { n: 1 })]
  expect(conductor.state).toBe('paused')
  conductor.resume()
  expect(await Promise.all(jobs.map((job) => job.wait()))).toEqual(['COMPLETE', 'COMPLETE'])
})

test('maxJobs counts the jobs of all boards', async () => {
  const given = await boardsWith({ a: 3, b: 3 })
  const order = await runAll(given, { burst: false, maxJobs: 4, concurrency: 8 })
  expect(order.sort()).toEqual(['a', 'a', 'a', 'b'])
})

test('maxIdleTime is the time without a job on any board', async () => {
  const given = await boardsWith({ a: 1, b: 1 })
  expect((await runAll(given, { burst: false, maxIdleTime: 50 })).sort()).toEqual(['a', 'b'])
})

test('hooks run for each board, and once: board once on each', async () => {
  const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
  const ran: JobBoard[] = []
  const hooks = {
    beforeClaim: { name: 'prepare', once: 'board' as const, run: ({ board }: { board: JobBoard }) => ran.push(board) },
  }
  await runAll([a, b], { hooks })
  await runAll([a, b], { hooks })
  expect(ran).toHaveLength(2)
  expect(new Set(ran)).toEqual(new Set([a, b]))
})

test('logbooks are those of the conductor, or of the board', async () => {
  const [a, b] = (await boardsWith({ a: 1, b: 1 })) as [JobBoard, JobBoard]
  await using common = await openPersistence('memory:')
  await using own = await openPersistence('memory:')
  await runAll([a, { board: b, persistence: own }], { persistence: common })
  const named = async (persistence: typeof common) => {
    const found: string[] = []
    for await (const { uuid } of persistence.listBooks()) found.push(uuid)
    return found.length
  }
  expect([await named(common), await named(own)]).toEqual([1, 1])
})

test('limits are set on each board, and schedules are put on the first; a board may have its own', async () => {
  const boards = (await boardsWith({ a: 0, b: 0, c: 0 })) as [JobBoard, JobBoard, JobBoard]
  const [a, b, c] = boards
  const conductor = await startTestConductor({
    boards: [a, b, { board: c, limits: { declare: { own: { concurrency: 1 } } } }],
    schedules: [schedule('hourly', { every: '1h' }, nothing, { n: 1 })],
    limits: { declare: { api: { concurrency: 1 } } },
    ...{ persistence: 'memory:', flows: [nothing], name: 's' },
  })
  const found = () =>
    Promise.all(
      boards.map(async (board) => [
        (await board.schedules.list()).map(({ id }) => id),
        (await board.limits.list()).map(({ key, concurrency }) => [key, concurrency]),
      ]),
    )
  expect(await found()).toEqual([
    [['hourly'], [['api', 1]]],
    [[], [['api', 1]]],
    [[], [['own', 1]]],
  ])
  await conductor.reconfigure({
    schedules: [schedule('daily', { every: '1d' }, nothing, { n: 1 })],
    limits: { declare: { api: { concurrency: 2 } } },
  })
  expect(await found()).toEqual([
    [['daily', 'hourly'], [['api', 2]]],
    [[], [['api', 2]]],
    [
      [],
      [
        ['api', 2],
        ['own', 1],
      ],
    ],
  ])
})

test('a board on which limits cannot be changed keeps no other from them', async () => {
  const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
  const conductor = await startTestConductor({ boards: [a, b], persistence: 'memory:', flows: [nothing], name: 's' })
  const away = new NotConnected('the board is away')
  vi.spyOn(boardInternals(a), 'declareLimits').mockRejectedValue(away)
  const changing = conductor.reconfigure({ limits: { declare: { api: { concurrency: 2 } } } })
  await expect(changing).rejects.toBe(away)
  expect((await b.limits.list()).map(({ key, concurrency }) => [key, concurrency])).toEqual([['api', 2]])
})

test('a level of the log that changes later holds for all boards', async () => {
  const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
  const lines: { msg: string }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const options = { persistence: 'memory:', flows: [nothing], name: 's', log, redact: ['password'] }
  const conductor = await startTestConductor({ boards: [a, b], ...options })
  const run = async () => {
    const settled = createDeferred()
    const off = conductor.on('settled', () => settled.resolve())
    await b.post(nothing, { n: 1 })
    await settled.promise
    off()
  }
  log.level = 'info'
  await run()
  log.level = 'warn'
  await run()
  await conductor.stop()
  expect(lines.map(({ msg }) => msg)).toEqual(['job consumed'])
})

test('schedules belong to a board', async () => {
  const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
  const schedules = [schedule('hourly', { every: '1h' }, nothing, { n: 1 })]
  await startTestConductor({
    boards: [{ board: a, schedules }, b],
    persistence: 'memory:',
    flows: [nothing],
    name: 's',
  })
  const ids = async (board: JobBoard) => (await board.schedules.list()).map(({ id }) => id)
  expect([await ids(a), await ids(b)]).toEqual([['hourly'], []])
})

test('a stop gives the running jobs of all boards back', async () => {
  const begun = [createDeferred(), createDeferred()]
  const waits = singleTaskFlow('waits', async ({ n }, signal) => {
    begun[n]?.resolve()
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
  })
  const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
  const jobs = [await a.post(waits, { n: 0 }), await b.post(waits, { n: 1 })]
  const conductor = await startTestConductor({
    ...{ boards: [a, b], persistence: 'memory:', flows: [waits], concurrency: 2, drainTimeout: 0, name: 'ends' },
  })
  await Promise.all(begun.map(({ promise }) => promise))
  await conductor.stop()
  await Promise.all([refresh(a), refresh(b)])
  for (const job of jobs) {
    expect(job.state).toBe('UNCLAIMED')
    expect(job.attempts).toMatchObject([{ ended: 'returned' }])
  }
})

test('the entity on each board says that the conductor drains', async () => {
  const begun = createDeferred()
  const go = createDeferred()
  const waits = singleTaskFlow('waits', async () => {
    begun.resolve()
    await go.promise
  })
  const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
  const job = await a.post(waits, { n: 0 })
  const conductor = await startTestConductor({ boards: [a, b], persistence: 'memory:', flows: [waits], name: 'drains' })
  await begun.promise
  const stopping = conductor.stop()
  expect(conductor.state).toBe('draining')
  await expect
    .poll(async () => (await b.entities('conductor')).map(({ metadata }) => metadata['state']), { timeout: 10_000 })
    .toEqual(['draining'])
  go.resolve()
  await stopping
  expect(job.state).toBe('COMPLETE')
})

describe('health', () => {
  test('lists each board', async () => {
    const [a] = (await boardsWith({ a: 0 })) as [JobBoard]
    const away = `redis://127.0.0.1:${await freePort()}/0?prefix=bulk`
    const conductor = await startTestConductor({
      ...{
        boards: [away, a],
        persistence: 'memory:',
        flows: [nothing],
        health: { port: 0 },
        name: 'healthy',
        metrics: true,
      },
    })
    const read = async (path: string) => {
      const response = await fetch(`${conductor.healthUrl}${path}`)
      return { status: response.status, body: (await response.json()) as { boards: unknown } }
    }
    const { status, body } = await read('/readyz')
    expect(status).toBe(200)
    expect(body.boards).toMatchObject([
      { name: 'redis:bulk', state: 'not opened', usable: false, running: 0 },
      { state: 'connected', usable: true, storage: 'there' },
    ])
    expect(await (await fetch(`${conductor.healthUrl}/metrics`)).text()).toContain(
      'jobboard_session_connected{board="redis:bulk"} 0',
    )
  })
})

describe('a board that cannot be reached at the start', () => {
  test('stops none of the others', async () => {
    const [a] = (await boardsWith({ a: 3 })) as [JobBoard]
    const away = `redis://127.0.0.1:${await freePort()}/0`
    expect(await runAll([away, a])).toEqual(['a', 'a', 'a'])
  })

  variant('none of them: says which', async () => {
    const uris = [`redis://127.0.0.1:${await freePort()}/0`, `redis://127.0.0.1:${await freePort()}/0`]
    const starting = startConductor({ boards: uris, persistence: 'memory:', flows: [nothing] })
    await expect(starting).rejects.toThrow(NotConnected)
    await expect(starting).rejects.toThrow(/^none of the boards can be reached: .+; .+/)
  })

  test('a hook that throws, or a name that is taken, ends the start', async () => {
    const [a, b] = (await boardsWith({ a: 0, b: 0 })) as [JobBoard, JobBoard]
    await startTestConductor({ board: b, persistence: 'memory:', flows: [nothing], name: 'taken' })
    await expect(runAll([a, b], { name: 'taken' })).rejects.toThrow('taken')
    expect(await a.entities('conductor')).toEqual([])
    const failing = runAll([a, b], {
      hooks: {
        beforeClaim: () => {
          throw new Error('not ready')
        },
      },
    })
    await expect(failing).rejects.toThrow('not ready')
  })
})

describe('is refused:', () => {
  const rest = { persistence: 'memory:', flows: [nothing] }

  test('the same board twice', async () => {
    const [a] = await boards('a')
    const open = await openBoard(a.uri)
    onTestFinished(() => open.close())
    const pairs = [
      [a, a],
      [a, open],
      ['zookeeper://ada:secret@zk2,zk1:2181/jobs', 'zookeepers://zk1,zk2/jobs/?tick=2s'],
      ['postgres://127.0.0.1/db', 'postgresql://ada:secret@127.0.0.1:5432/db?board=default'],
      ['redis://127.0.0.1', 'redis://127.0.0.1:6379/0?prefix=taskflow'],
    ]
    for (const pair of pairs) {
      const starting = startConductor({ ...rest, boards: ['memory:', ...pair] })
      await expect(starting).rejects.toThrow(InvalidArgument)
      await expect(starting).rejects.toThrow(
        /^a conductor: boards\[1\] and boards\[2\] are the same board, [^\n]+: name each board once$/,
      )
      await expect(starting).rejects.not.toThrow('secret')
    }
  })

  test('two boards at memory: are not the same', async () => {
    expect(await runAll(['memory:', 'memory:', await openBoard('memory:')])).toEqual([])
  })

  test.each<[string, Partial<ConductorOptions>, RegExp]>([
    ['no board', {}, /^a conductor: board must be a URI/],
    ['board and boards', { board: 'memory:', boards: ['memory:'] }, /give board, or boards for several/],
    ['no boards', { boards: [] }, /boards must be a list/],
    ['a text', { boards: 'memory:' as never }, /boards must be a list/],
    ['an empty URI', { boards: ['memory:', ''] }, /^a conductor: boards\[1\]: board must be a URI/],
    ['a wrong entry', { boards: ['memory:', 5 as never] }, /^a conductor: boards\[1\]: the options must be an object/],
    ['a misspelt option', { boards: [{ board: 'memory:', wieght: 2 } as never] }, /no option "wieght".*weight/],
    [
      'a weight of 0',
      { boards: [{ board: 'memory:', weight: 0 }] },
      /boards\[0\]: weight must be a whole number from 1, got 0/,
    ],
    [
      'a weight of a half',
      { boards: [{ board: 'memory:', weight: 0.5 }] },
      /weight must be a whole number from 1, got 0.5/,
    ],
    ['wrong logbooks', { boards: [{ board: 'memory:', persistence: '' }] }, /boards\[0\]: persistence must be a URI/],
    ['a wrong scheme', { boards: ['memory:', 'zoo:x'] }, /unknown scheme zoo/],
  ])('%s', async (_, options, message) => {
    const starting = startConductor({ ...rest, ...options })
    await expect(starting).rejects.toThrow(InvalidArgument)
    await expect(starting).rejects.toThrow(message)
  })
})
