/**
 * A session that this client gave up while the server may still keep it. Until it is closed its ephemeral znodes exist,
 * and processes that wait for their deletion wait until the session expires.
 */
import { abortAfter } from '../../core/async/abort.ts'
import { NotConnected } from '../../core/errors.ts'
import { monotonic } from '../../core/time.ts'
import type { Connection } from '../connection/connection.ts'
import type { Handshake } from '../connection/handshake.ts'
import type { Hosts, Server } from '../connection/hosts.ts'
import { PendingRequest } from '../connection/pending.ts'
import { SessionExpired } from '../protocol/errors.ts'
import { closeSession } from '../protocol/requests.ts'

export interface SessionCredentials {
  readonly id: bigint
  readonly password: Uint8Array
  readonly timeout: number
}

export interface OrphanSessionOptions {
  readonly hosts: Hosts
  readonly handshake: Handshake
  /** Opens a connection for this purpose only. */
  readonly connect: (server: Server) => Connection
}

export class OrphanSession {
  readonly #options: OrphanSessionOptions
  #credentials: SessionCredentials | undefined
  #expiresAt = 0

  constructor(options: OrphanSessionOptions) {
    this.#options = options
  }

  /** Whether there is a session to be closed. */
  get isPending(): boolean {
    return this.#credentials !== undefined
  }

  add(credentials: SessionCredentials): void {
    this.#credentials = credentials
    // By then the server has certainly expired it, even if its leader changed and gave every session a new timeout.
    this.#expiresAt = monotonic() + 2 * credentials.timeout
  }

  /** Leaves the session to its expiry. */
  clear(): void {
    this.#credentials = undefined
  }

  /**
   * Attaches to the session once more and closes it. Takes two round trips, and the round trips of SASL.
   *
   * @throws NotConnected, ConnectionLoss when it is not known to be closed; it is still pending then
   * @throws AuthFailed
   */
  async close(server: Server): Promise<void> {
    if (this.#credentials && monotonic() < this.#expiresAt) {
      await this.#closeOver(this.#options.connect(server), this.#credentials)
    }
    this.clear()
  }

  /** Tries each server once, until the deadline on the monotonic clock. Never throws. */
  async closeAnywhere(deadline: number): Promise<void> {
    const { hosts } = this.#options
    const limit = new AbortController()
    using _timer = abortAfter(
      limit,
      Math.max(0, deadline - monotonic()),
      () => new NotConnected('closing took too long'),
    )
    for (let server = 0; server < hosts.size && this.isPending && !limit.signal.aborted; server++) {
      await this.#closeAtNext(limit.signal).catch(() => undefined)
    }
  }

  async #closeAtNext(signal: AbortSignal): Promise<void> {
    const server = await this.#options.hosts.next({ signal })
    // No caller would close a connection that is opened after the deadline.
    signal.throwIfAborted()
    await this.close(server)
  }

  async #closeOver(connection: Connection, credentials: SessionCredentials): Promise<void> {
    const { id: session, password, timeout } = credentials
    // No data are read on it, so any server is acceptable, even a server that lags behind.
    const response = await connection.attach({ lastZxid: 0n, timeout, session, password })
    // Another session may be in use elsewhere.
    if (response.timeout > 0 && response.session === session) {
      await this.#options.handshake.authenticate(connection)
      // No other component detects when this connection dies.
      connection.keepAlive(response.timeout)
      const closing = new PendingRequest(closeSession(), monotonic())
      connection.send([closing])
      await closing.promise
    }
    connection.destroy(new SessionExpired('the session is closed'))
  }
}
