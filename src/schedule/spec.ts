/**
 * The times at which a schedule fires: the kinds of rule, the bounds and the exclusions.
 *
 *     { cron: '30 2 * * 1-5', zone: 'Europe/Berlin' }
 *     { every: '5m', offset: '30s' }
 *     { rrule: 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17', zone: 'Europe/Berlin' }
 *     { at: '2027-03-28T09:00', zone: 'Europe/Berlin' }
 */
import { InvalidArgument, isDate } from '../core/errors.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { type Duration, formatDuration, toMilliseconds } from '../core/time.ts'
import { toCalendarRule } from './calendar/calendar-rule.ts'
import { toCronRule } from './calendar/cron-rule.ts'
import { parseLocalDate, toInstant } from './calendar/instant.ts'
import type { Rule } from './calendar/rule.ts'
import { Work } from './calendar/work.ts'
import { assertZone, asUtc, LocalClock } from './calendar/zone.ts'

/** An expression of five fields, or of six with seconds first. */
export interface CronSpec {
  readonly cron: string
  /** The time zone of the local times; `UTC` by default. */
  readonly zone?: string
}

/** Equal intervals. Changes of the clock do not move them. */
export interface EverySpec {
  /** The interval, at least a second. */
  readonly every: Duration
  /**
   * The instant from which the intervals are counted. `epoch`, the default: 1970-01-01T00:00Z, so that they do not drift. `completion`: the
   * end of the previous job, so that no two jobs of the schedule run at once.
   */
  readonly from?: 'epoch' | 'completion'
  /** The time after each full interval; 0 by default. */
  readonly offset?: Duration
  /** The time zone of `start`, `end` and `exclude`; `UTC` by default. */
  readonly zone?: string
}

/** A rule of RFC 5545. */
export interface CalendarSpec {
  readonly rrule: string
  readonly zone?: string
}

/** A single time. A text without an offset is a local time of the zone. */
export interface AtSpec {
  readonly at: string | Date
  readonly zone?: string
}

/** The bounds of the times of every kind of rule. */
export interface SpecBounds {
  /** The instant before which nothing occurs. A calendar rule counts from it. */
  readonly start?: string | Date
  /** The instant after which nothing occurs. */
  readonly end?: string | Date
  /** Local dates such as `2026-12-25`, and rules: what they name does not occur. */
  readonly exclude?: readonly (string | CronSpec | CalendarSpec)[]
}

/** The times at which a schedule fires: a rule, and its bounds. */
export type ScheduleSpec = (CronSpec | EverySpec | CalendarSpec | AtSpec) & SpecBounds

const KNOWN: KnownOptions<CronSpec & EverySpec & CalendarSpec & AtSpec & SpecBounds> = {
  ...{ cron: true, every: true, from: true, offset: true, rrule: true, at: true },
  ...{ zone: true, start: true, end: true, exclude: true },
}
const KINDS = ['cron', 'every', 'rrule', 'at'] as const
const MIN_INTERVAL_MS = 1_000
const DAY_MS = 86_400_000
/** The maximum time until the first occurrence: a leap day comes within eight years. */
const MAX_GAP_MS = 10 * 366 * DAY_MS
/** The maximum numbers of exclusions: each time of the schedule is compared with each rule. */
const MAX_EXCLUDED_RULES = 50
const MAX_EXCLUDED_DATES = 1_000

/**
 * Computes when a schedule occurs, in milliseconds since 1970.
 *
 * @param now rules must have an occurrence in the ten years after this instant, or after their start
 * @throws InvalidArgument for an invalid spec, and for a spec that does not occur
 * @example (await toOccurrences({ cron: '30 2 * * *', zone: 'Europe/Berlin' }, { now: Date.now() })).next(Date.now())
 */
export async function toOccurrences(spec: ScheduleSpec, { now }: { readonly now: number }): Promise<Rule> {
  assertOptions(spec, KNOWN as KnownOptions<ScheduleSpec>, 'the spec of a schedule')
  const zone = zoneOf(spec)
  assertZone(zone)
  const start = spec.start === undefined ? undefined : toInstant(spec.start, { zone, what: 'start' })
  const end = spec.end === undefined ? undefined : toInstant(spec.end, { zone, what: 'end' })
  if (start !== undefined && end !== undefined && end < start) throw new InvalidArgument('end must not be before start')
  const all = toRule(spec, { zone, start })
  const exclusions = toExclusions(spec.exclude ?? [], { zone, isSpaced: followsCompletion(spec) })
  const rule = exclude(bound(all, { start, end }), exclusions)
  const what = describeSpec(spec)
  const budgeted: Rule = {
    next: (after, work = new Work(what)) => rule.next(after, work),
    last: (until, work = new Work(what)) => rule.last(until, work),
  }
  assertOccurs(budgeted, { spec, from: Math.max(now, (start ?? 0) - 1), isEnded: end !== undefined && end <= now })
  return budgeted
}

