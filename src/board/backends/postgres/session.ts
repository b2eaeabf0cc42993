/**
 * The session consists of a row, which is updated by three heartbeats per TTL, and a connection of its own, which holds a lock
 * that means "this participant lives".
 *
 *     connecting → connected ⇄ re-attaching       and from each of them: closed
 *         ↑            └──→ lost ←──┘
 *         └───────────────────┘
 *
 * **A broken connection** does not end the session. Another connection attaches to the session's row, under the row's lock,
 * and takes a new advisory lock (`functions/sessions.sql`). Claims remain valid meanwhile, because all participants decide
 * by the row. The session and its claims are lost if the lease ends first, or if the server no longer knows the session:
 * another participant took it over, the address leads to another server, or the server was restarted. The next session first
 * ends the former one, so that other participants need not wait for the TTL.
 *
 * **The lease** ends one TTL after the last answered heartbeat or re-attachment was sent, less a margin. The server's clock
 * recorded it later than it was sent, so no takeover happens before. A timer checks the lease, and so does each query for it.
 */
import { createDeferred, type Deferred, onAbort, rejectOnAbort } from '../../../core/async/abort.ts'
import { retryUntilAborted } from '../../../core/async/retry.ts'
import { asError, NotConnected, UnsupportedCapability } from '../../../core/errors.ts'
import { type Instant, startTimer, systemClock, timeoutSignal } from '../../../core/time.ts'
import { type Notification, PostgresConnection, type PostgresLocation } from '../../../postgres/index.ts'
import { SET_READ_COMMITTED, toBoardError } from './errors.ts'
import { channelName, sessionChannel } from './schema.ts'

export interface PostgresSession {
  readonly id: number
  /** The name of the session in events. */
  readonly label: string
}

export interface SessionKeeperOptions {
  readonly location: PostgresLocation
  /** The board's URI without a password, for errors. */
  readonly uri: string
  readonly board: number
  readonly who: string
  /** The TTL of the session, in milliseconds. */
  readonly ttl: number
  /** Returns whether a connection has to listen to notifications. */
  readonly listens: () => boolean
  /** Returns the other channels to which a connection has to listen: those of records and of batches. */
  readonly hintChannels: () => readonly string[]
  /** Called with a new session, before the board is read in it. */
  readonly onOpened: (session: PostgresSession, connection: PostgresConnection) => Promise<void>
  /** Called when a new session has become the current one. */
  readonly onCurrent: (session: PostgresSession) => void
  /** Called at once when the session's connection is broken; another one is opened. */
  readonly onSuspended: (session: PostgresSession, reason: Error) => void
  /** Called when the session continues on this connection. Resolves when all missed changes were read. */
  readonly onReattached: (session: PostgresSession, connection: PostgresConnection) => Promise<void>
  /** Called when the session continues and all missed changes were read. */
  readonly onResumed: (session: PostgresSession) => void
  /** Called synchronously when the session is lost. */
  readonly onLost: (session: PostgresSession, reason: Error) => void
  readonly onNotification: (notification: Notification) => void
  /** Called after each answered heartbeat, with the sessions of others whose TTL has passed. */
  readonly onHeartbeat: (expired: readonly number[]) => void
  readonly onError: (error: Error) => void
}

export class SessionKeeper {
  readonly #options: SessionKeeperOptions
  readonly #closing = new AbortController()
  #current: PostgresSession | undefined
  /** The connection of the current session; undefined while the session is attached to another connection. */
  #connection: PostgresConnection | undefined
  /** The connection that listens to notifications of followed jobs. */
  #listeningToOwn: PostgresConnection | undefined
  /** The connection that listens to notifications of the board. */
  #listening: PostgresConnection | undefined
  /** The number of attempts to attach the current session to a connection. */
  #attachments = 0
  /** Fires when the session is lost while it is attached to another connection. */
  #attaching = new AbortController()
  /** Lost sessions that this process has not ended on the server yet. */
  readonly #lostSessions = new Set<number>()
  #lastHeartbeat: Instant = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }
  #heartbeatTimer: NodeJS.Timeout | undefined
  #leaseTimer: NodeJS.Timeout | undefined
  #next: Deferred<void> = createDeferred()
  #reconnecting: Promise<void> = Promise.resolve()

