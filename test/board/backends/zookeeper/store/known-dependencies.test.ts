/** What is known of dependencies by changes: all of it, or nothing. */
import { expect, test } from 'vitest'
import { KnownDependencies } from '../../../../../src/board/backends/zookeeper/store/known-dependencies.ts'
import { ZooKeeperLayout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'

type Change = Parameters<KnownDependencies['apply']>[0]

const layout = new ZooKeeperLayout('/boards/one')
const id = (n: number) => `job${String(n).padStart(10, '0')}`
const [FIRST, SECOND, LAST] = [id(1), id(2), id(3)]

const created = (path: string): Change => ({ type: 'created', path })
const deleted = (path: string): Change => ({ type: 'deleted', path })

function knownAfter(...changes: readonly Change[]): KnownDependencies {
  const known = new KnownDependencies(layout)
  for (const change of changes) known.apply(change)
  return known
}

/** The changes of the post of a job after others. */
function postOf(dependent: string, others: readonly string[]): Change[] {
  return [
    created(layout.posting(dependent)),
    ...others.map((other) => created(layout.dependent(other, dependent))),
    created(layout.wait(dependent)),
    ...others.map((other) => created(layout.waitFor(dependent, other))),
  ]
}

test('a job whose post was seen is known with the jobs after which it is run', () => {
  const known = knownAfter(...postOf(LAST, [FIRST, SECOND]))
  expect([FIRST, SECOND, LAST].map((job) => known.dependentsOf(job))).toEqual([[LAST], [LAST], []])
  expect(known.waitsOf(LAST)).toEqual([FIRST, SECOND])
  expect(known.waitsOf(FIRST)).toBeUndefined()
  expect(known.isReady(LAST)).toBe(false)
})

test('a job waits no more for jobs that have ended, and is ready when its wait was deleted', () => {
  const known = knownAfter(...postOf(LAST, [FIRST, SECOND]), deleted(layout.waitFor(LAST, FIRST)))
  expect(known.waitsOf(LAST)).toEqual([SECOND])
  known.noteEnded(SECOND, [LAST])
  expect(known.waitsOf(LAST)).toEqual([])
  known.apply(deleted(layout.wait(LAST)))
  expect(known.waitsOf(LAST)).toBeUndefined()
  expect(known.isReady(LAST)).toBe(true)
  known.forget(LAST)
  expect(known.isReady(LAST)).toBe(false)
})

test('the servers are asked about a job that had dependents before, and about what was refused', () => {
  const known = knownAfter(...postOf(LAST, [FIRST]))
  known.noteCount(FIRST, 1)
  expect(known.dependentsOf(FIRST)).toEqual([LAST])
  known.noteCount(FIRST, 2)
  expect(known.dependentsOf(FIRST)).toBeUndefined()
  known.note(SECOND)
  known.apply(created(layout.dependent(SECOND, LAST)))
  expect(known.dependentsOf(SECOND)).toBeUndefined()
  known.distrust(FIRST, [LAST])
  expect(known.waitsOf(LAST)).toBeUndefined()
})

test('the servers are asked about jobs with many dependents, and about jobs after many', () => {
  const many = Array.from({ length: 40 }, (_, n) => id(100 + n))
  const known = knownAfter(...postOf(LAST, many), ...many.flatMap((dependent) => postOf(dependent, [FIRST])))
  expect(known.waitsOf(LAST)).toBeUndefined()
  expect(known.dependentsOf(FIRST)).toBeUndefined()
  expect(known.dependentsOf(many[0] ?? '')).toEqual([LAST])
})

test('the oldest is forgotten if there is too much, and all of it when changes may have been missed', () => {
  const known = new KnownDependencies(layout, { maxNames: 100 })
  for (let n = 0; n <= 100; n += 1) for (const change of postOf(id(n + 1), [id(n)])) known.apply(change)
  expect([id(1), id(2), id(101)].map((job) => known.waitsOf(job))).toEqual([undefined, [id(1)], [id(100)]])
  expect([id(0), id(1)].map((job) => known.dependentsOf(job))).toEqual([undefined, [id(2)]])
  known.clear()
  expect(known.waitsOf(id(101))).toBeUndefined()
  expect(known.dependentsOf(id(100))).toEqual([])
})
