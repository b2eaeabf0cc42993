/** Says in words when a schedule fires, for people. The packages for it are loaded when they are needed. */
import { parseRule } from './calendar/calendar-rule.ts'
import { matchesBothDays, splitCron } from './calendar/cron-rule.ts'
import { describeSpec, followsCompletion, type ScheduleSpec, zoneOf } from './spec.ts'

/** The maximum number of times of a day that are written in words: people would not read a longer sentence. */
const MAX_TIMES = 100

/** Returns a sentence: `At 02:30, Monday through Friday, in Europe/Berlin`. An invalid spec is described by its text. */
export async function explainSpec(spec: ScheduleSpec): Promise<string> {
  try {
    return await toSentence(spec)
  } catch {
    // A record that any client may have written: the packages refuse some rules, and must not hide the other schedules.
    return describeSpec(spec)
  }
}

async function toSentence(spec: ScheduleSpec): Promise<string> {
  const where = `in ${zoneOf(spec)}`
  if ('cron' in spec) return `${await toCronWords(spec.cron)}, ${where}`
  if ('rrule' in spec) {
    const { of } = parseRule(spec.rrule)
    const times = ['BYHOUR', 'BYMINUTE', 'BYSECOND'].map((name) => of(name)?.length ?? 1)
    // The library writes each of them: a day with each second takes it ten seconds.
    if (times.reduce((product, count) => product * count, 1) > MAX_TIMES) return describeSpec(spec)
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

async function toCronWords(cron: string): Promise<string> {
  const { default: cronstrue } = await import('cronstrue')
  const fields = splitCron(cron)
  const [date = '', weekday = ''] = [fields[3], fields[5]]
  // The library knows neither `FRI#L` nor `+FRI`.
  const known = [...fields.slice(0, 5), weekday.replace(/^\+/, '').replaceAll('#L', 'L')].join(' ')
  const words = cronstrue.toString(known, { use24HourTimeFormat: true })
  if (date === '*' || weekday === '*') return words
  // The library says "and" for both: one of the two days fires, or a day that is both.
  return words.replace(', and ', matchesBothDays(date, weekday) ? ', and only ' : ', or ')
}
