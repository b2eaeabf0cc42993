/** TaskFlow's tests of retries, one by one; with `deferReverts: false` where what they expect is TaskFlow's default. */
import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { NonRetryable } from '../../src/core/errors.ts'
import { graph, input, linear, task, times, unordered } from '../../src/flow/index.ts'
import { broken, done, failing, failingFlow, progressing, tell, undone } from './traces.ts'
import { TaskRecorder, tracing } from './workshop.ts'

const theirs = { deferReverts: false }

describe('a flow with nothing but a retry', () => {
  test.each([
    ['linear', linear({ name: 'f', retry: times(3, { name: 'r', provides: 'x' }) }, input())],
    ['unordered', unordered({ name: 'f', retry: times(3, { name: 'r', provides: 'x' }) }, input())],
    ['graph', graph({ name: 'f', retry: times(3, { name: 'r', provides: 'x' }) }, input())],
  ])('runs it, %s', async (_pattern, flow) => {
    await using shop = new TaskRecorder()
    const { moves, ending } = await tell(shop, flow)
    expect(moves).toEqual(['flow RUNNING', ...done('r', 1), 'flow SUCCESS'])
    expect(ending.results).toEqual({ x: 1 })
  })
})

describe('times', () => {
  test('reverts in reverse order, begins anew, and succeeds', async () => {
    await using shop = new TaskRecorder()
    const flow = linear(
      { name: 'f', retry: times(4, { name: 'r1', provides: 'x' }) },
      input(),
      progressing('t1'),
      failing('t2', 1),
    )
    const { moves, ending } = await tell(shop, flow)
    expect(moves).toEqual([
      'flow RUNNING',
      ...done('r1', 1),
      ...done('t1'),
      ...broken('t2'),
      ...undone('t2', 't1'),
      'r1 RETRYING',
      't1 PENDING',
      't2 PENDING',
      ...done('r1', 2),
      ...done('t1'),
      ...done('t2'),
      'flow SUCCESS',
    ])
    expect(ending).toMatchObject({ results: { x: 2, 't1 made': 5 }, failures: [] })
  })

  test('gives up after its attempts; everything is reverted, and the error is the first task’s', async () => {
    await using shop = new TaskRecorder()
    const retries = times(2, { name: 'r1', provides: 'x' })
    const flow = linear({ name: 'f', retry: retries }, input<{ y: number }>(), progressing('t1'), failing('t2'))
    const { moves, ending } = await tell(shop, flow, { store: { y: 2 } })
    const attempt = [...done('t1'), ...broken('t2'), ...undone('t2', 't1')]
    expect(moves).toEqual([
      'flow RUNNING',
      ...done('r1', 1),
      ...attempt,
      'r1 RETRYING',
      't1 PENDING',
      't2 PENDING',
      ...done('r1', 2),
      ...attempt,
      ...undone('r1'),
      'flow REVERTED',
    ])
    expect(ending).toMatchObject({ results: {}, failures: [{ message: 'Woot!' }], error: { message: 'Woot!' } })
  })

  test('where a revert fails, ends the flow as FAILURE, and is not reverted itself', async () => {
    await using shop = new TaskRecorder()
    const flow = linear({ name: 'f', retry: times(4, { name: 'r1' }) }, input(), failingFlow('t1'), failing('t2'))
    const { moves, ending } = await tell(shop, flow)
    expect(moves.slice(-5)).toEqual([
      't2 REVERTING',
      't2 REVERTED',
      't1 REVERTING',
      't1 REVERT_FAILURE',
      'flow FAILURE',
    ])
    expect(ending).toMatchObject({ state: 'FAILURE', revertFailures: [{ message: 'Gotcha!' }] })
    expect(await shop.states()).toContain('r1 SUCCESS')
  })

  test('of a flow within attempts that flow alone', async () => {
    await using shop = new TaskRecorder()
    const inner = linear({ name: 'inner', retry: times(3, { name: 'r' }) }, input(), progressing('b'), failing('c', 1))
    const { moves } = await tell(shop, linear('f', input(), progressing('a'), inner, progressing('d')))
    expect(moves).toEqual([
      'flow RUNNING',
      ...done('a'),
      ...done('r', 1),
      ...done('b'),
      ...broken('c'),
      ...undone('c', 'b'),
      'r RETRYING',
      'b PENDING',
      'c PENDING',
      ...done('r', 2),
      ...done('b'),
      ...done('c'),
      ...done('d'),
      'flow SUCCESS',
    ])
  })

  test('around a flow that is done reverts and runs it again, its own retry counting from 1', async () => {
    await using shop = new TaskRecorder()
    const inner = linear({ name: 'inner', retry: times(3, { name: 'r2' }) }, input(), progressing('b'))
    const flow = linear(
      { name: 'f', retry: times(3, { name: 'r1' }) },
      input(),
      progressing('a'),
      inner,
      failing('c', 1),
    )
    const { moves } = await tell(shop, flow)
    expect(moves).toEqual([
      'flow RUNNING',
      ...done('r1', 1),
      ...done('a'),
      ...done('r2', 1),
      ...done('b'),
      ...broken('c'),
      ...undone('c', 'b', 'r2', 'a'),
      'r1 RETRYING',
      ...moves.filter((move) => move.endsWith('PENDING')),
      ...done('r1', 2),
      ...done('a'),
      ...done('r2', 1),
      ...done('b'),
      ...done('c'),
      'flow SUCCESS',
    ])
    expect(moves.filter((move) => move.endsWith('PENDING')).sort()).toEqual(
      ['a', 'b', 'c', 'r2'].map((n) => `${n} PENDING`),
    )
  })

  test('of 0 and of 1 is one attempt; by default there is one', async () => {
    for (const retries of [times(0, { name: 'r' }), times(1, { name: 'r' }), times(undefined, { name: 'r' })]) {
      await using shop = new TaskRecorder()
      const { moves } = await tell(shop, linear({ name: 'f', retry: retries }, input(), failing('t', 1)))
      expect(moves).toEqual(['flow RUNNING', ...done('r', 1), ...broken('t'), ...undone('t', 'r'), 'flow REVERTED'])
    }
  })

  test('makes three full attempts, then reverts', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear(
      { name: 'f', retry: times(3, { name: 'r', provides: 'x' }) },
      input(),
      tracing('t1', trace),
      tracing('t2', trace, { during: () => Promise.reject(new Error('Woot!')) }),
    )
    expect((await tell(shop, flow)).ending.state).toBe('REVERTED')
    expect(trace).toEqual(Array.from({ length: 3 }, () => ['t1', 't2', '-t2', '-t1']).flat())
  })

  test('of the flow around takes over when the one within gives up', async () => {
    await using shop = new TaskRecorder()
    const inner = linear({ name: 'inner', retry: times(0, { name: 'r2' }) }, input(), failing('b', 1))
    const flow = linear({ name: 'f', retry: times(3, { name: 'r1' }) }, input(), progressing('a'), inner)
    const { moves } = await tell(shop, flow, theirs)
    expect(moves).toEqual([
      'flow RUNNING',
      ...done('r1', 1),
      ...done('a'),
      ...done('r2', 1),
      ...broken('b'),
      ...undone('b', 'r2', 'a'),
      'r1 RETRYING',
      ...moves.filter((move) => move.endsWith('PENDING')),
      ...done('r1', 2),
      ...done('a'),
      ...done('r2', 1),
      ...done('b'),
      'flow SUCCESS',
    ])
  })

  test('gives up at once where a task throws a NonRetryable', async () => {
    await using shop = new TaskRecorder()
    const hopeless = task('hopeless', { execute: () => Promise.reject(new NonRetryable('no such file')) })
    const { moves } = await tell(shop, linear({ name: 'f', retry: times(5, { name: 'r' }) }, input(), hopeless))
    expect(moves.filter((move) => move === 'hopeless RUNNING')).toHaveLength(1)
  })

  test('does not revert what was not run', async () => {
    await using shop = new TaskRecorder()
    const retries = times(2, { name: 'r' })
    const flow = linear({ name: 'f', retry: retries }, input(), progressing('a'), failing('b', 1), progressing('c'))
    const { moves } = await tell(shop, flow)
    expect(moves.filter((move) => move.startsWith('c '))).toEqual(done('c'))
  })
})

