/**
 * The session: a row whose heart beats three times per TTL, and a connection of its own, which holds a lock that means "this
 * participant lives".
 *
 *     connecting → connected ⇄ re-attaching       and from each of them: closed
 *         ↑            └──→ lost ←──┘
 *         └───────────────────┘
 *
 * **A connection that breaks** does not end the session. Another one proves itself by the session's row, under its lock, and
 * takes a lock anew (`functions/reattaching.ts`); claims stand meanwhile, since the row is what everybody judges them by. The
 * session is lost, with every claim, when its lease ends before that, or the server knows it no more: because another has
 * taken it over, or because this is another server than it was, or one that was started again. What comes next is another
 * session, which first ends its predecessor, so that nobody waits for the TTL to pass.
 *
 * **The lease** ends one TTL after the sending of the last heartbeat or re-attachment that was answered, less a margin: the
 * server's clock read it later than it was sent, so nobody takes over before. It is looked at by a timer, and by whoever asks.
 */
import { createDeferred, type Deferred, onAbort, rejectOnAbort } from '../../../core/async/abort.ts'
import { type Instant, systemClock } from '../../../core/clock.ts'
import { asError, NotConnected, UnsupportedCapability } from '../../../core/errors.ts'
import { backoffDelay, sleep } from '../../../core/time.ts'
import { type Notification, PostgresConnection, type PostgresLocation } from '../../../postgres/index.ts'
import { SET_READ_COMMITTED, toBoardError } from './errors.ts'
import { channelName } from './names.ts'

export interface PostgresSession {
  readonly id: number
  /** As everybody else is told it. */
  readonly label: string
}

export interface SessionKeeperOptions {
  readonly location: PostgresLocation
  /** For errors: the board's URI, without a password. */
  readonly uri: string
  readonly board: number
  readonly who: string
  /** In milliseconds. */
  readonly ttl: number
  /** False: nobody listens to notifications, and scans alone tell what changes. */
  readonly listen: boolean
  /** There is a session, and nothing is known of the board in it yet. */
  readonly onOpened: (session: PostgresSession, connection: PostgresConnection) => Promise<void>
  /** It is the one there is from now on. */
  readonly onCurrent: (session: PostgresSession) => void
  /** Its connection is broken, and another one is tried. Called at once. */
  readonly onSuspended: (session: PostgresSession, reason: Error) => void
  /** It goes on over this connection. Resolves when nothing was missed. */
  readonly onReattached: (session: PostgresSession, connection: PostgresConnection) => Promise<void>
  /** It goes on, and everything that happened meanwhile is known. */
  readonly onResumed: (session: PostgresSession) => void
  /** Called at once, before anything else can happen. */
  readonly onLost: (session: PostgresSession, reason: Error) => void
  readonly onNotification: (notification: Notification) => void
  /** A heartbeat was answered, with the sessions of others whose TTL has passed. */
  readonly onHeartbeat: (expired: readonly number[]) => void
  readonly onError: (error: Error) => void
}

export class SessionKeeper {
  readonly #options: SessionKeeperOptions
  readonly #closing = new AbortController()
  #current: PostgresSession | undefined
  /** Of the current session; none while it is being attached to another. */
  #connection: PostgresConnection | undefined
  /** How often the current session was attached to a connection, or was to be. */
  #attachments = 0
  /** Fires when the session is over that is being attached to another connection. */
  #attaching = new AbortController()
  /** Lost, and not yet ended by us. */
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

