/** What each kind of rule means, its bounds and exclusions, and what is refused. */
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { explainSpec, preview, type ScheduleSpec } from '../../src/schedule/index.ts'
import { isSameSpec, toOccurrences } from '../../src/schedule/internal.ts'
import { rejectionOf } from '../board/events.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')

/** Returns the first local times from an instant on. */
async function locals(spec: ScheduleSpec, from: string, count = 3): Promise<string[]> {
  return (await preview(spec, { from: new Date(from), count })).map(({ local }) => local)
}

describe('cron', () => {
  test.each<[string, string, string, string[]]>([
    ['five fields', '30 2 * * 1-5', '2026-06-05T00:00Z', ['2026-06-05T02:30:00+00:00', '2026-06-08T02:30:00+00:00']],
    [
      'seconds first',
      '*/20 * * * * *',
      '2026-06-05T00:00:01Z',
      ['2026-06-05T00:00:20+00:00', '2026-06-05T00:00:40+00:00'],
    ],
    ['a nickname', '@monthly', '2026-06-05T00:00Z', ['2026-07-01T00:00:00+00:00', '2026-08-01T00:00:00+00:00']],
    [
      'the last day of a month',
      '0 0 L * *',
      '2026-01-31T12:00Z',
      ['2026-02-28T00:00:00+00:00', '2026-03-31T00:00:00+00:00'],
    ],
    ['a leap day', '0 0 29 2 *', '2026-01-01T00:00Z', ['2028-02-29T00:00:00+00:00', '2032-02-29T00:00:00+00:00']],
    ['names', '0 9 * JAN MON', '2027-01-01T00:00Z', ['2027-01-04T09:00:00+00:00', '2027-01-11T09:00:00+00:00']],
    ['Sunday as 7', '0 0 * * 7', '2026-06-01T00:00Z', ['2026-06-07T00:00:00+00:00', '2026-06-14T00:00:00+00:00']],
    // As in ISC cron: with a day of the month and a weekday, either of them is enough.
    // It does both where a field begins with a star: odd days that are Mondays.
    ['a step of days', '0 0 */2 * 1', '2026-06-02T00:00Z', ['2026-06-15T00:00:00+00:00', '2026-06-29T00:00:00+00:00']],
    [
      'a step of weekdays',
      '0 0 1 * */2',
      '2026-06-02T00:00Z',
      ['2026-08-01T00:00:00+00:00', '2026-09-01T00:00:00+00:00'],
    ],
    ['two kinds of days', '0 0 1 * 5', '2026-06-01T00:00Z', ['2026-06-01T00:00:00+00:00', '2026-06-05T00:00:00+00:00']],
  ])('%s', async (_, cron, from, expected) => {
    expect(await locals({ cron }, from, 2)).toEqual(expected)
  })

  // What cron(8) of ISC documents for changes of the clock; Berlin's are at 02:00 and 03:00 local time.
  test.each<[string, string, string, string[]]>([
    [
      'a fixed time that is left out runs right after the gap',
      '30 2 * * *',
      '2027-03-27T12:00Z',
      ['2027-03-28T03:00:00+02:00', '2027-03-29T02:30:00+02:00'],
    ],
    [
      'a fixed time that comes twice runs the first time',
      '30 2 * * *',
      '2027-10-30T12:00Z',
      ['2027-10-31T02:30:00+02:00', '2027-11-01T02:30:00+01:00'],
    ],
    [
      'a list of fixed hours is fixed, too',
      '30 2,14 * * *',
      '2027-10-30T22:00Z',
      ['2027-10-31T02:30:00+02:00', '2027-10-31T14:30:00+01:00'],
    ],
    [
      'a wildcard goes by real time when the clock goes forward',
      '30 * * * *',
      '2027-03-28T00:00Z',
      ['2027-03-28T01:30:00+01:00', '2027-03-28T03:30:00+02:00'],
    ],
    [
      'a wildcard goes by real time when the clock goes back',
      '30 * * * *',
      '2027-10-31T00:00Z',
      ['2027-10-31T02:30:00+02:00', '2027-10-31T02:30:00+01:00'],
    ],
  ])('%s', async (_, cron, from, expected) => {
    expect(await locals({ cron, zone: 'Europe/Berlin' }, from, 2)).toEqual(expected)
  })
})

