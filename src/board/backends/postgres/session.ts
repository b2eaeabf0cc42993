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
import { createDeferred, type Deferred, rejectOnAbort } from '../../../core/async/abort.ts'
import { retryUntilAborted } from '../../../core/async/retry.ts'
import { asError, NotConnected } from '../../../core/errors.ts'
import { startTimer, systemClock, timeoutSignal, withinTime } from '../../../core/time.ts'
import type { PostgresConnection } from '../../../postgres/index.ts'
import type { BackendClock, BackendSession, BackendSink, LeaseWatch } from '../../contract/index.ts'
import type { ServerClock } from '../server-clock.ts'
import type { PostgresChanges } from './changes.ts'
import type { BoardWriter } from './commit/writer.ts'
import type { CleanUp } from './connection/clean-up.ts'
import type { PostgresChangeFeed } from './connection/feed.ts'
import { SessionLease } from './connection/lease.ts'
import { beginSession, endLastSession, withConnection } from './connection/session-requests.ts'
import type { PostgresResources } from './resources.ts'
import type { OwnSession, PostgresBoard } from './store/board.ts'
import { SET_READ_COMMITTED, toBoardError, translateErrors } from './store/errors.ts'
import { openBoardRow } from './store/schema.ts'

/** The smallest time limit for one attempt to attach a session to another connection, in milliseconds. */
const MIN_ATTACHING_MS = 500
/** The time limit for pending work while the board is closed, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5_000

export interface PostgresSessionOptions {
  readonly feed: PostgresChangeFeed
  readonly writer: BoardWriter
  readonly changes: PostgresChanges
  readonly resources: PostgresResources
  readonly cleanUp: CleanUp
  /** The roles whose pending work is awaited before the session ends. */
  readonly pending: readonly { idle(): Promise<void> }[]
}

export class PostgresSession implements BackendSession {
  readonly timeout: number
  readonly #board: PostgresBoard
  readonly #options: PostgresSessionOptions
  readonly #lease: SessionLease
  /** Fires when the session is ended, after the pending work of a board that is closed. */
  readonly #closing = new AbortController()
  /** The number of attempts to attach the current session to a connection. */
  #attachments = 0
  /** Fires when the session is lost while it is attached to another connection. */
  #attaching = new AbortController()
  /** Lost sessions that this process has not ended on the server yet. */
  readonly #lostSessions = new Set<number>()
  #heartbeatTimer: NodeJS.Timeout | undefined
  #next = createNext()
  #reconnecting: Promise<void> = Promise.resolve()

  constructor(board: PostgresBoard, options: PostgresSessionOptions) {
    this.timeout = board.options.sessionTimeout
    this.#board = board
    this.#options = options
    this.#lease = new SessionLease(this.timeout)
  }

  /** Opens the first session. @throws AccessDenied, NotFound, NotConnected; UnsupportedCapability behind a transaction pooler */
  async open(sink: BackendSink, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { uri, pool, schema, options } = this.#board
    const { board: name, create, log } = options
    const opening = () => openBoardRow(pool, { schema, name, create, log })
    const { number, paused } = await translateErrors(`opening ${uri}`, () => rejectOnAbort(opening(), signal))
    this.#board.begin(number, sink)
    await this.#connect(AbortSignal.any([signal, this.#closing.signal]))
    sink.paused(paused)
  }

