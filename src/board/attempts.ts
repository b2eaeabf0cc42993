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
import { InvalidPosting } from '../core/errors.ts'
import { isTooLong, LONGEST_NAME_BYTES } from '../core/texts.ts'
import { type Backoff, backoff } from '../core/time.ts'
import type { BackOff } from './back-off.ts'

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

export interface Attempted {
  readonly onOwnerLost?: 'fail'
  readonly runs: number
  readonly attempts: readonly RecordedAttempt[]
  readonly maxAttempts: number
}

/** How many attempts a posting carries along. */
const KEPT = 20
/** How many attempts are read; a longer list was not written by any release, and makes each claim of the job slow. */
const MOST_READ = 100
/** The most that `maxAttempts` may be: with the deaths that may trail them, that many failures fit {@link KEPT}. */
export const MOST_ATTEMPTS = 10
const MOST_TRAILING_DEATHS = 10
const LONGEST_REASON = 500
/** The longest incarnation that is read: what this library writes is a UUID. */
const LONGEST_INCARNATION = 64
/** The reason of an attempt whose owner lost its session and lives. */
const LOST_AND_LIVES = 'its owner lost the claim and lives'

/** One for all jobs that were never tried. */
const NONE: readonly RecordedAttempt[] = Object.freeze([])

/** The posting as a claim writes it: the next run, with its attempt, and without a delay: a death starts none again. */
export function beginAttempt<P extends Attempted & { readonly delay?: number }>(
  posting: P,
  attempt: { who: string; at: Date; incarnation?: string },
): Omit<P, 'delay'> {
  const { delay: _, ...rest } = posting
  return { ...rest, runs: posting.runs + 1, attempts: trimmed([...posting.attempts, attempt]) }
}

/** The posting as a settle writes it: the newest attempt with its end. */
export function endAttempt<P extends Attempted>(posting: P, end: { ended: 'failed' | 'returned'; reason?: string }): P {
  const attempts = [...posting.attempts]
  const newest = attempts.pop()
  if (!newest) return posting
  return { ...posting, attempts: [...attempts, endedAs(newest, end)] }
}

/** Returns the incarnations of the owners on whose life it depends what this posting is charged for. */
export function unendedIncarnations(posting: Attempted): string[] {
  // The loss of its owner is what such a job must not survive, whatever became of the owner.
  if (posting.onOwnerLost === 'fail') return []
  const { attempts } = posting
  const trailing = attempts.slice(attempts.length - trailingDeaths(attempts))
  return trailing.flatMap(({ incarnation }) => incarnation ?? [])
}

/** Returns the posting with those attempts as returned whose owners lost their sessions and live. */
export function withoutOutages<P extends Attempted>(posting: P, living: ReadonlySet<string>): P {
  if (!unendedIncarnations(posting).some((incarnation) => living.has(incarnation))) return posting
  const { attempts } = posting
  const first = attempts.length - trailingDeaths(attempts)
  return {
    ...posting,
    attempts: attempts.map((attempt, index) => {
      const lives = index >= first && attempt.incarnation !== undefined && living.has(attempt.incarnation)
      return lives ? endedAs(attempt, { ended: 'returned', reason: LOST_AND_LIVES }) : attempt
    }),
  }
}

/** Returns the attempts as people see them. */
export function attemptsOf(posting: Pick<Attempted, 'attempts'>): readonly Attempt[] {
  return posting.attempts.map(({ incarnation: _, ...attempt }) => attempt)
}

/** Whether it was an outage of the store that ended the attempt. */
export function isOutage({ ended, reason }: Attempt): boolean {
  return ended === 'returned' && reason === LOST_AND_LIVES
}

function endedAs({ who, at }: Attempt, end: { ended: 'failed' | 'returned'; reason?: string }): Attempt {
  return {
    who,
    at,
    ended: end.ended,
    ...(end.reason === undefined ? {} : { reason: end.reason.slice(0, LONGEST_REASON) }),
  }
}