describe('every', () => {
  test('is counted from 1970, and moved by no clock', async () => {
    expect(await locals({ every: '6h', offset: '30m' }, '2027-03-28T00:00Z')).toEqual([
      '2027-03-28T00:30:00+00:00',
      '2027-03-28T06:30:00+00:00',
      '2027-03-28T12:30:00+00:00',
    ])
  })

  test('from completion has no times of its own', async () => {
    expect(await rejectionOf(preview({ every: '5m', from: 'completion' }))).toBeInstanceOf(InvalidArgument)
    const rule = await toOccurrences({ every: '5m', from: 'completion' }, { now: NOW })
    expect(rule.next(NOW)).toBe(NOW + 300_000)
  })
})

describe('rrule', () => {
  test.each<[string, string, string, string[]]>([
    [
      'the last Friday',
      'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17',
      '2026-06-01T00:00Z',
      ['2026-06-26T17:00:00+02:00', '2026-07-31T17:00:00+02:00'],
    ],
    [
      'with its prefix',
      'RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29',
      '2026-01-01T00:00Z',
      ['2028-02-29T00:00:00+01:00', '2032-02-29T00:00:00+01:00'],
    ],
    // RFC 5545, 3.3.10: a local time that does not exist is ignored.
    [
      'a time that is left out does not occur',
      'FREQ=DAILY;BYHOUR=2;BYMINUTE=30',
      '2027-03-27T12:00Z',
      ['2027-03-29T02:30:00+02:00', '2027-03-30T02:30:00+02:00'],
    ],
    [
      'a time that comes twice occurs the first time',
      'FREQ=DAILY;BYHOUR=2;BYMINUTE=30',
      '2027-10-30T12:00Z',
      ['2027-10-31T02:30:00+02:00', '2027-11-01T02:30:00+01:00'],
    ],
  ])('%s', async (_, rrule, from, expected) => {
    expect(await locals({ rrule, zone: 'Europe/Berlin' }, from, 2)).toEqual(expected)
  })

  test('counts from its start', async () => {
    const spec = { rrule: 'FREQ=DAILY;INTERVAL=3;COUNT=3', start: '2026-06-02T08:00' }
    expect(await locals(spec, '2026-06-01T00:00Z', 9)).toEqual([
      '2026-06-02T08:00:00+00:00',
      '2026-06-05T08:00:00+00:00',
      '2026-06-08T08:00:00+00:00',
    ])
  })
})

test('a time in the gap of the clock is the first instant after it', async () => {
  const [only, ...others] = await preview({ at: '2027-03-28T02:30', zone: 'Europe/Berlin' }, { from: new Date(NOW) })
  expect(only).toEqual({
    ...{ at: new Date('2027-03-28T01:00Z'), local: '2027-03-28T03:00:00+02:00' },
    note: 'moved: the clock leaves out its time',
  })
  expect(others).toEqual([])
})

test('start, end and exclude bound every kind', async () => {
  const bounds = { start: '2026-06-02', end: '2026-06-04T23:00', exclude: ['2026-06-03'] }
  const expected = ['2026-06-02T12:00:00+00:00', '2026-06-04T12:00:00+00:00']
  const specs: readonly ScheduleSpec[] = [
    { cron: '0 12 * * *' },
    { rrule: 'FREQ=DAILY;BYHOUR=12;BYDAY=MO,TU,WE,TH,FR' },
    { every: '24h', offset: '12h' },
  ]
  for (const spec of specs) expect(await locals({ ...spec, ...bounds }, '2026-06-01T00:00Z', 9)).toEqual(expected)
  const rule = await toOccurrences({ cron: '0 12 * * *', exclude: [{ cron: '0 12 * * 6,0' }] }, { now: NOW })
  expect(new Date(rule.next(Date.parse('2026-06-05T13:00Z')) ?? 0)).toEqual(new Date('2026-06-08T12:00Z'))
  expect(new Date(rule.last(Date.parse('2026-06-07T13:00Z')) ?? 0)).toEqual(new Date('2026-06-05T12:00Z'))
})