/** Returns the time zone of a schedule. */
export function zoneOf({ zone = 'UTC' }: ScheduleSpec): string {
  return zone
}

/** Formats the rule of a spec for messages: `cron '30 2 * * *' in Europe/Berlin`. */
export function describeSpec(spec: ScheduleSpec): string {
  const where = `in ${zoneOf(spec)}`
  if ('cron' in spec) return `cron '${spec.cron}' ${where}`
  if ('rrule' in spec) return `rrule '${spec.rrule}' ${where}`
  if ('at' in spec) return `once at ${isDate(spec.at) ? spec.at.toISOString() : spec.at} ${where}`
  const offset = spec.offset === undefined ? '' : ` with offset ${formatDuration(spec.offset)}`
  return `every ${formatDuration(spec.every)}${followsCompletion(spec) ? ' after the previous job has ended' : offset}`
}

/** Returns whether each time of the schedule depends on the end of the previous job. */
export function followsCompletion(spec: ScheduleSpec): boolean {
  return 'every' in spec && spec.from === 'completion'
}

/** Returns whether two specs are the same: `5m` and `300s` are, and a default that is given and left out. */
export function isSameSpec(one: ScheduleSpec, other: ScheduleSpec): boolean {
  return toCanonicalText(one) === toCanonicalText(other)
}

function toCanonicalText(spec: ScheduleSpec): string {
  const { every, offset, exclude = [], ...others } = toStoredSpec(spec) as Partial<EverySpec> & SpecBounds
  const durations = every === undefined ? [] : [toMilliseconds(every, 'every'), toMilliseconds(offset ?? 0, 'offset')]
  const bounds = exclude.map((each) => (typeof each === 'string' ? each : sortFields(each)))
  return JSON.stringify([durations, bounds, sortFields({ zone: 'UTC', from: 'epoch', ...others })])
}

