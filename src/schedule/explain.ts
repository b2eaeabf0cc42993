/** Says in words when a schedule fires, for people. The packages for it are loaded when they are needed. */
import { describeSpec, followsCompletion, type ScheduleSpec, zoneOf } from './spec.ts'

/**
 * Returns a sentence: `At 02:30, Monday through Friday, in Europe/Berlin`.
 *
 * @throws nothing for a valid spec; an invalid one is described by its text
 */
export async function explainSpec(spec: ScheduleSpec): Promise<string> {
  const where = `in ${zoneOf(spec)}`
  if ('cron' in spec) {
    const { default: cronstrue } = await import('cronstrue')
    const words = cronstrue.toString(spec.cron, { use24HourTimeFormat: true, throwExceptionOnParseError: false })
    // The library says "and", but a time fires that matches either of both.
    return `${isEitherDay(spec.cron) ? words.replace(', and ', ', or ') : words}, ${where}`
  }
  if ('rrule' in spec) {
    const [{ RRuleTemporal }, { toText }] = await Promise.all([
      import('rrule-temporal'),
      import('rrule-temporal/totext'),
    ])
    // The start of the text form would add the hour of today.
    const rruleString = `DTSTART;TZID=UTC:20000101T000000\nRRULE:${spec.rrule.trim().replace(/^RRULE:/i, '')}`
    return `${toText(new RRuleTemporal({ rruleString })).replace(/ (UTC|GMT)\b/g, '')}, ${where}`
  }
  if ('every' in spec && !followsCompletion(spec)) return `${describeSpec(spec)}, counted from 1970-01-01T00:00Z`
  return describeSpec(spec)
}

/** Whether the expression names days of the month and days of the week: a day that is one of either fires. */
function isEitherDay(cron: string): boolean {
  // From the end: an expression of six fields begins with the seconds.
  const [day = '*', , weekday = '*'] = cron.trim().split(/\s+/).slice(-3)
  return ![day, weekday].some((field) => field.startsWith('*') || field === '?')
}