/** Whether the run under way may fail and the job still be tried again. */
export function mayTryAgain(posting: Attempted): boolean {
  return failures(posting.attempts) + 1 < posting.maxAttempts
}

/** Of a job that was posted without a `backOff` of its own. */
const USUAL: Backoff = { first: 1_000, max: 300_000 }

/** How long, in milliseconds, a job rests after a run that failed: longer after each, spread so that many do not come back at once. */
export function pauseAfterFailure(posting: Attempted & { readonly backOff?: BackOff }): number {
  // Who asks for a longer rest at first gets it, without having to say that the others may be as long.
  const max = Math.max(USUAL.max, posting.backOff?.first ?? 0)
  return backoff(failures(posting.attempts) + 1, { ...USUAL, max, ...posting.backOff })
}

/** Why an unclaimed job must not be claimed any more, or undefined. */
export function limitReached(posting: Attempted): string | undefined {
  const failed = failures(posting.attempts)
  if (failed >= posting.maxAttempts) return `failed ${failed} times, ${posting.maxAttempts} are allowed`
  const deaths = trailingDeaths(posting.attempts)
  if (deaths > 0 && posting.onOwnerLost === 'fail') return `its owner ${posting.attempts.at(-1)?.who} was lost`
  if (deaths >= MOST_TRAILING_DEATHS) return `its owner died ${deaths} times in a row`
  return undefined
}

export function isSuspect(posting: Attempted): boolean {
  return trailingDeaths(posting.attempts) >= 2
}

/** @throws InvalidPosting unless it is a list of attempts; absent is empty */
export function readAttempts(value: unknown): readonly RecordedAttempt[] {
  if (value === undefined) return NONE
  if (!Array.isArray(value)) throw new InvalidPosting('attempts is no list')
  if (value.length === 0) return NONE
  if (value.length > MOST_READ)
    throw new InvalidPosting(`attempts has ${value.length} entries, at most ${MOST_READ} are read`)
  return value.map(readAttempt)
}

function readAttempt(value: unknown): RecordedAttempt {
  const { who, at, ended, reason, incarnation } = Object(value) as Record<string, unknown>
  const date = new Date(at instanceof Date || typeof at === 'string' || typeof at === 'number' ? at : Number.NaN)
  if (typeof who !== 'string' || Number.isNaN(date.getTime())) throw new InvalidPosting('an attempt is unreadable')
  if (isTooLong(who)) throw new InvalidPosting(`the owner of an attempt has more than ${LONGEST_NAME_BYTES} bytes`)
  return {
    who,
    at: date,
    ...(ended === 'failed' || ended === 'returned' ? { ended } : {}),
    ...(typeof reason === 'string' ? { reason: reason.slice(0, LONGEST_REASON) } : {}),
    ...(typeof incarnation === 'string' && incarnation.length <= LONGEST_INCARNATION ? { incarnation } : {}),
  }
}

function failures(attempts: readonly Attempt[]): number {
  return attempts.filter((attempt) => attempt.ended === 'failed').length
}

function trailingDeaths(attempts: readonly Attempt[]): number {
  let deaths = 0
  while (deaths < attempts.length && attempts[attempts.length - 1 - deaths]?.ended === undefined) deaths += 1
  return deaths
}

/**
 * Drops what no limit counts first: deaths that somebody survived, then returned attempts, then the oldest. In this order:
 * a returned attempt may stand between deaths, and without it those before would count with those behind.
 */
function trimmed(attempts: readonly RecordedAttempt[]): readonly RecordedAttempt[] {
  const kept = [...attempts]
  while (kept.length > KEPT) {
    const trailing = kept.length - 1 - trailingDeaths(kept.slice(0, -1))
    const returned = kept.findIndex((attempt) => attempt.ended === 'returned')
    const survived = kept.findIndex((attempt, index) => attempt.ended === undefined && index < trailing)
    kept.splice(survived >= 0 ? survived : Math.max(returned, 0), 1)
  }
  return kept
}
