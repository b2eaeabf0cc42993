/** How tokens are counted, and which setting applies to a key. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CompiledRules } from '../../../src/board/limits/compiled-rules.ts'
import type { HoldRecord, LimitRecord } from '../../../src/board/limits/record.ts'
import {
  describeTakenSlots,
  isSameRate,
  parseLimits,
  takeTokens,
  toArrivalAt,
  toClaimLimits,
  toLimitCosts,
} from '../../../src/board/model/limits.ts'
import { IncompatibleVersion } from '../../../src/core/errors.ts'

const NOW = 1_800_000_000_000

test.each([
  [1, 'the only slot of limit api is taken'],
  [4, 'all 4 slots of limit api are taken'],
])('of %i slots none is free: %s', (concurrency, text) => {
  expect(describeTakenSlots('api', concurrency)).toBe(text)
})

describe('tokens', () => {
  const rates = fc.record({
    intervalMs: fc.double({ min: 0.01, max: 10_000, noNaN: true }),
    burst: fc.integer({ min: 1, max: 50 }),
  })
  const requests = fc.array(
    fc.record({ afterMs: fc.double({ min: 0, max: 3_000, noNaN: true }), cost: fc.integer({ min: 1, max: 5 }) }),
    { minLength: 1, maxLength: 200 },
  )

  test('in any time t at most burst and rate × t are taken', () => {
    fc.assert(
      fc.property(rates, requests, (rate, asked) => {
        const taken: { at: number; cost: number }[] = []
        let arrivalMs: number | undefined
        let now = NOW
        for (const { afterMs, cost: wanted } of asked) {
          now += afterMs
          const cost = Math.min(wanted, rate.burst)
          const answer = takeTokens(arrivalMs, { ...rate, cost }, now)
          if ('until' in answer) continue
          arrivalMs = answer.arrivalMs
          taken.push({ at: now, cost })
        }
        for (const [first, { at: from }] of taken.entries()) {
          let sum = 0
          for (const { at, cost } of taken.slice(first)) {
            sum += cost
            expect(sum).toBeLessThanOrEqual(rate.burst + (at - from) / rate.intervalMs + 0.1)
          }
        }
      }),
    )
  })

  test('what is refused succeeds at the time that the refusal says, and not a millisecond before', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 80 }), (rate, count) => {
        const want = { ...rate, intervalMs: Math.max(5, rate.intervalMs), cost: 1 }
        let arrivalMs: number | undefined
        for (let taken = 0; taken < count; taken += 1) {
          const answer = takeTokens(arrivalMs, want, NOW)
          if ('arrivalMs' in answer) arrivalMs = answer.arrivalMs
          else {
            expect(takeTokens(arrivalMs, want, answer.until - 1)).toHaveProperty('until')
            expect(takeTokens(arrivalMs, want, answer.until)).toHaveProperty('arrivalMs')
            return
          }
        }
        expect(count).toBeLessThanOrEqual(rate.burst)
      }),
    )
  })

  const change = { missing: fc.integer({ min: 1, max: 60 }), former: rates, rate: rates }

  test('after a change of the rate as many are missing as before, but no more than the burst', () => {
    fc.assert(
      fc.property(fc.record(change), ({ missing, former, rate }) => {
        const arrivalMs = toArrivalAt({ arrivalMs: NOW + missing * former.intervalMs, rate: former }, rate, NOW)
        const expected = isSameRate(former, rate) ? missing : Math.min(missing, rate.burst)
        // The greatest rounding error of a time since 1970, in tokens of either rate.
        const error = 0.001 / Math.min(former.intervalMs, rate.intervalMs)
        expect(Math.abs((arrivalMs - NOW) / rate.intervalMs - expected)).toBeLessThan(error)
      }),
    )
  })

  test('a change when no token is missing, the same rate, and tokens of an unknown rate change nothing', () => {
    const [slow, quick] = [
      { intervalMs: 1_000, burst: 2 },
      { intervalMs: 10, burst: 1 },
    ]
    expect(toArrivalAt({ arrivalMs: NOW - 5, rate: slow }, quick, NOW)).toBe(NOW - 5)
    expect(toArrivalAt({ arrivalMs: NOW + 5_000, rate: slow }, { ...slow }, NOW)).toBe(NOW + 5_000)
    expect(toArrivalAt({ arrivalMs: NOW + 5_000, rate: undefined }, quick, NOW)).toBe(NOW + 5_000)
  })

  test('a cost above the burst is possible when no token is missing', () => {
    const want = { intervalMs: 1_000, burst: 2, cost: 5 }
    const first = takeTokens(undefined, want, NOW)
    expect(first).toEqual({ arrivalMs: NOW + 5_000 })
    expect(takeTokens(NOW + 5_000, want, NOW)).toEqual({ until: NOW + 5_000 })
    expect(takeTokens(NOW + 5_000, want, NOW + 5_000)).toEqual({ arrivalMs: NOW + 10_000 })
  })

  test('rates of a start in a century and of a thousand in a millisecond are exact enough', () => {
    const century = { intervalMs: 36_525 * 86_400_000, burst: 1, cost: 1 }
    const slow = takeTokens(undefined, century, NOW)
    expect(slow).toEqual({ arrivalMs: NOW + 36_525 * 86_400_000 })
    let arrivalMs = 0
    let taken = 0
    while (taken < 5_000) {
      const answer = takeTokens(arrivalMs, { intervalMs: 0.001, burst: 1_000, cost: 1 }, NOW)
      if ('until' in answer) break
      arrivalMs = answer.arrivalMs
      taken += 1
    }
    expect(taken).toBeGreaterThan(900)
    expect(taken).toBeLessThan(1_100)
  })
})

const limit = (id: string, value: Partial<LimitRecord>) => ({ id, revision: 1, value: { by: 'ada', at: 0, ...value } })
const hold = (id: string, value: Partial<HoldRecord>) => ({ id, revision: 1, value: { by: 'ada', at: 0, ...value } })

describe('the setting of a key', () => {
  test('is its own, or that of the pattern with the longest beginning', () => {
    const rules = new CompiledRules([
      limit('*', { concurrency: 9 }),
      limit('tenant/*', { concurrency: 3 }),
      limit('tenant/a*', { rate: { limit: 10, perMs: 1_000, burst: 2 } }),
      limit('tenant/a', { concurrency: 1 }),
    ])
    expect(rules.ruleOf('other')).toEqual({ concurrency: 9 })
    expect(rules.ruleOf('tenant/b')).toEqual({ concurrency: 3 })
    expect(rules.ruleOf('tenant/ab')).toEqual({ rate: { intervalMs: 100, burst: 2 } })
    expect(rules.ruleOf('tenant/a')).toEqual({ concurrency: 1 })
    expect(rules.ruleOf('tenant/')).toEqual({ concurrency: 3 })
    expect(rules.sourceOf('tenant/ab')).toBe('tenant/a*')
    expect(new CompiledRules().ruleOf('a')).toBeUndefined()
  })

  test('is held by every hold that matches, for the longest time', () => {
    const rules = new CompiledRules(
      [limit('a', { concurrency: 1 })],
      [hold('a', { until: 5 }), hold('*', { until: 9 }), hold('b', {})],
    )
    expect(rules.ruleOf('a')).toEqual({ concurrency: 1, heldUntil: 9, hold: { id: '*', by: 'ada', at: 0 } })
    expect(rules.ruleOf('b')).toEqual({
      heldUntil: Number.POSITIVE_INFINITY,
      hold: { id: 'b', by: 'ada', at: 0 },
    })
    expect(rules.ruleOf('c')).toEqual({ heldUntil: 9, hold: { id: '*', by: 'ada', at: 0 } })
  })

  test('that a newer release has made starts nothing here', () => {
    const error = new IncompatibleVersion('limit a has format 2')
    expect(new CompiledRules([{ id: 'a', revision: 1, error }]).ruleOf('a')).toEqual({
      heldUntil: Number.POSITIVE_INFINITY,
    })
  })

  test('of very many keys of one pattern is found for each', () => {
    const rules = new CompiledRules([limit('tenant/*', { concurrency: 3 })])
    for (let key = 0; key < 25_000; key += 1) expect(rules.ruleOf(`tenant/${key}`)).toEqual({ concurrency: 3 })
  })
})

test('the keys of a job are those of its posting and that of its flow, each once', () => {
  const limits = parseLimits(['a', { key: 'b', cost: 2 }, 'b', { key: 'flow/f', cost: 3 }])
  if (!limits) throw new Error('no limits were read')
  expect(toLimitCosts({ limits, details: { flow: 'f' } })).toEqual([
    { key: 'a', cost: 1 },
    { key: 'b', cost: 2 },
    { key: 'flow/f', cost: 3 },
  ])
  expect(toLimitCosts({ details: { flow: 'f' } })).toEqual([{ key: 'flow/f', cost: 1 }])
  expect(toLimitCosts({ details: {} })).toEqual([])
  expect(toLimitCosts({ limits: 'none', details: { flow: 'f' } })).toEqual([])
  const rules = new CompiledRules([limit('b', { concurrency: 1, rate: { limit: 1, perMs: 10, burst: 3 } })])
  expect(toClaimLimits({ limits, details: {} }, rules)).toEqual([
    { key: 'b', concurrency: 1, rate: { intervalMs: 10, burst: 3, cost: 2 } },
  ])
  expect(parseLimits([])).toBeUndefined()
})
