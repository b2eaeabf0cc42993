/** The options of `jobboard schedule add`, `edit` and `preview`: when a schedule fires, and what it does then. */
import type { ScheduleOptions } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import type { Duration } from '../../core/time.ts'
import type { ScheduleSpec } from '../../schedule/index.ts'
import { CATCH_UP_CHOICES, OVERLAP_CHOICES } from './choices.ts'
import { count, type FlagTable, type FlagValues, oneOf, texts } from './flags.ts'
import { definedOnly, parseDuration } from './shared-options.ts'

/** The kinds of rules, for help texts. */
export const RULE_HELP =
  "cron expression ('30 2 * * 1-5'), interval (5m), calendar rule ('FREQ=MONTHLY;BYDAY=-1FR') or one time (2027-03-28T09:00)"

/** The flags for when a schedule fires, beside its rule. */
export const SPEC_FLAGS = {
  '--zone <name>': 'time zone of the local times, as in Europe/Berlin (default: UTC)',
  '--start <time>': 'nothing fires before it',
  '--end <time>': 'nothing fires after it',
  '--exclude <date>': ['local date on which nothing fires, as in 2026-12-25; may be repeated', texts],
  '--offset <duration>': 'of an interval: how long after each full interval (default: 0)',
  '--from-completion': 'of an interval: count it from the end of the previous job',
} satisfies FlagTable

export type SpecFlags = FlagValues<typeof SPEC_FLAGS>

/** The flags for what a schedule does when it fires. */
export const POLICY_FLAGS = {
  '--overlap <policy>': [
    `while an earlier job is on the board: one of ${OVERLAP_CHOICES.join(', ')} (default: skip)`,
    oneOf(OVERLAP_CHOICES),
  ],
  '--catch-up <policy>': [
    `which times that passed without a conductor are caught up: one of ${CATCH_UP_CHOICES.join(', ')} (default: latest)`,
    oneOf(CATCH_UP_CHOICES),
  ],
  '--window <duration>': 'the maximum age of a time that is caught up (default: a day at most)',
  '--max <n>': ['the maximum number of times that --catch-up all posts at once (default: 100)', count({ most: 100 })],
  '--jitter <duration>': 'post each job up to so much later (default: 0)',
  '--times <n>': ['end after so many jobs', count()],
  '--pause-after-failures <n>': ['pause after so many failed jobs in a row', count()],
} satisfies FlagTable

export type PolicyFlags = FlagValues<typeof POLICY_FLAGS>

/**
 * Returns the spec of a rule, whose kind is recognized by its form.
 *
 * @throws InvalidArgument for an option that does not belong to this kind
 * @example toSpec('30 2 * * *', { zone: 'Europe/Berlin' })
 */
export function toSpec(rule: string, flags: SpecFlags): ScheduleSpec {
  const { zone, start, end, exclude, offset, fromCompletion } = flags
  const bounds = definedOnly({ zone, start, end, exclude })
  const text = rule.trim()
  const interval = toInterval(text)
  if (interval === undefined && (offset !== undefined || fromCompletion))
    throw new InvalidArgument(`--offset and --from-completion apply only to an interval such as 5m, got '${rule}'`)
  if (/^(?:RRULE:)?[A-Z]+=/i.test(text)) return { rrule: text, ...bounds }
  if (/^\d{4}-\d{2}-\d{2}/.test(text)) return { at: text, ...bounds }
  if (interval === undefined) return { cron: text, ...bounds }
  return {
    ...{ every: interval, ...bounds },
    ...(offset === undefined ? {} : { offset: parseDuration(offset, '--offset') }),
    ...(fromCompletion ? { from: 'completion' as const } : {}),
  }
}

export function toScheduleOptions(flags: PolicyFlags): ScheduleOptions {
  const { catchUp, max, overlap, times, pauseAfterFailures, window, jitter } = flags
  return {
    ...definedOnly({ catchUp, max, overlap, times, pauseAfterFailures }),
    ...(window === undefined ? {} : { window: parseDuration(window, '--window') }),
    ...(jitter === undefined ? {} : { jitter: parseDuration(jitter, '--jitter') }),
  }
}

function toInterval(text: string): Duration | undefined {
  try {
    return parseDuration(text, 'the rule')
  } catch {
    return undefined
  }
}
