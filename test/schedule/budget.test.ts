/** What rules may cost, whoever has stored them: each call is bounded, and says so when it is over its budget. */
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { explainSpec, preview, type ScheduleSpec } from '../../src/schedule/index.ts'
import { toOccurrences } from '../../src/schedule/internal.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
/** The processor time of one computation: far more than it takes on a busy machine, and far less than it took without a budget. */
const MAX_CPU_MS = 2_000

const upTo = (count: number, first = 0) => Array.from({ length: count }, (_, n) => n + first).join(',')
const rrule = (text: string): ScheduleSpec => ({ rrule: text, start: '1970-01-02' })
const cron = (text: string): ScheduleSpec => ({ cron: text })

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

const COSTLY: readonly (readonly [string, ScheduleSpec])[] = [
  ['many exclusions', { cron: '* * * * * *', exclude: Array(50).fill(cron('* 1-59 * * * *')) }],
  ['exclusions that never occur', { cron: '* * * * * *', exclude: Array(50).fill(cron('0 0 30 2 *')) }],
  ['all excluded', { cron: '* * * * * *', exclude: [cron('* * * * * *')] as never }],
  ['all excluded by rules', { every: '1s', exclude: Array(50).fill({ rrule: 'FREQ=SECONDLY' }) }],
  ['a position that no day has', rrule(`FREQ=DAILY;BYMINUTE=${upTo(60)};BYSETPOS=366`)],
  ['positions that no month has', rrule(`FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2;BYSETPOS=${upTo(366, 1)}`)],
  ...['SECONDLY', 'MINUTELY', 'HOURLY', 'DAILY', 'MONTHLY', 'YEARLY'].map(
    (freq) => [`30 February, ${freq}`, rrule(`FREQ=${freq};BYMONTH=2;BYMONTHDAY=30`)] as const,
  ),
  ['seconds that never match', rrule('FREQ=SECONDLY;INTERVAL=60;BYSECOND=30')],
  ['minutes that never match', rrule('FREQ=MINUTELY;INTERVAL=60;BYMINUTE=30')],
  ['hours that never match', rrule('FREQ=HOURLY;INTERVAL=24;BYHOUR=5')],
  ['a week that is never there', rrule('FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU;BYMONTH=6')],
  ['a long interval', rrule('FREQ=SECONDLY;INTERVAL=1000000000')],
  ['every 400 years', rrule('FREQ=YEARLY;INTERVAL=400;BYMONTH=1;BYMONTHDAY=1')],
  [
    'every second of the days',
    rrule(`FREQ=DAILY;BYHOUR=${upTo(24)};BYMINUTE=${upTo(60)};BYSECOND=${upTo(60)};COUNT=20000`),
  ],
  ['many times of a year', rrule(`FREQ=YEARLY;BYYEARDAY=${upTo(366, 1)};BYHOUR=${upTo(24)};BYSETPOS=${upTo(366, 1)}`)],
  ['a count of seconds', rrule('FREQ=SECONDLY;INTERVAL=86399;COUNT=20000')],
  ['a cron that never occurs', cron('0 0 1-28 * +MON#5')],
  ['a cron that seldom occurs', cron('* * 29 2 +MON')],
]

describe.each(COSTLY)('%s', (_, spec) => {
  test.each(['UTC', 'Europe/Berlin'])(
    'next, last, preview and words are found, or refused in one line, in %s',
    async (zone) => {
      const began = cpuMs()
      const attempts = [
        toOccurrences({ ...spec, zone }, { now: NOW }).then((rule) => [rule.next(NOW), rule.last(NOW)]),
        preview({ ...spec, zone }, { from: new Date(NOW), count: 1_000 }),
      ]
      for (const outcome of await Promise.allSettled(attempts))
        if (outcome.status === 'rejected') {
          expect(outcome.reason).toBeInstanceOf(InvalidArgument)
          expect(String(outcome.reason)).toMatch(/takes too long to compute|has no occurrence within ten years/)
        }
      expect(await explainSpec({ ...spec, zone })).not.toContain('\n')
      expect(cpuMs() - began).toBeLessThan(MAX_CPU_MS)
    },
  )
})

test('a schedule of working hours by the minute is within the budget, over the longest weekend', async () => {
  const exclude = [cron('* 0-7,19-23 * * *'), cron('* * * * 0,6')] as never
  const rule = await toOccurrences({ cron: '* * * * *', zone: 'Europe/Berlin', exclude }, { now: NOW })
  const friday = Date.parse('2026-06-05T18:59:00+02:00')
  expect(rule.next(friday)).toBe(Date.parse('2026-06-08T08:00:00+02:00'))
  expect(rule.last(Date.parse('2026-06-08T07:59:00+02:00'))).toBe(friday)
})

test('1,000 dates are excluded in one step each', async () => {
  const exclude = Array.from({ length: 1_000 }, (_, n) => new Date(NOW + n * 86_400_000).toISOString().slice(0, 10))
  const rule = await toOccurrences({ cron: '* * * * * *', zone: 'Asia/Tokyo', exclude }, { now: NOW })
  expect(rule.next(NOW)).toBe(Date.parse('2029-02-25T00:00:00+09:00'))
})
