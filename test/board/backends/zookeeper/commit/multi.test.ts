/** Which transactions go out together, and whose each operation of a multi is. */

import { describe, expect, test } from 'vitest'
import {
  compose,
  type QueuedTransaction,
  shareMulti,
} from '../../../../../src/board/backends/zookeeper/commit/multi.ts'
import type {
  Addition,
  SharedSum,
  TouchedName,
  TransactionStep,
} from '../../../../../src/board/backends/zookeeper/commit/transaction.ts'
import { takeGroup } from '../../../../../src/core/async/group-commit.ts'
import { op } from '../../../../../src/zookeeper/index.ts'

interface TurnOptions {
  readonly touches?: readonly TouchedName[]
  readonly steps?: number
  readonly bytes?: number
  /** The version of the gate that it was judged by. */
  readonly gate?: number
}

function queuedOf(name: string, { touches = [], steps = 2, bytes = 10, gate }: TurnOptions = {}): QueuedTransaction {
  return {
    transaction: {
      what: name,
      touches,
      steps: Array.from({ length: steps }, (_, number): TransactionStep => {
        return { subject: 'posting', op: op.setData(`/${name}/${number}`, new Uint8Array(bytes / steps)) }
      }),
      ...(gate === undefined ? {} : { guard: op.check('/gate', { version: gate }) }),
      onCommitted: () => undefined,
      onRecovered: () => undefined,
      onRefused: (error) => error,
    },
    until: 0,
    leftOut: new Set(),
    resolve: () => undefined,
    reject: () => undefined,
  }
}

const alone = (name: string): TouchedName => ({ name, mode: 'alone' })
const together = (name: string): TouchedName => ({ name, mode: 'together' })
const names = (allQueued: readonly QueuedTransaction[]) => allQueued.map(({ transaction }) => transaction.what)

/** Names of each batch, until nothing is left. */
function batches(allQueued: readonly QueuedTransaction[]): string[][] {
  const found: string[][] = []
  for (let waiting = allQueued; waiting.length > 0; ) {
    const { group, rest } = takeGroup(waiting, shareMulti())
    expect(group.length).toBeGreaterThan(0)
    found.push(names(group))
    waiting = rest
  }
  return found
}

describe('gathering', () => {
  test('takes all that are about different things, in their order', () => {
    const allQueued = ['a', 'b', 'c'].map((name) => queuedOf(name, { touches: [alone(name)] }))
    expect(batches(allQueued)).toEqual([['a', 'b', 'c']])
    expect(takeGroup([], shareMulti())).toEqual({ group: [], rest: [] })
  })

  test('leaves for later what is about the same, and keeps the order among those', () => {
    const allQueued = [
      queuedOf('first of x', { touches: [alone('x')] }),
      queuedOf('second of x', { touches: [alone('x'), alone('y')] }),
      queuedOf('first of z', { touches: [alone('z')] }),
      queuedOf('first of y', { touches: [alone('y')] }),
      queuedOf('third of x', { touches: [alone('x')] }),
    ]
    expect(batches(allQueued)).toEqual([['first of x', 'first of z'], ['second of x'], ['first of y', 'third of x']])
  })

  test('lets those who share go together, and keeps one that wants to be alone by itself', () => {
    const allQueued = [
      queuedOf('reader', { touches: [together('x')] }),
      queuedOf('second reader', { touches: [together('x')] }),
      queuedOf('writer', { touches: [alone('x')] }),
      queuedOf('late reader', { touches: [together('x')] }),
    ]
    expect(batches(allQueued)).toEqual([['reader', 'second reader'], ['writer'], ['late reader']])
  })

  test('stops at so many operations, and at so many bytes, but always takes the first', () => {
    const large = (name: string) => queuedOf(name, { bytes: 300 * 1_024 })
    expect(batches([large('a'), large('b'), large('c')])).toEqual([['a'], ['b'], ['c']])
    const many = (name: string) => queuedOf(name, { steps: 400, bytes: 400 })
    expect(batches(['a', 'b', 'c', 'd'].map(many))).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ])
    expect(batches([queuedOf('huge', { bytes: 900 * 1_024 }), queuedOf('small')])).toEqual([['huge'], ['small']])
  })

  test('finds who is behind a thousand that wait for each other', () => {
    const storm = Array.from({ length: 1_000 }, (_, number) => queuedOf(`${number}`, { touches: [alone('key')] }))
    const { group, rest } = takeGroup([...storm, queuedOf('settle', { touches: [alone('job')] })], shareMulti())
    expect(names(group)).toEqual(['0', 'settle'])
    expect(names(rest)).toEqual(names(storm.slice(1)))
  })

  test('takes less, and in the end one alone, where connections broke under what was sent', () => {
    const sizes = [0, 1, 2, 5].map((broken) => {
      const allQueued = Array.from({ length: 512 }, (_, number) => queuedOf(`${number}`))
      return takeGroup(
        allQueued.map((queued) => ({ ...queued, brokenConnections: broken })),
        shareMulti(),
      ).group.length
    })
    expect(sizes).toEqual([512, 128, 32, 1])
  })
})

