import { describe, expect, test } from 'vitest'
import {
  type AnyPart,
  type AnyTask,
  type Depth,
  graph,
  input,
  linear,
  link,
  task,
  times,
} from '../../src/flow/index.ts'
import { failing, tell } from './traces.ts'
import { fails, TaskRecorder, tracing } from './workshop.ts'

const no = () => false
const yes = () => true

test.each([
  ['ALL', ['g1']],
  ['FLOW', ['g1', 'inner']],
  ['NEIGHBORS', ['g1', 'g4', 'inner']],
  ['ATOM', ['g1', 'g3', 'g4', 'inner']],
] as const)('a no with depth %s leaves %j', async (depth: Depth, ran) => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const [g1, g2, g3, g4, inner] = ['g1', 'g2', 'g3', 'g4', 'inner'].map((name) => tracing(name, trace)) as [
    AnyTask,
    AnyTask,
    AnyTask,
    AnyTask,
    AnyTask,
  ]
  const sub = graph('sub', input(), inner)
  const links = [
    link(g1, g2, { decider: no, depth }),
    link(g2, sub),
    link(g2, g3),
    link(g3, g4),
    link(g1, sub, { decider: yes, depth }),
  ]
  const ending = await shop.run(graph({ name: 'g', links }, input(), g1, g2, sub, g3, g4))
  expect(trace.sort()).toEqual(ran)
  expect(ending.state).toBe('SUCCESS')
  expect((await shop.detail()).atoms.filter(({ state }) => state === 'IGNORE')).toHaveLength(5 - ran.length)
})

describe('a decider', () => {
  test('receives what the tasks before it returned, and chooses by it', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const told: unknown[] = []
    const check = task('check', { execute: () => 'broken' })
    const [repair, ship] = [tracing('repair', trace), tracing('ship', trace)]
    const is = (wanted: string) => (history: { check: string }) => {
      told.push(history)
      return history.check === wanted
    }
    const links = [link(check, repair, { decider: is('broken') }), link(check, ship, { decider: is('fine') })]
    await shop.run(graph({ name: 'g', links }, input(), check, repair, ship))
    expect(trace).toEqual(['repair'])
    expect(told).toEqual([{ check: 'broken' }, { check: 'broken' }])
  })

  test('in front of a flow decides about all that is in it', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const first = tracing('first', trace)
    const inner = linear({ name: 'deep', retry: times(2) }, input(), tracing('a', trace), tracing('b', trace))
    const middle = graph('middle', input(), inner, tracing('c', trace))
    const last = tracing('last', trace)
    const links = [link(first, middle, { decider: no, depth: 'ATOM' }), link(middle, last)]
    expect((await shop.run(graph({ name: 'g', links }, input(), first, middle, last))).state).toBe('SUCCESS')
    expect(trace).toEqual(['first', 'last'])
    expect(await shop.states()).toContain('deep_retry IGNORE, a IGNORE, b IGNORE')
  })

  test.each([
    [[yes, yes], true],
    [[yes, no], false],
    [[no, no], false],
  ])('of several asks all, and one no is enough: %#', async (answers, runs) => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const befores = answers.map((_answer, index) => tracing(`before ${index}`, []))
    const after = tracing('after', trace)
    const links = befores.map((before, index) => link(before, after, { decider: answers[index] ?? no }))
    const parts: AnyPart[] = [...befores, after]
    await shop.run(graph({ name: 'g', links }, input(), ...parts))
    expect(trace).toEqual(runs ? ['after'] : [])
  })

  test('whose predecessors were all left out abstains', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const [a, b, c] = ['a', 'b', 'c'].map((name) => tracing(name, trace)) as [AnyTask, AnyTask, AnyTask]
    const links = [link(a, b, { decider: no, depth: 'ATOM' }), link(b, c, { decider: no })]
    await shop.run(graph({ name: 'g', links }, input(), a, b, c))
    expect(trace).toEqual(['a', 'c'])
  })

  test('that throws fails what it decides about', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const [a, b] = [tracing('a', trace), tracing('b', trace)]
    const links = [link(a, b, { decider: fails('no idea') })]
    const ending = await shop.run(graph({ name: 'g', links }, input(), a, b))
    expect(ending).toMatchObject({ state: 'REVERTED', failures: [{ message: 'no idea' }] })
    expect(trace).toEqual(['a', '-a'])
  })
})

test('what was left out is not reverted, and is decided anew in the next attempt', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  let asked = 0
  const decider = () => {
    asked += 1
    return asked > 1
  }
  const [a, b] = [tracing('a', trace), tracing('b', trace)]
  const last = failing('last', 1)
  const links = [link(a, b, { decider, depth: 'ATOM' }), link(b, last)]
  const { ending } = await tell(shop, graph({ name: 'g', links, retry: times(2) }, input(), a, b, last))
  expect(ending.state).toBe('SUCCESS')
  expect(trace).toEqual(['a', '-a', 'a', 'b'])
})

test('an atom that needs what was left out fails, unless it can do without, or an atom further out has it', async () => {
  const make = (name: string) => task(name, { provides: 'x', execute: () => name })
  const flowOf = (user: AnyTask, outer: readonly AnyPart[] = []) => {
    const [start, out] = [task('start', { execute: () => 1 }), make('left out')]
    const links = [link(start, out, { decider: no, depth: 'ATOM' })]
    const parts: AnyPart[] = [start, out, user]
    const inner = graph({ name: 'g', links }, input(), ...parts)
    const all: AnyPart[] = [...outer, inner]
    return linear('f', input(), ...all)
  }
  const seen: unknown[] = []
  const needs = task('needs', { requires: ['x'], execute: ({ x }: { x: unknown }) => void seen.push(x) })
  const may = task('may', { optional: ['x'], execute: (args: { x?: unknown }) => void seen.push(args) })
  await using shop = new TaskRecorder()
  expect(await shop.run(flowOf(needs))).toMatchObject({
    state: 'REVERTED',
    failures: [{ code: 'JOBBOARD_MISSING_DEPENDENCIES' }],
  })
  await using second = new TaskRecorder()
  expect((await second.run(flowOf(may))).state).toBe('SUCCESS')
  await using third = new TaskRecorder()
  expect((await third.run(flowOf(needs, [make('further out')]))).state).toBe('SUCCESS')
  expect(seen).toEqual([{}, 'further out'])
})

test('what a decider has left out stays so when a retry beside it begins its flow anew', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  let broken = true
  const once = () => {
    if (broken) {
      broken = false
      throw new Error('once more')
    }
  }
  const [first, optional, last] = [tracing('first', trace), tracing('optional', trace), tracing('last', trace)]
  const flaky = linear({ name: 'flaky', retry: times(2) }, input(), tracing('beside', trace, { during: once }))
  const links = [link(first, optional, { decider: no }), link(optional, last), link(flaky, last)]
  const flow = graph({ name: 'g', links }, input(), first, optional, flaky, last)
  expect((await shop.run(flow, { concurrency: 1 })).state).toBe('SUCCESS')
  expect(trace).toEqual(['first', 'beside', '-beside', 'beside'])
  expect(await shop.states()).toContain('last IGNORE')
})
