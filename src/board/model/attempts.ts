/**
 * The attempts of a job: the record of each run's owner and end, kept in the posting itself.
 *
 * A claim appends an attempt in its own transaction; the settlement records how it ended:
 *
 * - `failed`: the work was tried and did not succeed. The attempt counts towards `maxAttempts`.
 * - `returned`: the owner gave the job back (a shutdown, logbooks away). The attempt does not count.
 * - no end at the time of the next claim, and the owner lives: an outage of the store ended its session. The claim records
 *   the attempt as `returned`, so that jobs are not charged for outages.
 * - no end at the time of the next claim, and the owner does not live: a **death**. The owner's process or machine failed
 *   during the run. Deaths at the end of the list are limited too, because a job that crashes its owner would run for ever.
 *
 * A job with two or more deaths at the end of its list is a **suspect**. A process runs one suspect at a time, so that a job
 * that crashes the process ends few other runs.
 *
 * **The list stays short**, however often a job is tried: it has the first two attempts, the last eight, and all deaths at its end. Between the first
 * two and the others one entry, the *summary*, counts the attempts that are not listed. A release that does not know the summary reads it as a returned
 * attempt, and forgets its counts. So failed attempts stay in the list where that release would count them.
 */
import { InvalidPosting, isDate } from '../../core/errors.ts'
import { cutText, nameFault } from '../../core/texts.ts'
import { type Backoff, backoffDelay } from '../../core/time.ts'
import type { StoredBackOff } from './back-off.ts'
import { isCount } from './stored.ts'

/** The owner, start and end of a run. Without `ended` the run is under way, or its owner died during it. */
export interface Attempt {
  readonly who: string
  readonly at: Date
  readonly ended?: 'failed' | 'returned'
  readonly reason?: string
}

/** The attempts that are not listed, counted by how they ended. */
export interface OmittedAttempts {
  readonly failed: number
  readonly returned: number
  /** The attempts whose owner died. */
  readonly lost: number
}

/** An attempt as the posting stores it, or the summary. */
export interface RecordedAttempt extends Attempt {
  /** The id of the board object that claimed the job, until the attempt has ended: see `claims/incarnation.ts`. */
  readonly incarnation?: string
  /** The attempts that the summary stands for; absent in all other entries. */
  readonly omitted?: OmittedAttempts
}

export interface AttemptHistory {
  readonly onOwnerLost?: 'fail'
  readonly runs: number
  readonly attempts: readonly RecordedAttempt[]
  readonly maxAttempts: number
}

/** The number of attempts that a posting lists before the summary. */
export const FIRST_ATTEMPTS = 2
/** The number of newest attempts that a posting lists; all deaths in a row at the end are listed, also if they are more. */
const LAST_ATTEMPTS = 8
/** The maximum number of attempts that is read. No release writes a longer list, and it would make each claim of the job slow. */
const MAX_READ_ATTEMPTS = 100
/** The maximum of `maxAttempts`. */
export const MAX_ATTEMPTS = 1_000_000
/** The maximum of `maxAttempts` in releases that list all attempts. */
export const MAX_LISTED_ATTEMPTS = 10
const MAX_TRAILING_DEATHS = 10
const MAX_REASON_LENGTH = 500
/** The maximum length of an incarnation that is read; this library writes UUIDs. */
const MAX_INCARNATION_LENGTH = 64
/** The owner of the summary, for releases that show it as an attempt. */
const SUMMARY_WHO = 'several'
/** The reason of an attempt whose owner lost its session and is alive. */
const OUTAGE_REASON = 'its owner lost the claim and lives'

/** The list that all jobs without attempts share. */
const NO_ATTEMPTS: readonly RecordedAttempt[] = Object.freeze([])

/**
 * Returns the posting as a claim writes it: with the next run and its attempt, and without its delay, which a death must not restart.
 *
 * @param limit the maximum number of failures, which a setting of the flow may replace; by default the number in the posting
 */
export function beginAttempt<P extends AttemptHistory & { readonly delay?: number }>(
  posting: P,
  attempt: { who: string; at: Date; incarnation?: string },
  limit: Pick<AttemptHistory, 'maxAttempts'> = posting,
): Omit<P, 'delay'> {
  const runs = posting.runs + 1
  const attempts = summarizeAttempts([...posting.attempts, attempt], limit)
  // A plain copy, because every claim makes one: a copy without a field, or of two objects, costs several times as much.
  if (!('delay' in posting)) return { ...posting, runs, attempts }
  const { delay: _, ...rest } = posting
  return { ...rest, runs, attempts }
}

