/** Steps in the queue, and their results. */
import type { QueuedRequest } from '../../../../core/async/group-commit.ts'
import type { SharedResults } from '../../../../core/async/shared-results.ts'
import { toFailed } from '../../../../core/result.ts'
import type { ScriptStep } from './steps.ts'

/** The result of a step. */
export interface StepReply {
  readonly done: boolean
  /** Values that the script returns with the result. */
  readonly details: readonly unknown[]
  /** The session in which the step was executed. */
  readonly session: string
  /** Whether claims and resources of dead owners were released after the step was refused. */
  readonly wasReleasedSince: boolean
  /** Whether this is a repeated answer: the first one was lost, and its details may be out of date. */
  readonly isRepeated: boolean
}

/** The result of a step that has no answer yet. */
export const NO_REPLY: { readonly error: Error } = { error: new Error('no answer yet') }

/** A step in the queue. */
export interface QueuedStep extends QueuedRequest {
  readonly step: ScriptStep
  readonly since: number
  resolve(answer: StepReply): void
}

/** One of several steps that share a promise. It has methods in place of closures, because a worker makes hundreds of these at once. */
export class SharedStep implements QueuedStep {
  readonly step: ScriptStep
  readonly since: number
  readonly #results: SharedResults<StepReply>
  readonly #index: number

  constructor(
    step: ScriptStep,
    since: number,
    { results, index }: { results: SharedResults<StepReply>; index: number },
  ) {
    this.step = step
    this.since = since
    this.#results = results
    this.#index = index
  }

  resolve(value: StepReply): void {
    this.#results.settle(this.#index, { value })
  }

  reject(error: unknown): void {
    this.#results.settle(this.#index, toFailed(error))
  }
}
