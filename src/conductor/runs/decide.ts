/**
 * Decides what to do with a job whose run has ended: the only module that does. It is a pure function, tested row by
 * row.
 *
 * | verdict              | when                                                                                       |
 * |----------------------|--------------------------------------------------------------------------------------------|
 * | nothing              | the claim is lost                                                                          |
 * | consume              | the flow is a SUCCESS, also when the logbook said so already                               |
 * | abandon, uncharged   | shutdown; fenced while the claim is held; after a rest that grows: the logbooks are away,  |
 * |                      | or this one cannot be read here; no child process can be started; after the time that a    |
 * |                      | TooManyRequests names                                                                      |
 * | abandon with added   | the posting lacks resources or limits that the flow declares: the next claim takes them,   |
 * | locks, uncharged     | and nothing has run                                                                        |
 * | fail                 | the flow is REVERTED; the logbooks refuse for good; a defect. Tried again while attempts   |
 * |                      | are left, else trashed; a NonRetryable is trashed at once                                  |
 * | trash                | the flow is a FAILURE (a revert failed); it was cancelled and is REVERTED; the posting     |
 * |                      | cannot work                                                                                |
 */
import type { AddedDeclarations } from '../../board/internal.ts'
import { type Cancelled, NonRetryable } from '../../core/errors.ts'
import { describeFailure, type Failure, failureOf, type TooManyRequests, WrappedFailure } from '../../core/failure.ts'
import { defined } from '../../core/options.ts'

/** The end of one run of a job. */
export type RunEnding =
  | { readonly kind: 'lost' }
  | {
      readonly kind: 'flow'
      readonly state: 'SUCCESS' | 'REVERTED' | 'FAILURE' | 'SUSPENDED'
      readonly failures: readonly Failure[]
      readonly revertFailures: readonly Failure[]
      /** The results of a flow that succeeded, encoded for the board; absent unless its results are kept there. */
      readonly results?: Uint8Array | undefined
      /** The cancellation of the job, if there was one. */
      readonly cancelled?: Cancelled | undefined
      /** The reason why the flow was suspended, if a task has to begin again later. */
      readonly putOff?: TooManyRequests | undefined
    }
  | { readonly kind: 'shutdown' }
  | { readonly kind: 'storage-away'; readonly error: Error }
  /** An isolated task for which no child process could be started. */
  | { readonly kind: 'no-child'; readonly error: Error }
  /** The logbook of this one job cannot be read: a newer release has written it, or its key is missing here. */
  | { readonly kind: 'illegible'; readonly error: Error }
  /** The posting lacks resources or limits that the flow declares; `added` has the resources and limits that the job must have. */
  | { readonly kind: 'undeclared'; readonly added: AddedDeclarations }
  | { readonly kind: 'fenced'; readonly newestRun: number | undefined }
  | { readonly kind: 'unworkable'; readonly error: Error }
  | { readonly kind: 'defect'; readonly error: unknown }

export type Verdict =
  | { readonly settle: 'nothing' }
  | { readonly settle: 'consume'; readonly results?: Uint8Array }
  | {
      readonly settle: 'abandon'
      readonly reason: string
      readonly failed?: true
      readonly newestRun?: number
      /** Whether the job is delayed before it can be claimed again: longer after each return. */
      readonly rests?: true
      /** The delay of the job, in milliseconds. */
      readonly delay?: number
      /** The resources and limits that the job has from now on. */
      readonly added?: AddedDeclarations
    }
  | { readonly settle: 'fail'; readonly failure: Failure }
  | { readonly settle: 'trash'; readonly reason: string; readonly failure: Failure }

/** The handling of a job whose flow failed and was reverted; `consume` is what TaskFlow does. */
export type OnFailure = 'retry' | 'consume'

export function decide(ending: RunEnding, options: { onFailure: OnFailure } = { onFailure: 'retry' }): Verdict {
  switch (ending.kind) {
    case 'lost':
      return { settle: 'nothing' }
    case 'flow':
      return decideFlow(ending, options)
    case 'shutdown':
      return { settle: 'abandon', reason: 'its conductor shut down' }
    case 'storage-away':
      return { settle: 'abandon', reason: `the logbooks are away: ${ending.error.message}`, rests: true }
    case 'no-child':
      return {
        settle: 'abandon',
        reason: `its conductor can start no child process: ${ending.error.message}`,
        rests: true,
      }
    case 'illegible':
      return { settle: 'abandon', reason: `its logbook cannot be read here: ${ending.error.message}`, rests: true }
    case 'undeclared':
      return {
        settle: 'abandon',
        reason: 'it was posted without resources or limits that its flow declares',
        added: ending.added,
      }
    case 'fenced': {
      return {
        settle: 'abandon',
        reason: 'fenced: the logbook knows of a run that the posting does not',
        ...defined({ newestRun: ending.newestRun }),
      }
    }
    case 'unworkable': {
      const failure = failureOf(new NonRetryable(ending.error.message, { cause: ending.error }))
      return { settle: 'trash', reason: ending.error.message, failure }
    }
    case 'defect':
      return { settle: 'fail', failure: failureOf(ending.error) }
  }
}

function decideFlow(ending: RunEnding & { kind: 'flow' }, options: { onFailure: OnFailure }): Verdict {
  const { state, failures, revertFailures } = ending
  switch (state) {
    case 'SUCCESS':
      return { settle: 'consume', ...defined({ results: ending.results }) }
    case 'SUSPENDED':
      if (ending.putOff) return { settle: 'abandon', reason: ending.putOff.message, delay: ending.putOff.retryAfter }
      return { settle: 'abandon', reason: 'its conductor shut down; the flow is suspended' }
    case 'REVERTED': {
      const { cancelled } = ending
      if (cancelled) return { settle: 'trash', reason: cancelled.trashReason, failure: failureOf(cancelled) }
      return options.onFailure === 'consume'
        ? { settle: 'consume' }
        : { settle: 'fail', failure: combineFailures(failures) }
    }
    case 'FAILURE': {
      const failure = combineFailures([...failures, ...revertFailures])
      return { settle: 'trash', reason: `it could not be reverted: ${describeFailure(failure)}`, failure }
    }
  }
}

function combineFailures(failures: readonly Failure[]): Failure {
  return failureOf(new WrappedFailure(failures))
}
