/** The events that an engine emits: every transition, after it is recorded, and progress. */
import type { Failure } from '../core/failure.ts'
import type { AtomState, FlowState } from '../core/states.ts'

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
  /** From 0 to 1. */
  readonly progress: number
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