  constructor(options: SessionKeeperOptions) {
    this.#options = options
    this.#next.promise.catch(() => undefined)
  }

  get current(): PostgresSession | undefined {
    return this.#current
  }

  /** The connection of the session; undefined while the session is attached to another one. */
  get connection(): PostgresConnection | undefined {
    return this.#connection
  }

  /** Opens the first session. @throws AccessDenied, NotFound, NotConnected; UnsupportedCapability behind a transaction pooler */
  async start({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#connect(AbortSignal.any([signal, this.#closing.signal]))
  }

  /**
   * Begins to listen to notifications on the connection of the session; later connections listen from their beginning.
   *
   * @returns the connection
   * @throws NotConnected
   */
  async listen(): Promise<PostgresConnection> {
    const connection = this.#connection
    if (!connection) throw new NotConnected(`${this.#options.uri}: the session has no connection now`)
    try {
      await this.#listenOn(connection)
      return connection
    } catch (error) {
      throw toBoardError(`listening to ${this.#options.uri}`, error)
    }
  }

  /**
   * Begins to listen to notifications of jobs that the session follows, unless its connection does already.
   *
   * @returns the session
   * @throws NotConnected
   */
  async listenToOwn(): Promise<PostgresSession> {
    const { location, board, uri } = this.#options
    const [session, connection] = [this.#current, this.#connection]
    if (!session || !connection) throw new NotConnected(`${uri}: the session has no connection now`)
    if (this.#listeningToOwn !== connection) {
      const text = `LISTEN ${sessionChannel(location.schema, board, session.id)}`
      await connection.query(text, []).catch((error: unknown) => {
        throw toBoardError(`listening to ${uri}`, error)
      })
      this.#listeningToOwn = connection
    }
    return session
  }

  /** Stops listening. Without a connection there is nothing to stop. */
  async unlisten(): Promise<void> {
    const { location, board } = this.#options
    const connection = this.#connection
    if (!connection || this.#listening !== connection) return
    this.#listening = undefined
    await connection.query(`UNLISTEN ${channelName(location.schema, board)}`, []).catch(() => undefined)
  }

  /** Begins to listen to another channel. @throws NotConnected */
  async listenTo(channel: string): Promise<void> {
    const { uri } = this.#options
    const connection = this.#connection
    if (!connection) throw new NotConnected(`${uri}: the session has no connection now`)
    await connection.query(`LISTEN ${channel}`, []).catch((error: unknown) => {
      throw toBoardError(`listening to ${uri}`, error)
    })
  }

  async unlistenTo(channel: string): Promise<void> {
    await this.#connection?.query(`UNLISTEN ${channel}`, []).catch(() => undefined)
  }

  async #listenOn(connection: PostgresConnection): Promise<void> {
    const { location, board, listens, hintChannels } = this.#options
    for (const channel of hintChannels()) await connection.query(`LISTEN ${channel}`, [])
    if (!listens()) return
    this.#listening = connection
    await connection.query(`LISTEN ${channelName(location.schema, board)}`, [])
  }

  /** Returns whether the session is certainly alive at this instant. If it is not, the session is reported as lost first. */
  isAlive(label: string): boolean {
    const session = this.#current
    if (session?.label !== label) return false
    if (this.#remainingMs > 0) return true
    this.markLost(
      session,
      new NotConnected(`${this.#options.uri}: the lease expired, because no heartbeat was answered in time`),
    )
    return false
  }

  /** Resolves with the label of a session that is alive. @throws NotConnected when the board is closed */
  async whenAlive(): Promise<string> {
    while (true) {
      const session = this.#current
      if (session && this.isAlive(session.label)) return session.label
      await this.#next.promise
    }
  }

  /** Marks the session as lost, whatever its state on the server. */
  markLost(session: PostgresSession, reason: Error): void {
    if (this.#current !== session) return
    this.#current = undefined
    this.#lostSessions.add(session.id)
    clearTimeout(this.#heartbeatTimer)
    clearTimeout(this.#leaseTimer)
    this.#attaching.abort(reason)
    this.#options.onLost(session, reason)
    this.#connection?.disconnect(reason)
    this.#connection = undefined
    if (!this.#closing.signal.aborted) this.#reconnecting = this.#reconnect()
  }

  /** Ends the session. Its claims are released at once if the server can be reached. */
  async close(): Promise<void> {
    this.#closing.abort(new NotConnected(`${this.#options.uri} is closed`))
    this.#next.reject(this.#closing.signal.reason)
    clearTimeout(this.#heartbeatTimer)
    clearTimeout(this.#leaseTimer)
    await this.#reconnecting
    const session = this.#current
    this.#current = undefined
    if (!session) return
    const connection = this.#connection ?? (await this.#lastConnection())
    if (!connection) return
    const timeoutMs = setTimeout(
      () => connection.disconnect(new Error('the server does not answer')),
      END_SESSION_TIMEOUT_MS,
    )
    await this.#endSession(connection, session.id).catch(() => undefined)
    clearTimeout(timeoutMs)
    await connection.close()
  }

  /** Opens a connection to end a session that has none, so that its claims are released at once if the server can be reached. */
  async #lastConnection(): Promise<PostgresConnection | undefined> {
    const signal = AbortSignal.timeout(END_SESSION_TIMEOUT_MS)
    try {
      const connection = await PostgresConnection.open(this.#options.location, { signal })
      const forget = onAbort(signal, () => connection.disconnect(signal.reason))
      await connection.query(SET_READ_COMMITTED, []).finally(forget)
      return connection
    } catch {
      return undefined
    }
  }

  /** The time for which the session is certainly alive, in milliseconds; undefined without a session. */
  get leaseLeftMs(): number | undefined {
    return this.#current && this.#remainingMs
  }

  /** The remaining time of the lease, in milliseconds. */
  get #remainingMs(): number {
    const { monotonic, wall } = systemClock()
    const passed = Math.max(monotonic - this.#lastHeartbeat.monotonic, wall - this.#lastHeartbeat.wall)
    const { ttl } = this.#options
    return ttl - Math.min(ttl / 5, LEASE_MARGIN_MS) - passed
  }

  async #reconnect(): Promise<void> {
    const { signal } = this.#closing
    await retryUntilAborted(() => this.#connect(signal), {
      ...{ firstPauseMs: 50, maxPauseMs: 2_000, signal },
      onRetry: (error) => {
        if (!(error instanceof NotConnected)) this.#options.onError(asError(error))
      },
    })
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { location, uri, onOpened, onNotification } = this.#options
    try {
      const connection = await PostgresConnection.open(location, { signal })
      // Without this, a server that does not answer would delay the closing of the board until the statement times out.
      const forget = onAbort(signal, () => connection.disconnect(signal.reason))
      try {
        connection.onNotification(onNotification)
        const session = await this.#begin(connection, signal)
        await onOpened(session, connection)
        signal.throwIfAborted()
        connection.lost.throwIfAborted()
        this.#makeCurrent(session, connection)
      } catch (error) {
        connection.disconnect(error)
        throw error
      } finally {
        forget()
      }
    } catch (error) {
      signal.throwIfAborted()
      throw toBoardError(`a session on ${uri}`, error)
    }
  }

  async #begin(connection: PostgresConnection, signal: AbortSignal): Promise<PostgresSession> {
    const { location, board, who, ttl } = this.#options
    const { schema } = location
    const { rows: own } = await connection.query('SELECT pg_backend_pid() AS backend', [])
    const backend = Number(own[0]?.['backend'])
    if (backend !== connection.backend) await this.#assertOwn(backend, signal)
    await connection.query(SET_READ_COMMITTED, [])
    for (const former of this.#lostSessions) await this.#endSession(connection, former)
    const sentAt = systemClock()
    const { rows } = await connection.query(`SELECT ${schema}.open_session($1, $2, $3) AS id`, [board, who, ttl])
    this.#lastHeartbeat = sentAt
    await this.#listenOn(connection)
    const id = Number(rows[0]?.['id'])
    this.#attachments = 0
    return { id, label: `session ${id}` }
  }

  /**
   * Checks that the backend belongs to this connection alone. A pooler between client and server has its own backend numbers.
   * A pooler that assigns a backend per transaction gives the backend of an idle session to the next client.
   *
   * @throws UnsupportedCapability behind a transaction pooler
   */
  async #assertOwn(backend: number, signal: AbortSignal): Promise<void> {
    const { location, uri } = this.#options
    const probe = await PostgresConnection.open(location, { signal })
    const forget = onAbort(signal, () => probe.disconnect(signal.reason))
    try {
      const { rows } = await probe.query('SELECT pg_backend_pid() AS backend', [])
      if (Number(rows[0]?.['backend']) !== backend) return
    } finally {
      forget()
      await probe.close()
    }
    throw new UnsupportedCapability(
      `${uri} is behind a transaction pooler, which keeps no locks between transactions; name the server itself, or a session pooler`,
      { capability: 'sessions' },
    )
  }

  async #endSession(connection: PostgresConnection, id: number): Promise<void> {
    await connection.query(`SELECT ${this.#options.location.schema}.end_session($1)`, [id])
    this.#lostSessions.delete(id)
  }

  #makeCurrent(session: PostgresSession, connection: PostgresConnection): void {
    this.#current = session
    const next = this.#next
    this.#next = createDeferred()
    this.#next.promise.catch(() => undefined)
    next.resolve()
    this.#onAttached(session, connection)
    this.#options.onCurrent(session)
  }

  #onAttached(session: PostgresSession, connection: PostgresConnection): void {
    this.#connection = connection
    const { lost } = connection
    lost.addEventListener('abort', () => this.#onConnectionLost(session, connection, asError(lost.reason)), {
      once: true,
    })
    this.#watchLease(session)
    this.#schedule(session, connection)
    // The board may have been unsubscribed while the connection was opened.
    if (!this.#options.listens()) void this.unlisten()
  }

  #onConnectionLost(session: PostgresSession, connection: PostgresConnection, reason: Error): void {
    if (this.#connection !== connection || this.#closing.signal.aborted) return
    this.#connection = undefined
    clearTimeout(this.#heartbeatTimer)
    if (!this.isAlive(session.label)) return
    this.#options.onSuspended(session, reason)
    this.#attaching = new AbortController()
    this.#reconnecting = this.#reattach(session, AbortSignal.any([this.#attaching.signal, this.#closing.signal]))
  }

  /** Retries until the session is attached to a connection, or is lost. */
  async #reattach(session: PostgresSession, signal: AbortSignal): Promise<void> {
    const { uri, onError } = this.#options
    const what = `continuing a session on ${uri}`
    const attached = await retryUntilAborted(() => this.#attach(session, signal), {
      ...{ firstPauseMs: 20, maxPauseMs: 1_000, signal },
      onRetry: (error) => {
        const reason = toBoardError(what, error)
        if (!(reason instanceof NotConnected)) onError(reason)
      },
    })
    if (attached !== false) return
    const why = 'another participant took it over, or the server was restarted'
    this.markLost(session, new NotConnected(`${what}: ${why}`))
  }

  /** Attaches the session to a new connection. @returns false if the server no longer knows the session */
  async #attach(session: PostgresSession, signal: AbortSignal): Promise<boolean> {
    const { location, ttl, onNotification, onReattached, onResumed } = this.#options
    const { schema } = location
    // Each attempt is limited: another connection may succeed while the lease is still valid.
    const soon = AbortSignal.any([signal, timeoutSignal(Math.max(MIN_ATTACHING_MS, ttl / 6))])
    const connection = await PostgresConnection.open(location, { signal: soon })
    const forget = onAbort(soon, () => connection.disconnect(new NotConnected('the server did not answer in time')))
    try {
      connection.onNotification(onNotification)
      await connection.query(SET_READ_COMMITTED, [])
      this.#attachments += 1
      const sentAt = systemClock()
      const text = `SELECT ${schema}.reattach($1, $2) AS attached`
      const { rows } = await connection.query(text, [session.id, this.#attachments])
      signal.throwIfAborted()
      if (rows[0]?.['attached'] !== true) {
        connection.disconnect(new Error('the session is over'))
        return false
      }
      // Another process may have taken over the session at the end of the lease, without seeing this attachment.
      this.isAlive(session.label)
      signal.throwIfAborted()
      this.#lastHeartbeat = sentAt
      await this.#listenOn(connection)
      // If this connection breaks, missed changes are read over the next one, so this attempt does not wait for them.
      await rejectOnAbort(onReattached(session, connection), connection.lost)
      signal.throwIfAborted()
      connection.lost.throwIfAborted()
      this.#onAttached(session, connection)
      onResumed(session)
      return true
    } catch (error) {
      connection.disconnect(error)
      throw error
    } finally {
      forget()
    }
  }

  #schedule(session: PostgresSession, connection: PostgresConnection): void {
    this.#heartbeatTimer = startTimer(() => void this.#heartbeat(session, connection), this.#options.ttl / 3)
  }

  /** Sets a timer that reports the end of the lease in time, even without a query for it. */
  #watchLease(session: PostgresSession): void {
    clearTimeout(this.#leaseTimer)
    this.#leaseTimer = startTimer(
      () => this.isAlive(session.label) && this.#watchLease(session),
      Math.max(this.#remainingMs, 1),
    )
  }

  async #heartbeat(session: PostgresSession, connection: PostgresConnection): Promise<void> {
    const { location, uri, ttl, onHeartbeat } = this.#options
    const sentAt = systemClock()
    // A connection may break silently, for example in a firewall; the limit leaves time for another one before the lease ends.
    const timeoutMs = startTimer(() => connection.disconnect(new NotConnected('a heartbeat was not answered')), ttl / 3)
    try {
      const { rows } = await connection.query(`SELECT ${location.schema}.heartbeat($1) AS expired`, [session.id])
      // The timers of a session that is being closed would keep the process alive until its lease has ended.
      if (this.#connection !== connection || this.#closing.signal.aborted) return
      const found = rows[0]?.['expired']
      if (!Array.isArray(found)) {
        const how = 'another participant took it over, or the connection leads to another backend'
        this.markLost(session, new NotConnected(`${uri}: the session is over: ${how}`))
        return
      }
      // Another process may have taken over the session at the end of the lease, without seeing this heartbeat.
      if (!this.isAlive(session.label)) return
      this.#lastHeartbeat = sentAt
      this.#watchLease(session)
      this.#schedule(session, connection)
      onHeartbeat(found.map(Number))
    } catch (error) {
      connection.disconnect(toBoardError(`a heartbeat on ${uri}`, error))
    } finally {
      clearTimeout(timeoutMs)
    }
  }
}

/** The smallest time limit for one attempt to attach a session to another connection, in milliseconds. */
const MIN_ATTACHING_MS = 500

/** The time that an owner needs to stop after the end of its lease, in milliseconds; with a short TTL, a fifth of the TTL. */
const LEASE_MARGIN_MS = 3_000

/** The time limit for ending a session on the server, in milliseconds. */
const END_SESSION_TIMEOUT_MS = 5_000
