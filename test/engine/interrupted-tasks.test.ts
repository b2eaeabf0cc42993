/** What becomes of tasks that were under way when their owner died: `onInterrupted`. */
import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { ChildUnavailable, InvalidArgument } from '../../src/core/errors.ts'
import { type AtomIsolator, Engine } from '../../src/engine/index.ts'
import { type AnyTask, input, linear, type OnInterrupted, task, times, unordered } from '../../src/flow/index.ts'
import type { AtomDetail } from '../../src/persistence/index.ts'
import { dyingAt, fails, TaskRecorder, tracing } from './workshop.ts'

function record(name: string, fields: Partial<AtomDetail> = {}): AtomDetail {
  const updatedAt = new Date()
  return { name, kind: 'task', version: '1.0', state: 'PENDING', intention: 'EXECUTE', meta: {}, updatedAt, ...fields }
}

const done = (name: string): AtomDetail => record(name, { state: 'SUCCESS', result: `${name}!` })
const running = (name: string): AtomDetail => record(name, { state: 'RUNNING' })

function interrupted(name: string, onInterrupted: OnInterrupted, trace: string[]): AnyTask {
  return task(name, {
    provides: name,
    onInterrupted,
    execute: () => {
      trace.push(name)
      return `${name}!`
    },
    revert: (_args, { failure }) => trace.push(`-${name}${failure ? ` ${failure.code}` : ''}`),
  })
}

describe('a task that was under way when its owner died', () => {
  test('runs again by default', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('f', input(), tracing('a', trace), interrupted('b', 'rerun', trace))
    await shop.forge(flow, { state: 'RUNNING', atoms: [done('a'), running('b')] })
    expect((await shop.run(flow)).state).toBe('SUCCESS')
    expect(trace).toEqual(['b'])
  })

  test('is reverted alone, and runs again, with `revert`', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('f', input(), tracing('a', trace), interrupted('b', 'revert', trace), tracing('c', trace))
    await shop.forge(flow, { state: 'RUNNING', atoms: [done('a'), running('b'), record('c')] })
    const ending = await shop.run(flow)
    expect(trace).toEqual(['-b JOBBOARD_INTERRUPTED', 'b', 'c'])
    expect(ending).toMatchObject({ state: 'SUCCESS', results: { a: 'a!', b: 'b!', c: 'c!' }, failures: [] })
    expect(shop.writes).toEqual(['b REVERTING', 'b RUNNING', 'b SUCCESS="b!", c RUNNING', 'SUCCESS, c SUCCESS="c!"'])
  })

  test('has failed with `fail`: the flow is reverted', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('f', input(), tracing('a', trace), interrupted('b', 'fail', trace))
    await shop.forge(flow, { state: 'RUNNING', atoms: [done('a'), running('b')] })
    const { state, failures } = await shop.run(flow)
    expect(trace).toEqual(['-b JOBBOARD_INTERRUPTED', '-a'])
    expect(state).toBe('REVERTED')
    expect(failures).toMatchObject([
      { code: 'JOBBOARD_INTERRUPTED', message: expect.stringContaining('task b was under way') },
    ])
  })

  test('has failed with `fail`: a retry of its flow may try again', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear({ name: 'f', retry: times(2, { name: 'r' }) }, input(), interrupted('b', 'fail', trace))
    const r = record('r', { kind: 'retry', state: 'SUCCESS', result: 1, history: [{ value: 1, failures: [] }] })
    await shop.forge(flow, { state: 'RUNNING', atoms: [r, running('b')] })
    expect((await shop.run(flow)).state).toBe('SUCCESS')
    expect(trace).toEqual(['-b JOBBOARD_INTERRUPTED', 'b'])
  })

  test('has failed with `fail`, and is left so by an engine that resolves nothing', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('f', input(), interrupted('b', 'fail', trace))
    await shop.forge(flow, { state: 'RUNNING', atoms: [running('b')] })
    expect(await shop.run(flow, { neverResolve: true })).toMatchObject({ state: 'FAILURE', results: {} })
    expect(trace).toEqual([])
    // As any failure, which a person has looked at by then.
    expect((await shop.run(flow, { neverResolve: true })).state).toBe('SUCCESS')
  })

  test.each(['revert', 'fail'] as const)('and is to be reverted anyway is reverted once, with `%s`', async (choice) => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('f', input(), tracing('a', trace), interrupted('b', choice, trace))
    const atoms = [done('a'), running('b')].map((atom) => ({ ...atom, intention: 'REVERT' as const }))
    await shop.forge(flow, { state: 'RUNNING', atoms })
    expect((await shop.run(flow)).state).toBe('REVERTED')
    expect(trace).toEqual(['-b', '-a'])
  })

  test('is undone for good when a neighbour fails while it is reverted', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const halfReverts = createDeferred()
    const badReverts = createDeferred()
    const half = task('half', {
      onInterrupted: 'revert',
      execute: () => trace.push('half'),
      revert: async () => {
        halfReverts.resolve()
        await badReverts.promise
        trace.push('-half')
      },
    })
    const bad = task('bad', {
      execute: () => halfReverts.promise.then(fails('x')),
      revert: () => badReverts.resolve(),
    })
    const flow = unordered('f', input(), half, bad)
    await shop.forge(flow, { state: 'RUNNING', atoms: [running('half'), record('bad')] })
    expect((await shop.run(flow)).state).toBe('REVERTED')
    expect(trace).toEqual(['-half'])
    expect(await shop.states()).toBe('REVERTED, half REVERTED, bad REVERTED')
  })

  test('needs a person when its revert fails', async () => {
    await using shop = new TaskRecorder()
    const half = task('half', { onInterrupted: 'revert', execute: () => 1, revert: fails('stuck') })
    const flow = linear('f', input(), half)
    await shop.forge(flow, { state: 'RUNNING', atoms: [running('half')] })
    const { state, revertFailures } = await shop.run(flow)
    expect(state).toBe('FAILURE')
    expect(revertFailures).toMatchObject([{ message: 'stuck' }])
  })
})

