/**
 * The record of who tried a job and how it ended, kept in the posting itself.
 *
 * A claim appends an attempt in its own transaction; the settle fills in how it ended:
 *
 * - `failed`: the work was tried and did not succeed. Counts towards `maxAttempts`.
 * - `returned`: the owner gave it back unharmed (a shutdown, logbooks away). Costs nothing.
 * - no end, when the next claim comes, and the owner lives: an outage of the store ended its session. The claim writes it as
 *   `returned`, so that jobs are not charged for outages.
 * - no end, when the next claim comes, and the owner is gone: a **death**. The owner's process or machine went away in the
 *   middle. Deaths at the end of the list are limited too, or a job that kills whoever runs it would go on for ever.
 *
 * A job with two or more deaths at the end of its list is a **suspect**; a process runs one suspect at a time, so that a
 * poison job does not take its neighbours along.
 */
import { InvalidPosting } from '../../core/errors.ts'
import { isTooLong, MAX_NAME_BYTES } from '../../core/texts.ts'
import { type Backoff, backoffDelay } from '../../core/time.ts'
import type { StoredBackOff } from './back-off.ts'

/** Who tried a job, when, and how it ended. Without `ended` it is under way, or its owner died in it. */
export interface Attempt {
  readonly who: string
  readonly at: Date
  readonly ended?: 'failed' | 'returned'
  readonly reason?: string
}

/** An attempt as the posting carries it. */
export interface RecordedAttempt extends Attempt {
  /** The id of the board object that claimed the job, until the attempt has ended: see `claims/incarnation.ts`. */
  readonly incarnation?: string
}

export interface AttemptHistory {
  readonly onOwnerLost?: 'fail'
  readonly runs: number
  readonly attempts: readonly RecordedAttempt[]
  readonly maxAttempts: number
}

/** How many attempts a posting carries along. */
const MAX_STORED_ATTEMPTS = 20
/** How many attempts are read; a longer list was not written by any release, and makes each claim of the job slow. */
const MAX_READ_ATTEMPTS = 100
/** The most that `maxAttempts` may be: with the deaths that may trail them, that many failures fit {@link MAX_STORED_ATTEMPTS}. */
export const MAX_ATTEMPTS = 10
const MAX_TRAILING_DEATHS = 10
const MAX_REASON_LENGTH = 500
/** The longest incarnation that is read: what this library writes is a UUID. */
const MAX_INCARNATION_LENGTH = 64
/** The reason of an attempt whose owner lost its session and lives. */
const OUTAGE_REASON = 'its owner lost the claim and lives'

/** One for all jobs that were never tried. */
const NO_ATTEMPTS: readonly RecordedAttempt[] = Object.freeze([])

/** The posting as a claim writes it: the next run, with its attempt, and without a delay: a death starts none again. */
export function beginAttempt<P extends AttemptHistory & { readonly delay?: number }>(
  posting: P,
  attempt: { who: string; at: Date; incarnation?: string },
): Omit<P, 'delay'> {
  const { delay: _, ...rest } = posting
  return { ...rest, runs: posting.runs + 1, attempts: trimAttempts([...posting.attempts, attempt]) }
}

/** The posting as a settle writes it: the newest attempt with its end. */
export function endAttempt<P extends AttemptHistory>(
  posting: P,
  end: { ended: 'failed' | 'returned'; reason?: string },
): P {
  const attempts = [...posting.attempts]
  const newest = attempts.pop()
  if (!newest) return posting
  return { ...posting, attempts: [...attempts, toEndedAttempt(newest, end)] }
}

/** Returns the incarnations of the owners on whose life it depends what this posting is charged for. */
export function unendedIncarnations(posting: AttemptHistory): string[] {
  // The loss of its owner is what such a job must not survive, whatever became of the owner.
  if (posting.onOwnerLost === 'fail') return []
  const { attempts } = posting
  const trailing = attempts.slice(attempts.length - countTrailingDeaths(attempts))
  return trailing.flatMap(({ incarnation }) => incarnation ?? [])
}

/** Returns the posting with those attempts as returned whose owners lost their sessions and live. */
export function markOutages<P extends AttemptHistory>(posting: P, living: ReadonlySet<string>): P {
  if (!unendedIncarnations(posting).some((incarnation) => living.has(incarnation))) return posting
  const { attempts } = posting
  const first = attempts.length - countTrailingDeaths(attempts)
  return {
    ...posting,
    attempts: attempts.map((attempt, index) => {
      const lives = index >= first && attempt.incarnation !== undefined && living.has(attempt.incarnation)
      return lives ? toEndedAttempt(attempt, { ended: 'returned', reason: OUTAGE_REASON }) : attempt
    }),
  }
}

/** Returns the attempts as people see them. */
export function toAttempts(posting: Pick<AttemptHistory, 'attempts'>): readonly Attempt[] {
  return posting.attempts.map(({ incarnation: _, ...attempt }) => attempt)
}

