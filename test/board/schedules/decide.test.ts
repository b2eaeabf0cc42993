/** What a schedule does at an instant: late times, windows, jitter, ends; as a table, and for any sequence of instants. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Decision, decide, limitDue, planNext, skipDue } from '../../../src/board/schedules/decide.ts'
import type { SchedulePolicies } from '../../../src/board/schedules/policies.ts'
import { NO_COUNTS, type ScheduleRecord } from '../../../src/board/schedules/record.ts'
import { type Rule, toOccurrences } from '../../../src/schedule/internal.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const START = Date.parse('2026-06-01T00:00:00Z')

const POLICIES: SchedulePolicies = { catchUp: 'latest', overlap: 'skip', max: 100, jitterMs: 0 }

async function setup(
  spec: ScheduleRecord['spec'],
  policies: Partial<SchedulePolicies> = {},
): Promise<{ record: ScheduleRecord; rule: Rule }> {
  const rule = await toOccurrences(spec, { now: START })
  const all = { ...POLICIES, ...policies }
  const next = planNext('s', all, { rule, cursor: START })
  const record: ScheduleRecord = {
    ...{ spec, policies: all, createdAt: START, cursor: START, counts: NO_COUNTS, failuresInRow: 0, recent: [] },
    job: { name: 'report', details: { flow: 'report' }, priority: 'NORMAL', maxAttempts: 3 },
    ...(next ? { next } : {}),
  }
  return { record, rule }
}

const at = (text: string) => Date.parse(`2026-06-${text}Z`)
const texts = (times: readonly number[]) => times.map((time) => new Date(time).toISOString().slice(8, 16))

describe('after a weekend without a conductor', () => {
  test.each<[Partial<SchedulePolicies>, string[], number]>([
    [{ catchUp: 'latest' }, ['08T02:30'], 2],
    [{ catchUp: 'none' }, [], 3],
    [{ catchUp: 'all', overlap: 'allow' }, ['08T02:30'], 2],
    [{ catchUp: 'all', overlap: 'allow', windowMs: 7 * DAY_MS }, ['06T02:30', '07T02:30', '08T02:30'], 0],
    [{ catchUp: 'all', overlap: 'allow', windowMs: 7 * DAY_MS, max: 2 }, ['07T02:30', '08T02:30'], 1],
    [{ catchUp: 'latest', windowMs: HOUR_MS }, [], 3],
  ])('%j posts what it says, and counts the rest', async (policies, due, missed) => {
    const { record, rule } = await setup({ cron: '30 2 * * *' }, policies)
    const friday = { ...record, cursor: at('05T02:30'), next: { nominal: at('06T02:30'), at: at('06T02:30') } }
    const decision = decide('s', friday, { rule, now: at('08T08:00') })
    expect(texts(decision?.due ?? [])).toEqual(due)
    expect(decision?.skipped.reduce((sum, { count }) => sum + count, 0)).toBe(missed)
    expect(decision).toMatchObject({ cursor: at('08T02:30'), next: { nominal: at('09T02:30') } })
  })
})

test('a monthly time is caught up for a day, whatever its period', async () => {
  const { record, rule } = await setup({ cron: '0 0 1 * *' })
  const next = { nominal: START, at: START }
  expect(decide('s', { ...record, next }, { rule, now: START + 23 * HOUR_MS })?.due).toEqual([START])
  expect(decide('s', { ...record, next }, { rule, now: START + 25 * HOUR_MS })?.due).toEqual([])
})

test('a time is on time for a minute, also where nothing is caught up', async () => {
  const { record, rule } = await setup({ every: '1h' }, { catchUp: 'none' })
  const due = START + HOUR_MS
  expect(decide('s', record, { rule, now: due - 1 })).toBeUndefined()
  expect(decide('s', record, { rule, now: due + 59_000 })?.due).toEqual([due])
  expect(decide('s', record, { rule, now: due + 61_000 })?.due).toEqual([])
})

test('a schedule of every second that was away for a year is decided without a look at each second', async () => {
  const { record, rule } = await setup({ every: '1s' })
  const decision = decide('s', record, { rule, now: START + 365 * DAY_MS })
  expect(decision?.due).toEqual([START + 365 * DAY_MS])
  expect(decision?.skipped[0]?.count).toBeGreaterThanOrEqual(10_000)
})

test('a paused schedule, and one that has ended, decide nothing', async () => {
  const { record, rule } = await setup({ every: '1s' })
  const { next: _, ...ended } = record
  const now = START + DAY_MS
  expect(decide('s', { ...record, paused: { since: START, by: 'ada' } }, { rule, now })).toBeUndefined()
  expect(decide('s', ended, { rule, now })).toBeUndefined()
})

test('no more jobs are posted than the schedule may have', async () => {
  const { record, rule } = await setup({ every: '1h' }, { times: 2, catchUp: 'all', overlap: 'allow' })
  const decision = decide('s', record, { rule, now: START + 5 * HOUR_MS })
  expect(decision?.due).toEqual([START + HOUR_MS, START + 2 * HOUR_MS])
})

test('a jitter delays each time by the same in every process, and never past the next one', async () => {
  const { record, rule } = await setup({ every: '1m' }, { jitterMs: 10 * 60_000 })
  const delays = new Set<number>()
  for (let cursor = START; cursor < START + HOUR_MS; cursor += 60_000) {
    const next = planNext('s', record.policies, { rule, cursor })
    expect(next).toEqual(planNext('s', record.policies, { rule, cursor }))
    const delay = (next?.at ?? 0) - (next?.nominal ?? 0)
    expect(delay).toBeGreaterThanOrEqual(0)
    expect(delay).toBeLessThan(60_000)
    delays.add(delay)
  }
  expect(delays.size).toBeGreaterThan(1)
})

test('due times that are too many for one write are due in the next one', () => {
  const decision: Decision = { due: [1, 2, 3], skipped: [], cursor: 3, next: { nominal: 9, at: 9 } }
  const limited = limitDue(decision, { most: 2, now: 5 })
  expect(limited).toEqual({ due: [1, 2], skipped: [], cursor: 2, next: { nominal: 3, at: 5 } })
  expect(limitDue(decision, { most: 3, now: 5 })).toBe(decision)
})

test('due times that are skipped are counted with their reason', () => {
  const decision: Decision = { due: [1, 2], skipped: [], cursor: 2, next: undefined }
  expect(skipDue(decision, { reason: 'overlap' })).toEqual({
    ...{ due: [], cursor: 2, next: undefined },
    skipped: [{ reason: 'overlap', count: 2, from: 1, to: 2 }],
  })
})

test('whenever it is looked at, each time is decided once, in order, and none is lost', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('*/7 * * * *', '30 2 * * *', '0 */5 * * *'),
      fc.constantFrom('none', 'latest', 'all'),
      fc.integer({ min: 0, max: 600_000 }),
      fc.array(fc.integer({ min: 1, max: 3 * 86_400 }), { minLength: 1, maxLength: 20 }),
      async (cron, catchUp, jitterMs, waits) => {
        const { record: first, rule } = await setup({ cron, zone: 'Europe/Berlin' }, { catchUp, jitterMs })
        let record = first
        let now = START
        const posted: number[] = []
        let skipped = 0
        for (const seconds of waits) {
          now += seconds * 1_000
          const decision = decide('s', record, { rule, now })
          if (!decision) continue
          posted.push(...decision.due)
          skipped += decision.skipped.reduce((sum, { count }) => sum + count, 0)
          const { next: _, ...rest } = record
          record = { ...rest, cursor: decision.cursor, ...(decision.next ? { next: decision.next } : {}) }
          // At the same instant, nothing more is due.
          expect(decide('s', record, { rule, now })).toBeUndefined()
        }
        expect(posted).toEqual([...new Set(posted)].sort((a, b) => a - b))
        // Not `countTimes`, which gives up where there are very many.
        let times = 0
        for (let at = rule.next(START); at !== undefined && at <= record.cursor; at = rule.next(at)) times += 1
        expect(posted.length + skipped).toBe(times)
        expect(posted.every((time) => rule.next(time - 1) === time)).toBe(true)
      },
    ),
    { numRuns: 40 },
  )
})

