/** Faults that hit a child at a certain moment, and limits that hold while children are replaced. Each child is a real process. */
import { readFileSync } from 'node:fs'
import { describe, expect, vi } from 'vitest'
import { AbortFlag } from '../../src/core/async/abort-flag.ts'
import { ChildDied, ChildUnavailable, Timeout } from '../../src/core/errors.ts'
import { Child } from '../../src/pool/child.ts'
import { rejectionOf } from '../board/events.ts'
import { compiled } from '../support/compiled.ts'
import { usual as test, variant } from '../variant.ts'
import { CHILD_MAIN, isAlive, newFile, pidsIn, sendSignal, testPool, whenDead } from './pools.ts'

const WORKER = new URL('./worker.mjs', import.meta.url).href

describe('a child that is killed', () => {
  variant('after its answer costs no work: the next is done by another', async () => {
    await using pool = await testPool({ max: 1 })
    for (let round = 0; round < 10; round += 1) {
      const pid = Number(await pool.run({ kind: 'pid' }))
      sendSignal(pid, 'SIGKILL')
      expect(await pool.run({ kind: 'echo', value: round })).toBe(round)
    }
  })

  variant('while its answer is half written fails its work, and the next is done by another', async () => {
    await using pool = await testPool({ max: 1 })
    const error = await rejectionOf(pool.run({ kind: 'dieAfter', bytes: 20_000_000 }))
    expect(error).toBeInstanceOf(ChildDied)
    expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
  })

  test('while it starts is no failure of the work that waits for it', async () => {
    await using pool = await testPool({ min: 1, max: 2 })
    const file = await newFile()
    const stop = new AbortFlag()
    const first = rejectionOf(pool.run({ kind: 'heed', file }, { stop }))
    await pidsIn(file, 1)
    const second = pool.run({ kind: 'echo', value: 'second' })
    const starting = pool.pool.children.find(({ state }) => state === 'starting')
    process.kill(starting?.pid ?? 0, 'SIGKILL')
    expect(await second).toBe('second')
    expect(pool.events.filter(({ kind }) => kind === 'start-failed')).toHaveLength(1)
    stop.abort(new Timeout('late'))
    await first
  })
})

test('a child that is stopped for many beats is killed, and its work fails', async () => {
  const child = new Child({
    ...{
      number: 1,
      worker: WORKER,
      settings: {},
      execArgv: [],
      env: process.env,
      maxMessage: 16_000_000,
      program: await compiled(CHILD_MAIN),
      memory: undefined,
    },
    ...{
      startTimeoutMs: 30_000,
      silenceMs: 0,
      workLeftMs: () => 0,
      maxUnansweredBeats: 60,
      assertFacts: () => undefined,
    },
    ...{ onLine: () => undefined, onDroppedLines: () => undefined },
  })
  await child.start()
  const file = await newFile()
  const working = rejectionOf(
    child.run({ work: { kind: 'spin', file }, onNote: () => undefined, onAsk: async () => undefined }),
  )
  const [pid = 0] = await pidsIn(file, 1)
  sendSignal(pid, 'SIGSTOP')
  for (let beat = 0; beat < 61; beat += 1) child.beat()
  expect(String(await working)).toMatch(/has not answered for too long/)
  expect(isAlive(pid)).toBe(false)
})

variant(
  'a child that has ended itself, because the process of the pool was blocked, is no failure of its work',
  async () => {
    await using pool = await testPool({ max: 1, silenceMs: 400 })
    const file = await newFile()
    const working = rejectionOf(pool.run({ kind: 'spin', file }))
    const [pid = 0] = await pidsIn(file, 1)
    while (isAlive(pid)) Math.random()
    const error = await working
    expect(error).toBeInstanceOf(ChildUnavailable)
    expect(String(error)).toMatch(
      /has ended itself, because this process was stopped or blocked for longer than 400 ms/,
    )
  },
)