  async close(): Promise<void> {
    const wasOpen = this.#board.end()
    if (wasOpen) await this.#shutDown()
    await withinTime(CLOSE_TIMEOUT_MS, this.#board.pool.close())
  }

  /** Returns a watch that costs nothing: the session sends heartbeats whether or not it has claims. */
  watchLease(): LeaseWatch {
    return { whenAlive: () => this.#whenAlive(), [Symbol.dispose]: () => undefined }
  }

  isAlive(session: string): boolean {
    return this.#board.isOpen && this.#isAlive(session)
  }

  leftMs(): number | undefined {
    return this.#board.isOpen && this.#board.session ? this.#lease.leftMs : undefined
  }

  /** Returns whether the session is certainly alive at this instant. If it is not, the session is reported as lost first. */
  #isAlive(label: string): boolean {
    const { session, uri } = this.#board
    if (session?.label !== label) return false
    if (this.#lease.leftMs > 0) return true
    session.markLost(new NotConnected(`${uri}: the lease expired, because no heartbeat was answered in time`))
    return false
  }

  /** Resolves with the label of a session that is alive. @throws InvalidState; NotConnected when the board is closed */
  async #whenAlive(): Promise<string> {
    this.#board.assertOpen()
    while (true) {
      const { session } = this.#board
      if (session && this.#isAlive(session.label)) return session.label
      await this.#next.promise
    }
  }

  #markLost(session: OwnSession, reason: Error): void {
    const { sink, session: current } = this.#board
    if (current !== session) return
    const { feed, writer, resources } = this.#options
    this.#board.session = undefined
    this.#lostSessions.add(session.id)
    clearTimeout(this.#heartbeatTimer)
    this.#lease.stop()
    this.#attaching.abort(reason)
    feed.detach()
    resources.clear()
    writer.disconnect(reason)
    sink.session({ state: 'lost', session: session.label, reason })
    // No changes arrive until the next session, while answers of requests still do.
    sink.gap()
    this.#board.connection?.disconnect(reason)
    this.#board.connection = undefined
    if (!this.#closing.signal.aborted) this.#reconnecting = this.#reconnect()
  }

  async #shutDown(): Promise<void> {
    const { feed, writer, pending } = this.#options
    await withinTime(CLOSE_TIMEOUT_MS, Promise.all([...pending, writer].map((work) => work.idle())))
    feed.detach()
    const { sink, session, closing } = this.#board
    // The session event comes first: the owner must receive it before another owner can claim its jobs.
    sink.session({ state: 'closed', session: session?.label ?? 'none' })
    if (!session) writer.disconnect(closing.reason)
    this.#closing.abort(closing.reason)
    this.#next.reject(closing.reason)
    clearTimeout(this.#heartbeatTimer)
    this.#lease.stop()
    await this.#reconnecting
    const last = this.#board.session
    this.#board.session = undefined
    // Its claims are released at once if the server can be reached.
    if (last) await endLastSession(this.#board, last.id)
    await withinTime(CLOSE_TIMEOUT_MS, writer.close())
  }

  async #reconnect(): Promise<void> {
    const { signal } = this.#closing
    await retryUntilAborted(() => this.#connect(signal), {
      ...{ firstPauseMs: 50, maxPauseMs: 2_000, signal },
      onRetry: (error) => {
        if (!(error instanceof NotConnected)) this.#board.sink.error(asError(error))
      },
    })
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { uri, options } = this.#board
    const { changes } = this.#options
    try {
      // Without the signal, a server that does not answer would delay the closing of the board until the statement times out.
      await withConnection(options, { signal, reason: () => signal.reason }, async (connection) => {
        connection.onNotification((notification) => changes.onNotification(notification))
        const session = await this.#begin(connection, signal)
        await changes.deliver(connection, 'attach')
        signal.throwIfAborted()
        connection.lost.throwIfAborted()
        this.#makeCurrent(session, connection)
      })
    } catch (error) {
      signal.throwIfAborted()
      throw toBoardError(`a session on ${uri}`, error)
    }
  }

  async #begin(connection: PostgresConnection, signal: AbortSignal): Promise<OwnSession> {
    const { id, sentAt } = await beginSession(connection, this.#board, { signal, former: this.#lostSessions })
    this.#lease.renew(sentAt)
    await this.#options.changes.listenOn(connection)
    this.#attachments = 0
    const session: OwnSession = {
      ...{ id, label: `session ${id}` },
      markLost: (reason) => this.#markLost(session, reason),
    }
    return session
  }

  #makeCurrent(session: OwnSession, connection: PostgresConnection): void {
    this.#board.session = session
    const next = this.#next
    this.#next = createNext()
    next.resolve()
    this.#onAttached(session, connection)
    this.#board.sink.session({ state: 'connected', session: session.label })
    this.#board.sink.gap()
  }

  #onAttached(session: OwnSession, connection: PostgresConnection): void {
    this.#board.connection = connection
    const onLost = () => this.#onConnectionLost(session, connection, asError(connection.lost.reason))
    connection.lost.addEventListener('abort', onLost, { once: true })
    this.#lease.watch(() => this.#isAlive(session.label))
    this.#schedule(session, connection)
    this.#options.changes.onAttached()
  }