/** Returns the posting as a settlement writes it: with the end of the newest attempt. */
export function endAttempt<P extends AttemptHistory>(
  posting: P,
  end: { ended: 'failed' | 'returned'; reason?: string },
): P {
  const attempts = [...posting.attempts]
  const newest = attempts.pop()
  if (!newest) return posting
  return { ...posting, attempts: [...attempts, toEndedAttempt(newest, end)] }
}

/** Returns the incarnations of the trailing attempts without an end: whether they live decides if these count as deaths. */
export function unendedIncarnations(posting: AttemptHistory): string[] {
  // Such a job must be trashed when its owner is lost, whether the owner died or lives.
  if (posting.onOwnerLost === 'fail') return []
  const { attempts } = posting
  const trailing = attempts.slice(attempts.length - countTrailingDeaths(attempts))
  return trailing.flatMap(({ incarnation }) => incarnation ?? [])
}

/** Returns the posting with the attempts of living owners, which lost their sessions, as `returned`. */
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

/** Returns the listed attempts without the fields that are internal. */
export function toAttempts({ attempts }: Pick<AttemptHistory, 'attempts'>): readonly Attempt[] {
  return attempts.flatMap(({ incarnation: _, omitted, ...attempt }) => (omitted ? [] : attempt))
}

/** Returns how many attempts the posting does not list; undefined if it lists all. */
export function toOmittedAttempts({ attempts }: Pick<AttemptHistory, 'attempts'>): OmittedAttempts | undefined {
  return attempts.find(({ omitted }) => omitted)?.omitted
}

/** Returns whether an outage of the store ended the attempt. */
export function isOutage({ ended, reason }: Attempt): boolean {
  return ended === 'returned' && reason === OUTAGE_REASON
}

function toEndedAttempt({ who, at }: Attempt, end: { ended: 'failed' | 'returned'; reason?: string }): Attempt {
  return {
    who,
    at,
    ended: end.ended,
    ...(end.reason === undefined ? {} : { reason: cutText(end.reason, MAX_REASON_LENGTH) }),
  }
}

/** Returns whether the job may be tried again if the current run fails. */
export function canRetry(posting: AttemptHistory): boolean {
  return countFailures(posting.attempts) + 1 < posting.maxAttempts
}

/** The back-off of a job that was posted without a `backOff`. */
const DEFAULT_BACK_OFF_MS: Backoff = { first: 1_000, max: 300_000 }

/**
 * Returns the pause after a failed run, in milliseconds. It grows with each failure, and it is random, so that many jobs do
 * not become due at once.
 */
export function pauseAfterFailure(posting: AttemptHistory & { readonly backOff?: StoredBackOff }): number {
  // A first pause above the default maximum raises the maximum: a poster need not set both.
  const max = Math.max(DEFAULT_BACK_OFF_MS.max, posting.backOff?.first ?? 0)
  return backoffDelay(countFailures(posting.attempts) + 1, { ...DEFAULT_BACK_OFF_MS, max, ...posting.backOff })
}

/** Returns the reason why an unclaimed job must no longer be claimed; undefined if it may be. */
export function exceededLimit(posting: AttemptHistory): string | undefined {
  const failed = countFailures(posting.attempts)
  if (failed >= posting.maxAttempts) return `failed ${failed} times, ${posting.maxAttempts} are allowed`
  const deaths = countTrailingDeaths(posting.attempts)
  if (deaths > 0 && posting.onOwnerLost === 'fail') return `its owner ${posting.attempts.at(-1)?.who} was lost`
  if (deaths >= MAX_TRAILING_DEATHS) return `its owner died ${deaths} times in a row`
  return undefined
}

/** Returns whether the last two owners of an unclaimed job, or more, died while they ran it. */
export function isSuspect({ attempts }: Pick<AttemptHistory, 'attempts'>): boolean {
  return countTrailingDeaths(attempts) >= 2
}

