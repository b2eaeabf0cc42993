import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { type AnyFlow, compile, type ExecutionNode, input, linear, task } from '../../../src/flow/index.ts'

const make = (name: string, provides: string) => task(name, { provides, execute: () => name })
const use = task('use', { requires: ['x'], execute: ({ x }: { x: string }) => x })

const names = (nodes: Iterable<ExecutionNode>) => [...nodes].map(({ atom }) => atom?.name)

describe('compile', () => {
  test('orders a linear flow by edges between neighbours', () => {
    const { nodes, byName } = compile(linear('f', input(), make('a', 'x'), make('b', 'y'), make('c', 'z')))
    expect(names(nodes)).toEqual(['a', 'b', 'c'])
    expect(nodes.map(({ predecessors }) => names(predecessors))).toEqual([[], ['a'], ['b']])
    expect(nodes.map(({ successors }) => names(successors))).toEqual([['b'], ['c'], []])
    expect(byName.get('b')).toBe(nodes[1])
  })

  test('finds for each argument the nearest task before that provides it', () => {
    const flow = linear(
      'f',
      input<{ x: string }>(),
      use,
      make('a', 'x'),
      make('b', 'x'),
      task('again', { ...use }),
      make('c', 'x'),
    )
    const { nodes } = compile(flow)
    expect(nodes.map(({ sources }) => [...sources].map(([name, node]) => `${name} from ${node.atom.name}`))).toEqual([
      [],
      [],
      [],
      ['x from b'],
      [],
    ])
  })

  test('is done once for each flow', () => {
    const flow = linear('f', input(), make('a', 'x'))
    expect(compile(flow)).toBe(compile(flow))
    expect(compile(linear('f', input(), make('a', 'x')))).not.toBe(compile(flow))
  })

  test('refuses patterns and atoms that another release may know', () => {
    const flow: AnyFlow = linear('f', input(), make('a', 'x'))
    const [a] = flow.atoms
    const future: unknown[] = [
      { ...flow, pattern: 'circular' },
      { ...flow, atoms: [{ ...a, kind: 'oracle' }] },
    ]
    expect(() => compile(future[0] as AnyFlow)).toThrow(InvalidArgument)
    expect(() => compile(future[0] as AnyFlow)).toThrow('flow f: this release does not know the pattern circular')
    expect(() => compile(future[1] as AnyFlow)).toThrow('flow f: this release does not know the kind of a, oracle')
  })
})
