/** The end of one engine's work on a flow. */
import type { Failure } from '../core/failure.ts'
import type { EndState, EngineState, FlowState } from '../core/states.ts'

/** The states through which a flow goes from RUNNING to each end. */
export const PATH_TO_ENDING: Readonly<Record<EndState, readonly FlowState[]>> = {
  SUCCESS: ['SUCCESS'],
  REVERTED: ['REVERTED'],
  FAILURE: ['FAILURE'],
  SUSPENDED: ['SUSPENDING', 'SUSPENDED'],
}

const END_STATES: ReadonlySet<EngineState> = new Set(['SUCCESS', 'REVERTED', 'FAILURE', 'SUSPENDED'])

export function isEndState(state: EngineState): state is EndState {
  return END_STATES.has(state)
}

/** The end of an engine's run, with results and failures. */
export interface Ending {
  /**
   * SUCCESS: every task was executed, or left out by a decider. REVERTED: a task failed, and everything done was undone.
   * FAILURE: undoing failed, too, and the rest needs a human; or nothing was undone because of `neverResolve`. SUSPENDED: the
   * run was suspended; another engine can continue.
   */
  readonly state: EndState
  /** The results of tasks that succeeded and were not reverted, by the names under which they are provided. */
  readonly results: Readonly<Record<string, unknown>>
  /** The failures of tasks, in any process; without those after which a retry succeeded. */
  readonly failures: readonly Failure[]
  readonly revertFailures: readonly Failure[]
  /** The original error of the first failure, if it was thrown in this engine; a foreground caller can throw it again. */
  readonly error?: unknown
}
