/** Events that a client emits. */
import type { ClientState } from './session/states.ts'
import type { HandlerFault } from './watches/handler-faults.ts'

/** A change of the client's state. */
export interface StateEvent {
  readonly state: ClientState
  readonly previous: ClientState
  /** Session after the change. */
  readonly session?: bigint
  /** Reason why the connection or the session was lost. */
  readonly reason?: Error
}

/** A new session: the first one, or the successor of a lost one. */
export interface SessionEvent {
  readonly session: bigint
  /** Previous session, if there was one. Its ephemeral znodes are deleted, or will be soon. */
  readonly previous?: bigint
}

/** Events that `on` of a client accepts. */
export interface ClientEvents {
  state: StateEvent
  session: SessionEvent
  /** An error thrown by a handler or a listener. Without a listener for it and without a log the process warns once. */
  error: HandlerFault
}

/** Names of all events, for callers that do not use the compiler. */
export const CLIENT_EVENTS: Readonly<Record<keyof ClientEvents, true>> = { state: true, session: true, error: true }