describe('a multi', () => {
  const first = op.setData('/marker', null)

  test('begins with its first operation, checks each guard once, and names whose every other is', () => {
    const [a, b, c] = [queuedOf('a', { gate: 7 }), queuedOf('b'), queuedOf('c', { gate: 7 })]
    const { ops, findFailed } = compose(first, [a, b, c])
    expect(ops.map(({ path }) => path)).toEqual(['/marker', '/gate', '/a/0', '/a/1', '/b/0', '/b/1', '/c/0', '/c/1'])
    expect(findFailed(0)).toEqual({ first: true })
    expect(findFailed(1)).toEqual({ allQueued: [a, c], step: 'guard' })
    expect(findFailed(5)).toEqual({ queued: b, step: b.transaction.steps[1] })
    expect(findFailed(8)).toBeUndefined()
  })

  test('checks guards of different revisions both: the older one refuses its own', () => {
    const [a, b] = [queuedOf('a', { gate: 7 }), queuedOf('b', { gate: 8 })]
    const { ops, findFailed } = compose(first, [a, b])
    expect(ops.map(({ path }) => path).filter((path) => path === '/gate')).toHaveLength(2)
    expect([findFailed(1), findFailed(2)]).toEqual([
      { allQueued: [a], step: 'guard' },
      { allQueued: [b], step: 'guard' },
    ])
  })

  test('adds up what its transactions add to a number: one step, which belongs to all of them', () => {
    const committed: unknown[] = []
    const sum = (path: string): SharedSum => ({
      toStep: (total) => ({ op: op.setData(path, Buffer.from(String(total)), { version: 3 }) }),
      onCommitted: (total, stat) => committed.push([path, total, stat?.mtime]),
    })
    const [one, other] = [sum('/one'), sum('/other')]
    const add = (queued: QueuedTransaction, additions: readonly Addition[]): QueuedTransaction => ({
      ...queued,
      transaction: { ...queued.transaction, additions },
    })
    const a = add(queuedOf('a', { gate: 7 }), [{ sum: one, amount: 10 }])
    const b = queuedOf('b')
    const c = add(queuedOf('c'), [
      { sum: one, amount: 5 },
      { sum: other, amount: 1 },
    ])
    const { ops, findFailed, passToSums, resultsOf } = compose(first, [a, b, c])
    expect(ops.slice(0, 4).map(({ path }) => path)).toEqual(['/marker', '/gate', '/one', '/other'])
    expect(ops.slice(2, 4).map((each) => 'data' in each && String(each.data))).toEqual(['15', '1'])
    expect(findFailed(2)).toMatchObject({ allQueued: [a, c], step: { shared: one } })
    expect(findFailed(3)).toMatchObject({ allQueued: [c] })
    expect(findFailed(4)).toEqual({ queued: a, step: a.transaction.steps[0] })
    const results = ops.map(({ path }) => ({ path, mtime: 1_000 }))
    passToSums(results as Parameters<typeof passToSums>[0])
    passToSums(undefined)
    expect(committed).toEqual([
      ['/one', 15, 1_000],
      ['/other', 1, 1_000],
      ['/one', 15, undefined],
      ['/other', 1, undefined],
    ])
    expect(resultsOf(1, results)).toMatchObject([{ path: '/b/0' }, { path: '/b/1' }])
  })

  test('answers everybody with the results of their own steps, also where some were left out', () => {
    const [a, b] = [queuedOf('a', { gate: 7, steps: 3 }), queuedOf('b')]
    const [, second] = a.transaction.steps
    if (second) a.leftOut = new Set([second])
    const { ops, findFailed, resultsOf } = compose(first, [a, b])
    const results = ops.map(({ path }) => ({ path }))
    expect(resultsOf(0, results)).toEqual([{ path: '/a/0' }, undefined, { path: '/a/2' }])
    expect(resultsOf(1, results)).toEqual([{ path: '/b/0' }, { path: '/b/1' }])
    expect(findFailed(3)).toEqual({ queued: a, step: a.transaction.steps[2] })
  })
})
