import { describe, expect, test } from 'vitest'
import { InvalidState } from '../../../src/core/errors.ts'
import type { WatchEvent, WatchEventType } from '../../../src/zookeeper/records.ts'
import { Watches } from '../../../src/zookeeper/watches.ts'

const event = (type: WatchEventType, path: string): WatchEvent => ({ type, path })

/** A registry, and handlers that write down what they were told. */
function registry() {
  const faults: unknown[] = []
  const told: [string, readonly WatchEvent[] | 'gap'][] = []
  const handler = (name: string) => ({
    events: (batch: readonly WatchEvent[]) => void told.push([name, batch]),
    gap: () => void told.push([name, 'gap']),
  })
  return { watches: new Watches((error) => faults.push(error)), faults, told, handler }
}

describe('watches', () => {
  test('hand each handler its part of a batch, in order, as one', () => {
    const { watches, told, handler } = registry()
    watches.add('/a', 'recursive', handler('a'))
    watches.add('/a/b', 'persistent', handler('b'))
    watches.add('/', 'recursive', handler('root'))
    const batch = [
      event('created', '/a/b'),
      event('childrenChanged', '/a/b'),
      event('dataChanged', '/ab'),
      event('deleted', '/a/b/c'),
    ]
    watches.dispatch(batch)
    expect(Object.fromEntries(told)).toEqual({
      a: [batch[0], batch[3]],
      b: [batch[0], batch[1]],
      root: [batch[0], batch[2], batch[3]],
    })
  })

  test('go on when a handler throws', () => {
    const { watches, told, handler, faults } = registry()
    const fault = new Error('mine')
    const throwing = () => {
      throw fault
    }
    watches.add('/a', 'recursive', { events: throwing, gap: throwing })
    watches.add('/a', 'recursive', handler('second'))
    watches.dispatch([event('created', '/a')])
    watches.gap()
    expect(told).toEqual([
      ['second', [event('created', '/a')]],
      ['second', 'gap'],
    ])
    expect(faults).toEqual([fault, fault])
  })

  test('are taken away for good only with the last handler of a path', () => {
    const { watches, told, handler } = registry()
    const first = watches.add('/a', 'persistent', handler('first'))
    const second = watches.add('/a', 'persistent', handler('second'))
    expect(watches.remove(first)).toBe(false)
    expect(watches.remove(first)).toBe(false)
    watches.gap()
    expect(told).toEqual([['second', 'gap']])
    expect(watches.remove(second)).toBe(true)
    expect(watches.portions()).toEqual([{ persistent: [], recursive: [] }])
  })

  test('a handler that was removed by the one before it hears nothing', () => {
    const { watches, told, handler } = registry()
    watches.add('/a', 'recursive', { events: () => void watches.remove(second), gap: () => undefined })
    const second = watches.add('/a', 'recursive', handler('second'))
    watches.dispatch([event('created', '/a')])
    expect(told).toEqual([])
  })

  test('refuse the other mode on the same path', () => {
    const { watches, handler } = registry()
    watches.add('/a', 'recursive', handler('a'))
    expect(() => watches.add('/a', 'persistent', handler('b'))).toThrow(InvalidState)
  })

  test('are armed again in portions that fit a frame', () => {
    const { watches, handler } = registry()
    const paths = Array.from({ length: 400 }, (_, index) => `/${'x'.repeat(1_000)}${index}`)
    for (const path of paths) watches.add(path, 'recursive', handler(path))
    watches.add('/p', 'persistent', handler('p'))
    const portions = watches.portions()
    expect(portions.length).toBeGreaterThan(3)
    expect(portions.flatMap(({ recursive }) => recursive)).toEqual(paths)
    expect(portions.flatMap(({ persistent }) => persistent)).toEqual(['/p'])
    for (const { recursive } of portions) expect(recursive.join('').length).toBeLessThanOrEqual(128 * 1_024)
  })
})
