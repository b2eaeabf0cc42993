/**
 * Computes the occurrences of a pattern of local times, forwards and backwards. Cron expressions and calendar rules are such patterns.
 *
 * Units of a day and longer are walked on the calendar, day by day. Hours, minutes and seconds are walked in real time, so that an hour that
 * the clock repeats has twice as many minutes. Every day, unit and time that is checked costs a unit of the call's budget.
 */
import { DAY_MS, type Day, toDay, weekOf } from './days.ts'
import type { Rule } from './rule.ts'
import { Work } from './work.ts'
import { LocalClock } from './zone.ts'

export type Unit = 'year' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second'

/** A pattern of local times. */
export interface Pattern {
  /** The rule as it was given, for errors. */
  readonly what: string
  readonly zone: string
  /** The first possible occurrence; intervals count from it. */
  readonly start: number
  readonly unit: Unit
  /** The number of units from one unit with occurrences to the next one. */
  readonly interval: number
  readonly matchesDay: (day: Day) => boolean
  /** The hours, minutes and seconds of occurrences, in order. */
  readonly hours: readonly number[]
  readonly minutes: readonly number[]
  readonly seconds: readonly number[]
  /** The positions of the times that occur in each unit: 1 is the first time, -1 the last one. All times occur if it is absent. */
  readonly positions?: readonly number[] | undefined
  /** The weekday with which weeks begin, 0 for Sunday. */
  readonly weekStart: number
  /** Whether a time of day that the clock leaves out occurs after the gap. */
  readonly movesLeftOut: boolean
}

/** The values that are computed once for a pattern. */
interface Prepared {
  readonly pattern: Pattern
  readonly clock: LocalClock
  /** The local time of the start. */
  readonly startWall: number
  readonly startDay: Day
  /** The times of a day or, for hours and shorter, of a unit, in milliseconds after its begin. */
  readonly times: Sequence
  readonly toNextEdge: (wall: number, direction: 1 | -1) => number | undefined
}

interface Search extends Prepared {
  readonly direction: 1 | -1
  /** A search forwards finds only times after the bound; a search backwards, only times up to it. */
  readonly bound: number
  readonly work: Work
}

const [HOUR_MS, MINUTE_MS, SECOND_MS] = [3_600_000, 60_000, 1_000]
const SHORT_UNITS_MS: Readonly<Partial<Record<Unit, number>>> = { hour: HOUR_MS, minute: MINUTE_MS, second: SECOND_MS }
/** The end of each search: schedules have no times after 2100. */
const END = Date.UTC(2101, 0, 1)
const END_DAY = END / DAY_MS
/** The cost of the conversion of a local time: as much as the check of so many days. */
const CONVERSION_UNITS = 3

/** Returns the rule of a pattern. */
export function toRecurrence(pattern: Pattern): Rule {
  const unitMs = SHORT_UNITS_MS[pattern.unit]
  const clock = new LocalClock(pattern.zone)
  const startWall = clock.toWall(pattern.start)
  const prepared: Prepared = {
    ...{ pattern, clock, startWall, startDay: toDay(Math.floor(startWall / DAY_MS)) },
    ...{ times: timesOf(pattern), toNextEdge: toEdges(pattern) },
  }
  const find = (search: Search) => (unitMs === undefined ? findOnDays(search) : findInUnits(search, unitMs))
  return {
    next: (after, work = new Work(pattern.what)) =>
      find({ ...prepared, work, direction: 1, bound: Math.max(after, pattern.start - 1) }),
    last: (until, work = new Work(pattern.what)) => {
      const found = find({ ...prepared, work, direction: -1, bound: Math.min(until, END) })
      return found === undefined || found < pattern.start ? undefined : found
    },
  }
}

// --- Days, weeks, months and years ------------------------------------------------------------------------------------

