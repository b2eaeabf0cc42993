/**
 * The states of a client, and their transitions.
 *
 *     new         connect() was not called
 *     connecting  there is no session yet; requests wait
 *     connected   there is a session, and a connection to use it
 *     suspended   the session may be alive, and there is no connection: its ephemeral znodes may still exist; requests wait
 *                 for the same session
 *     lost        the session is over, or too close to its end to be relied on; waiting requests were rejected. A new session
 *                 follows (connecting), unless `newSession` forbids it, or no server would accept this client
 *     closed      close() was called; no request is accepted
 *
 * A suspended client returns to connected only with the very same session. The only way from lost to connected is
 * through connecting: a client that took it has a new session, and none of the ephemeral znodes of the old one.
 */
import { InvalidState } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'

/** State of a client. `suspended`: without a connection, its session may be alive. `lost`: the session is over. */
export type ClientState = 'new' | 'connecting' | 'connected' | 'suspended' | 'lost' | 'closed'

const NEXT_STATES: Readonly<Record<ClientState, readonly ClientState[]>> = {
  new: ['connecting', 'closed'],
  connecting: ['connected', 'lost', 'closed'],
  connected: ['suspended', 'lost', 'closed'],
  suspended: ['connected', 'lost', 'closed'],
  lost: ['connecting', 'closed'],
  closed: [],
}

export function canTransition(state: ClientState, next: ClientState): boolean {
  return NEXT_STATES[state].includes(next)
}

const LOG_LEVEL = {
  new: 'debug',
  connecting: 'debug',
  connected: 'info',
  suspended: 'warn',
  lost: 'warn',
  closed: 'debug',
} as const satisfies Record<ClientState, string>

export interface ClientStateChange {
  readonly state: ClientState
  readonly previous: ClientState
  /** Reason why the connection or the session was lost. */
  readonly reason?: Error
}

/** State of one client: makes only the transitions in the table, and reports them. */
export class ClientStateMachine {
  readonly #log: Logger
  readonly #onChange: (change: ClientStateChange) => void
  #state: ClientState = 'new'

  /** @param changed called synchronously, when the new state holds */
  constructor(log: Logger, changed: (change: ClientStateChange) => void) {
    this.#log = log
    this.#onChange = changed
  }

  get current(): ClientState {
    return this.#state
  }

  transitionTo(state: ClientState, reason?: Error): void {
    const previous = this.#state
    if (!canTransition(previous, state)) throw new InvalidState(`a client cannot go from ${previous} to ${state}`)
    this.#state = state
    const facts = defined({ state, previous, reason: reason && describeError(reason) })
    this.#log[LOG_LEVEL[state]](facts, 'ZooKeeper client')
    this.#onChange({ state, previous, ...defined({ reason }) })
  }
}