/** Whether it was an outage of the store that ended the attempt. */
export function isOutage({ ended, reason }: Attempt): boolean {
  return ended === 'returned' && reason === OUTAGE_REASON
}

function toEndedAttempt({ who, at }: Attempt, end: { ended: 'failed' | 'returned'; reason?: string }): Attempt {
  return {
    who,
    at,
    ended: end.ended,
    ...(end.reason === undefined ? {} : { reason: end.reason.slice(0, MAX_REASON_LENGTH) }),
  }
}

/** Whether the run under way may fail and the job still be tried again. */
export function canRetry(posting: AttemptHistory): boolean {
  return countFailures(posting.attempts) + 1 < posting.maxAttempts
}

/** Of a job that was posted without a `backOff` of its own. */
const DEFAULT_BACK_OFF_MS: Backoff = { first: 1_000, max: 300_000 }

/** How long, in milliseconds, a job rests after a run that failed: longer after each, spread so that many do not come back at once. */
export function pauseAfterFailure(posting: AttemptHistory & { readonly backOff?: StoredBackOff }): number {
  // Who asks for a longer rest at first gets it, without having to say that the others may be as long.
  const max = Math.max(DEFAULT_BACK_OFF_MS.max, posting.backOff?.first ?? 0)
  return backoffDelay(countFailures(posting.attempts) + 1, { ...DEFAULT_BACK_OFF_MS, max, ...posting.backOff })
}

/** Why an unclaimed job must not be claimed any more, or undefined. */
export function exceededLimit(posting: AttemptHistory): string | undefined {
  const failed = countFailures(posting.attempts)
  if (failed >= posting.maxAttempts) return `failed ${failed} times, ${posting.maxAttempts} are allowed`
  const deaths = countTrailingDeaths(posting.attempts)
  if (deaths > 0 && posting.onOwnerLost === 'fail') return `its owner ${posting.attempts.at(-1)?.who} was lost`
  if (deaths >= MAX_TRAILING_DEATHS) return `its owner died ${deaths} times in a row`
  return undefined
}

export function isSuspect(posting: AttemptHistory): boolean {
  return countTrailingDeaths(posting.attempts) >= 2
}

/** @throws InvalidPosting unless it is a list of attempts; absent is empty */
export function parseAttempts(value: unknown): readonly RecordedAttempt[] {
  if (value === undefined) return NO_ATTEMPTS
  if (!Array.isArray(value)) throw new InvalidPosting('attempts is no list')
  if (value.length === 0) return NO_ATTEMPTS
  if (value.length > MAX_READ_ATTEMPTS)
    throw new InvalidPosting(`attempts has ${value.length} entries, at most ${MAX_READ_ATTEMPTS} are read`)
  return value.map(parseAttempt)
}

function parseAttempt(value: unknown): RecordedAttempt {
  const { who, at, ended, reason, incarnation } = Object(value) as Record<string, unknown>
  const date = new Date(at instanceof Date || typeof at === 'string' || typeof at === 'number' ? at : Number.NaN)
  if (typeof who !== 'string' || Number.isNaN(date.getTime())) throw new InvalidPosting('an attempt is unreadable')
  if (isTooLong(who)) throw new InvalidPosting(`the owner of an attempt has more than ${MAX_NAME_BYTES} bytes`)
  return {
    who,
    at: date,
    ...(ended === 'failed' || ended === 'returned' ? { ended } : {}),
    ...(typeof reason === 'string' ? { reason: reason.slice(0, MAX_REASON_LENGTH) } : {}),
    ...(typeof incarnation === 'string' && incarnation.length <= MAX_INCARNATION_LENGTH ? { incarnation } : {}),
  }
}

function countFailures(attempts: readonly Attempt[]): number {
  return attempts.filter((attempt) => attempt.ended === 'failed').length
}

function countTrailingDeaths(attempts: readonly Attempt[]): number {
  let deaths = 0
  while (deaths < attempts.length && attempts[attempts.length - 1 - deaths]?.ended === undefined) deaths += 1
  return deaths
}

/**
 * Drops what no limit counts first: deaths that somebody survived, then returned attempts, then the oldest. In this order:
 * a returned attempt may stand between deaths, and without it those before would count with those behind.
 */
function trimAttempts(attempts: readonly RecordedAttempt[]): readonly RecordedAttempt[] {
  const kept = [...attempts]
  while (kept.length > MAX_STORED_ATTEMPTS) {
    const trailing = kept.length - 1 - countTrailingDeaths(kept.slice(0, -1))
    const returned = kept.findIndex((attempt) => attempt.ended === 'returned')
    const survived = kept.findIndex((attempt, index) => attempt.ended === undefined && index < trailing)
    kept.splice(survived >= 0 ? survived : Math.max(returned, 0), 1)
  }
  return kept
}