  #onConnectionLost(session: OwnSession, connection: PostgresConnection, reason: Error): void {
    if (this.#board.connection !== connection || this.#closing.signal.aborted) return
    this.#board.connection = undefined
    clearTimeout(this.#heartbeatTimer)
    if (!this.#isAlive(session.label)) return
    this.#options.feed.suspend()
    this.#board.sink.session({ state: 'disconnected', session: session.label, reason })
    this.#attaching = new AbortController()
    this.#reconnecting = this.#reattach(session, AbortSignal.any([this.#attaching.signal, this.#closing.signal]))
  }

  /** Retries until the session is attached to a connection, or is lost. */
  async #reattach(session: OwnSession, signal: AbortSignal): Promise<void> {
    const { uri, sink } = this.#board
    const what = `continuing a session on ${uri}`
    const attached = await retryUntilAborted(() => this.#attach(session, signal), {
      ...{ firstPauseMs: 20, maxPauseMs: 1_000, signal },
      onRetry: (error) => {
        const reason = toBoardError(what, error)
        if (!(reason instanceof NotConnected)) sink.error(reason)
      },
    })
    if (attached !== false) return
    const why = 'another participant took it over, or the server was restarted'
    session.markLost(new NotConnected(`${what}: ${why}`))
  }

  /** Attaches the session to a new connection. @returns false if the server no longer knows the session */
  async #attach(session: OwnSession, signal: AbortSignal): Promise<boolean> {
    const { schema, sink, options } = this.#board
    const { changes, resources, cleanUp } = this.#options
    // Each attempt is limited: another connection may succeed while the lease is still valid.
    const soon = AbortSignal.any([signal, timeoutSignal(Math.max(MIN_ATTACHING_MS, this.timeout / 6))])
    const reason = () => new NotConnected('the server did not answer in time')
    return withConnection(options, { signal: soon, reason }, async (connection) => {
      connection.onNotification((notification) => changes.onNotification(notification))
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
      this.#isAlive(session.label)
      signal.throwIfAborted()
      this.#lease.renew(sentAt)
      await changes.listenOn(connection)
      // If this connection breaks, missed changes are read over the next one, so this attempt does not wait for them.
      await rejectOnAbort(changes.deliver(connection, 'resume'), connection.lost)
      signal.throwIfAborted()
      connection.lost.throwIfAborted()
      this.#onAttached(session, connection)
      sink.session({ state: 'connected', session: session.label })
      void resources.retake()
      cleanUp.noteEndedBackend()
      changes.reportMissed()
      return true
    })
  }

  #schedule(session: OwnSession, connection: PostgresConnection): void {
    this.#heartbeatTimer = startTimer(() => void this.#heartbeat(session, connection), this.timeout / 3)
  }

  async #heartbeat(session: OwnSession, connection: PostgresConnection): Promise<void> {
    const { schema, uri } = this.#board
    const sentAt = systemClock()
    // A connection may break silently, for example in a firewall; the limit leaves time for another one before the lease ends.
    const giveUp = () => connection.disconnect(new NotConnected('a heartbeat was not answered'))
    const timer = startTimer(giveUp, this.timeout / 3)
    try {
      const { rows } = await connection.query(`SELECT ${schema}.heartbeat($1) AS expired`, [session.id])
      // The timers of a session that is being closed would keep the process alive until its lease has ended.
      if (this.#board.connection !== connection || this.#closing.signal.aborted) return
      const found = rows[0]?.['expired']
      if (!Array.isArray(found)) {
        const how = 'another participant took it over, or the connection leads to another backend'
        session.markLost(new NotConnected(`${uri}: the session is over: ${how}`))
        return
      }
      // Another process may have taken over the session at the end of the lease, without seeing this heartbeat.
      if (!this.#isAlive(session.label)) return
      this.#lease.renew(sentAt)
      this.#lease.watch(() => this.#isAlive(session.label))
      this.#schedule(session, connection)
      this.#options.cleanUp.onHeartbeat(found.map(Number))
    } catch (error) {
      connection.disconnect(toBoardError(`a heartbeat on ${uri}`, error))
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Returns a deferred promise whose rejection needs no handler. */
function createNext(): Deferred<void> {
  const next = createDeferred<void>()
  next.promise.catch(() => undefined)
  return next
}

export class PostgresClock implements BackendClock {
  readonly #board: PostgresBoard
  readonly #clock: ServerClock

  constructor(board: PostgresBoard, clock: ServerClock) {
    this.#board = board
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  async read(): Promise<void> {
    if (this.#clock.isKnown) return
    const text = 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000::float8 AS at'
    const { rows } = await translateErrors(`reading the clock of ${this.#board.uri}`, () =>
      this.#board.pool.query(text, []),
    )
    this.#clock.observe(Number(rows[0]?.['at']))
  }
}
