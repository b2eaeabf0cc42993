/**
 * Calendar rules as RFC 5545 (iCalendar) defines them. A local time that the clock leaves out does not occur (section 3.3.10); a local time
 * that the clock shows twice occurs the first time. Rules of minutes and seconds go by real time.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { type Day, toDay, weekNumbers } from './days.ts'
import { toRecurrence, type Unit } from './recurrence.ts'
import type { Rule } from './rule.ts'
import { Work } from './work.ts'
import { toLocalTime } from './zone.ts'

const UNITS: Readonly<Record<string, Unit>> = {
  ...{ YEARLY: 'year', MONTHLY: 'month', WEEKLY: 'week', DAILY: 'day' },
  ...{ HOURLY: 'hour', MINUTELY: 'minute', SECONDLY: 'second' },
}
const WEEKDAYS = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA']

interface Range {
  readonly max: number
  /** Whether 0 is a value. */
  readonly hasZero?: boolean
  /** Whether negative values count from the end. */
  readonly isSigned?: boolean
  /** Whether there is only one value. */
  readonly isSingle?: boolean
}

const NUMBERS: Readonly<Record<string, Range>> = {
  INTERVAL: { max: 1_000_000_000, isSingle: true },
  COUNT: { max: 20_000, isSingle: true },
  ...{ BYSECOND: { max: 59, hasZero: true }, BYMINUTE: { max: 59, hasZero: true }, BYHOUR: { max: 23, hasZero: true } },
  ...{ BYMONTH: { max: 12 }, BYMONTHDAY: { max: 31, isSigned: true }, BYYEARDAY: { max: 366, isSigned: true } },
  ...{ BYWEEKNO: { max: 53, isSigned: true }, BYSETPOS: { max: 366, isSigned: true } },
}
const NAMES = ['FREQ', 'UNTIL', 'WKST', 'BYDAY', ...Object.keys(NUMBERS)]
/** The maximum length of a rule. Even a rule that names every value of every part is shorter. */
const MAX_LENGTH = 4_000

/** A weekday, and its number in the month or the year: 1 is the first one, -1 the last one. Without a number, each such weekday matches. */
interface Weekday {
  readonly weekday: number
  readonly nth: number | undefined
}

interface Parts {
  readonly unit: Unit
  readonly interval: number
  readonly count: number | undefined
  readonly until: number | undefined
  readonly weekStart: number
  readonly weekdays: readonly Weekday[] | undefined
  /** Returns the values of a part, in order; undefined if the rule does not have the part. */
  readonly of: (name: string) => readonly number[] | undefined
}

/**
 * Parses a rule.
 *
 * @param start the first period of the rule; needed where the rule counts from it
 * @throws InvalidArgument for an invalid rule, and for a rule that needs a start and has none
 */
export function toCalendarRule(text: string, options: { zone: string; start?: number | undefined }): Rule {
  const { zone, start } = options
  const parts = parseRule(text)
  const { of, unit } = parts
  if (start === undefined && needsStart(parts))
    throw invalidRule(
      text,
      'it counts from its first day: add start, or name the days with BYDAY, BYMONTHDAY or BYYEARDAY',
    )
  const first = start === undefined ? EPOCH : toLocalTime(start, zone)
  const all = (count: number) => [...Array(count).keys()]
  const isShort = (units: readonly Unit[]) => units.includes(unit)
  const rule = toRecurrence({
    ...{ what: `rrule ${JSON.stringify(text)}`, zone, unit, interval: parts.interval, weekStart: parts.weekStart },
    start: start === undefined ? 0 : Math.floor(start / 1_000) * 1_000,
    matchesDay: toDayFilter(parts, toDay(Math.floor(Date.UTC(first.year, first.month - 1, first.day) / 86_400_000))),
    hours: of('BYHOUR') ?? (isShort(['hour', 'minute', 'second']) ? all(24) : [first.hour]),
    minutes: of('BYMINUTE') ?? (isShort(['minute', 'second']) ? all(60) : [first.minute]),
    seconds: of('BYSECOND') ?? (isShort(['second']) ? all(60) : [first.second]),
    positions: of('BYSETPOS'),
    movesLeftOut: false,
  })
  return limit(rule, parts, text)
}

const EPOCH = { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0 }