describe('side by side', () => {
  test('what was done beside a task that fails is reverted and done again', async () => {
    await using shop = new TaskRecorder()
    const tasks = [progressing('t1'), failing('t2', 1), progressing('t3')]
    const flow = unordered({ name: 'f', retry: times(3, { name: 'r' }) }, input(), ...tasks)
    const { moves } = await tell(shop, flow, { concurrency: 3 })
    for (const name of ['t1', 't2', 't3']) {
      expect(moves.filter((move) => move.startsWith(`${name} `)).slice(2)).toEqual([
        ...undone(name),
        `${name} PENDING`,
        ...done(name),
      ])
    }
    expect(moves.at(-1)).toBe('flow SUCCESS')
  })

  test('what still runs is waited for, then reverted, then all is done again', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const failed = createDeferred()
    let attempt = 0
    const slow = tracing('slow', trace, { during: () => failed.promise })
    const quick = tracing('quick', trace, {
      during: () => {
        attempt += 1
        if (attempt > 1) return
        setImmediate(failed.resolve)
        throw new Error('Woot!')
      },
    })
    const flow = unordered({ name: 'f', retry: times(2, { name: 'r' }) }, input(), slow, quick)
    const { ending } = await tell(shop, flow, { concurrency: 2 })
    expect(ending.state).toBe('SUCCESS')
    expect([0, 2, 4].map((at) => trace.slice(at, at + 2).sort())).toEqual([
      ['quick', 'slow'],
      ['-quick', '-slow'],
      ['quick', 'slow'],
    ])
  })
})

test('a retry is no part of a flow, and no flow', () => {
  const loose = linear as (...args: unknown[]) => unknown
  expect(() => loose('f', input(), times(3))).toThrow('flow f: number 1 in its list is a retry; it goes to the flow')
  expect(() => loose({ name: 'f', retry: progressing('t') }, input())).toThrow(
    'flow f: retry must be a retry, as times(…)',
  )
})
