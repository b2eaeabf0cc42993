/**
 * Cron expressions, computed by croner: five fields, or six with seconds first, and nicknames such as `@daily`.
 *
 * An expression with fixed hours and minutes runs once a day, as ISC cron does it: if the clock leaves the time out, at the first instant
 * after the gap; if the clock repeats it, the first time. An expression with `*` or a step in its time goes by real time.
 */
import { Cron } from 'croner'
import { InvalidArgument } from '../../core/errors.ts'
import type { Rule } from './rule.ts'

const NICKNAMES = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@hourly']
const EXPLANATION = `write five fields (minute hour day month weekday), six with seconds first, or ${NICKNAMES.join(', ')}`

/** @throws InvalidArgument for an invalid expression, and for one that never occurs */
export function toCronRule(expression: string, zone: string): Rule {
  const cron = parseCron(expression, zone)
  return {
    next: (after) => cron.nextRun(new Date(after))?.getTime(),
    // croner counts whole seconds, and excludes the given one.
    last: (until) => cron.previousRuns(1, new Date(Math.floor(until / 1_000) * 1_000 + 1_000))[0]?.getTime(),
  }
}

/** Whether a local time matches the fields: an occurrence that does not was moved by a change of the clock. */
export function matchesCron(expression: string, wall: number): boolean {
  return parseCron(expression, 'UTC').match(new Date(wall))
}

function parseCron(expression: string, zone: string): Cron {
  const text = typeof expression === 'string' ? expression.trim() : ''
  const isNickname = NICKNAMES.includes(text.toLowerCase())
  const fields = text.split(/\s+/).length
  if (!isNickname && fields !== 5 && fields !== 6) throw invalidCron(expression, EXPLANATION)
  try {
    // Lists such as `30 2,14 * * *` are fixed times, too: without this rule croner would run them twice in a repeated hour.
    return new Cron(text, { paused: true, timezone: zone, mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard' })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^CronPattern: /, '') : String(cause)
    throw invalidCron(expression, `${why}; ${EXPLANATION}`, { cause })
  }
}

function invalidCron(expression: unknown, why: string, options?: ErrorOptions): InvalidArgument {
  return new InvalidArgument(`cron ${JSON.stringify(expression)} is not valid: ${why}`, options)
}
