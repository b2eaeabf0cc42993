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
  const wall = asUtc(local)
  const [before, after] = [offsetAt(wall - DAY_MS, zone), offsetAt(wall + DAY_MS, zone)]
  const found = [...new Set([wall - before, wall - after])].filter(
    (instant) => instant + offsetAt(instant, zone) === wall,
  )
  if (found.length > 0) return { instant: Math.min(...found), kind: found.length > 1 ? 'repeated' : 'exact' }
  return { instant: findChange({ from: wall - after, to: wall - before, zone }), kind: 'left out' }
}

/** Formats an instant as local time with its offset: `2027-03-28T03:00:00+02:00`. */
export function formatLocalTime(instant: number, zone: string): string {
  const offset = offsetAt(instant, zone)
  const wall = new Date(instant + offset).toISOString().slice(0, 19)
  const minutes = Math.abs(Math.round(offset / 60_000))
  const two = (value: number) => String(value).padStart(2, '0')
  return `${wall}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

/** Returns the instant, to the second, at which the offset of the zone changes between two instants. */
function findChange({ from, to, zone }: { from: number; to: number; zone: string }): number {
  const earlier = offsetAt(from, zone)
  let [low, high] = [from, to]
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000
    if (offsetAt(middle, zone) === earlier) low = middle
    else high = middle
  }
  return high
}

/** Returns a local time as if it were of UTC, so that local times can be subtracted. */
export function asUtc({ year, month, day, hour, minute, second }: LocalTime): number {
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

/** Formatters are slow to make and are needed for each conversion. There are some 600 zones, so the map is bounded. */
function toFormatter(zone: string): Intl.DateTimeFormat {
  const known = formatters.get(zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, calendar: 'iso8601', numberingSystem: 'latn', hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  })
  formatters.set(zone, made)
  return made
}
