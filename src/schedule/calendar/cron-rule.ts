/**
 * Cron expressions: five fields, or six with seconds first, and nicknames such as `@daily`. As in ISC cron, an expression with a date and a
 * weekday matches the days that match one of the two fields. If one of these fields begins with `*`, a day must match both. In addition, as
 * in other systems: `L`, `LW` and `15W` as dates, `5L` and `5#2` as weekdays, and `+` before the weekdays: then a day must match both
 * fields, too.
 *
 * An expression with fixed hours and minutes runs once a day, as ISC cron does it: if the clock leaves the time out, at the first instant
 * after the gap; if the clock repeats it, the first time. An expression with `*` or a step in its time goes by real time.
 */
import { InvalidArgument, messageOf } from '../../core/errors.ts'
import { type Day, toDay } from './days.ts'
import { type Pattern, toRecurrence } from './recurrence.ts'
import type { Rule } from './rule.ts'

const NICKNAMES: Readonly<Record<string, string>> = {
  ...{ '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *', '@monthly': '0 0 1 * *', '@weekly': '0 0 * * 0' },
  ...{ '@daily': '0 0 * * *', '@hourly': '0 * * * *' },
}
const EXPLANATION = `write five fields (minute hour day month weekday), six with seconds first, or ${Object.keys(NICKNAMES).join(', ')}`
/** The maximum length of an expression. Even an expression that lists every value of every field is shorter. */
const MAX_LENGTH = 1_000

