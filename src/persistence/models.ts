/**
 * What a logbook holds. A **logbook** (book) groups flow details; a **flow detail** is the record of one flow, of one job
 * say; an **atom detail** is the record of one task or retry of it. All are plain data and are handed out as copies:
 * changing one changes nothing that is stored.
 */
import type { Failure } from '../core/failure.ts'
import type { AtomState, FlowState, Intention } from '../core/states.ts'
import type { RetryAttempt } from '../flow/index.ts'

export type Meta = Readonly<Record<string, unknown>>

/** A book with the records of all its flows. */
export interface LogBook {
  readonly uuid: string
  readonly name: string
  readonly meta: Meta
  readonly createdAt: Date
  /** When its meta last changed; its flows tell their own times. */
  readonly updatedAt: Date
  readonly flows: readonly FlowDetail[]
}

/** A book as listings give it. */
export type BookDetail = Omit<LogBook, 'flows'>

/** A state, when it was recorded, and by which run; run 0 is before the first. */
export interface StateChange<S extends FlowState | AtomState> {
  readonly state: S
  readonly at: Date
  readonly run: number
}

/** The record of a flow: how it stands, who may write, and a record for each of its atoms. */
export interface FlowDetail {
  readonly uuid: string
  readonly name: string
  /** The flow's version when it first ran. */
  readonly version: string
  readonly state: FlowState
  readonly meta: Meta
  /** The newest run that acquired the flow, and its claim; nobody else may write. Zero before the first. */
  readonly run: number
  readonly claim: string
  /** In the order in which they were first recorded. */
  readonly atoms: readonly AtomDetail[]
  /** The states it went through, the newest last; of a great many the newest 50. */
  readonly states: readonly StateChange<FlowState>[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** An atom has no uuid: it is told by its flow and its name, which is what a flow that was changed still has. */
export interface AtomDetail {
  /** Unique within its flow. */
  readonly name: string
  readonly kind: 'task' | 'retry'
  readonly version: string
  readonly state: AtomState
  readonly intention: Intention
  /** What `execute` returned; present in SUCCESS and while that is being reverted. */
  readonly result?: unknown
  /** Why `execute` failed; kept through the revert, so that it can be told afterwards. */
  readonly failure?: Failure
  readonly revertResult?: unknown
  readonly revertFailure?: Failure
  /** Of a retry, the attempts so far, the oldest first; the last one's value is its `result`. */
  readonly history?: readonly RetryAttempt[]
  /**
   * `progress`, from 0 to 1, where the atom tells it; `notBefore`, when a retry goes on after a wait; `begun: false` of an
   * atom that failed before any of its code ran; `leftOutBy`, the deciders that have left it out, each by the name of the
   * first atom it decided about.
   */
  readonly meta: Meta
  readonly updatedAt: Date
  /** When it was first recorded. The logbook's to know: not looked at in what is written. */
  readonly createdAt?: Date
  /** As a flow's. The logbook's to know: not looked at in what is written. */
  readonly states?: readonly StateChange<AtomState>[]
}
