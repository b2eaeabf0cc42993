/** Instants as people write them: a local time of a zone, or a time with its offset. */
import { InvalidArgument, isDate } from '../../core/errors.ts'
import { asUtc, fromLocalTime, type LocalTime } from './zone.ts'

const LOCAL_PATTERN = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2}))?)?$/
const ABSOLUTE_PATTERN = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/
/** Schedules are made for our time: other years are mistakes, such as seconds where milliseconds are meant. */
const [FIRST_YEAR, LAST_YEAR] = [1970, 2100]

/**
 * Converts a time to an instant, in milliseconds since 1970. A text without an offset is a local time of the zone; a date alone
 * is the beginning of that day.
 *
 * @param what the option's name, for the error
 * @throws InvalidArgument for a text that is not a time, a date that does not exist, and years before 1970 or after 2100
 * @example toInstant('2027-03-28T09:00', { zone: 'Europe/Berlin', what: 'start' })
 */
export function toInstant(time: string | Date, { zone, what }: { zone: string; what: string }): number {
  const instant = isDate(time) ? time.getTime() : fromText(time, zone)
  const year = new Date(instant).getUTCFullYear()
  if (Number.isNaN(instant))
    throw new InvalidArgument(
      `${what}: ${JSON.stringify(time)} is not a time; write '2027-03-28', '2027-03-28T09:00' or '2027-03-28T09:00:00Z'`,
    )
  if (year < FIRST_YEAR || year > LAST_YEAR)
    throw new InvalidArgument(`${what}: the year must be from ${FIRST_YEAR} to ${LAST_YEAR}, got ${year}`)
  return instant
}

/** Parses a date such as `2026-12-25`; undefined for any other text. */
export function parseLocalDate(text: string): LocalTime | undefined {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) ? parseLocalTime(text) : undefined
}

function fromText(text: string, zone: string): number {
  if (typeof text !== 'string') return Number.NaN
  if (ABSOLUTE_PATTERN.test(text)) return parseLocalTime(text.slice(0, 16)) ? Date.parse(text) : Number.NaN
  const local = parseLocalTime(text)
  return local ? fromLocalTime(local, zone).instant : Number.NaN
}

/** Returns undefined for a text that is not a local time, or that names a day or an hour that does not exist. */
function parseLocalTime(text: string): LocalTime | undefined {
  const found = LOCAL_PATTERN.exec(text)
  if (!found) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found
    .slice(1)
    .map((part) => Number(part ?? 0))
  const local = { year, month, day, hour, minute, second }
  const normalized = `${found[1]}-${found[2]}-${found[3]}T${found[4] ?? '00'}:${found[5] ?? '00'}:${found[6] ?? '00'}.000Z`
  const wall = asUtc(local)
  return !Number.isNaN(wall) && new Date(wall).toISOString() === normalized ? local : undefined
}
