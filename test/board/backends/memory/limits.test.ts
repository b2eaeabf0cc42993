/** What claims of a memory board have taken is kept no longer than it counts. */
import { expect, test } from 'vitest'
import { LimitSteps } from '../../../../src/board/backends/memory/limits.ts'
import { LimitReached } from '../../../../src/core/errors.ts'

const NOW = 1_800_000_000_000

function limitsAt(start: number) {
  const clock = { time: start, now: () => clock.time }
  return { clock, limits: new LimitSteps(clock) }
}

function takeOne(limits: LimitSteps, { key, ms }: { key: string; ms: number }): void {
  limits.takeTokens({ key, revision: 0, rate: { intervalMs: ms, burst: 1 }, costs: [1] })
}

test('of very many keys only those are kept whose tokens have not come back, also behind slow ones', () => {
  const { clock, limits } = limitsAt(NOW)
  for (const key of ['slow', 'slower', 'slowest']) takeOne(limits, { key, ms: 1e9 })
  for (let n = 0; n < 1_000; n += 1) {
    clock.time = NOW + 10 * n
    takeOne(limits, { key: `quick/${n}`, ms: 1 })
  }
  const kept = limits.use().map(({ key }) => key)
  expect(kept).toEqual(expect.arrayContaining(['slow', 'slower', 'slowest']))
  expect(kept.length).toBeLessThan(20)
})

test('a token that comes back later than any date is refused as others are', () => {
  const { limits } = limitsAt(NOW)
  const rate = { intervalMs: 3e18, burst: 1, cost: 1 }
  const want = { revision: 0, wants: [{ key: 'k', rate }] }
  limits.take('one', want)
  expect(() => limits.take('other', want)).toThrow(LimitReached)
})

test('claims that take of many keys leave no more behind than those of one', () => {
  const { clock, limits } = limitsAt(NOW)
  for (let n = 0; n < 500; n += 1) {
    const wants = Array.from({ length: 32 }, (_, at) => ({
      key: `${n}/${at}`,
      rate: { intervalMs: 1, burst: 1, cost: 1 },
    }))
    clock.time = NOW + 10 * n
    limits.take(`job ${n}`, { revision: 0, wants })
  }
  expect(limits.use().length).toBeLessThan(100)
})
