/** Counts of the jobs that wait for limits: what is counted, and that a long board is not read as a whole. */
import { expect, test } from 'vitest'
import { countWaiting, firstKeys, joinCounts, toWaiting, type UnclaimedJob } from '../../../src/board/limits/waiting.ts'

async function* jobsOf(
  keys: readonly string[],
  { delayedUntil, onRead }: { readonly delayedUntil?: Date; readonly onRead?: () => void } = {},
): AsyncGenerator<UnclaimedJob> {
  for (const key of keys) {
    onRead?.()
    yield { limits: [{ key, cost: 1 }], queue: 'default', delayedUntil }
  }
}

test('jobs are counted by key, without those whose delay is not over', async () => {
  expect((await countWaiting(jobsOf(['a', 'b', 'a']), { now: 10 })).byKey).toEqual(
    new Map([
      ['a', 2],
      ['b', 1],
      ['queue/default', 3],
    ]),
  )
  expect((await countWaiting(jobsOf(['a'], { delayedUntil: new Date(11) }), { now: 10 })).byKey.size).toBe(0)
  expect((await countWaiting(jobsOf(['a'], { delayedUntil: new Date(10) }), { now: 10 })).byKey.get('a')).toBe(1)
})

test('at most as many jobs are read as may be counted, and the count says that there are more', async () => {
  let read = 0
  const onRead = () => {
    read += 1
  }
  const counted = await countWaiting(jobsOf(Array(100).fill('a'), { onRead }), { now: 0, most: 5 })
  expect(counted).toEqual({ byKey: new Map([['a', 5]]).set('queue/default', 5), isPartial: true })
  expect(read).toBe(6)
  expect((await countWaiting(jobsOf(Array(5).fill('a')), { now: 0, most: 5 })).isPartial).toBe(false)
})

test('keys that are used and keys for which jobs wait are joined', () => {
  const uses = [{ key: 'a', slots: 1, arrivalMs: 7 }]
  const counted = { byKey: new Map([['b', 2]]), isPartial: true }
  const keys = joinCounts(uses, counted)
  expect(keys).toEqual([
    { key: 'a', slots: 1, arrivalMs: 7, waiting: 0 },
    { key: 'b', slots: 0, arrivalMs: undefined, waiting: 2 },
  ])
  expect(toWaiting(keys, counted)).toEqual({ waiting: 2, waitingIsPartial: true })
  expect([joinCounts(uses, undefined), toWaiting(uses, undefined)]).toEqual([uses, {}])
})

test('of very many keys the busiest are shown', () => {
  const keys = Array.from({ length: 1_500 }, (_, index) => ({ key: `k${index}`, running: 0, waiting: index }))
  const shown = firstKeys([...keys, { key: 'runs', running: 1, waiting: 0 }])
  expect(shown).toHaveLength(1_000)
  expect(shown.slice(0, 2).map(({ key }) => key)).toEqual(['runs', 'k1499'])
})
