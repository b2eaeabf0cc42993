/** Time zones: converts instants to local times and back with the data of `Intl`. Instants are milliseconds since 1970. */
import { InvalidArgument } from '../../core/errors.ts'

/** The date and time that a clock on the wall shows. */
export interface LocalTime {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

/** The way in which a local time became an instant: clocks that go forward leave out local times, clocks that go back repeat some. */
export type LocalTimeKind = 'exact' | 'left out' | 'repeated'

const DAY_MS = 86_400_000
/** The maximum number of formatters that are kept: there are some 600 zones. */
const MAX_FORMATTERS = 600
const formatters = new Map<string, Intl.DateTimeFormat>()

/**
 * Checks that the zone is a name of the IANA database, such as `Europe/Berlin`, or `UTC`.
 *
 * @throws InvalidArgument
 */
export function assertZone(zone: string): void {
  // Offsets such as +01:00 have no rules for changes of the clock: who writes one hardly means that.
  const isName = typeof zone === 'string' && /^[A-Za-z][A-Za-z0-9_+/-]*$/.test(zone)
  try {
    if (isName) return void toFormatter(zone)
  } catch {
    // Reported below.
  }
  throw new InvalidArgument(
    `zone must be the name of a time zone such as 'Europe/Berlin' or 'UTC', got ${JSON.stringify(zone)}`,
  )
}

/** Returns what clocks in the zone show at the instant. */
export function toLocalTime(instant: number, zone: string): LocalTime {
  const parts: Record<string, number> = {}
  for (const { type, value } of toFormatter(zone).formatToParts(instant)) parts[type] = Number(value)
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts
  return { year, month, day, hour, minute, second }
}

/** Returns by how much clocks in the zone are ahead of UTC at the instant, in milliseconds. */
export function offsetAt(instant: number, zone: string): number {
  const whole = Math.floor(instant / 1_000) * 1_000
  return asUtc(toLocalTime(whole, zone)) - whole
}

/**
 * Returns the instant at which clocks in the zone show the local time: of a repeated time the first one, and for a time that the
 * clock leaves out the first instant after the gap.
 */
export function fromLocalTime(
  local: LocalTime,
  zone: string,
): { readonly instant: number; readonly kind: LocalTimeKind } {
  return resolveWall(asUtc(local), (instant) => offsetAt(instant, zone))
}

/** The number of weeks whose offsets a clock keeps. */
const MAX_WEEKS = 64
const WEEK_MS = 7 * DAY_MS

/** The offsets with which a week begins and ends, and the instant of the change from the first to the second. */
interface Week {
  readonly before: number
  readonly after: number
  readonly change: number
}

/** Converts times as the functions above do, but much faster, because it keeps the offsets of weeks. A clock changes at most once in a week. */
export class LocalClock {
  readonly #zone: string
  readonly #weeks = new Map<number, Week>()
  readonly #offsetAt = (instant: number) => this.offsetAt(instant)

  constructor(zone: string) {
    this.#zone = zone
  }

  offsetAt(instant: number): number {
    if (this.#zone === 'UTC') return 0
    const { before, after, change } = this.#weekOf(Math.floor(instant / WEEK_MS))
    return instant < change ? before : after
  }

  #weekOf(number: number): Week {
    const known = this.#weeks.get(number)
    if (known) return known
    const read = (instant: number) => offsetAt(instant, this.#zone)
    const [from, to] = [number * WEEK_MS, (number + 1) * WEEK_MS]
    const [before, after] = [read(from), read(to)]
    const change = before === after ? to : findChange({ from, to, offsetAt: read })
    if (this.#weeks.size >= MAX_WEEKS) this.#weeks.clear()
    const week = { before, after, change }
    this.#weeks.set(number, week)
    return week
  }

  /** Returns what the clock shows at the instant, as if it were of UTC. */
  toWall(instant: number): number {
    return instant + this.offsetAt(instant)
  }

  /**
   * Returns the instant of a local time: the first one if the clock shows it twice, and the first instant after the gap if the clock leaves
   * it out.
   */
  fromWall(wall: number): number {
    const [before, after] = [this.offsetAt(wall - DAY_MS), this.offsetAt(wall + DAY_MS)]
    return before === after ? wall - before : resolveWall(wall, this.#offsetAt).instant
  }

  /** Returns the instant of a local time; if the clock leaves it out, the end of the gap with `movesLeftOut`, and undefined without. */
  toInstant(wall: number, { movesLeftOut }: { readonly movesLeftOut: boolean }): number | undefined {
    const instant = this.fromWall(wall)
    return movesLeftOut || this.toWall(instant) === wall ? instant : undefined
  }
}

/** Formats an instant as local time with its offset: `2027-03-28T03:00:00+02:00`. */
export function formatLocalTime(instant: number, zone: string): string {
  const offset = offsetAt(instant, zone)
  const wall = new Date(instant + offset).toISOString().slice(0, 19)
  const minutes = Math.abs(Math.round(offset / 60_000))
  const two = (value: number) => String(value).padStart(2, '0')
  return `${wall}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

/** Returns the instant of a local time, as `fromLocalTime` does, from the offsets of a zone. */
function resolveWall(
  wall: number,
  offsetAt: (instant: number) => number,
): { readonly instant: number; readonly kind: LocalTimeKind } {
  const [before, after] = [offsetAt(wall - DAY_MS), offsetAt(wall + DAY_MS)]
  const found = [...new Set([wall - before, wall - after])].filter((instant) => instant + offsetAt(instant) === wall)
  if (found.length > 0) return { instant: Math.min(...found), kind: found.length > 1 ? 'repeated' : 'exact' }
  const whole = Math.floor(wall / 1_000) * 1_000
  return { instant: findChange({ from: whole - after, to: whole - before, offsetAt }), kind: 'left out' }
}

/** Returns the instant, to the second, at which the offset changes between two instants. */
function findChange({
  from,
  to,
  offsetAt,
}: {
  readonly from: number
  readonly to: number
  readonly offsetAt: (instant: number) => number
}): number {
  const earlier = offsetAt(from)
  let [low, high] = [from, to]
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000
    if (offsetAt(middle) === earlier) low = middle
    else high = middle
  }
  return high
}

/** Returns a local time as if it were of UTC, so that local times can be subtracted. */
export function asUtc({ year, month, day, hour, minute, second }: LocalTime): number {
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

/** Formatters are slow to make and are needed for each conversion. A zone has many spellings, so the map is bounded. */
function toFormatter(zone: string): Intl.DateTimeFormat {
  const known = formatters.get(zone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, calendar: 'iso8601', numberingSystem: 'latn', hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  })
  if (formatters.size >= MAX_FORMATTERS) formatters.clear()
  formatters.set(zone, format)
  return format
}
