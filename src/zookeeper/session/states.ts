/**
 * The states of a client, and what leads from one to the next.
 *
 *     new         connect() was not called
 *     connecting  there is no session yet; requests wait
 *     connected   a session, and a connection to use it
 *     suspended   a session that may be alive, and no connection: its ephemeral znodes are still there, as far as anybody
 *                 knows; requests wait for the same session
 *     lost        the session is over, or too close to its end to be relied on; what waited was rejected. A new session
 *                 follows by itself (connecting), unless that was not wanted, or no server would accept this client
 *     closed      close() was called; nothing is accepted any more
 *
 * From suspended a client goes back to connected only with the very same session. There is no way from lost to connected
 * but through connecting: whoever sees that has a new session, and none of the ephemeral znodes of the old one.
 */
import { InvalidState } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'

/** What a client is. `suspended`: without a connection, its session may be alive. `lost`: the session is over. */
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
  /** Why the connection or the session is gone. */
  readonly reason?: Error
}

/** The state of one client: goes only where the table allows, and tells. */
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
    const context = reason ? { reason: describeError(reason) } : {}
    this.#log[LOG_LEVEL[state]]({ state, previous, ...context }, 'ZooKeeper client')
    this.#onChange({ state, previous, ...(reason ? { reason } : {}) })
  }
}
