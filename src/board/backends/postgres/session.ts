/**
 * The session consists of a row, which is updated by at least three heartbeats per TTL, and a connection of its own, which holds a lock
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
 *
 * **Sessions that are over** are found by heartbeats: the answer names some other sessions whose TTL has passed, and when the next one
 * passes. The next heartbeat is sent at that moment, if it comes before a third of the own TTL.
 */
import { createDeferred, type Deferred, rejectOnAbort } from '../../../core/async/abort.ts'
import { retryUntilAborted } from '../../../core/async/retry.ts'
import { asError, NotConnected } from '../../../core/errors.ts'
import { startTimer, systemClock, timeoutSignal, withinTime } from '../../../core/time.ts'
import { finishIndexes, type PostgresConnection } from '../../../postgres/index.ts'
import type { BackendClock, BackendSession, BackendSink, LeaseWatch } from '../../contract/index.ts'
import type { ServerClock } from '../server-clock.ts'
import type { PostgresChanges } from './changes.ts'
import type { BoardWriter } from './commit/writer.ts'
import type { CleanUp } from './connection/clean-up.ts'
import type { PostgresChangeFeed } from './connection/feed.ts'
import type { HostPeers } from './connection/host-peers.ts'
import { SessionLease } from './connection/lease.ts'
import { beginSession, endLastSession, withConnection } from './connection/session-requests.ts'
import type { PostgresResources } from './resources.ts'
import type { OwnSession, PostgresBoard } from './store/board.ts'
import { SET_READ_COMMITTED, toBoardError, translateErrors } from './store/errors.ts'
import { openBoardRow } from './store/schema.ts'

/** The time from the attachment of a session to its first heartbeat, in milliseconds; with a short TTL, a third of the TTL. */
const FIRST_HEARTBEAT_MS = 500
/** The time from the end of a watched session to the heartbeat that finds it, in milliseconds: a timer may fire a little early. */
const AFTER_EXPIRY_MS = 10
/** The shortest time between two heartbeats, in milliseconds, whatever a row says that was made by hand. */
const MIN_HEARTBEAT_MS = 100
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
  readonly peers: HostPeers
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
    const row = await translateErrors(`opening ${uri}`, () => rejectOnAbort(opening(), signal))
    this.#board.begin(row.number, sink)
    await this.#connect(AbortSignal.any([signal, this.#closing.signal]))
    sink.paused(row.paused)
    // Not earlier: a transaction pooler, which is refused above, keeps no locks of sessions.
    if (row.missingIndexes.length > 0)
      void finishIndexes(row.missingIndexes, { location: options.location, log, signal: this.#board.closing })
  }

  async close(): Promise<void> {
    const wasOpen = this.#board.end()
    if (wasOpen) await this.#shutDown()
    await this.#options.peers.close()
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

  /** Resolves when a session is alive; undefined if it is. @throws InvalidState; NotConnected when the board is closed */
  #whenAlive(): Promise<void> | undefined {
    return this.#board.isOpen && this.#hasAliveSession ? undefined : this.#waitUntilAlive()
  }

  get #hasAliveSession(): boolean {
    const { session } = this.#board
    return session !== undefined && this.#isAlive(session.label)
  }

  async #waitUntilAlive(): Promise<void> {
    this.#board.assertOpen()
    while (!this.#hasAliveSession) await this.#next.promise
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
        await changes.deliver(connection, session, 'attach')
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
    const socket = await this.#options.peers.openSocket()
    const { id, sentAt } = await beginSession(connection, this.#board, { signal, former: this.#lostSessions, socket })
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
    this.#options.peers.lookSoon()
    this.#board.sink.session({ state: 'connected', session: session.label })
    this.#board.sink.gap()
  }

  #onAttached(session: OwnSession, connection: PostgresConnection): void {
    this.#board.connection = connection
    const onLost = () => this.#onConnectionLost(session, connection, asError(connection.lost.reason))
    connection.lost.addEventListener('abort', onLost, { once: true })
    this.#lease.watch(() => this.#isAlive(session.label))
    this.#schedule(session, connection, FIRST_HEARTBEAT_MS)
    this.#options.changes.onAttached()
    this.#options.peers.onAttached()
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
      await rejectOnAbort(changes.deliver(connection, session, 'resume'), connection.lost)
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

  /** Schedules the next heartbeat, which is sent after this time, or after a third of the TTL if that is less. */
  #schedule(session: OwnSession, connection: PostgresConnection, ms: number): void {
    clearTimeout(this.#heartbeatTimer)
    this.#heartbeatTimer = startTimer(() => void this.#heartbeat(session, connection), Math.min(ms, this.timeout / 3))
  }

  async #heartbeat(session: OwnSession, connection: PostgresConnection): Promise<void> {
    const { schema, uri } = this.#board
    const sentAt = systemClock()
    // A connection may break silently, for example in a firewall; the limit leaves time for another one before the lease ends.
    const giveUp = () => connection.disconnect(new NotConnected('a heartbeat was not answered'))
    const timer = startTimer(giveUp, this.timeout / 3)
    try {
      const { rows } = await connection.query(`SELECT ${schema}.renew_session($1) AS watched`, [session.id])
      // The timers of a session that is being closed would keep the process alive until its lease has ended.
      if (this.#board.connection !== connection || this.#closing.signal.aborted) return
      const watched = toWatchedSessions(rows[0]?.['watched'])
      if (!watched) {
        const how = 'another participant took it over, or the connection leads to another backend'
        session.markLost(new NotConnected(`${uri}: the session is over: ${how}`))
        return
      }
      // Another process may have taken over the session at the end of the lease, without seeing this heartbeat.
      if (!this.#isAlive(session.label)) return
      this.#lease.renew(sentAt)
      this.#lease.watch(() => this.#isAlive(session.label))
      this.#schedule(session, connection, Math.max(watched.nextMs + AFTER_EXPIRY_MS, MIN_HEARTBEAT_MS))
      this.#options.cleanUp.onHeartbeat(watched.expired)
    } catch (error) {
      connection.disconnect(toBoardError(`a heartbeat on ${uri}`, error))
    } finally {
      clearTimeout(timer)
    }
  }
}

/** What a session watches, as `watched_sessions` in `functions/sessions.sql` returns it. */
interface WatchedSessions {
  readonly expired: readonly number[]
  /** The time until the next TTL of a watched session passes, in milliseconds; infinite if there is none. */
  readonly nextMs: number
}

/** @returns undefined if the answer says that the own session is over */
function toWatchedSessions(answer: unknown): WatchedSessions | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { expired, next } = answer as { readonly expired: readonly unknown[]; readonly next: number | null }
  return { expired: expired.map(Number), nextMs: next ?? Number.POSITIVE_INFINITY }
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
