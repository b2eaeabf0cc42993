import { describe, expect, test } from 'vitest'
import { InvalidState } from '../../../src/core/errors.ts'
import { SessionExpired } from '../../../src/zookeeper/protocol/errors.ts'
import { Chroot } from '../../../src/zookeeper/protocol/path.ts'
import type { WatchEvent, WatchEventType } from '../../../src/zookeeper/protocol/records.ts'
import type { OneShotHandler, OneShotKind } from '../../../src/zookeeper/watches/one-shot-watches.ts'
import { WatchRegistry } from '../../../src/zookeeper/watches/watches.ts'

const event = (type: WatchEventType, path: string): WatchEvent => ({ type, path })

/** A registry, and handlers that write down what they were told. */
function registry(root = '') {
  const faults: unknown[] = []
  const told: [string, readonly WatchEvent[] | 'gap'][] = []
  const handler = (name: string) => ({
    events: (batch: readonly WatchEvent[]) => void told.push([name, batch]),
    gap: () => void told.push([name, 'gap']),
  })
  const onFault = (error: unknown) => void faults.push(error)
  return {
    watches: new WatchRegistry({ chroot: new Chroot(root), armingBytes: () => 128 * 1_024, onFault }),
    faults,
    told,
    handler,
  }
}

const nothing = { data: [], exist: [], child: [], persistent: [], recursive: [] }

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

  test('go on when an async handler fails later, and say so', async () => {
    const { watches, faults } = registry()
    const failing = (what: string) => async () => {
      await Promise.resolve()
      throw new Error(what)
    }
    watches.add('/a', 'recursive', { events: failing('events'), gap: failing('gap') })
    watches.dispatch([event('created', '/a')])
    watches.gap()
    watches.noteRequested('/b', 'data')
    watches.noteArmed('/b', 'data', { present: true, handler: failing('one-shot') })
    watches.noteSettled('/b', 'data')
    watches.dispatch([event('deleted', '/b')])
    await new Promise((resolve) => setImmediate(resolve))
    expect(faults.map((fault) => (fault as Error).message)).toEqual(['events', 'gap', 'one-shot'])
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
    expect(watches.armingPortions()).toEqual([nothing])
  })

  test('a handler that was removed by the one before it receives nothing', () => {
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

  test('are known by the paths of the user, and armed by those of the server', () => {
    const { watches, told, handler } = registry('/app')
    watches.add('/', 'recursive', handler('root'))
    watches.add('/a', 'persistent', handler('a'))
    watches.dispatch([event('created', '/app/a'), event('deleted', '/app'), event('deleted', '/apple')])
    expect(Object.fromEntries(told)).toEqual({
      root: [event('created', '/a'), event('deleted', '/')],
      a: [event('created', '/a')],
    })
    expect(watches.armingPortions()).toEqual([{ ...nothing, persistent: ['/app/a'], recursive: ['/app'] }])
  })

  test('are armed again in portions that fit a frame', () => {
    const { watches, handler } = registry()
    const paths = Array.from({ length: 400 }, (_, index) => `/${'x'.repeat(1_000)}${index}`)
    for (const path of paths) watches.add(path, 'recursive', handler(path))
    watches.add('/p', 'persistent', handler('p'))
    const portions = watches.armingPortions()
    expect(portions.length).toBeGreaterThan(3)
    expect(portions.flatMap(({ recursive }) => recursive)).toEqual(paths)
    expect(portions.flatMap(({ persistent }) => persistent)).toEqual(['/p'])
    for (const { recursive } of portions) expect(recursive.join('    ').length).toBeLessThanOrEqual(128 * 1_024)
  })
})

