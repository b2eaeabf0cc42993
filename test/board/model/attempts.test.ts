import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Attempt,
  type AttemptHistory,
  beginAttempt,
  canRetry,
  countFailures,
  endAttempt,
  exceededLimit,
  isSuspect,
  parseAttempts,
  toAttempts,
  toOmittedAttempts,
} from '../../../src/board/model/attempts.ts'
import { InvalidPosting } from '../../../src/core/errors.ts'

const at = new Date(0)
const fresh = (maxAttempts = 3): AttemptHistory => ({ runs: 0, attempts: [], maxAttempts })
const begin = (posting: AttemptHistory) => beginAttempt(posting, { who: 'who', at })
const fail = (posting: AttemptHistory) => endAttempt(begin(posting), { ended: 'failed' })
const giveBack = (posting: AttemptHistory) => endAttempt(begin(posting), { ended: 'returned' })

describe('an attempt', () => {
  test('begins with the next run and ends as its owner says, without touching what was there', () => {
    const posting = fresh()
    const begun = begin(posting)
    const ended = endAttempt(begun, { ended: 'failed', reason: 'why' })
    expect(posting).toEqual(fresh())
    expect(begun).toEqual({ runs: 1, attempts: [{ who: 'who', at }], maxAttempts: 3 })
    expect(ended.attempts).toEqual([{ who: 'who', at, ended: 'failed', reason: 'why' }])
  })

  test('keeps no more of its reason than fits a posting', () => {
    expect(endAttempt(begin(fresh()), { ended: 'failed', reason: 'x'.repeat(9_999) }).attempts[0]?.reason).toHaveLength(
      500,
    )
  })

  test('that was never begun cannot end', () => {
    expect(endAttempt(fresh(), { ended: 'failed' })).toEqual(fresh())
  })
})

describe('limits', () => {
  test.each([1, 3, 10, 1_000])('after %d failures no more are allowed', (maxAttempts) => {
    let posting = fresh(maxAttempts)
    for (let failure = 1; failure < maxAttempts; failure++) {
      expect(canRetry(begin(posting))).toBe(true)
      posting = fail(posting)
      expect(exceededLimit(posting)).toBeUndefined()
    }
    expect(canRetry(begin(posting))).toBe(false)
    expect(exceededLimit(fail(posting))).toContain(`failed ${maxAttempts} times`)
  })

  test('ten deaths in a row are the most, and two make a suspect; anything else begins the count anew', () => {
    let posting = fresh(10)
    for (let death = 1; death <= 10; death++) {
      posting = begin(posting)
      expect(isSuspect(posting)).toBe(death >= 2)
      expect(exceededLimit(posting) !== undefined).toBe(death >= 10)
    }
    for (const end of [fail, giveBack]) {
      expect(isSuspect(end(posting))).toBe(false)
      expect(exceededLimit(end(posting))).toBeUndefined()
    }
  })

  const ends = fc.array(fc.constantFrom('death' as const, 'failed' as const, 'returned' as const), { maxLength: 120 })

  test('a list that is cut counts as the whole one would', () => {
    fc.assert(
      fc.property(ends, fc.integer({ min: 1, max: 100 }), (history, maxAttempts) => {
        let posting = fresh(maxAttempts)
        let failures = 0
        let deaths = 0
        for (const end of history) {
          if (exceededLimit(posting) !== undefined) break
          posting = end === 'death' ? begin(posting) : end === 'failed' ? fail(posting) : giveBack(posting)
          failures += end === 'failed' ? 1 : 0
          deaths = end === 'death' ? deaths + 1 : 0
          expect(exceededLimit(posting) !== undefined).toBe(failures >= maxAttempts || deaths >= 10)
          expect(isSuspect(posting)).toBe(deaths >= 2)
          expect(posting.attempts.length).toBeLessThanOrEqual(maxAttempts > 10 ? 14 : 30)
          expect(countFailures(posting.attempts)).toBe(failures)
          expect(posting.attempts).toEqual(parseAttempts(structuredClone(posting.attempts)))
        }
        expect(posting.runs).toBeLessThanOrEqual(history.length)
      }),
      { numRuns: 2_000 },
    )
  })

  test('a job that dies eight times between being given back does not become one that died ten times', () => {
    let posting = fresh()
    for (const deaths of [8, 8, 8]) {
      for (let death = 0; death < deaths; death++) posting = begin(posting)
      posting = giveBack(posting)
    }
    for (let death = 1; death < 10; death++) {
      posting = begin(posting)
      expect(exceededLimit(posting)).toBeUndefined()
    }
  })
})

