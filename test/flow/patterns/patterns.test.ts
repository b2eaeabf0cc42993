import { describe, expect, test } from 'vitest'
import { AmbiguousDependency, DependencyFailure, Duplicate, InvalidArgument } from '../../../src/core/errors.ts'
import {
  type AnyPart,
  type AnyTask,
  backOff,
  checkStore,
  compile,
  graph,
  input,
  linear,
  link,
  mapTask,
  reduceTask,
  type StandardSchema,
  task,
  times,
  unordered,
} from '../../../src/flow/index.ts'

const make = (name: string, options: { requires?: string[]; provides?: string } = {}): AnyTask =>
  task(name, {
    requires: options.requires ?? [],
    provides: options.provides,
    execute: (_args: object) => name,
  } as never)

const namesIn = (flow: Parameters<typeof compile>[0]) => compile(flow).atoms.map(({ atom }) => atom.name)

describe('what a flow requires', () => {
  const parts: AnyPart[] = [
    make('a', { requires: ['x'], provides: 'y' }),
    make('b', { requires: ['y', 'z'], provides: 'x' }),
  ]
  test.each([
    ['linear', linear('f', input(), ...parts), ['x', 'z']],
    ['unordered', unordered('f', input(), ...parts), ['x', 'y', 'z']],
    [
      'nested',
      linear('f', input(), unordered('u', input(), ...parts), make('c', { requires: ['x'] })),
      ['x', 'y', 'z'],
    ],
    ['with a retry', unordered({ name: 'f', retry: times(2, { provides: 'y' }) }, input(), ...parts), ['x', 'z']],
  ])('%s', (_what, flow, requires) => {
    expect(flow.requires).toEqual(requires)
    expect([...flow.provides].sort()).toEqual(['x', 'y'])
  })

  test('graph', () => {
    const chain: AnyPart[] = [make('b', { requires: ['y', 'z'] }), make('a', { requires: ['x'], provides: 'y' })]
    const flow = graph('f', input(), ...chain)
    expect(flow.requires).toEqual(['z', 'x'])
    expect(namesIn(flow)).toEqual(['a', 'b'])
  })
})

describe('a graph', () => {
  const [a, b, c] = [make('a', { provides: 'x' }), make('b', { provides: 'x' }), make('c', { requires: ['x'] })]

  test('refuses a name that several provide, but not one that no atom requires', () => {
    expect(() => graph('g', input(), a, b, c)).toThrow(AmbiguousDependency)
    expect(() => graph('g', input(), a, b, c)).toThrow('flow g: c requires x, which a and b provide')
    expect(graph('g', input(), a, b).provides).toEqual(['x'])
  })

  test('refuses circles, drawn or implied', () => {
    const round = [make('d', { requires: ['z'], provides: 'y' }), make('e', { requires: ['y'], provides: 'z' })]
    expect(() => graph('g', input(), ...round)).toThrow(DependencyFailure)
    expect(() => graph({ name: 'g', links: [link(a, b), link(b, a)] }, input(), a, b)).toThrow('in a circle')
  })

  test('keeps of its parts only what its targets need', () => {
    const flow = graph({ name: 'g', targets: [c] }, input(), make('other'), c, a)
    expect(namesIn(flow)).toEqual(['a', 'c'])
    expect(() => graph({ name: 'g', targets: [b] }, input(), a, c)).toThrow(
      'targets must be a non-empty list of its parts',
    )
  })

  const loose = link as (...args: unknown[]) => unknown
  test.each([
    [() => graph({ name: 'g', links: [link(a, b)] }, input(), a, c), 'a link names b, which is not among its parts'],
    [() => loose(a, b, { decider: 'x' }), 'the link from a to b: decider must be a function'],
    [() => loose(a, b, { depth: 'ATOM' }), 'a depth needs a decider'],
    [() => loose(a, b, { decider: () => true, depth: 'DEEP' }), 'depth must be one of ALL, FLOW, NEIGHBORS, ATOM'],
  ])('refuses links that make no sense: %#', (make, message) => {
    expect(make).toThrow(InvalidArgument)
    expect(make).toThrow(message)
  })
})

test('names are distinguished in all flows of a flow', () => {
  const inner = linear('inner', input(), make('a'))
  expect(() => unordered('f', input(), make('a'), inner)).toThrow(Duplicate)
  expect(() => unordered('f', input(), inner, inner)).toThrow('flow f: two of its tasks are named a')
  const retried = (name: string) => linear({ name: 'same', retry: times(2) }, input(), make(name))
  expect(() => unordered('f', input(), retried('a'), retried('b'))).toThrow('two of its retries are named same_retry')
})

