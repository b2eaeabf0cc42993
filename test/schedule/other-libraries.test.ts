/** Random rules have the same times as in two libraries that know nothing of ours: croner, and rrule-temporal. */
import { Cron } from 'croner'
import fc from 'fast-check'
import { RRuleTemporal } from 'rrule-temporal'
import { expect } from 'vitest'
import { type Rule, toOccurrences } from '../../src/schedule/internal.ts'
import { count } from '../support/counts.ts'
import { usual as test, variant } from '../variant.ts'

const RUNS = count({ test: 300, long: 20_000 })
const FROM = { min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 0, 1), noInvalidDate: true }
const instants = fc.integer({ min: FROM.min / 1_000, max: FROM.max / 1_000 }).map((seconds) => seconds * 1_000)
const TIMES = 4

/** Returns times after an instant, and the last one until the last of them. */
function walk({ next, last }: Rule, from: number): readonly (number | undefined)[] {
  const times: (number | undefined)[] = []
  let at: number | undefined = from
  while (times.length < TIMES && at !== undefined) {
    at = next(at)
    times.push(at)
  }
  return [...times, last(from)]
}

/** Returns the time, or undefined if it is after the year 2100, where our rules end. */
function beforeEnd(time: number | undefined): number | undefined {
  return time === undefined || time >= Date.UTC(2101, 0, 1) ? undefined : time
}

/** Returns undefined for a rule that one side refuses: what is refused has tests of its own. */
async function attempt<T>(work: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch {
    return undefined
  }
}

const between = (min: number, max: number) => fc.integer({ min, max })
const list = (values: fc.Arbitrary<number | string>) => fc.array(values, { minLength: 1, maxLength: 3 }).map(String)

function field(min: number, max: number, ...others: fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  const range = fc.tuple(between(min, max), between(min, max)).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
  return fc.oneof(
    { arbitrary: fc.constant('*'), weight: 4 },
    ...[list(between(min, max)), range, between(2, 9).map((step) => `*/${step}`)],
    range.chain((each) => between(1, 9).map((step) => `${each}/${step}`)),
    ...others,
  )
}

const crons = fc
  .tuple(
    ...[fc.constantFrom('0', '0', '*/20', '15,45'), field(0, 59), field(0, 23)],
    field(1, 31, fc.constantFrom('L', 'LW', '15W', '1W', '31W', '13,L')),
    field(1, 12, fc.constantFrom('JAN', 'MAR-SEP')),
    field(0, 7, fc.constantFrom('MON', '5L', 'FRI#L', '1#2', 'SAT#5', 'SAT-SUN', '+MON')),
  )
  .map((fields) => fields.join(' '))

test('cron expressions have the times of croner', async () => {
  let compared = 0
  await fc.assert(
    fc.asyncProperty(
      crons,
      fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York'),
      instants,
      async (cron, zone, from) => {
        const [, , , date = '', , weekday = ''] = cron.split(' ')
        const domAndDow = date.startsWith('*') || weekday.startsWith('*')
        const options = { paused: true, timezone: zone, fixedTimeRule: 'no-wildcard', domAndDow } as const
        const rule = await attempt(() => toOccurrences({ cron, zone }, { now: from }))
        const observer = await attempt(() => new Cron(cron, options))
        if (!rule || !observer) return
        compared += 1
        const expected = walk(
          {
            next: (after) => observer.nextRun(new Date(after))?.getTime(),
            last: (until) => observer.previousRuns(1, new Date(until + 1_000))[0]?.getTime(),
          },
          from,
        )
        expect(walk(rule, from).map(toText), `${cron} in ${zone}`).toEqual(expected.map(toText))
      },
    ),
    { numRuns: RUNS },
  )
  expect(compared).toBeGreaterThan(RUNS / 2)
}, 120_000)

const signed = (max: number) => fc.tuple(between(1, max), fc.constantFrom(1, -1)).map(([size, sign]) => size * sign)
const weekday = fc.constantFrom('MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU')
const nthWeekday = fc.tuple(signed(4), weekday).map(([place, day]) => `${place}${day}`)
const LONG = ['YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY']

const none: readonly string[] = []
/** A part that one rule in `n` has. */
const part = (name: string, values: fc.Arbitrary<string>, n = 2) =>
  fc.oneof(
    { arbitrary: fc.constant(none), weight: n - 1 },
    { arbitrary: values.map((value) => [`${name}=${value}`]), weight: 1 },
  )

/** Returns what names the days of a rule. Parts of which rrule-temporal looks at one are not combined. */
function days(freq: string): fc.Arbitrary<readonly string[]> {
  const weekdays = part('BYDAY', list(weekday))
  const months = part('BYMONTH', list(between(1, 12)), 3)
  const monthDays = freq === 'WEEKLY' ? fc.constant(none) : part('BYMONTHDAY', list(signed(31)), 3)
  const dates = fc.tuple(months, monthDays, weekdays).map((parts) => parts.flat())
  if (freq !== 'MONTHLY' && freq !== 'YEARLY') return dates
  const nth = fc.tuple(months, part('BYDAY', list(nthWeekday), 1)).map((parts) => parts.flat())
  return freq === 'YEARLY' ? fc.oneof(dates, nth, part('BYYEARDAY', list(signed(366)))) : fc.oneof(dates, nth)
}

const rrules = fc
  .constantFrom(...LONG, ...LONG, 'HOURLY', 'MINUTELY', 'SECONDLY')
  .chain((freq) =>
    fc
      .tuple(
        part('INTERVAL', between(2, 4).map(String)),
        days(freq),
        part('BYHOUR', list(between(0, 23))),
        ...[part('BYMINUTE', list(between(0, 59)), 3), part('BYSECOND', list(between(0, 59)), 3)],
        part('BYSETPOS', list(signed(3)), 4),
        part('WKST', fc.constantFrom('MO', 'SU'), 4),
      )
      .map((parts) => [`FREQ=${freq}`, ...parts.flat()].join(';')),
  )

variant(
  'calendar rules have the times of rrule-temporal',
  async () => {
    let compared = 0
    await fc.assert(
      fc.asyncProperty(rrules, fc.constantFrom('UTC', 'Europe/Berlin'), instants, async (rrule, zone, from) => {
        const start = '2023-03-15T09:30:00'
        const rule = await attempt(() => toOccurrences({ rrule, zone, start }, { now: from }))
        const rruleString = `DTSTART;TZID=${zone}:20230315T093000\nRRULE:${rrule}`
        const observer = await attempt(
          () => new RRuleTemporal({ rruleString, strict: true, cache: false, maxIterations: 5_000 }),
        )
        if (!rule || !observer) return
        const expected = await attempt(() =>
          walk(
            {
              next: (after) => beforeEnd(observer.next(new Date(after))?.epochMilliseconds),
              last: (until) => observer.previous(new Date(until), true)?.epochMilliseconds,
            },
            from,
          ),
        )
        if (!expected) return
        compared += 1
        expect(walk(rule, from).map(toText), `${rrule} in ${zone}`).toEqual(expected.map(toText))
      }),
      { numRuns: RUNS },
    )
    expect(compared).toBeGreaterThan(RUNS / 4)
  },
  120_000,
)

function toText(instant: number | undefined): string {
  return instant === undefined ? 'none' : new Date(instant).toISOString()
}
