/** Properties of rules around every change of the clock in every time zone, from 2024 to 2030. */
import fc from 'fast-check'
import { expect, vi } from 'vitest'
import { asUtc, fromLocalTime, offsetAt, toLocalTime } from '../../src/schedule/calendar/zone.ts'
import { type Rule, toOccurrences } from '../../src/schedule/internal.ts'
import { usual as test, variant } from '../variant.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FIRST = Date.UTC(2024, 0, 1)
const END = Date.UTC(2031, 0, 1)

interface Change {
  readonly zone: string
  /** The first instant with the new offset. */
  readonly at: number
}

/** Zones that have the same changes are tested once. */
function listChanges(): readonly Change[] {
  const known = new Map<string, readonly Change[]>()
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    const changes = changesOf(zone)
    const key = changes.map(({ at }) => `${at} ${offsetAt(at, zone)}`).join()
    if (changes.length > 0 && !known.has(key)) known.set(key, changes)
  }
  return [...known.values()].flat()
}

function changesOf(zone: string): Change[] {
  const found: Change[] = []
  let before = offsetAt(FIRST, zone)
  for (let day = FIRST; day < END; day += DAY_MS) {
    const after = offsetAt(day + DAY_MS, zone)
    if (after !== before) found.push({ zone, at: findChange(day, day + DAY_MS, zone) })
    before = after
  }
  return found
}

function findChange(from: number, to: number, zone: string): number {
  const earlier = offsetAt(from, zone)
  let [low, high] = [from, to]
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000
    if (offsetAt(middle, zone) === earlier) low = middle
    else high = middle
  }
  return high
}

const CHANGES = listChanges()

/** Enumerates by `next` alone. */
function enumerate(rule: Rule, from: number, to: number): number[] {
  const times: number[] = []
  for (let at = rule.next(from); at !== undefined && at <= to; at = rule.next(at)) times.push(at)
  return times
}

test('there are changes of many kinds', () => {
  expect(CHANGES.length).toBeGreaterThan(300)
  const shifts = new Set(CHANGES.map(({ zone, at }) => offsetAt(at, zone) - offsetAt(at - 1_000, zone)))
  // Lord Howe Island changes its clock by half an hour.
  expect([...shifts]).toEqual(expect.arrayContaining([HOUR_MS, -HOUR_MS, HOUR_MS / 2, -HOUR_MS / 2]))
})

variant('local times and instants convert into each other, around every change', () => {
  for (const { zone, at } of CHANGES)
    for (let instant = at - 3 * HOUR_MS; instant <= at + 3 * HOUR_MS; instant += HOUR_MS / 4) {
      const local = toLocalTime(instant, zone)
      const back = fromLocalTime(local, zone)
      expect(back.kind).not.toBe('left out')
      // A time that is shown twice becomes the first of both instants.
      if (back.kind === 'exact') expect(back.instant).toBe(instant)
      else expect(asUtc(toLocalTime(back.instant, zone))).toBe(asUtc(local))
    }
})

test.each<[string, (minute: number, hour: number) => string, number]>([
  ['a fixed time', (minute, hour) => `${minute} ${hour} * * *`, 1],
  ['every quarter of an hour', () => '*/15 * * * *', 4],
])(
  'cron with %s: next is monotonic, agrees with the enumeration and with last',
  async (_, toCron, step) => {
    for (const [index, { zone, at }] of CHANGES.entries()) {
      if (index % step > 0) continue
      const wall = toLocalTime(at - 30 * 60_000, zone)
      const rule = await toOccurrences({ cron: toCron(wall.minute, wall.hour), zone }, { now: FIRST })
      const [from, to] = [at - 1.5 * DAY_MS, at + 1.5 * DAY_MS]
      const times = enumerate(rule, from, to)
      expect(times, `${zone} ${new Date(at).toISOString()}`).toEqual([...new Set(times)].sort((a, b) => a - b))
      for (let probe = at - 4 * HOUR_MS; probe <= at + 4 * HOUR_MS; probe += 17 * 60_000) {
        expect(rule.next(probe)).toBe(times.find((time) => time > probe) ?? rule.next(times.at(-1) ?? probe))
        expect(rule.last(probe)).toBe(times.findLast((time) => time <= probe) ?? rule.last(from))
      }
    }
  },
  120_000,
)

test('a fixed cron time fires once on every local day, whatever the clock does', async () => {
  for (const { zone, at } of CHANGES) {
    const wall = toLocalTime(at - 30 * 60_000, zone)
    const rule = await toOccurrences({ cron: `${wall.minute} ${wall.hour} * * *`, zone }, { now: FIRST })
    const days = enumerate(rule, at - 3 * DAY_MS, at + 3 * DAY_MS).map((time) => {
      const { year, month, day } = toLocalTime(time, zone)
      return `${year}-${month}-${day}`
    })
    expect(new Set(days).size, `${zone} ${new Date(at).toISOString()}`).toBe(days.length)
    expect(days.length).toBeGreaterThanOrEqual(5)
  }
}, 120_000)

test('cron and rrule agree on what both can say, except in gaps', async () => {
  const zones = [...new Set(CHANGES.map(({ zone }) => zone))]
  const weekdays = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA']
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...zones, 'UTC'),
      fc.integer({ min: FIRST / DAY_MS, max: END / DAY_MS - 1 }),
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 0, max: 59 }),
      fc.option(fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 3 })),
      async (zone, day, hour, minute, days) => {
        const from = day * DAY_MS
        const cron = `${minute} ${hour} * * ${days ? days.join(',') : '*'}`
        const byDay = days ? `;BYDAY=${days.map((each) => weekdays[each]).join(',')}` : ''
        const rrule = `FREQ=DAILY;BYHOUR=${hour};BYMINUTE=${minute};BYSECOND=0${byDay}`
        const [one, other] = await Promise.all([
          toOccurrences({ cron, zone }, { now: from }),
          toOccurrences({ rrule, zone }, { now: from }),
        ])
        const [times, others] = [enumerate(one, from, from + 20 * DAY_MS), enumerate(other, from, from + 20 * DAY_MS)]
        const exact = times.filter((time) => {
          const wall = toLocalTime(time, zone)
          return wall.hour === hour && wall.minute === minute
        })
        expect(others).toEqual(exact)
      },
    ),
    { numRuns: 60 },
  )
}, 120_000)

test.each(['* * * * *', '30 2 * * *'])('%s reads few offsets, also where the clock changes', async (cron) => {
  const from = Date.parse('2027-03-28T00:00+01:00')
  const rule = await toOccurrences({ cron, zone: 'Europe/Berlin' }, { now: from })
  const read = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
  try {
    for (let minute = 0; minute < 1_380; minute += 1) rule.next(from + minute * 60_000)
    expect(read.mock.calls.length).toBeLessThan(100)
  } finally {
    read.mockRestore()
  }
})
