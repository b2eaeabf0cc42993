/** The options of claims, cancel requests and releases, and their checks. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, assertText } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'
import type { Cancellation } from '../contract/index.ts'
import { CANCELLED_BY } from '../model/ended-job.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { ServedQueues } from '../queue/served-queues.ts'

/** The reason of a cancel request without one. */
export const NO_REASON = 'cancelled'

/** Returns the reason with which a cancelled job is moved to the trash. */
export function cancellationReason({ who, reason }: Cancellation): string {
  return reason === NO_REASON ? `${CANCELLED_BY} ${who}` : `${CANCELLED_BY} ${who}: ${reason}`
}

/** Options of `cancel`. */
export interface CancelOptions {
  /** The reason for people; the owner of the job receives it, and the trash keeps it. */
  readonly reason?: string
  /** The person or program that cancels it; the name of this process by default. */
  readonly by?: string
}

/** Options of `release`. */
export interface ReleaseOptions {
  /** The reason for people; the attempt keeps it. */
  readonly reason?: string
  /** The person or program that asks for it; the name of this process by default. */
  readonly by?: string
  /** The run whose claim is released; by default, the run that has the job now. */
  readonly run?: number
}

/** Options of `claimNext`: which jobs to claim, how many, and how long to wait for the first. */
export interface ClaimNextOptions {
  /** The maximum number of jobs to claim at once; 1 by default. */
  readonly max?: number
  /** The longest wait for the first job; unlimited by default. With 0, only jobs that can be claimed now are claimed. */
  readonly timeout?: Duration
  /**
   * The queues whose jobs are claimed: names in order, or names with weights; all queues by default. A name may end with `*`. See
   * `ServedQueues`.
   */
  readonly queues?: ServedQueues
  /** Returns whether to claim a job; others are left to other owners. Called often: it should be quick and do no I/O. */
  readonly accept?: (posting: Posting) => boolean
  readonly signal?: AbortSignal
}

/** Options of `claims`: which jobs to claim, one after the other, until the signal fires. */
export type ClaimsOptions = Omit<ClaimNextOptions, 'max' | 'timeout'>

/** @throws InvalidArgument */
export function assertCancelOptions(options: CancelOptions): void {
  assertOptions(options, { reason: true, by: true }, 'cancel')
  assertText(options.reason, 'cancel: reason')
  assertText(options.by, 'cancel: by')
}

/** @throws InvalidArgument */
export function assertReleaseOptions(options: ReleaseOptions): void {
  assertOptions<ReleaseOptions>(options, { reason: true, by: true, run: true }, 'release')
  assertText(options.by, 'release: by')
  assertText(options.reason, 'release: reason')
  const { run } = options
  if (run !== undefined && !(Number.isSafeInteger(run) && run >= 1))
    throw new InvalidArgument(`release: run must be a whole number from 1, got ${String(run)}`)
}

/** @throws InvalidArgument */
export function claimNextSettings(options: ClaimNextOptions): Required<Pick<ClaimNextOptions, 'max' | 'accept'>> {
  assertOptions(options, { accept: true, max: true, queues: true, signal: true, timeout: true }, 'claimNext')
  const { max = 1, accept = () => true } = options
  if (!Number.isSafeInteger(max) || max < 1)
    throw new InvalidArgument(`claimNext: max must be a whole number from 1, not ${String(max)}`)
  assertAccept(accept, 'claimNext')
  return { max, accept }
}

/** @throws InvalidArgument */
export function assertClaimsOptions(options: ClaimsOptions): void {
  assertOptions(options, { accept: true, queues: true, signal: true }, 'claims')
  if (options.accept !== undefined) assertAccept(options.accept, 'claims')
}

function assertAccept(accept: unknown, what: string): void {
  if (typeof accept !== 'function') {
    const example = "({ name }) => name === 'resize'"
    throw new InvalidArgument(
      `${what}: accept must be a function that returns whether to claim a job, as in ${example}`,
    )
  }
}

/**
 * Parses the result of `accept`.
 *
 * @throws InvalidArgument for a promise, which would accept every job
 */
export function parseAcceptResult(answer: unknown): boolean {
  const { then }: { readonly then?: unknown } = Object(answer)
  if (typeof then !== 'function') return Boolean(answer)
  // No code awaits the promise: without a handler, its rejection would end the process.
  Promise.resolve(answer).catch(() => undefined)
  throw new InvalidArgument('accept returned a promise; it must be a synchronous function that returns true or false')
}