variant(
  'a child ends itself when the right to its work is over, although the pool is silent for less than allowed',
  async () => {
    let endsAt = Number.POSITIVE_INFINITY
    await using pool = await testPool({ max: 1, silenceMs: 40_000, workLeftMs: () => endsAt - performance.now() })
    const file = await newFile()
    const working = rejectionOf(pool.run({ kind: 'spin', file }))
    const pids = await pidsIn(file, 1)
    endsAt = performance.now() + 3_000
    await whenDead(pids)
    expect(String(await working)).toContain('has ended itself')
    endsAt = Number.POSITIVE_INFINITY
    expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
  },
)

variant('a child ends itself when the right to its own work is over, and not with that of other work', async () => {
  let endsAt = Number.POSITIVE_INFINITY
  await using pool = await testPool({ min: 2, max: 2, silenceMs: 40_000 })
  const [file, other] = [await newFile(), await newFile()]
  const options = { workLeftMs: () => endsAt - performance.now() }
  const working = rejectionOf(pool.run({ kind: 'spin', file }, options))
  const spared = rejectionOf(pool.run({ kind: 'spin', file: other }))
  const [pids, others] = [await pidsIn(file, 1), await pidsIn(other, 1)]
  endsAt = performance.now() + 3_000
  await whenDead(pids)
  expect(String(await working)).toContain('has ended itself')
  expect(others.filter(isAlive)).toEqual(others)
  await pool.pool[Symbol.asyncDispose]()
  await spared
})

describe('a stop while the child starts', () => {
  test.each(['stop', 'kill'] as const)('by %s removes the work, and the child is used for the next', async (how) => {
    await using pool = await testPool({ min: 0, max: 1 }, { starts: false })
    const flag = new AbortFlag()
    const working = rejectionOf(pool.run({ kind: 'exit' }, { [how]: flag }))
    expect(pool.pool.children).toMatchObject([{ state: 'starting' }])
    const reason = new Timeout('late')
    flag.abort(reason)
    expect(await working).toBe(reason)
    expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
    expect(pool.pool.children).toMatchObject([{ number: 1, tasks: 1 }])
  })

  test('by the end of the pool leaves no process', async () => {
    const pool = await testPool({ min: 0, max: 1 }, { starts: false, settings: { fails: 'hang' } })
    const working = rejectionOf(pool.run({ kind: 'exit' }))
    const pids = pool.pool.children.flatMap(({ pid }) => pid ?? [])
    await pool[Symbol.asyncDispose]()
    expect(String(await working)).toContain('is closed')
    expect(pids).toHaveLength(1)
    await whenDead(pids)
  })
})

describe('the limit of children that work at once', () => {
  variant.each([
    ['fresh work', { isFresh: true }, {}],
    ['children that are replaced after each task', {}, { maxTasks: 1 }],
  ])('holds for %s', async (_, options, limits) => {
    await using pool = await testPool({ max: 2, ...limits })
    const file = await newFile()
    await Promise.all(Array.from({ length: 8 }, () => pool.run({ kind: 'visit', file }, options)))
    expect(mostAtOnce(file)).toBeLessThanOrEqual(2)
  })
})

variant('a child lives although the silence after which it would end is shorter than a second', async () => {
  await using pool = await testPool({ min: 1, max: 1, silenceMs: 400 })
  const pid = await pool.run({ kind: 'pid' })
  // As long as several periods of supervision.
  await vi.waitFor(() => expect(pool.pool.children[0]?.memory).toBeDefined(), { timeout: 10_000 })
  const file = await newFile()
  await Promise.all([
    pool.run({ kind: 'visit', file }),
    pool.run({ kind: 'visit', file }),
    pool.run({ kind: 'visit', file }),
  ])
  expect(await pool.run({ kind: 'pid' })).toBe(pid)
})

test('a process that the system refuses to start makes the start fail', async () => {
  const error = await rejectionOf(testPool({ execArgv: ['\0'] }))
  expect(error).toBeInstanceOf(ChildUnavailable)
  expect(String(error)).toContain('without null bytes')
})

/** Returns how many visits were under way at the same time at most. */
function mostAtOnce(file: string): number {
  let [now, most] = [0, 0]
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    now += line.startsWith('begin') ? 1 : -1
    most = Math.max(most, now)
  }
  return most
}
