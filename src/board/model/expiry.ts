/**
 * The expiry of jobs that are not started in time: `expiresAfter` of a posting.
 *
 * The time counts from the post, by the board's clock. It ends with the first claim: a job that has run once never expires. A job that is
 * restored from the trash is posted anew, so its time counts anew.
 */
import { InvalidPosting } from '../../core/errors.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'

/** The flow of the jobs that hold resources for a caller. No conductor knows it. */
export const HOLD_FLOW = 'jobboard/hold'

/** The age at which a job that is reserved for its poster goes to the trash, if the poster has died. */
export const RESERVED_EXPIRES_AFTER = '1m'

/** The fields of a posting by which it expires. */
interface ExpiringPosting {
  readonly runs: number
  readonly expiresAfter?: number
}

interface ExpiringJob {
  readonly posting: ExpiringPosting
  /** The time of the post in milliseconds on the board's clock. */
  readonly postedAt: number
}

/** The beginning of the reason in the trash, by which expired jobs are recognized. */
const REASON_PREFIX = 'nobody started it within '

const UNITS_MS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** Returns the time at which the job expires if it is unclaimed, in milliseconds on the board's clock; undefined if it never does. */
export function expiryTime({ posting, postedAt }: ExpiringJob): number | undefined {
  return canExpire(posting) ? postedAt + (posting.expiresAfter ?? 0) : undefined
}

/** Returns whether the job was not started in time. @param now the time in milliseconds on the board's clock */
export function isOverdue(job: ExpiringJob, now: number): boolean {
  return (expiryTime(job) ?? Number.POSITIVE_INFINITY) <= now
}

/** Returns the incarnations of the owners for which these jobs are reserved: while one lives, its jobs do not expire. */
export function listReservedFor(
  jobs: readonly { readonly posting: { readonly reservedFor?: string } }[],
): ReadonlySet<string> {
  return new Set(jobs.flatMap(({ posting }) => posting.reservedFor ?? []))
}

/** Returns whether the job expires if it is not started. */
export function canExpire({ runs, expiresAfter }: ExpiringPosting): boolean {
  return runs === 0 && expiresAfter !== undefined
}

/** Returns the reason that the trash keeps for an expired job. */
export function expiryReason({ expiresAfter = 0 }: Pick<ExpiringPosting, 'expiresAfter'>): string {
  const [unit, size] = UNITS_MS.find(([, size]) => expiresAfter % size === 0) ?? ['ms', 1]
  return `${REASON_PREFIX}${expiresAfter / size} ${unit}`
}

/** Returns whether a job is in the trash because it was not started in time. */
export function isExpired({
  posting,
  reason,
}: {
  readonly posting: ExpiringPosting
  readonly reason: string
}): boolean {
  return canExpire(posting) && reason.startsWith(REASON_PREFIX)
}

/**
 * Converts the option of a post.
 *
 * @param delay the delay of the job in milliseconds, unless its poster claims it in spite of the delay
 * @throws InvalidArgument for what is not a duration; InvalidPosting for 0, and for a job that would expire before it could be claimed
 */
export function toExpiresAfter(
  time: Duration | undefined,
  { delay = 0 }: { readonly delay?: number | undefined },
): Pick<ExpiringPosting, 'expiresAfter'> {
  if (time === undefined) return {}
  const expiresAfter = toMilliseconds(time, 'expiresAfter')
  if (expiresAfter === 0)
    throw new InvalidPosting('expiresAfter must be longer than 0; omit it for a job that does not expire')
  if (delay >= expiresAfter)
    throw new InvalidPosting(
      'expiresAfter must be longer than delay, because it counts from the post: the job would expire before it could be claimed',
    )
  return { expiresAfter }
}

/** The step to which the elapsed time of an expiring job is rounded up: the reason in the trash shows the time to people. */
const EXPIRY_STEP_MS = 1_000

/** Returns the time in whole steps, rounded up. */
export function toExpirySteps(elapsedMs: number): number {
  return Math.ceil(elapsedMs / EXPIRY_STEP_MS) * EXPIRY_STEP_MS
}
