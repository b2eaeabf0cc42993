/**
 * The content of a logbook. A **logbook** (book) groups flow details; a **flow detail** is the record of one flow, for
 * example the flow of a job; an **atom detail** is the record of one task or retry of it. All are plain data and are
 * returned as copies: a change to a copy does not change the stored record.
 */
import type { Failure } from '../core/failure.ts'
import type { AtomState, FlowState, Intention } from '../core/states.ts'
import type { KeptAttempt } from '../flow/index.ts'

export type Meta = Readonly<Record<string, unknown>>

/** A book with the records of all its flows. */
export interface LogBook {
  readonly uuid: string
  readonly name: string
  readonly meta: Meta
  readonly createdAt: Date
  /** The time at which the book's meta last changed; each flow has its own times. */
  readonly updatedAt: Date
  readonly flows: readonly FlowDetail[]
}

/** A book as listings return it. */
export type BookDetail = Omit<LogBook, 'flows'>

/** A state, the time at which it was recorded, and the run that recorded it; run 0 is before the first run. */
export interface StateChange<S extends FlowState | AtomState> {
  readonly state: S
  readonly at: Date
  readonly run: number
}

/** A checkpoint of a task, and the time at which it was saved. */
export interface SavedCheckpoint {
  readonly value: unknown
  readonly at: Date
}

/** The record of a flow: its state, its writer, and a record for each of its atoms. */
export interface FlowDetail {
  readonly uuid: string
  readonly name: string
  /** The flow's version when it first ran. */
  readonly version: string
  readonly state: FlowState
  readonly meta: Meta
  /** The newest run that acquired the flow, and its claim; no other run may write. Zero before the first acquire. */
  readonly run: number
  readonly claim: string
  /** The atoms in the order in which they were first recorded. */
  readonly atoms: readonly AtomDetail[]
  /** The states of the flow, the newest last; at most the newest 50. */
  readonly states: readonly StateChange<FlowState>[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

/**
 * The record of an atom. An atom has no UUID: its flow and its name identify it, and the name stays the same when a
 * flow is changed.
 */
export interface AtomDetail {
  /** The name, unique within its flow. */
  readonly name: string
  readonly kind: 'task' | 'retry'
  readonly version: string
  readonly state: AtomState
  readonly intention: Intention
  /** The result of `execute`; present in SUCCESS and during a revert from it. */
  readonly result?: unknown
  /** The failure of `execute`; kept through the revert, so that it can be shown afterwards. */
  readonly failure?: Failure
  readonly revertResult?: unknown
  readonly revertFailure?: Failure
  /** The text of the last progress report of `execute`; absent where that had none. */
  readonly progressMessage?: string
  /** The checkpoint that the task saved last; absent after its success, and after its revert. */
  readonly checkpoint?: SavedCheckpoint
  /**
   * The attempts of a retry, the oldest first; the value of the last one is its `result`. Of more than 19, the ones in the middle are one
   * element with `omitted`: `new History(history)` has them all.
   */
  readonly history?: readonly KeptAttempt[]
  /**
   * The meta of the atom: `progress`, from 0 to 1, where the atom reports it; `notBefore`, the end of a retry's wait;
   * `begun: false` of an atom that failed before any of its code ran; `leftOutBy`, the deciders that have left it out,
   * each by the name of the first atom it decided about.
   */
  readonly meta: Meta
  readonly updatedAt: Date
  /** The time at which the atom was first recorded. The logbook sets it; it is ignored in writes. */
  readonly createdAt?: Date
  /** The states of the atom, as for a flow. The logbook sets them; they are ignored in writes. */
  readonly states?: readonly StateChange<AtomState>[]
}