/** Ends a rule with its COUNT or UNTIL. */
function limit(rule: Rule, { count, until }: Parts, text: string): Rule {
  if (count === undefined && until === undefined) return rule
  let end = until
  const endOf = (work: Work) => {
    end ??= findLast(rule, count ?? 1, work)
    return end
  }
  const withWork = (work: Work | undefined) => work ?? new Work(`rrule ${JSON.stringify(text)}`)
  return {
    next: (after, sharedWork) => {
      const work = withWork(sharedWork)
      const [found, last] = [rule.next(after, work), endOf(work)]
      return found === undefined || found > last ? undefined : found
    },
    last: (before, sharedWork) => {
      const work = withWork(sharedWork)
      return rule.last(Math.min(before, endOf(work)), work)
    },
  }
}

/** Returns the last of the first `count` occurrences; infinite if there are fewer. */
function findLast(rule: Rule, count: number, work: Work): number {
  let found: number | undefined
  for (let n = 0; n < count; n += 1) {
    found = rule.next(found ?? Number.NEGATIVE_INFINITY, work)
    if (found === undefined) return Number.POSITIVE_INFINITY
  }
  return found ?? Number.POSITIVE_INFINITY
}

// --- Days -------------------------------------------------------------------------------------------------------------

/** Returns a test whether a day may have occurrences. A rule without a month, date or weekday takes it from its first day. */
function toDayFilter(parts: Parts, first: Day): (day: Day) => boolean {
  const { of, unit, weekStart } = parts
  const namesDays = parts.weekdays || of('BYMONTHDAY') || of('BYYEARDAY')
  const weeks = of('BYWEEKNO')
  const isLong = !namesDays && (unit === 'week' || unit === 'month' || unit === 'year')
  const isOneWeekday = isLong && (unit === 'week' || weeks !== undefined)
  const weekdays = parts.weekdays ?? (isOneWeekday ? [{ weekday: first.weekday, nth: undefined }] : undefined)
  const dates = of('BYMONTHDAY') ?? (isLong && !isOneWeekday ? [first.date] : undefined)
  const months = of('BYMONTH') ?? (isLong && unit === 'year' && !isOneWeekday ? [first.month] : undefined)
  const ordinals = of('BYYEARDAY')
  const isInYear = unit === 'year' && of('BYMONTH') === undefined
  return (day) =>
    (!months || months.includes(day.month)) &&
    (!dates || dates.includes(day.date) || dates.includes(day.date - day.monthLength - 1)) &&
    (!ordinals || ordinals.includes(day.ordinal) || ordinals.includes(day.ordinal - day.yearLength - 1)) &&
    (!weekdays || weekdays.some((each) => isWeekday(day, each, isInYear ? 'year' : 'month'))) &&
    (!weeks || weekNumbers(day, weekStart).some((number) => weeks.includes(number)))
}

function isWeekday(day: Day, { weekday, nth }: Weekday, within: 'year' | 'month'): boolean {
  if (day.weekday !== weekday) return false
  if (nth === undefined) return true
  const [place, length] = within === 'year' ? [day.ordinal, day.yearLength] : [day.date, day.monthLength]
  return nth > 0 ? Math.ceil(place / 7) === nth : Math.ceil((length - place + 1) / 7) === -nth
}

/** Returns whether the occurrences depend on the first day: with another start, such a rule has other occurrences. */
function needsStart({ of, unit, weekdays, count, interval }: Parts): boolean {
  const namesDays = weekdays || of('BYMONTHDAY') || of('BYYEARDAY')
  return count !== undefined || interval !== 1 || (!namesDays && ['week', 'month', 'year'].includes(unit))
}

// --- Parsing ----------------------------------------------------------------------------------------------------------

/** Checks a rule, and parses its parts. @throws InvalidArgument */
export function parseRule(text: string): Parts {
  const values = splitRule(text)
  const refuse = (why: string): never => {
    throw invalidRule(text, why)
  }
  const unit = UNITS[values.get('FREQ') ?? ''] ?? refuse(`FREQ must be one of ${Object.keys(UNITS).join(', ')}`)
  const numbers = new Map<string, readonly number[]>()
  for (const [name, range] of Object.entries(NUMBERS)) {
    const value = values.get(name)
    if (value !== undefined)
      numbers.set(name, toNumbers(value, range) ?? refuse(`${name} must be ${describeRange(range)}, got ${value}`))
  }
  const weekdays = values
    .get('BYDAY')
    ?.split(',')
    .map(
      (item) =>
        toWeekday(item, unit) ??
        refuse(
          `BYDAY must be weekdays such as MO,TU${unit === 'month' || unit === 'year' ? `, or 1MO and -1FR with numbers from 1 to ${MAX_NTH[unit]}` : ''}, got ${JSON.stringify(item)}`,
        ),
    )
  const weekStart = WEEKDAYS.indexOf(values.get('WKST') ?? 'MO')
  if (weekStart < 0) refuse(`WKST must be one of ${WEEKDAYS.join(', ')}`)
  const untilText = values.get('UNTIL')
  const until =
    untilText === undefined
      ? undefined
      : (toUntil(untilText) ?? refuse('UNTIL must be a time of UTC such as 20271231T235959Z'))
  const parts: Parts = {
    ...{ unit, weekStart, weekdays, until, of: (name) => numbers.get(name) },
    ...{ interval: numbers.get('INTERVAL')?.[0] ?? 1, count: numbers.get('COUNT')?.[0] },
  }
  const why = findContradiction(parts, values)
  return why === undefined ? parts : refuse(why)
}

