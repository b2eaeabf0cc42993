/** The events of an engine: every transition, after it is recorded; progress; and at last, how its run ended. */
import type { Failure } from '../core/failure.ts'
import type { AtomState, EndState, EngineState, FlowState } from '../core/states.ts'

interface StateTransition<State> {
  readonly flow: string
  readonly from: State
  readonly to: State
  readonly at: Date
  /** The time in the state `from`, in milliseconds, across processes. */
  readonly duration: number
}

export type FlowTransition = StateTransition<FlowState>

export interface AtomTransition extends StateTransition<AtomState> {
  readonly atom: string
  readonly kind: 'task' | 'retry'
  /** The result of an atom that has succeeded. */
  readonly result?: unknown
  readonly failure?: Failure
}

export interface ProgressEvent {
  readonly flow: string
  readonly atom: string
  /** The progress, from 0 to 1. */
  readonly progress: number
  /** The text of the report, if it had one. */
  readonly message?: string
}

/** The events of `engine.on`. Transitions of flows and atoms are emitted after they are recorded. */
export interface EngineEvents {
  flow: FlowTransition
  atom: AtomTransition
  /** Progress of an atom, emitted at once, before it is recorded. */
  progress: ProgressEvent
}

export const ENGINE_EVENTS: Readonly<Record<keyof EngineEvents, true>> = { flow: true, atom: true, progress: true }

export type EngineEvent =
  | { readonly kind: 'flow'; readonly event: FlowTransition }
  | { readonly kind: 'atom'; readonly event: AtomTransition }

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
  /** The failures of tasks, in any process; without the failures after which a retry succeeded. */
  readonly failures: readonly Failure[]
  readonly revertFailures: readonly Failure[]
  /** The original error of the first failure, if it was thrown in this engine; a foreground caller can throw it again. */
  readonly error?: unknown
}
