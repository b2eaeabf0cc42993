/** The options of `jobboard schedule add`, `edit` and `preview`: when a schedule fires, and what it does then. */
import type { Command } from 'commander'
import type { CatchUp, Overlap, ScheduleOptions } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import type { Duration } from '../../core/time.ts'
import type { ScheduleSpec } from '../../schedule/index.ts'
import { CATCH_UP_CHOICES, OVERLAP_CHOICES } from './choices.ts'
import { choiceParser, collectText, countParser, definedOnly, parseDuration } from './shared-options.ts'

export interface SpecFlags {
  readonly zone?: string
  readonly start?: string
  readonly end?: string
  readonly exclude?: readonly string[]
  readonly offset?: string
  readonly fromCompletion?: boolean
}

export interface PolicyFlags {
  readonly catchUp?: CatchUp
  readonly window?: string
  readonly max?: number
  readonly overlap?: Overlap
  readonly jitter?: string
  readonly times?: number
  readonly pauseAfterFailures?: number
}

/** The kinds of rules, for help texts. */
export const RULE_HELP =
  "cron expression ('30 2 * * 1-5'), interval (5m), calendar rule ('FREQ=MONTHLY;BYDAY=-1FR') or one time (2027-03-28T09:00)"

export function addSpecFlags(command: Command): Command {
  return command
    .option('--zone <name>', 'time zone of the local times, as in Europe/Berlin (default: UTC)')
    .option('--start <time>', 'nothing fires before it')
    .option('--end <time>', 'nothing fires after it')
    .option('--exclude <date>', 'local date on which nothing fires, as in 2026-12-25; may be repeated', collectText)
    .option('--offset <duration>', 'of an interval: how long after each full interval (default: 0)')
    .option('--from-completion', 'of an interval: count it from the end of the previous job')
}

export function addPolicyFlags(command: Command): Command {
  return command
    .option(
      '--overlap <policy>',
      `while an earlier job is on the board: one of ${OVERLAP_CHOICES.join(', ')} (default: skip)`,
      choiceParser('--overlap', OVERLAP_CHOICES),
    )
    .option(
      '--catch-up <policy>',
      `which times that passed without a conductor are caught up: one of ${CATCH_UP_CHOICES.join(', ')} (default: latest)`,
      choiceParser('--catch-up', CATCH_UP_CHOICES),
    )
    .option('--window <duration>', 'the maximum age of a time that is caught up (default: a day at most)')
    .option(
      '--max <n>',
      'the maximum number of times that --catch-up all posts at once (default: 100)',
      countParser('--max', { most: 100 }),
    )
    .option('--jitter <duration>', 'post each job up to so much later (default: 0)')
    .option('--times <n>', 'end after so many jobs', countParser('--times'))
    .option(
      '--pause-after-failures <n>',
      'pause after so many failed jobs in a row',
      countParser('--pause-after-failures'),
    )
}

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
    throw new InvalidArgument(`--offset and --from-completion belong to a interval such as 5m, got '${rule}'`)
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