function findOnDays(search: Search): number | undefined {
  const { pattern, clock, startDay, direction, bound, work } = search
  const wall = clock.toWall(bound)
  // If the clock has gone back, it has shown later local times before the bound.
  const from = direction < 0 ? wall + Math.max(0, clock.offsetAt(bound - DAY_MS) - clock.offsetAt(bound)) : wall
  let span = spanOf(pattern, Math.floor(from / DAY_MS))
  while (direction > 0 ? span.first < END_DAY : span.last >= startDay.index) {
    const days: number[] = []
    for (let index = span.first; index <= span.last; index += 1) {
      work.spend()
      const day = toDay(index)
      if (isInInterval(day, startDay, pattern) && pattern.matchesDay(day)) days.push(index)
    }
    const found = days.length > 0 ? findOnThese(days, from, search) : undefined
    if (found !== undefined) return found
    span = spanOf(pattern, direction > 0 ? span.last + 1 : span.first - 1)
  }
  return undefined
}

/** Returns the days that are searched together: all days of a unit if there are positions, which count within it. */
function spanOf(
  { unit, positions, weekStart }: Pattern,
  index: number,
): { readonly first: number; readonly last: number } {
  if (!positions || unit === 'day') return { first: index, last: index }
  const day = toDay(index)
  if (unit === 'month') return { first: index - day.date + 1, last: index - day.date + day.monthLength }
  if (unit === 'year') return { first: index - day.ordinal + 1, last: index - day.ordinal + day.yearLength }
  const first = weekOf(day, weekStart)
  return { first, last: first + 6 }
}

function isInInterval(day: Day, start: Day, { unit, interval, weekStart }: Pattern): boolean {
  if (interval === 1) return true
  if (unit === 'year') return (day.year - start.year) % interval === 0
  if (unit === 'month') return ((day.year - start.year) * 12 + day.month - start.month) % interval === 0
  if (unit === 'week') return ((weekOf(day, weekStart) - weekOf(start, weekStart)) / 7) % interval === 0
  return (day.index - start.index) % interval === 0
}

/** Returns the nearest occurrence on the days. If there are positions, the days must be all days of one unit. */
function findOnThese(
  days: readonly number[],
  from: number,
  { pattern, clock, times, direction, bound, work }: Search,
): number | undefined {
  const at = (place: number) => (days[Math.floor(place / times.count)] ?? 0) * DAY_MS + times.at(place % times.count)
  const places = placesOf(days.length * times.count, pattern.positions)
  work.spend(pattern.positions ? pattern.positions.length + CONVERSION_UNITS : CONVERSION_UNITS)
  const following = firstPlace(places.count, (place) => at(places.at(place)) > from)
  for (let n = direction > 0 ? following : following - 1; n >= 0 && n < places.count; n += direction) {
    work.spend(CONVERSION_UNITS)
    const instant = clock.toInstant(at(places.at(n)), pattern)
    if (instant !== undefined && (direction > 0 ? instant > bound : instant <= bound)) return instant
  }
  return undefined
}

/** A list whose items are computed when they are read: a day has up to 86,400 times. */
interface Sequence {
  readonly count: number
  readonly at: (place: number) => number
}

/** Returns the times of a day or of a shorter unit. */
function timesOf(pattern: Pattern): Sequence {
  const { unit } = pattern
  const hours = SHORT_UNITS_MS[unit] === undefined ? pattern.hours : [0]
  const minutes = unit === 'minute' || unit === 'second' ? [0] : pattern.minutes
  const seconds = unit === 'second' ? [0] : pattern.seconds
  const perHour = minutes.length * seconds.length
  const at = (place: number) =>
    (hours[Math.floor(place / perHour)] ?? 0) * HOUR_MS +
    (minutes[Math.floor((place % perHour) / seconds.length)] ?? 0) * MINUTE_MS +
    (seconds[place % seconds.length] ?? 0) * SECOND_MS
  return { count: hours.length * perHour, at }
}

function placesOf(count: number, positions: readonly number[] | undefined): Sequence {
  if (!positions) return { count, at: (place) => place }
  const places = positions.map((position) => (position > 0 ? position - 1 : count + position))
  const sorted = [...new Set(places)].filter((place) => place >= 0 && place < count).sort((a, b) => a - b)
  return { count: sorted.length, at: (place) => sorted[place] ?? 0 }
}

