/** Which queues a caller serves, and whose turn it is. */
import { describe, expect, test } from 'vitest'
import { QueueTurns, TurnsOfCallers } from '../../../src/board/queue/queue-turns.ts'
import { QueueChoice, type ServedQueues } from '../../../src/board/queue/served-queues.ts'
import { ViewScope } from '../../../src/board/view/view-scope.ts'
import { InvalidArgument } from '../../../src/core/errors.ts'

const choice = (served: ServedQueues) => QueueChoice.parse(served, 'a caller')

describe('a choice', () => {
  test('finds the index of a queue: by its name, else by the first pattern', () => {
    const served = choice(['tenant-*', 'tenant-1', 't*', 'bulk'])
    const places = ['tenant-1', 'tenant-2', 'ten', 'bulk', 'default'].map((queue) => served.indexOf(queue))
    expect(places).toEqual([1, 0, 2, 3, -1])
    expect([served.includes('bulk'), served.includes('default'), served.names]).toEqual([true, false, undefined])
    expect(choice(['a', 'b']).names).toEqual(['a', 'b'])
  })

  test('says its queues for people', () => {
    expect([String(choice(['a', 'b*'])), String(choice({ a: 3, b: 1 }))]).toEqual(['a, b*', 'a=3, b=1'])
  })

  test('keeps finding indexes when there are very many queues', () => {
    const served = choice(['a*', 'b'])
    for (let n = 0; n < 3_000; n += 1) expect(served.indexOf(`a${n}`)).toBe(0)
    expect([served.indexOf('b'), served.indexOf('c')]).toEqual([1, -1])
  })

  test.each<[string, unknown, string]>([
    ['no queue', [], "queues must be a list of names such as ['urgent', 'bulk'], or weights"],
    ['a text', 'urgent', "queues must be a list of names such as ['urgent', 'bulk'], or weights"],
    ['a name twice', ['a', 'a'], 'a caller: queues contains "a" twice'],
    ['a star within', ['a*b'], 'queue "a*b" must not contain *, commas, ='],
    ['a number', [7], 'a queue must be a non-empty text, got 7'],
    ['a weight of 0', { a: 0, b: 1 }, 'the weight of queue "a" must be a whole number from 1 to 1000000, got 0'],
    ['a part as a weight', { a: 0.5 }, 'got 0.5; to stop serving the queue, remove it from queues'],
    ['too many', Array.from({ length: 1_001 }, (_, n) => `q${n}`), 'queues has 1001 names, at most 1000'],
  ])('refuses %s', (_, served, message) => {
    const parse = () => choice(served as string[])
    expect(parse).toThrow(InvalidArgument)
    expect(parse).toThrow(message)
  })
})

describe('turns', () => {
  /** Claims jobs one by one from queues that have so many, and returns how many of each were claimed. */
  function claim(turns: QueueTurns, queues: Record<string, number>, jobs: number): Record<string, number> {
    const taken: Record<string, number> = {}
    for (let n = 0; n < jobs; n += 1) {
      const names = turns.order([]).map((place) => turns.choice.entries[place]?.name ?? '')
      const name = names.find((each) => (queues[each] ?? 0) > 0)
      if (name === undefined) break
      queues[name] = (queues[name] ?? 0) - 1
      taken[name] = (taken[name] ?? 0) + 1
      turns.noteClaimed(name)
    }
    return taken
  }

  test('divide the claims by weight while all queues have jobs', () => {
    const turns = new QueueTurns(choice({ a: 5, b: 3, c: 1 }))
    expect(claim(turns, { a: 1_000, b: 1_000, c: 1_000 }, 900)).toEqual({ a: 500, b: 300, c: 100 })
  })

  test('owe nothing to a queue for the time in which it had no jobs', () => {
    const turns = new QueueTurns(choice({ a: 1, b: 1 }))
    expect(claim(turns, { a: 1_000 }, 500)).toEqual({ a: 500 })
    expect(claim(turns, { a: 1_000, b: 1_000 }, 100)).toEqual({ a: 50, b: 50 })
  })

  test('count what was chosen and is not granted yet', () => {
    const turns = new QueueTurns(choice({ a: 2, b: 1 }))
    expect([turns.order([]), turns.order([0, 0]), turns.order([0, 0, 1])]).toEqual([
      [0, 1],
      [1, 0],
      [0, 1],
    ])
  })

  test('are the same for callers that serve the same queues', () => {
    const callers = new TurnsOfCallers()
    const frozen = Object.freeze({ a: 1, b: 2 })
    expect(callers.of({ a: 1, b: 2 }, 'a caller')).toBe(callers.of(frozen, 'a caller'))
    expect(callers.of(frozen, 'a caller')).not.toBe(callers.of({ a: 1, b: 3 }, 'a caller'))
    expect(callers.of(undefined, 'a caller')).toBeUndefined()
    const list = ['a']
    const before = callers.of(list, 'a caller')
    list.push('b')
    expect(callers.of(list, 'a caller')).not.toBe(before)
  })
})

test('a view lists the board once for each choice, however many there are, and finds a former size by a pattern', () => {
  const [scope, turns] = [new ViewScope(), new TurnsOfCallers()]
  const added = () =>
    Array.from({ length: 150 }, (_, n) => scope.add(turns.of([`q${n}`], 'a caller')?.choice, { isOpen: true }))
  expect(scope.add(choice(['first']), { isOpen: false })).toBe(true)
  expect(new Set(added())).toEqual(new Set([true]))
  expect(new Set(added())).toEqual(new Set([false]))
  expect([scope.includes('q7'), scope.includes('q150'), scope.includes('q7')]).toEqual([true, false, true])
  expect(scope.readsSection('default')).toBe(false)
  scope.add(choice(['lar*']), { isOpen: true })
  expect(scope.readsSection('default')).toBe(true)
  expect(scope.add(undefined, { isOpen: true })).toBe(true)
  expect(scope.isRestricted).toBe(false)
})
