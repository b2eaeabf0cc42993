/** What a client tells those who listen, whichever driver it is. */
import type { ClientState } from './session/states.ts'
import type { HandlerFault } from './watches/handler-faults.ts'

/** The state of a client has changed. */
export interface StateEvent {
  readonly state: ClientState
  readonly previous: ClientState
  /** The session there is after the change. */
  readonly session?: bigint
  /** Why the connection or the session is gone. */
  readonly reason?: Error
}

/** There is another session than before, or a first one. */
export interface SessionEvent {
  readonly session: bigint
  /** The one before, if there was one. Its ephemeral znodes are gone, or about to go. */
  readonly previous?: bigint
}

/** What `on` of a client can listen to. */
export interface DriverEvents {
  state: StateEvent
  session: SessionEvent
  /** A handler or a listener of yours threw. With neither a listener here nor a log the process warns, once. */
  error: HandlerFault
}

/** Every event there is, for callers without a compiler. */
export const CLIENT_EVENTS: Readonly<Record<keyof DriverEvents, true>> = { state: true, session: true, error: true }
