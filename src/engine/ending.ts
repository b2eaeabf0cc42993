/** How the work of one engine on a flow came to its end. */
import type { Failure } from '../core/failure.ts'
import type { EndState, EngineState, FlowState } from '../core/states.ts'

/** Where a flow goes from RUNNING when it ends. */
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

/** How a run of an engine ended, and what came of it. */
export interface Ending {
  /**
   * SUCCESS: every task was executed, or left out by a decider. REVERTED: one failed, and what was done was undone.
   * FAILURE: undoing failed too, and what is left needs a human; or nothing was undone because `neverResolve` asks for
   * that. SUSPENDED: it was asked to rest; another engine can go on.
   */
  readonly state: EndState
  /** What tasks provide, as far as it has been made and not undone. */
  readonly results: Readonly<Record<string, unknown>>
  /** Why tasks failed, whichever process they failed in; those that a retry has made good again are not among them. */
  readonly failures: readonly Failure[]
  readonly revertFailures: readonly Failure[]
  /** The very error of the first failure, where it was thrown in this engine: to be thrown on in the foreground. */
  readonly error?: unknown
}
