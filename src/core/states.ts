/**
 * The state machines, as tables. They are TaskFlow's (`taskflow/states.py`) except for a job's TRASHED, which TaskFlow
 * does not distinguish from COMPLETE.
 *
 * A **job** is UNCLAIMED on the board until an owner's claim makes it CLAIMED; the owner abandons it (UNCLAIMED again),
 * consumes it (COMPLETE) or trashes it. An unclaimed job that may not run any more is trashed without a claim. A trashed
 * job can be restored.
 *
 * A **flow** is PENDING until its first run, RUNNING while an engine works on it, and ends as SUCCESS, REVERTED (an atom
 * failed and everything was undone) or FAILURE (undoing failed too). SUSPENDED is the state between two engines. RESUMING
 * is the state in which an engine takes over the flow of a dead engine.
 *
 * An **atom** goes PENDING → RUNNING → SUCCESS or FAILURE; REVERTING undoes either, and ends in REVERTED or REVERT_FAILURE.
 * A reverted atom goes back to PENDING when the flow starts from clean atoms, or when a retry gives it another attempt;
 * the retry itself is RETRYING then, between SUCCESS and RUNNING. An atom that a decider leaves out is in IGNORE.
 *
 * An **engine** reads the recorded states (RESUMING), starts ready atoms (SCHEDULING), waits for them (WAITING), processes
 * their outcomes (ANALYZING), and schedules again, until no atom is ready and none runs: then it ends as the flow does.
 */
import { InvalidState } from './errors.ts'

/** The state of a job on the board. COMPLETE: consumed and removed. TRASHED: given up, and kept in the trash. */
export type JobState = 'UNCLAIMED' | 'CLAIMED' | 'COMPLETE' | 'TRASHED'
/** The state of a flow in its logbook. */
export type FlowState =
  | 'PENDING'
  | 'RUNNING'
  | 'SUCCESS'
  | 'FAILURE'
  | 'REVERTED'
  | 'SUSPENDING'
  | 'SUSPENDED'
  | 'RESUMING'
/** The state of a task or a retry in its logbook. */
export type AtomState =
  | 'PENDING'
  | 'RUNNING'
  | 'SUCCESS'
  | 'FAILURE'
  | 'REVERTING'
  | 'REVERTED'
  | 'REVERT_FAILURE'
  | 'IGNORE'
  | 'RETRYING'

/** The present step of an engine, or its end. */
export type EngineState = 'RESUMING' | 'SCHEDULING' | 'WAITING' | 'ANALYZING' | EndState

/** The end of one engine's work on a flow. */
export type EndState = 'SUCCESS' | 'REVERTED' | 'FAILURE' | 'SUSPENDED'

/** The action that an engine plans for an atom next. */
export type Intention = 'EXECUTE' | 'REVERT' | 'RETRY' | 'IGNORE'

type TransitionTable<S extends string> = Readonly<Record<S, readonly S[]>>

export const JOB_TRANSITIONS: TransitionTable<JobState> = {
  UNCLAIMED: ['CLAIMED', 'TRASHED'],
  CLAIMED: ['UNCLAIMED', 'COMPLETE', 'TRASHED'],
  COMPLETE: [],
  TRASHED: ['UNCLAIMED'],
}

export const FLOW_TRANSITIONS: TransitionTable<FlowState> = {
  PENDING: ['RUNNING'],
  RUNNING: ['SUCCESS', 'FAILURE', 'REVERTED', 'SUSPENDING', 'RESUMING'],
  SUCCESS: ['RUNNING', 'PENDING'],
  FAILURE: ['RUNNING', 'PENDING'],
  REVERTED: ['PENDING'],
  SUSPENDING: ['SUSPENDED', 'SUCCESS', 'FAILURE', 'REVERTED', 'RESUMING'],
  SUSPENDED: ['RUNNING', 'PENDING'],
  RESUMING: ['SUSPENDED'],
}

export const ATOM_TRANSITIONS: TransitionTable<AtomState> = {
  PENDING: ['RUNNING', 'IGNORE'],
  RUNNING: ['SUCCESS', 'FAILURE'],
  SUCCESS: ['REVERTING', 'RETRYING'],
  FAILURE: ['REVERTING'],
  REVERTING: ['REVERTED', 'REVERT_FAILURE'],
  REVERTED: ['PENDING'],
  REVERT_FAILURE: [],
  IGNORE: ['PENDING'],
  RETRYING: ['RUNNING'],
}

export const ENGINE_TRANSITIONS: TransitionTable<EngineState> = {
  RESUMING: ['SCHEDULING'],
  SCHEDULING: ['WAITING', 'SUCCESS', 'REVERTED', 'FAILURE', 'SUSPENDED'],
  WAITING: ['ANALYZING'],
  ANALYZING: ['SCHEDULING'],
  SUCCESS: [],
  REVERTED: [],
  FAILURE: [],
  SUSPENDED: [],
}

/** The states of a flow that no run continues. */
export const FINISHED_STATES: readonly FlowState[] = ['SUCCESS', 'REVERTED', 'FAILURE']

/** Returns whether a flow with this state in its logbook has ended, so that no run continues it. */
export function isFinished(state: string): boolean {
  return (FINISHED_STATES as readonly string[]).includes(state)
}

/** @throws InvalidState when the table has no such step */
export function checkTransition<S extends string>(
  table: TransitionTable<S>,
  step: { what: () => string; from: S; to: S },
): void {
  if (table[step.from].includes(step.to)) return
  throw new InvalidState(`${step.what()} cannot go from ${step.from} to ${step.to}`)
}