describe('a long list', () => {
  const nth = (posting: AttemptHistory, index: number) =>
    beginAttempt(posting, { who: `who ${index}`, at: new Date(index) })

  test('keeps the first two and the last eight attempts, and counts the others by how they ended', () => {
    let posting = fresh(1_000)
    for (let index = 1; index <= 99; index += 1) {
      const begun = nth(posting, index)
      const ends = [{ ended: 'failed' } as const, { ended: 'returned' } as const, undefined][index % 3]
      posting = ends ? endAttempt(begun, ends) : begun
    }
    expect(toAttempts(posting).map(({ who }) => who)).toEqual(
      [1, 2, 92, 93, 94, 95, 96, 97, 98, 99].map((n) => `who ${n}`),
    )
    expect(toOmittedAttempts(posting)).toEqual({ failed: 30, returned: 30, lost: 29 })
    expect(countFailures(posting.attempts)).toBe(33)
    expect(posting.runs).toBe(99)
  })

  test('of ten attempts omits none, and of eleven one', () => {
    let posting = fresh(1_000)
    for (let index = 1; index <= 10; index += 1) posting = endAttempt(nth(posting, index), { ended: 'failed' })
    expect(toOmittedAttempts(posting)).toBeUndefined()
    expect(toAttempts(posting)).toHaveLength(10)
    posting = endAttempt(nth(posting, 11), { ended: 'failed' })
    expect(toOmittedAttempts(posting)).toEqual({ failed: 1, returned: 0, lost: 0 })
    expect(toAttempts(posting)).toHaveLength(10)
  })

  test('lists all failed attempts that a release without the summary counts', () => {
    const withoutCounts = (posting: AttemptHistory): AttemptHistory => ({
      ...posting,
      attempts: posting.attempts.map(({ omitted: _, ...attempt }) => attempt),
    })
    let posting = fresh(10)
    let failures = 0
    while (exceededLimit(posting) === undefined && posting.runs < 100) {
      const ended = posting.runs % 3 === 2 ? 'returned' : 'failed'
      failures += ended === 'failed' ? 1 : 0
      const next = endAttempt(begin(posting), { ended })
      // Each second run is by the other release.
      posting = posting.runs % 2 === 0 ? withoutCounts(next) : next
    }
    expect(failures).toBe(10)
  })

  test.each([
    [{ failed: -1, returned: 0, lost: 0 }],
    [{ failed: 1 }],
    ['many'],
    [{ failed: 1.5, returned: 0, lost: 0 }],
  ])('with counts that are none is refused: %j', (omitted) => {
    expect(() => parseAttempts([{ who: 'several', at, ended: 'returned', omitted }])).toThrow(InvalidPosting)
  })
})

describe('what is read', () => {
  test('is a list of attempts, whatever wrote the time', () => {
    const when = '2026-01-02T03:04:05.000Z'
    for (const time of [when, new Date(when), Date.parse(when)]) {
      expect(parseAttempts([{ who: 'who', at: time, ended: 'other', reason: 7 }])).toEqual([
        { who: 'who', at: new Date(when) },
      ])
    }
    const attempt: Attempt = { who: 'who', at, ended: 'returned', reason: 'why' }
    expect(parseAttempts([attempt])).toEqual([attempt])
    expect(parseAttempts(undefined)).toEqual([])
  })

  test.each([[null], [{}], ['text'], [[null]], [[{ who: 1, at }]], [[{ who: 'who', at: 'soon' }]], [[{ who: 'who' }]]])(
    'is refused where it is none: %j',
    (value) => {
      expect(() => parseAttempts(value)).toThrow(InvalidPosting)
    },
  )
})