describe('after more times than are counted one by one', () => {
  const HOURS = 5

  test.each<[Partial<SchedulePolicies>, number]>([
    [{ catchUp: 'all', overlap: 'allow', windowMs: DAY_MS }, 100],
    [{ catchUp: 'latest', max: 1 }, 1],
    [{ catchUp: 'none' }, 1],
  ])('%j posts the newest, and says that others were missed', async (policies, due) => {
    const { record, rule } = await setup({ every: '1s' }, policies)
    const now = START + HOURS * HOUR_MS
    const decision = decide('s', record, { rule, now })
    expect(decision?.due).toHaveLength(due)
    expect(decision?.due.at(-1)).toBe(now)
    const oldest = decision?.due[0] ?? now
    const missed = policies.catchUp === 'all' ? oldest - 1_000 : now - 1_000
    expect(decision?.skipped).toMatchObject([{ reason: 'missed', from: START + 1_000, to: missed }])
    expect(decision?.skipped[0]?.count).toBeGreaterThanOrEqual(9_999)
  })

  test('a time whose jitter is not over is not posted early', async () => {
    const { record, rule } = await setup({ every: '10s' }, { catchUp: 'all', overlap: 'allow', jitterMs: 9_000 })
    for (const extra of [0, 1_500, 4_500, 8_500]) {
      const now = START + 40 * HOUR_MS + extra
      for (const nominal of decide('s', record, { rule, now })?.due ?? [])
        expect(planNext('s', record.policies, { rule, cursor: nominal - 1 })?.at).toBeLessThanOrEqual(now)
    }
  })
})
