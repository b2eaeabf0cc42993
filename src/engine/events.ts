/** What an engine tells its listeners: every transition, after it is on record. */
import type { Failure } from '../core/failure.ts'
import type { AtomState, FlowState } from '../core/states.ts'

interface StateTransition<State> {
  readonly flow: string
  readonly from: State
  readonly to: State
  readonly at: Date
  /** How long it was in the state it leaves, in milliseconds, in whichever process. */
  readonly duration: number
}

export type FlowTransition = StateTransition<FlowState>

export interface AtomTransition extends StateTransition<AtomState> {
  readonly atom: string
  readonly kind: 'task' | 'retry'
  /** Of an atom that has succeeded. */
  readonly result?: unknown
  readonly failure?: Failure
}

export interface ProgressEvent {
  readonly flow: string
  readonly atom: string
  /** From 0 to 1. */
  readonly progress: number
}

/** What `engine.on` can listen to. Flows and atoms are told of after the transition is on record. */
export interface EngineEvents {
  flow: FlowTransition
  atom: AtomTransition
  /** Told at once, not only when it is on record. */
  progress: ProgressEvent
}

export const ENGINE_EVENTS: Readonly<Record<keyof EngineEvents, true>> = { flow: true, atom: true, progress: true }

export type EngineEvent =
  | { readonly kind: 'flow'; readonly event: FlowTransition }
  | { readonly kind: 'atom'; readonly event: AtomTransition }