function splitRule(text: string): ReadonlyMap<string, string> {
  const parts = new Map<string, string>()
  const rule = typeof text === 'string' ? text.trim().replace(/^RRULE:/i, '') : ''
  if (rule.length > MAX_LENGTH)
    throw invalidRule(`${rule.slice(0, 40)}…`, `it must have at most ${MAX_LENGTH} characters`)
  for (const part of rule.split(';')) {
    const [name = '', value = '', ...others] = part.toUpperCase().split('=')
    if (!NAMES.includes(name) || value === '' || others.length > 0)
      throw invalidRule(
        text,
        `${JSON.stringify(part)} is not a part of a rule; write NAME=VALUE with ${NAMES.join(', ')}`,
      )
    if (parts.has(name)) throw invalidRule(text, `${name} is given twice`)
    parts.set(name, value)
  }
  return parts
}

/** Returns the values in order; undefined if one is out of the range. */
function toNumbers(text: string, { max, hasZero, isSigned, isSingle }: Range): readonly number[] | undefined {
  const items = text.split(',')
  const pattern = isSigned ? /^[+-]?\d+$/ : /^\d+$/
  const isIn = (item: string) => {
    const size = Math.abs(Number(item))
    return pattern.test(item) && size <= max && (size > 0 || hasZero === true)
  }
  if (!items.every(isIn) || (isSingle && items.length > 1)) return undefined
  return [...new Set(items.map(Number))].sort((a, b) => a - b)
}

function describeRange({ max, hasZero, isSigned }: Range): string {
  const range = `from ${hasZero ? 0 : 1} to ${max}`
  return isSigned ? `${range}, or from -${max} to -1` : range
}

/** The maximum number of times that a weekday occurs in a unit. */
const MAX_NTH: Readonly<Partial<Record<Unit, number>>> = { month: 5, year: 53 }

function toWeekday(item: string, unit: Unit): Weekday | undefined {
  const [, number, name = ''] = /^([+-]?\d{1,2})?([A-Z]{2})$/.exec(item) ?? []
  const weekday = WEEKDAYS.indexOf(name)
  const nth = number === undefined ? undefined : Number(number)
  const isIn = nth === undefined || (nth !== 0 && Math.abs(nth) <= (MAX_NTH[unit] ?? 0))
  return weekday < 0 || !isIn ? undefined : { weekday, nth }
}

function toUntil(text: string): number | undefined {
  const found = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text)
  if (!found) return undefined
  const iso = `${found.slice(1, 4).join('-')}T${found.slice(4).join(':')}.000Z`
  const instant = Date.parse(iso)
  return !Number.isNaN(instant) && new Date(instant).toISOString() === iso ? instant : undefined
}

/** Returns what RFC 5545 forbids about a rule; undefined if nothing. */
function findContradiction(
  { unit, of, weekdays, count, until }: Parts,
  values: ReadonlyMap<string, string>,
): string | undefined {
  const isNth = weekdays?.some(({ nth }) => nth !== undefined)
  if (count !== undefined && until !== undefined) return 'COUNT and UNTIL exclude each other'
  if (of('BYWEEKNO') && unit !== 'year') return 'BYWEEKNO needs FREQ=YEARLY'
  if (of('BYYEARDAY') && ['day', 'week', 'month'].includes(unit))
    return 'BYYEARDAY needs FREQ=YEARLY, or hours and shorter'
  if (of('BYMONTHDAY') && unit === 'week') return 'BYMONTHDAY cannot be used with FREQ=WEEKLY'
  if (of('BYWEEKNO') && isNth) return 'BYDAY cannot have numbers together with BYWEEKNO'
  if (of('BYSETPOS') && ![...values.keys()].some((name) => name.startsWith('BY') && name !== 'BYSETPOS'))
    return 'BYSETPOS needs another part that begins with BY'
  return undefined
}

function invalidRule(text: unknown, why: string, options?: ErrorOptions): InvalidArgument {
  return new InvalidArgument(`rrule ${JSON.stringify(text)} is not valid: ${why}`, options)
}
