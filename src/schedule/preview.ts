/** Lists when a schedule will fire, without a board: by the same rules as the firing. */
import { InvalidArgument, isDate } from '../core/errors.ts'
import { toCalendarRule } from './calendar/calendar-rule.ts'
import { toCronMatcher } from './calendar/cron-rule.ts'
import { toInstant } from './calendar/instant.ts'
import { Work } from './calendar/work.ts'
import { asUtc, formatLocalTime, fromLocalTime, toLocalTime } from './calendar/zone.ts'
import { describeSpec, followsCompletion, type ScheduleSpec, toOccurrences, zoneOf } from './spec.ts'

/** The options of `preview`. */
export interface PreviewOptions {
  /** The number of occurrences; 10 by default, at most 1,000. */
  readonly count?: number
  /** The first instant that is listed; now by default. */
  readonly from?: Date
}

/** A time at which a schedule fires. */
export interface Occurrence {
  readonly at: Date
  /** The local time of the schedule's zone, with its offset: `2027-03-28T03:00:00+02:00`. */
  readonly local: string
  /** The effect of a change of the clock; absent where there is none. */
  readonly note?: string
}

const DEFAULT_COUNT = 10
const MAX_COUNT = 1_000

/**
 * Lists the next occurrences of a schedule.
 *
 * @throws InvalidArgument for an invalid spec, and for one whose times depend on jobs
 * @example await preview({ cron: '30 2 * * *', zone: 'Europe/Berlin' }, { from: new Date('2027-03-27'), count: 3 })
 */
export async function preview(spec: ScheduleSpec, options: PreviewOptions = {}): Promise<readonly Occurrence[]> {
  const { count = DEFAULT_COUNT, from = new Date() } = options
  if (!Number.isInteger(count) || count < 1 || count > MAX_COUNT)
    throw new InvalidArgument(`count must be a whole number from 1 to ${MAX_COUNT}, got ${count}`)
  if (!isDate(from) || Number.isNaN(from.getTime())) throw new InvalidArgument('from must be a valid Date')
  const year = from.getUTCFullYear()
  if (year < 1970 || year > 2100) throw new InvalidArgument(`from: the year must be from 1970 to 2100, got ${year}`)
  const rule = await toOccurrences(spec, { now: from.getTime() })
  if (followsCompletion(spec))
    throw new InvalidArgument("the times of a schedule with from: 'completion' depend on when its jobs end")
  const work = new Work(describeSpec(spec))
  const explain = await toExplainer(spec, work)
  const found: Occurrence[] = []
  let after = from.getTime() - 1
  while (found.length < count) {
    const at = rule.next(after, work)
    if (at === undefined) break
    const note = explain({ at, after })
    found.push({ at: new Date(at), local: formatLocalTime(at, zoneOf(spec)), ...(note ? { note } : {}) })
    after = at
  }
  return found
}

type Explainer = (step: { readonly at: number; readonly after: number }) => string | undefined

const MOVED = 'moved: the clock leaves out its time'

/** Returns a function that says what a change of the clock does to an occurrence, or between it and the one before. */
async function toExplainer(spec: ScheduleSpec, work: Work): Promise<Explainer> {
  const zone = zoneOf(spec)
  if ('cron' in spec) {
    const matches = toCronMatcher(spec.cron)
    return ({ at }) => (matches(asUtc(toLocalTime(at, zone))) ? describeRepeated(at, zone) : MOVED)
  }
  if ('rrule' in spec) {
    const start = spec.start === undefined ? undefined : toInstant(spec.start, { zone, what: 'start' })
    // The same rule without changes of the clock names the local times that are left out.
    const wallStart = start === undefined ? undefined : asUtc(toLocalTime(start, zone))
    const walls = toCalendarRule(spec.rrule, { zone: 'UTC', start: wallStart })
    return ({ at, after }) => {
      const leftOut = findLeftOut((time) => walls.next(time, work), { at, after, zone })
      if (leftOut === undefined) return describeRepeated(at, zone)
      return `the clock leaves out ${new Date(leftOut).toISOString().slice(0, 16)}, which does not occur`
    }
  }
  if ('at' in spec && typeof spec.at === 'string' && !/(?:Z|[+-]\d{2}:\d{2})$/.test(spec.at)) {
    const wanted = spec.at.replace(' ', 'T').slice(0, 16)
    return ({ at }) => (formatLocalTime(at, zone).startsWith(wanted) ? describeRepeated(at, zone) : MOVED)
  }
  return () => undefined
}

/** Says which one of two it is, where clocks go back and show the same time twice. */
function describeRepeated(at: number, zone: string): string | undefined {
  const { instant, kind } = fromLocalTime(toLocalTime(at, zone), zone)
  if (kind !== 'repeated') return undefined
  return `the clock shows this time twice: the ${at - instant < 1_000 ? 'first' : 'second'}`
}

/** The greatest number of local times that are examined between two occurrences. */
const MAX_EXAMINED = 100

/** Returns the first local time of the rule between two instants that clocks in the zone leave out. */
function findLeftOut(
  next: (after: number) => number | undefined,
  { at, after, zone }: { readonly at: number; readonly after: number; readonly zone: string },
): number | undefined {
  const end = asUtc(toLocalTime(at, zone))
  let wall = next(asUtc(toLocalTime(after, zone)))
  for (let n = 0; n < MAX_EXAMINED && wall !== undefined && wall < end; n += 1) {
    if (fromLocalTime(toLocalTime(wall, 'UTC'), zone).kind === 'left out') return wall
    wall = next(wall)
  }
  return undefined
}
