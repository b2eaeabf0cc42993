/**
 * A session that this client gave up while the server may still believe in it. Until it is closed its ephemeral znodes
 * stay, and whoever waits for them to go waits for the server's patience to end.
 */
import { monotonic } from '../core/time.ts'
import type { Connection } from './connection.ts'
import { SessionExpired } from './errors.ts'
import { Pending } from './pending.ts'
import { closeSession } from './requests.ts'

export interface Credentials {
  readonly id: bigint
  readonly password: Uint8Array
  readonly timeout: number
}

export class AbandonedSession {
  readonly #credentials: Credentials
  readonly #forgottenAt: number

  constructor(credentials: Credentials) {
    this.#credentials = credentials
    this.#forgottenAt = monotonic() + 2 * credentials.timeout
  }

  /** The server has certainly forgotten it by now, even if its leader changed and gave everybody a fresh timeout. */
  get forgotten(): boolean {
    return monotonic() > this.#forgottenAt
  }

  /**
   * Attaches to it once more and closes it. Two round trips.
   *
   * @throws NotConnected, ConnectionLoss when it is not known to be closed
   */
  async close(connection: Connection): Promise<void> {
    const { id: session, password, timeout } = this.#credentials
    // Nothing is read on it, so any server will do, however far behind: it need not have seen what we have.
    const response = await connection.attach({ lastZxid: 0n, timeout, session, password })
    if (response.timeout > 0) {
      const farewell = new Pending(closeSession(), monotonic())
      connection.send([farewell])
      await farewell.promise
    }
    connection.destroy(new SessionExpired('the session is closed'))
  }
}