describe('every death on the way', () => {
  test.each([1, 2, 3, 4])('at write %i, before and after it was done, ends in the same', async (k) => {
    for (const isDone of [true, false]) {
      await using shop = new TaskRecorder()
      const trace: string[] = []
      const flow = linear('f', input(), interrupted('b', 'revert', trace), tracing('c', trace))
      await shop.forge(flow, { state: 'RUNNING', atoms: [running('b'), record('c')] })
      const log = dyingAt(k, await shop.acquire(flow), { done: isDone })
      const first = await new Engine({ flow, log }).run().then(
        ({ state }) => state,
        () => 'died',
      )
      if (first === 'died') expect((await shop.run(flow)).state).toBe('SUCCESS')
      expect(await shop.states()).toBe('SUCCESS, b SUCCESS, c SUCCESS')
      // Each execution of b that was cut off is undone before the next one begins.
      expect(trace.filter((line) => line.endsWith('b')).at(-1)).toBe('b')
      const reverts = trace.filter((line) => line.startsWith('-b')).length
      const executions = trace.filter((line) => line === 'b').length
      expect(reverts).toBeGreaterThanOrEqual(executions)
    }
  })
})

test('a task that was stopped before anything of it ran is not taken as interrupted', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const flow = linear('f', input(), interrupted('b', 'fail', trace))
  await shop.forge(flow, { state: 'SUSPENDED', atoms: [record('b', { state: 'RUNNING', meta: { begun: false } })] })
  expect((await shop.run(flow)).state).toBe('SUCCESS')
  expect(trace).toEqual(['b'])
  expect((await shop.detail()).atoms[0]?.meta).toEqual({})
})

test('a task for which there was no child is not taken as interrupted', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const flow = linear('f', input(), interrupted('b', 'fail', trace))
  const isolation = { memory: undefined, isFresh: false, graceMs: undefined, onOutOfMemory: 'retry' } as const
  const isolator: AtomIsolator = {
    isolationOf: () => isolation,
    run: async () => {
      throw new ChildUnavailable('none')
    },
  }
  await expect(shop.run(flow, { isolator })).rejects.toThrow(ChildUnavailable)
  expect((await shop.run(flow)).state).toBe('SUCCESS')
  expect(trace).toEqual(['b'])
})

test.each([
  [{ onInterrupted: 'again' }, 'onInterrupted must be one of rerun, revert, fail'],
  [{ onInterrupted: 'revert' }, "onInterrupted is 'revert', so it needs a revert"],
])('%j is refused', (options, message) => {
  const make = () => task('t', { execute: () => 1, ...(options as { onInterrupted: OnInterrupted }) })
  expect(make).toThrow(InvalidArgument)
  expect(make).toThrow(message)
})
