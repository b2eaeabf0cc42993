/** The policies of a schedule, and the check of their ranges: for the options of a program, and for a record that any client may have written. */
import { InvalidArgument } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { followsCompletion, type ScheduleSpec } from '../../schedule/internal.ts'

export const CATCH_UPS = ['none', 'latest', 'all'] as const
/** The policy for times that passed while no conductor was running: which of them are caught up (posted afterwards). */
export type CatchUp = (typeof CATCH_UPS)[number]

export const OVERLAPS = ['skip', 'queueOne', 'queueAll', 'cancelPrevious', 'allow'] as const
/** The policy for a job that is due while an earlier one of the schedule is still on the board. */
export type Overlap = (typeof OVERLAPS)[number]

export interface SchedulePolicies {
  readonly catchUp: CatchUp
  /** The maximum lateness of a time that is caught up; absent for the default of its {@link CatchUp}. */
  readonly windowMs?: number
  /** The maximum number of times that are caught up at once, with `all`. */
  readonly max: number
  readonly overlap: Overlap
  /** The maximum random delay of a job after its nominal time. */
  readonly jitterMs: number
  /** The number of jobs after which the schedule ends. */
  readonly times?: number
  /** The number of jobs in a row that were trashed because they failed, after which the schedule is paused. */
  readonly pauseAfterFailures?: number
}

/** The options by which the policies of a schedule are chosen. */
export interface SchedulePolicyOptions {
  /**
   * The times that are posted afterwards (caught up), of the times that passed while no conductor was running. `latest`, the default: the newest, if
   * it is not older than the window. `none`: only a time that is at most a minute late. `all`: each in the window, at most `max`.
   */
  readonly catchUp?: CatchUp
  /** The maximum age of a time that is caught up; by default a day, and with `latest` at most until the following time. */
  readonly window?: Duration
  /** The maximum number of times that `all` catches up at once; 100 by default, and at most. */
  readonly max?: number
  /**
   * The action when a time comes while an earlier job of the schedule is on the board, even if that job waits for its next attempt. `skip`,
   * the default: it skips the time. `queueOne`, `queueAll`: it posts a job that waits for the earlier job; one such job at most, or one for
   * each time. `cancelPrevious`: it cancels the earlier job. `allow`: both jobs run.
   */
  readonly overlap?: Overlap
  /** The maximum random delay of a job after its time; in all processes the same for one time. 0 by default. */
  readonly jitter?: Duration
  /** The number of jobs after which the schedule ends. */
  readonly times?: number
  /** The number of jobs in a row that were trashed because they failed, after which the schedule is paused. */
  readonly pauseAfterFailures?: number
}

/** The jobs of one catch-up are posted in one transaction, which takes at most 100 posts. */
export const MAX_CATCH_UP = 100

/** Returns the policies with their defaults. @throws InvalidArgument */
export function toPolicies(spec: ScheduleSpec, options: SchedulePolicyOptions, what: string): SchedulePolicies {
  if (typeof spec !== 'object' || spec === null)
    throw new InvalidArgument(
      `${what}: the spec must be an object, as in { cron: '30 2 * * *', zone: 'Europe/Berlin' }, { every: '5m' } or { rrule: 'FREQ=MONTHLY' }`,
    )
  const { catchUp = 'latest', overlap = 'skip', max = MAX_CATCH_UP, jitter = 0, times, pauseAfterFailures } = options
  assertOneOf(catchUp, { of: CATCH_UPS, what: `${what}: catchUp` })
  assertOneOf(overlap, { of: OVERLAPS, what: `${what}: overlap` })
  for (const [name, value] of Object.entries({ max, times, pauseAfterFailures }))
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 1))
      throw new InvalidArgument(`${what}: ${name} must be a whole number from 1, got ${value}`)
  if (max > MAX_CATCH_UP) throw new InvalidArgument(`${what}: max must be at most ${MAX_CATCH_UP}, got ${max}`)
  if (catchUp === 'all' && overlap !== 'queueAll' && overlap !== 'allow')
    throw new InvalidArgument(
      `${what}: catchUp 'all' posts several jobs at once: it needs overlap 'queueAll' or 'allow', got '${overlap}'`,
    )
  if (followsCompletion(spec) && overlap !== 'skip')
    throw new InvalidArgument(`${what}: with from: 'completion' overlap must be 'skip', got '${overlap}'`)
  const windowMs = options.window === undefined ? undefined : toMilliseconds(options.window, `${what}: window`)
  const jitterMs = toMilliseconds(jitter, `${what}: jitter`)
  return { catchUp, overlap, max, jitterMs, ...defined({ windowMs, times, pauseAfterFailures }) }
}

function assertOneOf(value: string, { of, what }: { readonly of: readonly string[]; readonly what: string }): void {
  if (!of.includes(value))
    throw new InvalidArgument(`${what} must be one of ${of.join(', ')}, got ${JSON.stringify(value)}`)
}
