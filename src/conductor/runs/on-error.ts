/**
 * Asks the application what becomes of a job that has failed: RQ's exception handlers, and the retry policies of DiracX' tasks. The handlers of the
 * conductor are asked in order, then `posting.retry` of the flow. The first answer holds.
 *
 * | answer | the job |
 * |---|---|
 * | nothing | as the next one says; after the last one as for `'retry'` |
 * | `'retry'` | as the error says: tried again after its back-off while attempts are left, else trashed |
 * | `'trash'` | goes to the trash at once |
 * | `{ retryAfter }`, `{ retryAt }` | is tried again then, also after a NonRetryable, while attempts are left |
 */
import type { Job } from '../../board/index.ts'
import { abortAfter, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { InvalidArgument, isDate, Timeout } from '../../core/errors.ts'
import type { Failure } from '../../core/failure.ts'
import { type AlarmClock, type Duration, toMilliseconds } from '../../core/time.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { Verdict } from './decide.ts'

/** The run that has failed. */
export interface FailedRun {
  readonly job: Job
  /** The number of the run, from 1. */
  readonly run: number
  /** Whether the job goes to the trash whatever is answered: it was cancelled, its posting cannot work, or it could not be reverted. */
  readonly isFinal: boolean
  /** Fires when the answer is not waited for any more. */
  readonly signal: AbortSignal
}

/** The answer about a job that has failed. */
export type ErrorVerdict = 'retry' | 'trash' | { readonly retryAfter: Duration } | { readonly retryAt: Date }

/**
 * Decides what becomes of a job that has failed, or reports the failure. See the option `onError` of conductors.
 *
 * @example (failure, { job }) => { Sentry.captureException(failure); return failure.code === 'ENOSPC' ? { retryAfter: '1h' } : 'retry' }
 */
export type ErrorHandler = (
  failure: Failure,
  run: FailedRun,
) => ErrorVerdict | undefined | Promise<ErrorVerdict | undefined>

/** The time limit for an answer: the job's slot is taken until then. */
const ANSWER_TIMEOUT_MS = 10_000

export interface AskOptions {
  /** Asked in this order. */
  readonly deciders: readonly Decider[]
  readonly job: Job
  readonly run: number
  /** Stops the waiting: the claim is lost. */
  readonly stop: readonly Stoppable[]
  readonly clock: AlarmClock
  /** Called with the error of a decider that fails, or whose answer is not valid. */
  readonly failed: (error: unknown) => void
}

/** The function that changes a verdict about a failure. */
export type VerdictChange = (verdict: Verdict) => Verdict

/** Returns the verdict unchanged: there is no failure, or no answer. */
export const UNCHANGED: VerdictChange = (verdict) => verdict

/** A function that is asked about a job that has failed, and how its answer is read. */
export interface Decider {
  /** The name for errors: `onError`, or the option of the flow. */
  readonly what: string
  /** Returns the answer; undefined or null if it has none. */
  readonly ask: (failure: Failure, run: FailedRun) => unknown
  /** @throws InvalidArgument for an answer that is not valid */
  readonly toChange: (answer: unknown, what: string, now: number) => VerdictChange
}

/** Returns the deciders of a job of this flow, in order: the handlers of the conductor, then `posting.retry`. */
export function toDeciders(handlers: readonly ErrorHandler[], flow: AnyFlow | undefined): readonly Decider[] {
  const deciders = handlers.map((ask): Decider => ({ what: 'onError', ask, toChange: toHandlerChange }))
  const retry = flow?.posting?.retry
  if (!retry) return deciders
  const ask: Decider['ask'] = (failure, { job, isFinal }) =>
    failure.nonRetryable || isFinal ? undefined : retry(job.failedAttempts + 1, failure)
  return [...deciders, { what: `flow ${flow.name}: posting.retry`, ask, toChange: toRetryChange }]
}

/** Asks the deciders about a verdict with a failure, and returns what the first answer changes. Never rejects. */
export async function askDeciders(verdict: Verdict, options: AskOptions): Promise<VerdictChange> {
  const { deciders, job, run, stop, clock, failed } = options
  if (!('failure' in verdict)) return UNCHANGED
  using giveUp = followSignals(stop)
  let asked = ''
  const late = (time: string) => new Timeout(`${job}: ${asked} has not answered within ${time}`)
  using _limit = abortAfter(giveUp, ANSWER_TIMEOUT_MS, late, clock)
  const context = { job, run, isFinal: verdict.settle === 'trash', signal: giveUp.signal }
  for (const { what, ask, toChange } of deciders) {
    asked = what
    try {
      const asking = (async () => ask(verdict.failure, context))()
      const answer: unknown = await rejectOnAbort(asking, giveUp)
      if (answer !== undefined && answer !== null) return toChange(answer, what, clock.now())
    } catch (error) {
      failed(error)
      if (giveUp.aborted) return UNCHANGED
    }
  }
  return UNCHANGED
}

function toHandlerChange(answer: unknown, what: string, now: number): VerdictChange {
  if (answer === 'retry') return UNCHANGED
  if (answer === 'trash') return TRASH
  const { retryAfter, retryAt }: { readonly retryAfter?: unknown; readonly retryAt?: unknown } = Object(answer)
  const delay = retryAfter === undefined ? toTimeLeft(retryAt, { what, now }) : toPause(retryAfter, what)
  if (delay === undefined)
    throw new InvalidArgument(
      "onError must return 'retry', 'trash', { retryAfter: '10m' }, { retryAt: a Date } or nothing; the job is handled as if it returned nothing",
    )
  return changeFailure(({ nonRetryable: _, nextQueue: __, ...failure }) => ({ ...failure, retryAfter: delay }))
}

/** Changes only the time: a job that was out of memory is still moved to another queue. */
function toRetryChange(answer: unknown, what: string, now: number): VerdictChange {
  if (answer === 'trash') return TRASH
  const delay = toPause(answer, what) ?? toTimeLeft(answer, { what, now })
  if (delay === undefined)
    throw new InvalidArgument(
      `${what} must return a duration, a Date, 'trash' or nothing; the job is handled as if it returned nothing`,
    )
  return changeFailure((failure) => ({ ...failure, retryAfter: delay }))
}

/** Returns the milliseconds of a duration; undefined for a value of another type. @throws InvalidArgument for a duration that is not valid */
function toPause(value: unknown, what: string): number | undefined {
  return typeof value === 'string' || typeof value === 'number' ? toMilliseconds(value as Duration, what) : undefined
}

/** Returns the milliseconds until a time; undefined for anything else. @throws InvalidArgument for a time that is too far away */
function toTimeLeft(
  value: unknown,
  { what, now }: { readonly what: string; readonly now: number },
): number | undefined {
  if (!isDate(value) || Number.isNaN(value.getTime())) return undefined
  return toMilliseconds(Math.max(0, value.getTime() - now), `${what}: the time until ${value.toISOString()}`)
}

const TRASH = changeFailure((failure) => ({ ...failure, nonRetryable: true }))

function changeFailure(change: (failure: Failure) => Failure): VerdictChange {
  return (verdict) => (verdict.settle === 'fail' ? { ...verdict, failure: change(verdict.failure) } : verdict)
}