function sortFields(fields: object): readonly (readonly [string, unknown])[] {
  return Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Returns a copy that can be stored: times as text. */
export function toStoredSpec(spec: ScheduleSpec): ScheduleSpec {
  const texts = Object.entries(spec).map(([name, value]) => [name, isDate(value) ? value.toISOString() : value])
  return Object.fromEntries(texts.filter(([, value]) => value !== undefined))
}

function toRule(spec: ScheduleSpec, { zone, start }: { zone: string; start: number | undefined }): Rule {
  const kinds = KINDS.filter((kind) => kind in spec)
  if (kinds.length !== 1)
    throw new InvalidArgument(
      `a schedule has exactly one of ${KINDS.join(', ')}, got ${kinds.length === 0 ? 'none' : kinds.join(' and ')}`,
    )
  for (const option of ['offset', 'from'])
    if (option in spec && !('every' in spec))
      throw new InvalidArgument(`${option} belongs to every, and not to ${kinds[0]}`)
  if ('cron' in spec) return toCronRule(spec.cron, zone)
  if ('rrule' in spec) return toCalendarRule(spec.rrule, { zone, start })
  if ('at' in spec) return toSingleRule(toInstant(spec.at, { zone, what: 'at' }))
  return toEveryRule(spec, start)
}

function toEveryRule({ every, offset = 0, from = 'epoch' }: EverySpec, start = Number.NEGATIVE_INFINITY): Rule {
  const interval = toMilliseconds(every, 'every')
  const shift = toMilliseconds(offset, 'offset')
  if (interval < MIN_INTERVAL_MS || !Number.isInteger(interval))
    throw new InvalidArgument(`every must be at least one second and whole milliseconds, got ${formatDuration(every)}`)
  if (shift >= interval)
    throw new InvalidArgument(`offset ${formatDuration(offset)} must be less than every ${formatDuration(every)}`)
  if (from !== 'epoch' && from !== 'completion')
    throw new InvalidArgument(`from must be 'epoch' or 'completion', got ${JSON.stringify(from)}`)
  if (from === 'completion') {
    if (shift > 0) throw new InvalidArgument("offset is counted from 1970: leave it out with from: 'completion'")
    // The first job waits for no other.
    return { next: (after) => (after < start ? start : after + interval), last: () => undefined }
  }
  const last = (until: number) => Math.floor((until - shift) / interval) * interval + shift
  return { next: (after) => last(after) + interval, last }
}

function toSingleRule(at: number): Rule {
  return { next: (after) => (at > after ? at : undefined), last: (until) => (at <= until ? at : undefined) }
}

function bound(rule: Rule, bounds: { readonly start: number | undefined; readonly end: number | undefined }): Rule {
  const { start = Number.NEGATIVE_INFINITY, end = Number.POSITIVE_INFINITY } = bounds
  const within = (found: number | undefined) =>
    found !== undefined && found >= start && found <= end ? found : undefined
  return {
    next: (after, work) => within(rule.next(Math.max(after, start - 1), work)),
    last: (until, work) => within(rule.last(Math.min(until, end), work)),
  }
}

/** Returns the first and the last instant of the exclusion that includes the instant; undefined if it is not excluded. */
type Exclusion = (
  instant: number,
  work: Work | undefined,
) => { readonly begin: number; readonly end: number } | undefined

function toExclusions(
  excluded: readonly (string | CronSpec | CalendarSpec)[],
  { zone, isSpaced }: { readonly zone: string; readonly isSpaced: boolean },
): Exclusion[] {
  if (!Array.isArray(excluded)) throw new InvalidArgument("exclude must be a list, such as ['2026-12-25']")
  const dates = excluded.filter((each) => typeof each === 'string')
  const rules = excluded.filter((each) => typeof each !== 'string')
  if (rules.length > MAX_EXCLUDED_RULES || dates.length > MAX_EXCLUDED_DATES)
    throw new InvalidArgument(
      `exclude must have at most ${MAX_EXCLUDED_RULES} rules and ${MAX_EXCLUDED_DATES} dates, got ${rules.length} and ${dates.length}`,
    )
  const found = rules.map((each): Exclusion => {
    assertOptions(each, { cron: true, rrule: true, zone: true }, 'exclude')
    if (isSpaced)
      throw new InvalidArgument(
        "exclude: the times of from: 'completion' match no rule: exclude dates, such as '2026-12-25'",
      )
    if ('cron' in each === 'rrule' in each)
      throw new InvalidArgument('exclude: a rule has exactly one of cron and rrule')
    if (each.zone !== undefined) assertZone(each.zone)
    const rule = toRule(each, { zone: each.zone ?? zone, start: undefined })
    return (instant, work) => (rule.next(instant - 1, work) === instant ? { begin: instant, end: instant } : undefined)
  })
  return [...(dates.length > 0 ? [excludeDates(dates, zone)] : []), ...found]
}

function excludeDates(dates: readonly string[], zone: string): Exclusion {
  const days = new Set(
    dates.map((each) => {
      const date = parseLocalDate(each)
      if (!date) throw new InvalidArgument(`exclude: ${JSON.stringify(each)} is not a date such as '2026-12-25'`)
      return asUtc(date)
    }),
  )
  const clock = new LocalClock(zone)
  return (instant) => {
    const midnight = Math.floor(clock.toWall(instant) / DAY_MS) * DAY_MS
    if (!days.has(midnight)) return undefined
    // A clock that goes back at midnight shows the end of the day again.
    const [begin, end] = [clock.fromWall(midnight), clock.fromWall(midnight + DAY_MS) - 1]
    return { begin: Math.min(begin, instant), end: Math.max(end, instant) }
  }
}

/** Removes the excluded times from a rule. */
function exclude(rule: Rule, exclusions: readonly Exclusion[]): Rule {
  if (exclusions.length === 0) return rule
  const find = (
    first: number | undefined,
    work: Work | undefined,
    step: (excluded: { begin: number; end: number }) => number | undefined,
  ) => {
    let found = first
    while (found !== undefined) {
      const instant = found
      let excluded: ReturnType<Exclusion>
      for (const at of exclusions) {
        work?.spend()
        excluded = at(instant, work)
        if (excluded) break
      }
      if (!excluded) return instant
      found = step(excluded)
    }
    return undefined
  }
  return {
    next: (after, work) => find(rule.next(after, work), work, ({ end }) => rule.next(end, work)),
    last: (until, work) => find(rule.last(until, work), work, ({ begin }) => rule.last(begin - 1, work)),
  }
}

function assertOccurs(
  rule: Rule,
  { spec, from, isEnded }: { readonly spec: ScheduleSpec; readonly from: number; readonly isEnded: boolean },
): void {
  // A schedule that is over is not a mistake: it was valid when it was declared.
  if (isEnded || 'at' in spec) return
  const work = new Work(describeSpec(spec))
  const first = rule.next(from, work)
  if (first !== undefined && first - from <= MAX_GAP_MS) return
  if (first === undefined && canEnd(spec) && rule.last(from, work) !== undefined) return
  throw new InvalidArgument(`${describeSpec(spec)} has no occurrence within ten years`)
}

function canEnd(spec: ScheduleSpec): boolean {
  return spec.end !== undefined || ('rrule' in spec && /\b(?:COUNT|UNTIL)=/i.test(spec.rrule))
}
