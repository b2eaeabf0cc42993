/** The pauses of `retry`, on a clock that only its pauses advance. */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { retry } from '../../../src/core/async/retry.ts'
import { NotConnected } from '../../../src/core/errors.ts'

const clock = vi.hoisted(() => ({ now: 0, pauses: [] as number[] }))

vi.mock(import('../../../src/core/time.ts'), async (original) => ({
  ...(await original()),
  monotonic: () => clock.now,
  sleep: async (ms: number) => {
    clock.now += ms
    clock.pauses.push(ms)
  },
}))

const AWAY = new NotConnected('away')

const cases = fc.record({
  firstPauseMs: fc.integer({ min: 1, max: 1_000 }),
  maxPauseMs: fc.integer({ min: 1, max: 10_000 }),
  failuresBefore: fc.integer({ min: 0, max: 5 }),
  failures: fc.integer({ min: 0, max: 12 }),
  limitMs: fc.option(fc.integer({ min: 0, max: 20_000 }), { nil: Number.POSITIVE_INFINITY }),
  jitter: fc.constantFrom('full' as const, 'none' as const),
})

test('pauses double from the first to the longest, each is the whole time or a part of it, and none ends after the limit', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ failures, ...options }) => {
      clock.now = 0
      clock.pauses = []
      let tries = 0
      const work = async (attempt: number) => {
        tries = attempt
        if (attempt <= failures) throw AWAY
      }
      const end = await retry(work, options).catch((error: unknown) => error)
      const { firstPauseMs, maxPauseMs, failuresBefore, limitMs, jitter } = options
      const longest = (index: number) =>
        Math.min(maxPauseMs, firstPauseMs * 2 ** (index + Math.max(0, failuresBefore - 1)))
      const initial = failuresBefore > 0 ? 1 : 0
      for (const [index, pause] of clock.pauses.entries()) {
        if (jitter === 'none') expect(pause).toBe(longest(index))
        else expect(pause).toBeLessThanOrEqual(longest(index))
      }
      expect(clock.pauses).toHaveLength(initial + tries - 1)
      if (clock.pauses.length > initial) expect(clock.now).toBeLessThanOrEqual(limitMs)
      expect(end).toBe(tries > failures ? undefined : AWAY)
      if (tries <= failures && jitter === 'none')
        expect(clock.now + longest(clock.pauses.length)).toBeGreaterThan(limitMs)
    }),
  )
})