interface Field {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly names?: readonly string[]
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']
const SECOND: Field = { name: 'second', min: 0, max: 59 }
const MINUTE: Field = { name: 'minute', min: 0, max: 59 }
const HOUR: Field = { name: 'hour', min: 0, max: 23 }
const DATE: Field = { name: 'day of the month', min: 1, max: 31 }
const MONTH: Field = { name: 'month', min: 1, max: 12, names: MONTHS }
const WEEKDAY: Field = { name: 'weekday', min: 0, max: 7, names: DAYS }

/** The test of a day by one field. */
type DayTest = (day: Day) => boolean

/** Parses a cron expression. @throws InvalidArgument for an invalid expression */
export function toCronRule(expression: string, zone: string): Rule {
  return toRecurrence({ ...parseCron(expression), zone })
}

/** Returns whether a local time matches the fields: an occurrence that does not match was moved by a change of the clock. */
export function toCronMatcher(expression: string): (wall: number) => boolean {
  const { matchesDay, hours, minutes, seconds } = parseCron(expression)
  return (wall) => {
    const time = new Date(wall)
    const isTime = hours.includes(time.getUTCHours()) && minutes.includes(time.getUTCMinutes())
    return isTime && seconds.includes(time.getUTCSeconds()) && matchesDay(toDay(Math.floor(wall / 86_400_000)))
  }
}

/** Returns the six fields of an expression. @throws InvalidArgument unless there are five or six */
export function splitCron(expression: string): readonly string[] {
  const trimmed = typeof expression === 'string' ? expression.trim() : ''
  if (trimmed.length > MAX_LENGTH)
    throw invalidCron(`${trimmed.slice(0, 40)}…`, `it must have at most ${MAX_LENGTH} characters`)
  const text = NICKNAMES[trimmed.toLowerCase()] ?? trimmed.toUpperCase().replaceAll('?', '*')
  const fields = text.split(/\s+/)
  if (fields.length !== 5 && fields.length !== 6) throw invalidCron(expression, EXPLANATION)
  return fields.length === 5 ? ['0', ...fields] : fields
}

function parseCron(expression: string): Omit<Pattern, 'zone'> {
  const [second = '', minute = '', hour = '', date = '', month = '', weekday = ''] = splitCron(expression)
  try {
    const time = [second, minute, hour]
    const months = toValues(month, MONTH)
    const isDay = toDayTest(date, weekday)
    return {
      ...{ what: `cron ${JSON.stringify(expression)}`, start: 0, interval: 1, weekStart: 0, movesLeftOut: true },
      // A range of hours without a step counts as fixed, too.
      unit: time.some((field) => /[*/]/.test(field)) ? 'minute' : 'day',
      matchesDay: (day) => months.includes(day.month) && isDay(day),
      ...{ hours: toValues(hour, HOUR), minutes: toValues(minute, MINUTE), seconds: toValues(second, SECOND) },
    }
  } catch (cause) {
    throw invalidCron(expression, `${messageOf(cause)}; ${EXPLANATION}`, { cause })
  }
}

function toDayTest(dateField: string, weekdayField: string): DayTest {
  const needsBoth = weekdayField.startsWith('+')
  const weekdays = weekdayField.slice(needsBoth ? 1 : 0)
  const [isDate, isWeekday] = [toAny(dateField, toDateTest), toAny(weekdays, toWeekdayTest)]
  return matchesBothDays(dateField, weekdayField)
    ? (day) => isDate(day) && isWeekday(day)
    : (day) => isDate(day) || isWeekday(day)
}

/** Returns whether a day has to match both fields, and not only one of them. */
export function matchesBothDays(date: string, weekday: string): boolean {
  return date.startsWith('*') || /^[*+]/.test(weekday)
}

function toAny(field: string, toTest: (item: string) => DayTest): DayTest {
  const tests = field.split(',').map(toTest)
  return (day) => tests.some((test) => test(day))
}

function toDateTest(item: string): DayTest {
  if (item === 'L') return ({ date, monthLength }) => date === monthLength
  if (item === 'LW') return (day) => isNearestWorkday(day, day.monthLength)
  const [, date] = /^(\d+)W$/.exec(item) ?? []
  if (date === undefined) {
    const values = new Set(toValues(item, DATE))
    return (day) => values.has(day.date)
  }
  const wanted = toNumber(date, DATE)
  return (day) => wanted <= day.monthLength && isNearestWorkday(day, wanted)
}

/** Returns whether the day is the working day that is nearest to a date, in the same month. */
function isNearestWorkday({ date, weekday, monthLength }: Day, wanted: number): boolean {
  const on = (weekday + wanted - date + 35) % 7
  if (on === 6) return date === (wanted === 1 ? 3 : wanted - 1)
  if (on === 0) return date === (wanted === monthLength ? wanted - 2 : wanted + 1)
  return date === wanted
}

function toWeekdayTest(item: string): DayTest {
  const [, days = item, place] = /^(.*?)(#.*|(?<=[\dA-Z])L)$/.exec(item) ?? []
  const values = new Set(toValues(days, WEEKDAY).map((value) => value % 7))
  if (place === undefined) return ({ weekday }) => values.has(weekday)
  if (place === 'L' || place === '#L')
    return ({ weekday, date, monthLength }) => values.has(weekday) && date > monthLength - 7
  if (!/^#[1-5]$/.test(place))
    throw new Error(`the number after # must be from 1 to 5, or L, got ${JSON.stringify(item)}`)
  return ({ weekday, date }) => values.has(weekday) && Math.ceil(date / 7) === Number(place.slice(1))
}

/** Returns the values of a field, in order. */
function toValues(text: string, field: Field): readonly number[] {
  return [...new Set(text.split(',').flatMap((item) => toRange(item, field)))].sort((a, b) => a - b)
}

function toRange(item: string, field: Field): number[] {
  const { name, min, max } = field
  const [range = '', step, ...others] = item.split('/')
  const [low = '', high, ...more] = range.split('-')
  if (others.length > 0 || more.length > 0) throw new Error(`${JSON.stringify(item)} is not a ${name}`)
  if (step !== undefined && range !== '*' && high === undefined)
    throw new Error(
      `${JSON.stringify(item)} has a step and no range: write */${step} or ${range || min}-${max}/${step}`,
    )
  // Sunday is 0 and 7: SAT-SUN ends with the 7th day, and a step of * counts six days after Sunday.
  const end = high === 'SUN' ? '7' : (high ?? low)
  const [from, to] = range === '*' ? [min, field === WEEKDAY ? 6 : max] : [toNumber(low, field), toNumber(end, field)]
  if (from > to) {
    throw new Error(`the range ${JSON.stringify(item)} ends before it begins: write ${low}-${max},${min}-${high}`)
  }
  const width = step === undefined ? 1 : toNumber(step, { name: 'step', min: 1, max: max - min + 1 })
  return Array.from({ length: Math.floor((to - from) / width) + 1 }, (_, n) => from + n * width)
}

function toNumber(text: string, { name, min, max, names }: Field): number {
  const named = names?.indexOf(text) ?? -1
  const value = named >= 0 ? named + (min === 1 ? 1 : 0) : Number(text)
  if ((named >= 0 || /^\d+$/.test(text)) && value >= min && value <= max) return value
  const kinds = names ? `, or one of ${names.join(', ')}` : ''
  throw new Error(`${name} must be from ${min} to ${max}${kinds}, got ${JSON.stringify(text)}`)
}

function invalidCron(expression: unknown, why: string, options?: ErrorOptions): InvalidArgument {
  return new InvalidArgument(`cron ${JSON.stringify(expression)} is not valid: ${why}`, options)
}