/** Returns the first place for which `isLater` is true, by bisection. */
function firstPlace(count: number, isLater: (place: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (isLater(middle)) high = middle
    else low = middle + 1
  }
  return low
}

// --- Hours, minutes and seconds ---------------------------------------------------------------------------------------

function findInUnits(search: Search, unitMs: number): number | undefined {
  const { pattern, clock, startWall, toNextEdge, direction, bound, work } = search
  const step = unitMs * pattern.interval
  const base = pattern.start - (startWall % unitMs)
  let known: { readonly index: number; readonly matches: boolean } | undefined
  // If the offset changes by half an hour, the following hour may have begun: so a search backwards begins there.
  let turn = Math.floor((bound - base) / step) + (direction < 0 ? 1 : 0)
  /**
   * Moves the search to another unit, by at least one unit: forwards to the first unit that does not begin before the instant, or backwards
   * to the last unit that does not begin after the instant.
   */
  const goTo = (instant: number) => {
    const turns = (instant - base) / step
    turn = direction > 0 ? Math.max(turn + 1, Math.ceil(turns)) : Math.min(turn - 1, Math.floor(turns))
  }
  while (true) {
    const begin = base + turn * step
    if (direction > 0 ? begin > END : turn < 0) return undefined
    work.spend()
    const wall = clock.toWall(begin)
    const index = Math.floor(wall / DAY_MS)
    if (known?.index !== index) known = { index, matches: pattern.matchesDay(toDay(index)) }
    if (!known.matches) {
      const day = nearestDay(index, search)
      if (day === undefined) return undefined
      goTo(clock.fromWall(direction > 0 ? day * DAY_MS : (day + 1) * DAY_MS - SECOND_MS))
      continue
    }
    const edge = toNextEdge(wall, direction)
    if (edge !== undefined) {
      goTo(begin + edge)
      continue
    }
    const found = findInUnit(begin, wall, search)
    if (found !== undefined) return found
    turn += direction
  }
}

/** Returns the nearest day that may have occurrences, after or before the given day. */
function nearestDay(index: number, { pattern, startDay, direction, work }: Search): number | undefined {
  for (let day = index + direction; direction > 0 ? day < END_DAY : day >= startDay.index; day += direction) {
    work.spend()
    if (pattern.matchesDay(toDay(day))) return day
  }
  return undefined
}

/** Returns a function that computes the distance from a unit to the next hour, minute or second, if no time of the present one occurs. */
function toEdges({ hours, minutes, seconds, unit }: Pattern): (wall: number, direction: 1 | -1) => number | undefined {
  const sets = [
    { allowed: new Set(hours), length: HOUR_MS, count: 24 },
    ...(unit === 'hour' ? [] : [{ allowed: new Set(minutes), length: MINUTE_MS, count: 60 }]),
    ...(unit === 'second' ? [{ allowed: new Set(seconds), length: SECOND_MS, count: 60 }] : []),
  ]
  return (wall, direction) => {
    for (const { allowed, length, count } of sets) {
      if (allowed.has(Math.floor(wall / length) % count)) continue
      const passed = wall % length
      return direction > 0 ? length - passed : -passed - SECOND_MS
    }
    return undefined
  }
}

/** Returns the nearest occurrence in a unit. */
function findInUnit(
  begin: number,
  wall: number,
  { pattern, clock, times, direction, bound, work }: Search,
): number | undefined {
  const isHour = pattern.unit === 'hour'
  const places = placesOf(times.count, pattern.positions)
  for (let n = 0; n < places.count; n += 1) {
    work.spend()
    const ms = times.at(places.at(direction > 0 ? n : places.count - 1 - n))
    // If the clock shows an hour twice, only the first one occurs.
    const instant = isHour ? clock.toInstant(wall - (wall % HOUR_MS) + ms, pattern) : begin + ms
    if (instant !== undefined && (direction > 0 ? instant > bound : instant <= bound)) return instant
  }
  return undefined
}