/** Parses a list of attempts; an absent one is empty. @throws InvalidPosting for anything else */
export function parseAttempts(value: unknown): readonly RecordedAttempt[] {
  if (value === undefined) return NO_ATTEMPTS
  if (!Array.isArray(value)) throw new InvalidPosting('attempts must be an array')
  if (value.length === 0) return NO_ATTEMPTS
  if (value.length > MAX_READ_ATTEMPTS)
    throw new InvalidPosting(`attempts has ${value.length} entries, at most ${MAX_READ_ATTEMPTS} are read`)
  return value.map(parseAttempt)
}

function parseAttempt(value: unknown): RecordedAttempt {
  const { who, at, ended, reason, incarnation, omitted } = Object(value) as Record<string, unknown>
  const date = new Date(isDate(at) || typeof at === 'string' || typeof at === 'number' ? at : Number.NaN)
  if (typeof who !== 'string' || Number.isNaN(date.getTime()))
    throw new InvalidPosting('an attempt must have a who and a valid date at')
  const fault = nameFault(who)
  if (fault !== undefined) throw new InvalidPosting(`the owner of an attempt ${fault}`)
  return {
    who,
    at: date,
    ...(ended === 'failed' || ended === 'returned' ? { ended } : {}),
    ...(typeof reason === 'string' ? { reason: cutText(reason, MAX_REASON_LENGTH) } : {}),
    ...(typeof incarnation === 'string' && incarnation.length <= MAX_INCARNATION_LENGTH ? { incarnation } : {}),
    ...(omitted === undefined ? {} : { omitted: parseOmitted(omitted) }),
  }
}

function parseOmitted(value: unknown): OmittedAttempts {
  const { failed, returned, lost } = Object(value) as Record<string, unknown>
  if (!isCount(failed) || !isCount(returned) || !isCount(lost))
    throw new InvalidPosting('the counts of omitted attempts must be whole numbers from 0')
  return { failed, returned, lost }
}

/** Returns how many attempts have failed, listed or not. */
export function countFailures(attempts: readonly RecordedAttempt[]): number {
  return attempts.reduce((sum, { ended, omitted }) => sum + (omitted?.failed ?? (ended === 'failed' ? 1 : 0)), 0)
}

/** Returns how many attempts at the end of the list have no end. The attempt of a claim that is held counts, too. */
export function countTrailingDeaths(attempts: readonly Attempt[]): number {
  let deaths = 0
  while (deaths < attempts.length && attempts[attempts.length - 1 - deaths]?.ended === undefined) deaths += 1
  return deaths
}

/** Counts attempts between the first and the last ones in the summary. Deaths at the end stay in the list, because a limit counts them. */
function summarizeAttempts(
  attempts: readonly RecordedAttempt[],
  { maxAttempts }: Pick<AttemptHistory, 'maxAttempts'>,
): readonly RecordedAttempt[] {
  const hasSummary = attempts[FIRST_ATTEMPTS]?.omitted !== undefined
  if (attempts.length <= FIRST_ATTEMPTS + LAST_ATTEMPTS + (hasSummary ? 1 : 0)) return attempts
  const deathsFrom = attempts.length - 1 - countTrailingDeaths(attempts.slice(0, -1))
  const listedFrom = Math.min(attempts.length - LAST_ATTEMPTS, deathsFrom)
  const mustList = ({ ended }: RecordedAttempt) => ended === 'failed' && maxAttempts <= MAX_LISTED_ATTEMPTS
  const candidates = attempts.slice(FIRST_ATTEMPTS, listedFrom)
  const between = candidates.filter((attempt) => !mustList(attempt))
  const newest = between.at(-1)
  if (!newest) return attempts
  const count = (has: (attempt: RecordedAttempt) => boolean) =>
    between.filter((each) => !each.omitted && has(each)).length
  const before = between[0]?.omitted ?? { failed: 0, returned: 0, lost: 0 }
  const omitted: OmittedAttempts = {
    failed: before.failed + count(({ ended }) => ended === 'failed'),
    returned: before.returned + count(({ ended }) => ended === 'returned'),
    lost: before.lost + count(({ ended }) => ended === undefined),
  }
  const summary: RecordedAttempt = { who: SUMMARY_WHO, at: newest.at, ended: 'returned', omitted }
  return [...attempts.slice(0, FIRST_ATTEMPTS), summary, ...candidates.filter(mustList), ...attempts.slice(listedFrom)]
}
