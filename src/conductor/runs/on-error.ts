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
  readonly handlers: readonly ErrorHandler[]
  readonly job: Job
  readonly run: number
  /** Stops the waiting: the claim is lost. */
  readonly stop: readonly Stoppable[]
  readonly clock: AlarmClock
  /** Called when a handler itself fails. */
  readonly failed: (error: unknown) => void
}

/** The function that changes a verdict about a failure. */
export type VerdictChange = (verdict: Verdict) => Verdict

/** Returns the verdict unchanged: there is no failure, or no handler. */
export const UNCHANGED: VerdictChange = (verdict) => verdict

/** Asks the handlers about a verdict with a failure, and returns what the first answer changes. Never rejects. */
export async function askErrorHandlers(verdict: Verdict, options: AskOptions): Promise<VerdictChange> {
  const { handlers, job, run, stop, clock, failed } = options
  if (!('failure' in verdict)) return UNCHANGED
  using giveUp = followSignals(stop)
  const late = (time: string) => new Timeout(`${job}: onError has not answered within ${time}`)
  using _limit = abortAfter(giveUp, ANSWER_TIMEOUT_MS, late, clock)
  const context = { job, run, isFinal: verdict.settle === 'trash', signal: giveUp.signal }
  for (const handler of handlers) {
    try {
      const asked = (async () => handler(verdict.failure, context))()
      const answer = await rejectOnAbort(asked, giveUp)
      if (answer !== undefined) return toChange(answer, clock.now())
    } catch (error) {
      failed(error)
      if (giveUp.aborted) return UNCHANGED
    }
  }
  return UNCHANGED
}

/** Returns the handler that asks `posting.retry` of the flow; none if the flow has no such function. It is not asked about a NonRetryable. */
export function flowRetryHandlers(flow: AnyFlow | undefined): readonly ErrorHandler[] {
  const retry = flow?.posting?.retry
  if (!retry) return []
  return [
    (failure, { job }) => {
      if (failure.nonRetryable) return undefined
      const answer: unknown = retry(job.failedAttempts + 1, failure)
      if (answer === undefined || answer === 'trash') return answer
      if (isDate(answer)) return { retryAt: answer }
      if (typeof answer === 'string' || typeof answer === 'number') return { retryAfter: answer as Duration }
      throw new InvalidArgument(
        `flow ${flow.name}: posting.retry must return a duration, a Date, 'trash' or nothing; the job is handled as if it returned nothing`,
      )
    },
  ]
}

/** @throws InvalidArgument for an answer that is none */
function toChange(answer: ErrorVerdict, now: number): VerdictChange {
  if (answer === 'retry') return UNCHANGED
  if (answer === 'trash') return changeFailure((failure) => ({ ...failure, nonRetryable: true }))
  const delay = toDelay(answer, now)
  return changeFailure(({ nonRetryable, nextSize, ...failure }) => ({ ...failure, retryAfter: delay }))
}

function toDelay(answer: Exclude<ErrorVerdict, string>, now: number): number {
  const { retryAfter, retryAt }: { readonly retryAfter?: Duration; readonly retryAt?: Date } = Object(answer)
  if (retryAfter !== undefined) return toMilliseconds(retryAfter, 'onError: retryAfter')
  if (isDate(retryAt) && !Number.isNaN(retryAt.getTime()))
    return toMilliseconds(Math.max(0, retryAt.getTime() - now), 'onError: the time until retryAt')
  throw new InvalidArgument(
    "onError must return 'retry', 'trash', { retryAfter: '10m' }, { retryAt: a Date } or nothing; the job is handled as if it returned nothing",
  )
}

function changeFailure(change: (failure: Failure) => Failure): VerdictChange {
  return (verdict) => (verdict.settle === 'fail' ? { ...verdict, failure: change(verdict.failure) } : verdict)
}
