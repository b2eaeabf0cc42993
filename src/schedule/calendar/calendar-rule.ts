/**
 * Calendar rules as RFC 5545 (iCalendar) defines them, computed by rrule-temporal. A local time that the clock leaves out does not occur
 * (section 3.3.10); of a repeated one the first occurs.
 */
import type { RRuleTemporal } from 'rrule-temporal'
import { InvalidArgument } from '../../core/errors.ts'
import type { Rule } from './rule.ts'
import { formatLocalTime } from './zone.ts'

/** A rule that finds nothing in so many periods never occurs, or so rarely that it is a mistake. */
const MAX_PERIODS = 20_000
/** The times of one period that are computed at once: more of them would block the process for longer than some tens of milliseconds. */
const MAX_TIMES_PER_PERIOD = 10_000
const PARTS = [
  ...['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'WKST', 'BYSETPOS', 'BYMONTH', 'BYMONTHDAY', 'BYYEARDAY', 'BYWEEKNO'],
  ...['BYDAY', 'BYHOUR', 'BYMINUTE', 'BYSECOND'],
]
/** The first period of a rule that does not say when it starts. */
const DEFAULT_START = '19700101T000000'

/**
 * Loads rrule-temporal, which is large, when the first such rule is used.
 *
 * @param start the first period of the rule; needed where the rule counts from it
 * @throws InvalidArgument for an invalid rule, one that needs a start and has none, and one that never occurs
 */
export async function toCalendarRule(
  text: string,
  options: { zone: string; start?: number | undefined },
): Promise<Rule> {
  const { zone, start } = options
  const parts = parseParts(text)
  if (start === undefined && needsStart(parts))
    throw invalidRule(
      text,
      'it counts from its first day: add start, or name the days with BYDAY, BYMONTHDAY or BYYEARDAY',
    )
  const { RRuleTemporal: Rrule } = await import('rrule-temporal')
  const begin = start === undefined ? DEFAULT_START : formatLocalTime(start, zone).slice(0, 19).replace(/[-:]/g, '')
  const rule = [...parts].map(([name, value]) => `${name}=${value}`).join(';')
  try {
    const rruleString = `DTSTART;TZID=${zone}:${begin}\nRRULE:${rule}`
    const found = new Rrule({ rruleString, strict: true, cache: false, maxIterations: MAX_PERIODS })
    return boundedRule(found, text)
  } catch (cause) {
    throw invalidRule(text, cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/** Reports a rule whose next occurrence is too far away as one without occurrences. */
function boundedRule(rule: RRuleTemporal, text: string): Rule {
  const compute = (work: () => { readonly epochMilliseconds: number } | null) => {
    try {
      return work()?.epochMilliseconds
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw invalidRule(text, `no occurrence was found in ${MAX_PERIODS} periods (${why})`, { cause })
    }
  }
  return {
    next: (after) => compute(() => rule.next(new Date(after))),
    last: (until) => compute(() => rule.previous(new Date(until), true)),
  }
}

function parseParts(text: string): ReadonlyMap<string, string> {
  const parts = new Map<string, string>()
  const given = typeof text === 'string' ? text.trim().replace(/^RRULE:/i, '') : ''
  for (const part of given.split(';')) {
    const [name = '', value = ''] = part.toUpperCase().split('=')
    if (!PARTS.includes(name) || value === '')
      throw invalidRule(
        text,
        `${JSON.stringify(part)} is not a part of a rule; write NAME=VALUE with ${PARTS.join(', ')}`,
      )
    if (parts.has(name)) throw invalidRule(text, `${name} is given twice`)
    parts.set(name, value)
  }
  for (const [name, [min, max]] of Object.entries(TIME_RANGES))
    for (const value of parts.get(name)?.split(',') ?? [])
      if (!/^\d+$/.test(value) || Number(value) < min || Number(value) > max)
        throw invalidRule(text, `${name} must be from ${min} to ${max}, got ${value}`)
  const count = Number(parts.get('COUNT') ?? 1)
  if (!(count >= 1 && count <= MAX_PERIODS))
    throw invalidRule(text, `COUNT must be from 1 to ${MAX_PERIODS}; use UNTIL, or times`)
  const times = timesPerPeriod(parts)
  if (times > MAX_TIMES_PER_PERIOD)
    throw invalidRule(
      text,
      `it may have ${times} times in one period, at most ${MAX_TIMES_PER_PERIOD} are allowed; use a shorter FREQ, or cron`,
    )
  return parts
}

/** Returns how many times a period of the rule may have: the library computes all of them to find one. */
function timesPerPeriod(parts: ReadonlyMap<string, string>): number {
  const sizeOf = (name: string) => parts.get(name)?.split(',').length ?? 1
  const namesDays = ['BYDAY', 'BYMONTHDAY', 'BYYEARDAY', 'BYWEEKNO'].some((name) => parts.has(name))
  const days = namesDays ? (DAYS_OF_PERIOD[parts.get('FREQ') ?? ''] ?? 1) : sizeOf('BYMONTH')
  return days * sizeOf('BYHOUR') * sizeOf('BYMINUTE') * sizeOf('BYSECOND')
}

const DAYS_OF_PERIOD: Readonly<Record<string, number>> = { YEARLY: 366, MONTHLY: 31, WEEKLY: 7 }

/** The library drops values out of these ranges without an error. */
const TIME_RANGES: Readonly<Record<string, readonly [number, number]>> = {
  BYHOUR: [0, 23],
  BYMINUTE: [0, 59],
  BYSECOND: [0, 59],
}

/** Whether the occurrences depend on the first day: of such a rule, another start gives other occurrences. */
function needsStart(parts: ReadonlyMap<string, string>): boolean {
  const namesDays = ['BYDAY', 'BYMONTHDAY', 'BYYEARDAY'].some((name) => parts.has(name))
  const isLong = ['WEEKLY', 'MONTHLY', 'YEARLY'].includes(parts.get('FREQ') ?? '')
  return parts.has('COUNT') || (parts.get('INTERVAL') ?? '1') !== '1' || (isLong && !namesDays)
}

function invalidRule(text: unknown, why: string, options?: ErrorOptions): InvalidArgument {
  return new InvalidArgument(`rrule ${JSON.stringify(text)} is not valid: ${why}`, options)
}
