/** What claims of a memory board have taken is kept no longer than it counts. */
import { expect, test } from 'vitest'
import { MemoryLimits } from '../../../../src/board/backends/memory/limits.ts'
import { LimitReached } from '../../../../src/core/errors.ts'

const NOW = 1_800_000_000_000

function takeOne(limits: MemoryLimits, { key, ms, now = NOW }: { key: string; ms: number; now?: number }): void {
  limits.takeTokens({ key, revision: 0, rate: { intervalMs: ms, burst: 1 }, costs: [1] }, now)
}

test('of very many keys only those are kept whose tokens have not come back, also behind slow ones', () => {
  const limits = new MemoryLimits()
  for (const key of ['slow', 'slower', 'slowest']) takeOne(limits, { key, ms: 1e9 })
  for (let n = 0; n < 1_000; n += 1) takeOne(limits, { key: `quick/${n}`, ms: 1, now: NOW + 10 * n })
  const kept = limits.use().map(({ key }) => key)
  expect(kept).toEqual(expect.arrayContaining(['slow', 'slower', 'slowest']))
  expect(kept.length).toBeLessThan(20)
})

test('a token that comes back later than any date is refused as others are', () => {
  const limits = new MemoryLimits()
  const rate = { intervalMs: 3e18, burst: 1, cost: 1 }
  const want = { revision: 0, wants: [{ key: 'k', rate }] }
  limits.take('one', want, NOW)
  expect(() => limits.take('other', want, NOW)).toThrow(LimitReached)
})

test('claims that take of many keys leave no more behind than those of one', () => {
  const limits = new MemoryLimits()
  for (let n = 0; n < 500; n += 1) {
    const wants = Array.from({ length: 32 }, (_, at) => ({
      key: `${n}/${at}`,
      rate: { intervalMs: 1, burst: 1, cost: 1 },
    }))
    limits.take(`job ${n}`, { revision: 0, wants }, NOW + 10 * n)
  }
  expect(limits.use().length).toBeLessThan(100)
})