test('n tasks after m tasks are n + m edges, not n × m', () => {
  const layer = (name: string) =>
    unordered(name, input(), ...Array.from({ length: 100 }, (_, n) => make(`${name}${n}`)))
  const { nodes } = compile(linear('f', input(), layer('a'), layer('b'), layer('c')))
  const edges = nodes.reduce((sum, { successors }) => sum + successors.length, 0)
  expect(edges).toBeLessThan(700)
})

test('an argument comes from the nearest provider: parts before it, the last first, then its retry, then further out', () => {
  const sourceOf = (flow: Parameters<typeof compile>[0], atom: string) => {
    const node = compile(flow).byName.get(atom)
    return node && [...node.providers('x')].map((provider) => provider.atom.name)
  }
  const user = make('user', { requires: ['x'] })
  const before = linear('before', input(), make('a', { provides: 'x' }), make('b', { provides: 'x' }))
  const retry = times(2, { name: 'r', provides: 'x' })
  const inner = linear(
    { name: 'inner', retry },
    input(),
    make('c', { provides: 'x' }),
    user,
    make('late', { provides: 'x' }),
  )
  expect(sourceOf(linear('f', input(), before, inner), 'user')).toEqual(['c', 'r', 'b', 'a'])
  const apart = unordered({ name: 'apart', retry }, input(), make('c', { provides: 'x' }), user)
  expect(sourceOf(linear('f', input(), before, apart), 'user')).toEqual(['r', 'b', 'a'])
})

test('map and reduce take their values in the order of requires', async () => {
  const square = mapTask('square', { requires: ['a', 'b'], provides: 'squares', map: (n: number) => n * n })
  const minus = reduceTask('minus', {
    requires: ['c', 'b', 'a'],
    provides: 'rest',
    reduce: (x: number, y: number) => x - y,
  })
  expect(await square.execute({ a: 3, b: 2 }, {} as never)).toEqual([9, 4])
  expect(await minus.execute({ a: 1, b: 2, c: 10 }, {} as never)).toBe(7)
  const loose = mapTask as (...args: unknown[]) => unknown
  expect(() => loose('m', { requires: ['a'], provides: 'x', map: () => 1 })).toThrow('at least two values')
})

describe('a schema', () => {
  const schema: StandardSchema<{ size: string }, { size: number }> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value) => {
        const size = Number(Object(value).size)
        return Number.isNaN(size)
          ? { issues: [{ message: 'is no number', path: ['size', { key: 0 }] }] }
          : { value: { size } }
      },
    },
  }
  const flow = linear(
    'f',
    input(schema),
    task('t', { requires: ['size'], execute: ({ size }: { size: number }) => size }),
  )

  test('makes of a store what tasks see', async () => {
    expect(await checkStore(flow, { size: '3' })).toEqual({ size: 3 })
  })

  test('says what is wrong where, and no value', async () => {
    const refused = checkStore(flow, { size: 'secret' })
    await expect(refused).rejects.toThrow(InvalidArgument)
    await expect(refused).rejects.toThrow('flow f: the store does not satisfy its schema: size.0: is no number')
    await expect(refused).rejects.not.toThrow('secret')
  })

  test('is a Standard Schema', () => {
    expect(() => (input as (schema: unknown) => unknown)({ parse: () => 1 })).toThrow(
      'input: the schema must be a Standard Schema',
    )
  })
})

test('waits grow by the factor, up to the longest; jitter takes a part of them', () => {
  const wait = (attempt: number, options: Parameters<typeof backOff>[0]) => {
    const history = { length: attempt } as never
    return backOff(options).onFailure({}, { history, failure: { name: 'Error', message: '' }, atom: 'a' } as never)
  }
  const plain = { first: 100, max: 350, jitter: 'none' } as const
  expect([1, 2, 3, 4].map((attempt) => wait(attempt, plain))).toEqual(
    [100, 200, 350, 350].map((after) => ({ decision: 'RETRY', after })),
  )
  expect(wait(2, { ...plain, factor: 1 })).toEqual({ decision: 'RETRY', after: 100 })
  expect(wait(1, { first: 100, random: () => 0.5 })).toEqual({ decision: 'RETRY', after: 50 })
  expect([wait(5, plain), wait(1, { ...plain, when: () => false })]).toEqual(['REVERT', 'REVERT'])
})