  /** @throws AccessDenied, NotFound, NotConnected, UnsupportedCapability behind a pooler of transactions */
  async start({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#connect(AbortSignal.any([signal, this.#closing.signal]))
  }

  /** Whether the session is certain to be alive at this instant. Where it is not, it is told to be lost first. */
  isAlive(label: string): boolean {
    const session = this.#current
    if (session?.label !== label) return false
    if (this.#remainingMs > 0) return true
    this.markLost(session, new NotConnected(`${this.#options.uri}: no heartbeat was answered for too long`))
    return false
  }

  /** Resolves with a session that is alive. @throws NotConnected when there will be none */
  async whenAlive(): Promise<string> {
    while (true) {
      const session = this.#current
      if (session && this.isAlive(session.label)) return session.label
      await this.#next.promise
    }
  }

  /** Over, whatever the server thinks of it. */
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

  /** Ends the session, so that what it held is free at once, if the server is there. */
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
    const timeoutMs = setTimeout(() => connection.disconnect(new Error('it does not answer')), END_SESSION_TIMEOUT_MS)
    await this.#endSession(connection, session.id).catch(() => undefined)
    clearTimeout(timeoutMs)
    await connection.close()
  }

  /** For a session that has lost its connection: what it held is free at once if the server is there. */
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

  /** How long the lease lasts yet, in milliseconds. */
  get #remainingMs(): number {
    const { monotonic, wall } = systemClock()
    const passed = Math.max(monotonic - this.#lastHeartbeat.monotonic, wall - this.#lastHeartbeat.wall)
    const { ttl } = this.#options
    return ttl - Math.min(ttl / 5, LEASE_MARGIN_MS) - passed
  }

  async #reconnect(): Promise<void> {
    const { signal } = this.#closing
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        await this.#connect(signal)
        return
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof NotConnected)) this.#options.onError(asError(error))
        await sleep(backoffDelay(attempt, { first: 50, max: 2_000 }), { signal }).catch(() => undefined)
      }
    }
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { location, uri, onOpened, onNotification } = this.#options
    try {
      const connection = await PostgresConnection.open(location, { signal })
      // A server that does not answer would otherwise hold up whoever closes the board until the statement times out.
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
    const { location, board, who, ttl, listen } = this.#options
    const { schema } = location
    const { rows: own } = await connection.query('SELECT pg_backend_pid() AS backend', [])
    const backend = Number(own[0]?.['backend'])
    if (backend !== connection.backend) await this.#assertOwn(backend, signal)
    await connection.query(SET_READ_COMMITTED, [])
    for (const former of this.#lostSessions) await this.#endSession(connection, former)
    const sentAt = systemClock()
    const { rows } = await connection.query(`SELECT ${schema}.open_session($1, $2, $3) AS id`, [board, who, ttl])
    this.#lastHeartbeat = sentAt
    if (listen) await connection.query(`LISTEN ${channelName(schema, board)}`, [])
    const id = Number(rows[0]?.['id'])
    this.#attachments = 0
    return { id, label: `session ${id}` }
  }

  /**
   * Something between us and the server has a name for the backend of its own: a pooler. Of one that lends a backend for
   * each transaction, an idle session's backend is lent to the next who asks.
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
      `${uri} is behind a pooler of transactions, where no lock lasts; name the server itself, or a pool of sessions`,
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

  /** Until it is attached, or over. */
  async #reattach(session: PostgresSession, signal: AbortSignal): Promise<void> {
    const { uri, onError } = this.#options
    const what = `going on with a session on ${uri}`
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        if (!(await this.#attach(session, signal)))
          this.markLost(session, new NotConnected(`${what}: another took it over, or the server was started again`))
        return
      } catch (error) {
        if (signal.aborted) return
        const reason = toBoardError(what, error)
        if (!(reason instanceof NotConnected)) onError(reason)
        await sleep(backoffDelay(attempt, { first: 20, max: 1_000 }), { signal }).catch(() => undefined)
      }
    }
  }

  /** @returns false when the server knows the session no more */
  async #attach(session: PostgresSession, signal: AbortSignal): Promise<boolean> {
    const { location, board, listen, ttl, onNotification, onReattached, onResumed } = this.#options
    const { schema } = location
    // Another connection may get through where this one does not, and the lease goes on.
    const soon = AbortSignal.any([signal, AbortSignal.timeout(Math.max(MIN_ATTACHING_MS, ttl / 6))])
    const connection = await PostgresConnection.open(location, { signal: soon })
    const cut = () => connection.disconnect(new NotConnected('the server did not answer in time'))
    soon.addEventListener('abort', cut, { once: true })
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
      this.#lastHeartbeat = sentAt
      if (listen) await connection.query(`LISTEN ${channelName(schema, board)}`, [])
      // Where this connection breaks, what was missed is read over the next one, and not waited for here.
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
      soon.removeEventListener('abort', cut)
    }
  }

  #schedule(session: PostgresSession, connection: PostgresConnection): void {
    this.#heartbeatTimer = setTimeout(() => void this.#heartbeat(session, connection), this.#options.ttl / 3)
  }

  /** Tells of the lease's end on time, should nobody ask. */
  #watchLease(session: PostgresSession): void {
    clearTimeout(this.#leaseTimer)
    this.#leaseTimer = setTimeout(
      () => this.isAlive(session.label) && this.#watchLease(session),
      Math.max(this.#remainingMs, 1),
    )
  }

  async #heartbeat(session: PostgresSession, connection: PostgresConnection): Promise<void> {
    const { location, uri, ttl, onHeartbeat } = this.#options
    const sentAt = systemClock()
    // Connections break without a word, in a firewall say: another can be had before the lease is over.
    const timeoutMs = setTimeout(() => connection.disconnect(new NotConnected('a heartbeat was not answered')), ttl / 3)
    try {
      const { rows } = await connection.query(`SELECT ${location.schema}.heartbeat($1) AS expired`, [session.id])
      // The timers of a session that is being closed would keep the process alive until its lease has ended.
      if (this.#connection !== connection || this.#closing.signal.aborted) return
      const found = rows[0]?.['expired']
      if (!Array.isArray(found)) {
        const how = 'another took it over, or the connection leads to another backend than it did'
        this.markLost(session, new NotConnected(`${uri}: the session is over: ${how}`))
        return
      }
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

/** How long one attempt to attach a session to another connection may take at least, in milliseconds. */
const MIN_ATTACHING_MS = 500

/** What an owner may need to stop when it learns of the end, in milliseconds; of a short TTL a fifth. */
const LEASE_MARGIN_MS = 3_000

/** How long the server may take to end a session, in milliseconds. */
const END_SESSION_TIMEOUT_MS = 5_000
