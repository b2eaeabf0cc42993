/**
 * The state machines, as tables. They are TaskFlow's (`taskflow/states.py`) except for a job's TRASHED, which TaskFlow
 * cannot tell from COMPLETE.
 *
 * A **job** is UNCLAIMED on the board until an owner's claim makes it CLAIMED; the owner abandons it (UNCLAIMED again),
 * consumes it (COMPLETE) or trashes it. An unclaimed job that nobody may run any more is trashed where it lies, and a
 * trashed one can be restored.
 *
 * A **flow** is PENDING until its first run, RUNNING while an engine works on it, and ends as SUCCESS, REVERTED (an atom
 * failed and everything was undone) or FAILURE (undoing failed too). SUSPENDED is a rest between two engines. RESUMING is
 * what an engine says that finds the flow of a dead one.
 *
 * An **atom** goes PENDING → RUNNING → SUCCESS or FAILURE; REVERTING undoes either, ends in REVERTED or REVERT_FAILURE.
 * A reverted atom goes back to PENDING when the flow is started from clean atoms, or when a retry gives it another attempt;
 * a retry itself is RETRYING then, on its way from SUCCESS to RUNNING. IGNORE is what a decider leaves out.
 *
 * An **engine** looks at what it finds (RESUMING), starts what is ready (SCHEDULING), waits for it (WAITING), draws its
 * conclusions from what has happened (ANALYZING), and so on until nothing is ready and nothing runs: then it ends as the
 * flow does.
 */
import { InvalidState } from './errors.ts'

/** What a job is to the board. COMPLETE: consumed, and gone. TRASHED: given up for good, and kept for people. */
export type JobState = 'UNCLAIMED' | 'CLAIMED' | 'COMPLETE' | 'TRASHED'
/** What a flow is in its logbook. */
export type FlowState =
  | 'PENDING'
  | 'RUNNING'
  | 'SUCCESS'
  | 'FAILURE'
  | 'REVERTED'
  | 'SUSPENDING'
  | 'SUSPENDED'
  | 'RESUMING'
/** What a task or a retry is in its logbook. */
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

/** What an engine does at the moment, or how it ended. */
export type EngineState = 'RESUMING' | 'SCHEDULING' | 'WAITING' | 'ANALYZING' | EndState

/** How the work of one engine on a flow comes to its end. */
export type EndState = 'SUCCESS' | 'REVERTED' | 'FAILURE' | 'SUSPENDED'

/** What an engine means to do with an atom next. */
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

/** @throws InvalidState when the table has no such step */
export function checkTransition<S extends string>(
  table: TransitionTable<S>,
  step: { what: () => string; from: S; to: S },
): void {
  if (table[step.from].includes(step.to)) return
  throw new InvalidState(`${step.what()} cannot go from ${step.from} to ${step.to}`)
}