describe('one-shot watches', () => {
  /** Asks for a watch and has it answered. */
  function armed(
    watches: WatchRegistry,
    path: string,
    kind: OneShotKind,
    handler: OneShotHandler,
    present = true,
  ): void {
    watches.noteRequested(path, kind)
    watches.noteArmed(path, kind, { present, handler })
    watches.noteSettled(path, kind)
  }

  /** Handlers that write down what they were told. */
  function told() {
    const calls: string[] = []
    const handler = (name: string) => (event: { type: string; path: string }) =>
      void calls.push(`${name} ${event.type} ${event.path}`)
    return { calls, handler }
  }

  test.each<[OneShotKind, WatchEventType[]]>([
    ['data', ['created', 'deleted', 'dataChanged']],
    ['children', ['childrenChanged', 'deleted']],
  ])('of %s receive what concerns them, once', (kind, concerns) => {
    for (const type of ['created', 'deleted', 'dataChanged', 'childrenChanged'] as const) {
      const { watches } = registry()
      const { calls, handler } = told()
      armed(watches, '/a', kind, handler('a'))
      watches.dispatch([event(type, '/b'), event(type, '/a/c'), event(type, '/a'), event(type, '/a')])
      expect(calls).toEqual(concerns.includes(type) ? [`a ${type} /a`] : [])
      expect(watches.armingPortions()).toEqual([
        concerns.includes(type) ? nothing : { ...nothing, [kind === 'data' ? 'data' : 'child']: ['/a'] },
      ])
    }
  })

  test('call one function once for one event, whatever it waits for', () => {
    const { watches } = registry()
    const { calls, handler } = told()
    const both = handler('both')
    armed(watches, '/a', 'data', both)
    armed(watches, '/a', 'data', both)
    armed(watches, '/a', 'children', both)
    watches.dispatch([event('deleted', '/a')])
    expect(calls).toEqual(['both deleted /a'])
  })

  test('are armed again by what they saw', () => {
    const { watches } = registry('/app')
    const { handler } = told()
    armed(watches, '/there', 'data', handler('a'))
    armed(watches, '/not', 'data', handler('b'), false)
    armed(watches, '/list', 'children', handler('c'))
    const portion = { ...nothing, data: ['/app/there'], exist: ['/app/not'], child: ['/app/list'] }
    expect(watches.armingPortions()).toEqual([portion])
  })

  test('are idle at the server only when the last one is gone and no answer is to come', () => {
    const { watches } = registry()
    const { handler } = told()
    const first = handler('first')
    const second = handler('second')
    armed(watches, '/a', 'data', first)
    armed(watches, '/a', 'data', second)
    expect(watches.removeOneShot('/a', 'data', first)).toEqual({ found: true, idle: false })
    expect(watches.removeOneShot('/a', 'data', first)).toEqual({ found: false, idle: false })
    watches.noteRequested('/a', 'data')
    expect(watches.removeOneShot('/a', 'data', second)).toEqual({ found: true, idle: false })
    watches.noteArmed('/a', 'data', { present: true })
    expect(watches.noteSettled('/a', 'data')).toBe(true)
    expect(watches.removeOneShot('/a', 'data')).toEqual({ found: false, idle: false })
  })

  test('that were not armed, or have fired since, are not idle but gone', () => {
    const { watches } = registry()
    watches.noteRequested('/a', 'data')
    expect(watches.noteSettled('/a', 'data')).toBe(false)
    watches.noteRequested('/a', 'data')
    watches.noteArmed('/a', 'data', { present: true })
    watches.dispatch([event('deleted', '/a')])
    expect(watches.noteSettled('/a', 'data')).toBe(false)
    expect(watches.armingPortions()).toEqual([nothing])
  })

  test('and persistent ones keep off the same path', () => {
    const { watches, handler: persistent } = registry()
    const { handler } = told()
    const registration = watches.add('/a', 'recursive', persistent('a'))
    expect(() => watches.noteRequested('/a', 'children')).toThrow(InvalidState)
    armed(watches, '/a/b', 'data', handler('below'))
    watches.remove(registration)
    watches.noteRequested('/a', 'data')
    expect(() => watches.add('/a', 'persistent', persistent('a'))).toThrow(InvalidState)
    watches.noteSettled('/a', 'data')
    watches.add('/a', 'persistent', persistent('a'))
  })

  test('are lost with the session, and say so, and those that come after the closing say so at once', () => {
    const { watches } = registry()
    const lost: unknown[] = []
    const handler: OneShotHandler = (event) => void lost.push(event)
    armed(watches, '/a', 'data', handler)
    armed(watches, '/a', 'children', handler)
    const reason = new SessionExpired('over')
    watches.sessionOver(reason)
    watches.sessionOver(reason)
    expect(lost).toEqual([{ type: 'lost', path: '/a', reason }])
    expect(watches.armingPortions()).toEqual([nothing])
    watches.close()
    armed(watches, '/b', 'data', handler)
    expect(lost[1]).toMatchObject({ type: 'lost', path: '/b', reason: { name: 'SessionExpired' } })
  })

  test('go on when a handler throws', () => {
    const { watches, faults } = registry()
    const { calls, handler } = told()
    const fault = new Error('mine')
    armed(watches, '/a', 'data', () => {
      throw fault
    })
    armed(watches, '/a', 'data', handler('second'))
    watches.dispatch([event('deleted', '/a')])
    expect([faults, calls]).toEqual([[fault], ['second deleted /a']])
  })
})