test.each<[string, ScheduleSpec, RegExp]>([
  ['no fields', { cron: '' }, /write five fields/],
  ['four fields', { cron: '5 * * *' }, /write five fields/],
  ['seven fields', { cron: '0 0 0 1 1 * 2027' }, /write five fields/],
  ['a time instead of fields', { cron: '2027-01-01T00:00:00' }, /write five fields/],
  ['@reboot', { cron: '@reboot' }, /write five fields/],
  ['a minute of 60', { cron: '60 * * * *' }, /minute must be from 0 to 59, got "60"/],
  ['day 32', { cron: '0 0 32 * *' }, /day of the month must be from 1 to 31, got "32"/],
  ['day 0', { cron: '0 0 0 * *' }, /day of the month must be from 1 to 31, got "0"/],
  ['month 13', { cron: '0 0 1 13 *' }, /month must be from 1 to 12, or one of JAN, .*, got "13"/],
  ['weekday 8', { cron: '0 0 * * 8' }, /weekday must be from 0 to 7, or one of SUN, .*, got "8"/],
  ['hour 24', { cron: '0 24 * * *' }, /hour must be from 0 to 23/],
  ['a sixth weekday', { cron: '0 0 * * 1#6' }, /the number after # must be from 1 to 5, or L/],
  ['a step without a range', { cron: '5/15 * * * *' }, /write \*\/15 or 5-59\/15/],
  ['a step of 0', { cron: '*/0 * * * *' }, /step must be from 1 to 60/],
  ['a range that wraps', { cron: '0 22-6 * * *' }, /ends before it begins: write 22-23,0-6/],
  ['a long name', { cron: '0 0 * * MONDAY' }, /got "MONDAY"/],
  ['@midnight', { cron: '@midnight' }, /write five fields/],
  ['an empty item', { cron: '0 0 1,,2 * *' }, /day of the month must be from 1 to 31, got ""/],
  ['30 February', { cron: '0 0 30 2 *' }, /has no occurrence within ten years/],
  ['an impossible rule', { rrule: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30' }, /no occurrence/],
  ['an hour of 25', { rrule: 'FREQ=DAILY;BYHOUR=25' }, /BYHOUR must be from 0 to 23/],
  ...['BYMONTHDAY=32', 'BYMONTHDAY=0', 'BYMONTHDAY=-32', 'BYMONTHDAY=1,,2', 'BYMONTHDAY=1.5', 'BYMONTHDAY=x'].map(
    (part): [string, ScheduleSpec, RegExp] => [
      part,
      { rrule: `FREQ=MONTHLY;${part}` },
      /BYMONTHDAY must be from 1 to 31, or from -31 to -1, got/,
    ],
  ),
  ['month 13 of a rule', { rrule: 'FREQ=DAILY;BYMONTH=13' }, /BYMONTH must be from 1 to 12, got 13/],
  ['a negative month', { rrule: 'FREQ=DAILY;BYMONTH=-1' }, /BYMONTH must be from 1 to 12/],
  ['week 54', { rrule: 'FREQ=YEARLY;BYWEEKNO=54;BYDAY=MO' }, /BYWEEKNO must be from 1 to 53, or from -53 to -1/],
  ['day 367', { rrule: 'FREQ=YEARLY;BYYEARDAY=367' }, /BYYEARDAY must be from 1 to 366, or from -366 to -1/],
  ['position 0', { rrule: 'FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0' }, /BYSETPOS must be from 1 to 366/],
  ['position 367', { rrule: 'FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367' }, /BYSETPOS must be from 1 to 366/],
  ['an empty weekday', { rrule: 'FREQ=WEEKLY;BYDAY=MO,,TU' }, /BYDAY must be weekdays such as MO,TU, got ""/],
  ['a sixth Monday', { rrule: 'FREQ=MONTHLY;BYDAY=6MO' }, /numbers from 1 to 5, got "6MO"/],
  ['a Monday 0', { rrule: 'FREQ=MONTHLY;BYDAY=0MO' }, /numbers from 1 to 5, got "0MO"/],
  [
    'a number before a weekday of weeks',
    { rrule: 'FREQ=WEEKLY;BYDAY=1MO' },
    /BYDAY must be weekdays such as MO,TU, got/,
  ],
  ['an interval of 0', { rrule: 'FREQ=DAILY;INTERVAL=0', start: '2026-01-01' }, /INTERVAL must be from 1/],
  ['two intervals', { rrule: 'FREQ=DAILY;INTERVAL=1,2', start: '2026-01-01' }, /INTERVAL must be from 1/],
  ['a count of 0', { rrule: 'FREQ=DAILY;COUNT=0', start: '2026-01-01' }, /COUNT must be from 1/],
  ['a part twice', { rrule: 'FREQ=DAILY;BYHOUR=1;BYHOUR=2' }, /BYHOUR is given twice/],
  ['a value twice', { rrule: 'FREQ=DAILY;BYHOUR=1=2' }, /is not a part of a rule/],
  ['an unknown frequency', { rrule: 'FREQ=FORTNIGHTLY' }, /FREQ must be one of YEARLY/],
  ['no frequency', { rrule: 'BYHOUR=1' }, /FREQ must be one of YEARLY/],
  ['an unknown start of weeks', { rrule: 'FREQ=DAILY;WKST=XX' }, /WKST must be one of SU/],
  ['a local end', { rrule: 'FREQ=DAILY;UNTIL=20270101T000000' }, /UNTIL must be a time of UTC such as/],
  ['an end that does not exist', { rrule: 'FREQ=DAILY;UNTIL=20270231T000000Z' }, /UNTIL must be a time of UTC/],
  [
    'COUNT and UNTIL',
    { rrule: 'FREQ=DAILY;COUNT=2;UNTIL=20270101T000000Z', start: '2026-01-01' },
    /exclude each other/,
  ],
  ['weeks of months', { rrule: 'FREQ=MONTHLY;BYWEEKNO=3' }, /BYWEEKNO needs FREQ=YEARLY/],
  ['days of the year of days', { rrule: 'FREQ=DAILY;BYYEARDAY=3' }, /BYYEARDAY needs FREQ=YEARLY/],
  ['dates of weeks', { rrule: 'FREQ=WEEKLY;BYMONTHDAY=3' }, /cannot be used with FREQ=WEEKLY/],
  ['positions of nothing', { rrule: 'FREQ=DAILY;BYSETPOS=1' }, /BYSETPOS needs another part/],
  ['an unknown part', { rrule: 'FREQ=DAILY;BYMOON=FULL' }, /"BYMOON=FULL" is not a part/],
  ['COUNT without a start', { rrule: 'FREQ=DAILY;COUNT=3' }, /add start/],
  ['half a second', { every: 500 }, /at least one second/],
  ['a interval that is no duration', { every: 'soon' as '1s' }, /every/],
  ['an offset that is too long', { every: '5m', offset: '5m' }, /must be less than every/],
  ['an offset of a cron', { cron: '* * * * *', offset: '1m' } as ScheduleSpec, /offset belongs to every/],
  ['two kinds', { cron: '* * * * *', every: '5m' } as ScheduleSpec, /exactly one of/],
  ['no kind', {} as ScheduleSpec, /exactly one of/],
  ['an unknown option', { cron: '* * * * *', tz: 'UTC' } as ScheduleSpec, /no option "tz"/],
  ['no zone of ours', { cron: '* * * * *', zone: 'Mars/Olympus' }, /zone must be the name of a time zone/],
  ['an offset as zone', { cron: '* * * * *', zone: '+01:00' }, /zone must be the name of a time zone/],
  ['a start that is no time', { every: '5m', start: 'tomorrow' }, /start: "tomorrow" is not a time/],
  ['31 June', { every: '5m', start: '2026-06-31' }, /is not a time/],
  ['before 1970', { at: '1969-07-20T20:17Z' }, /the year must be from 1970 to 2100/],
  ['after 2100', { every: '5m', end: '2101-01-01' }, /the year must be from 1970 to 2100/],
  ['an end before its start', { every: '5m', start: '2026-06-02', end: '2026-06-01' }, /end must not be before start/],
  ['an exclusion that is no date', { every: '5m', exclude: ['christmas'] }, /"christmas" is not a date/],
  ['everything excluded', { cron: '0 12 * * *', exclude: [{ cron: '0 12 * * *' }] }, /takes too long to compute/],
  ['an exclusion that is nothing', { every: '5m', exclude: [null as never] }, /exclude/],
  ['an exclusion in no zone', { every: '5m', exclude: [{ cron: '* * * * *', zone: 'Nope/X' }] }, /Nope\/X/],
  ['an exclusion with bounds', { every: '5m', exclude: [{ cron: '* * * * *', end: '2030-01-01' } as never] }, /end/],
  ['too long a COUNT', { rrule: 'FREQ=SECONDLY;COUNT=100000', start: '2026-01-01' }, /COUNT must be from 1 to 20000/],
  ['too many rules in exclude', { every: '5m', exclude: Array(51).fill({ cron: '* 1 * * *' }) }, /at most 50 rules/],
  ['too long a cron', { cron: `${'0,'.repeat(500)}0 * * * *` }, /at most 1000 characters/],
  ['too long an rrule', { rrule: `FREQ=DAILY;BYHOUR=${'0,'.repeat(2_000)}0` }, /at most 4000 characters/],
])('is refused in one clear line: %s', async (_, spec, message) => {
  const error = await rejectionOf(toOccurrences(spec, { now: NOW }))
  expect(error).toBeInstanceOf(InvalidArgument)
  expect(String(error)).toMatch(message)
  expect(String(error)).not.toContain('\n')
})

test.each<[ScheduleSpec['exclude'] & object, string]>([
  [['2026-12-25'], '2026-12-25T23:00:00.000Z'],
  [['2026-12-25', '2026-12-26', '2026-12-27'], '2026-12-27T23:00:00.000Z'],
  [[{ cron: '*/10 * 0-11 25 12 *' }], '2026-12-25T11:00:00.000Z'],
])('very many times in a row can be excluded: %j', async (exclude, next) => {
  const spec = { cron: '* * * * * *', zone: 'Europe/Berlin', exclude }
  const dense: ScheduleSpec =
    Array.isArray(exclude) && typeof exclude[0] === 'string' ? spec : { ...spec, cron: '*/10 * * * * *' }
  const rule = await toOccurrences(dense, { now: NOW })
  const eve = Date.parse('2026-12-24T22:59:59.000Z')
  expect(new Date(rule.next(eve) ?? 0).toISOString()).toBe(next)
  expect(rule.last(Date.parse(next) - 1)).toBe(Date.parse(`2026-12-24T22:59:5${dense === spec ? 9 : 0}.000Z`))
})

test.each<[ScheduleSpec, ScheduleSpec, boolean]>([
  [{ every: '5m', offset: '1m' }, { offset: 60_000, every: '300s', zone: 'UTC' }, true],
  [{ cron: '0 3 * * *', zone: 'Europe/Berlin' }, { zone: 'Europe/Berlin', cron: '0 3 * * *' }, true],
  [{ cron: '0 3 * * *' }, { cron: '0 3 * * *', zone: 'Europe/Berlin' }, false],
  [{ every: '5m' }, { every: '5m', from: 'epoch', offset: 0 }, true],
  [
    { every: '5m', exclude: [{ cron: '* 1 * * *', zone: 'UTC' }] },
    { every: '5m', exclude: [{ zone: 'UTC', cron: '* 1 * * *' }] },
    true,
  ],
  [{ every: '5m' }, { every: '5m', exclude: ['2026-12-25'] }, false],
])('%j and %j name the same times: %s', (one, other, same) => {
  expect(isSameSpec(one, other)).toBe(same)
})

test('the first job of a interval from the end of the previous job is at the start', async () => {
  const rule = await toOccurrences({ every: '5m', from: 'completion', start: '2027-01-01' }, { now: NOW })
  expect(new Date(rule.next(NOW) ?? 0).toISOString()).toBe('2027-01-01T00:00:00.000Z')
})

test.each<[ScheduleSpec, string]>([
  [{ cron: '30 2 * * 1-5', zone: 'Europe/Berlin' }, 'At 02:30, Monday through Friday, in Europe/Berlin'],
  [{ cron: '0 2 1 * 1' }, 'At 02:00, on day 1 of the month, or on Monday, in UTC'],
  [{ cron: '0 0 */2 * 1' }, 'At 00:00, every 2 days in a month, and only on Monday, in UTC'],
  [{ cron: '0 0 29 2 +1' }, 'At 00:00, on day 29 of the month, and only on Monday, only in February, in UTC'],
  [{ cron: '0 2 * * FRI#L' }, 'At 02:00, on the last Friday of the month, in UTC'],
  [{ cron: '@DAILY' }, 'At 00:00, in UTC'],
  [{ cron: '0\t2 *  * 1' }, 'At 02:00, only on Monday, in UTC'],
  [{ cron: '0 0 1,15W * *' }, "cron '0 0 1,15W * *' in UTC"],
  [{ rrule: 'FREQ=MONTHLY;BYMONTHDAY=32' }, "rrule 'FREQ=MONTHLY;BYMONTHDAY=32' in UTC"],
  [{ every: '5m' }, 'every 5m, counted from 1970-01-01T00:00Z'],
  [{ cron: '0 30 2 1 * 1' }, 'At 02:30, on day 1 of the month, or on Monday, in UTC'],
  [{ every: '5m', from: 'completion' }, 'every 5m after the previous job has ended'],
  [{ rrule: 'FREQ=MONTHLY;BYDAY=-1FR' }, 'every month on last Friday, in UTC'],
  [{ at: '2027-03-28T09:00' }, 'once at 2027-03-28T09:00 in UTC'],
])('is said in words: %j', async (spec, words) => {
  expect(await explainSpec(spec)).toBe(words)
})

test('a preview says where an rrule leaves out a day', async () => {
  const spec = { rrule: 'FREQ=DAILY;BYHOUR=2;BYMINUTE=30', zone: 'Europe/Berlin', start: '2027-03-01' }
  const [, , after] = await preview(spec, { from: new Date('2027-03-26T12:00Z') })
  expect(after).toMatchObject({
    local: '2027-03-30T02:30:00+02:00',
  })
  const [, moved] = await preview(spec, { from: new Date('2027-03-26T12:00Z') })
  expect(moved?.note).toBe('the clock leaves out 2027-03-28T02:30, which does not occur')
})
