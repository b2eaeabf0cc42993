/**
 * Keeps a session over any number of connections, and reports at any time how far it can be relied on.
 *
 * One loop runs from connect() to close(): choose a server, attach, stay until the connection is over, try again. The
 * states and their transitions are in `states.ts`; these events end a session:
 *
 * - a server answers that it is over, or answers with the id of another session;
 * - its lease ends (`lease.ts`), noticed by a timer, or before received bytes are processed or anything is sent. It is
 *   then over for this client while the server may still keep it, so before the next session is opened the client
 *   attaches to the old one once more and closes it: its ephemeral znodes are deleted at once, not when it expires;
 * - it was opened on a server without a quorum, and the connection is over: no other server knows it;
 * - the server is too old, rejects the credentials, or no server uses TLS as this client does: no other session
 *   follows.
 */
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import { asError, InvalidState, NotConnected } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { type Clock, type Instant, monotonic, startTimer, systemClock } from '../../core/time.ts'
import { Connection } from '../connection/connection.ts'
import { Connector } from '../connection/connector.ts'
import { type ClientCounters, Counters } from '../connection/counters.ts'
import { ConnectionFault, type FinalFault } from '../connection/faults.ts'
import { isFrameAnswered } from '../connection/frame-probe.ts'
import { Handshake } from '../connection/handshake.ts'
import type { Server } from '../connection/hosts.ts'
import type { AuthInfo } from '../connection/identities.ts'
import { PendingRequest } from '../connection/pending.ts'
import { WriterSearch } from '../connection/writer-search.ts'
import { type Endpoint, formatEndpoint } from '../protocol/connect-string.ts'
import { AuthFailed, NotSent, SessionExpired } from '../protocol/errors.ts'
import { type ConnectResponse, NO_PASSWORD } from '../protocol/records.ts'
import { closeSession, RequestNumbers } from '../protocol/requests.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { OrphanSession, type SessionCredentials } from './orphan-session.ts'
import { RequestLimit } from './request-limit.ts'
import { rejectRequest } from './request-queue.ts'
import { Sender } from './sender.ts'
import type { SessionInfo, SessionOptions, SessionOwner } from './session-options.ts'
import { type ClientState, ClientStateMachine } from './states.ts'

interface OpenSession extends SessionCredentials {
  /** Whether the attached server only reads. */
  readonly readOnly: boolean
  /** Whether it was opened on such a server: other servers do not know it. */
  readonly provisional: boolean
}

const CLOSE_TIMEOUT_MS = 3_000
/** The part of the session's timeout for measuring: the rest is for attaching again. */
const MEASURING_FRACTION = 1 / 6

export class Session {
  readonly #options: SessionOptions
  readonly #owner: SessionOwner
  readonly #clock: Clock
  /** Largest request that is sent. */
  readonly limit: RequestLimit
  readonly #state: ClientStateMachine
  readonly #keeper: LeaseKeeper
  readonly #handshake: Handshake
  readonly #sender: Sender
  readonly #connector: Connector
  readonly #orphan: OrphanSession
  readonly #writerSearch: WriterSearch
  readonly #counters = new Counters()
  readonly #numbers = new RequestNumbers()
  readonly #first: Deferred<void> = createDeferred()
  #open: OpenSession | undefined
  /** The newest transaction seen in this session: a server that has not applied it would return older data. */
  #lastZxid = 0n
  #newestZxid = 0n
  #previousId: bigint | undefined
  /** Current connection, or the connection that is being opened. */
  #connection: Connection | undefined
  /** Reason why no session will follow. */
  #finalError: Error | undefined
  #loop: Promise<void> | undefined
  #closing: Deferred<void> | undefined

  constructor(options: SessionOptions, owner: SessionOwner) {
    const { sessionTimeout, connectTimeout, maxInFlight, sasl, auth = [], tick, log, clock = systemClock } = options
    this.#options = options
    this.#owner = owner
    this.#clock = clock
    this.limit = new RequestLimit(options.maxRequestBytes, log)
    this.#state = new ClientStateMachine(log, (change) => {
      owner.stateChanged({ ...change, ...defined({ session: this.#open?.id }) })
    })
    this.#keeper = new LeaseKeeper(
      { clock, tick },
      { onOver: (verdict) => this.#leaseOver(verdict), prove: () => this.#sender.prove() },
    )
    this.#handshake = new Handshake({ sasl, auth, timeout: connectTimeout })
    this.#writerSearch = new WriterSearch(options)
    const dial = (server: Server) => this.#createConnection(server).connection
    this.#orphan = new OrphanSession({ hosts: options.hosts, handshake: this.#handshake, connect: dial })
    this.#sender = new Sender({
      maxInFlight,
      timeoutMs: sessionTimeout,
      log,
      isSessionAlive: () => this.#keeper.isAlive(),
      refusalOf: (request) => this.limit.refusalOf(request),
    })
    this.#connector = new Connector(options, this.#counters, {
      isServerWanted: () => this.state !== 'closed' && (this.state !== 'lost' || this.#orphan.isPending),
      use: (server) => this.#use(server),
      isResuming: () => this.#lastZxid > 0n,
    })
  }

  get state(): ClientState {
    return this.#state.current
  }

  get info(): SessionInfo | undefined {
    if (!this.#open) return undefined
    const { id, timeout, readOnly } = this.#open
    return { id, timeout, readOnly, leaseUntil: this.#keeper.aliveUntil, newestZxid: this.#newestZxid }
  }

  /** Reason why there is no connection, if known. */
  get lastFault(): Error | undefined {
    return this.#connector.lastFault
  }

  get lease(): Pick<LeaseKeeper, 'hold'> {
    return this.#keeper
  }

  get counters(): ClientCounters {
    return this.#counters.snapshot({ inFlight: this.#connection?.inFlight ?? 0, waiting: this.#sender.waiting })
  }

  /** Starts to connect, and continues until close(); resolves with the first session. */
  start(): Promise<void> {
    if (this.state !== 'new') throw new InvalidState(`connect() can be called only once; the client is ${this.state}`)
    this.#state.transitionTo('connecting')
    this.#loop = this.#run()
    return this.#first.promise
  }

  /** Accepts a request, and sends it with all others of the same turn of the event loop. */
  submit(pending: PendingRequest): void {
    const { state } = this
    if (state === 'new' || state === 'closed' || state === 'lost') {
      rejectRequest(pending, state, { retryable: this.#mayRetry(), cause: this.#finalError })
    } else this.#sender.push(pending)
  }

  /** Sends the requests of this turn of the event loop at once. */
  flush(): void {
    this.#sender.flush()
  }

  /** Adds an identity; see `Handshake.add`. */
  async addAuth(info: AuthInfo): Promise<void> {
    if (this.state === 'new') this.#handshake.addBeforeConnect(info)
    else await this.#handshake.add(info, this.#connection)
  }

  /** Replaces the list of servers; leaves a server that is not in it. */
  updateHosts(endpoints: readonly Endpoint[]): void {
    const { hosts } = this.#options
    hosts.update(endpoints)
    const connection = this.#connection
    if (!connection || hosts.includes(connection.server)) return
    const where = formatEndpoint(connection.server)
    connection.destroy(new ConnectionFault('moved', `${where} is no longer among the hosts`))
  }

  /**
   * Ends the session at the server, so that its ephemeral znodes are deleted; settles all pending requests. Bounded in
   * time.
   */
  close(): Promise<void> {
    if (!this.#closing) {
      // Set first: a listener that is notified of the closing may call close(), too.
      this.#closing = createDeferred()
      this.#shutDown().then(this.#closing.resolve, this.#closing.reject)
    }
    return this.#closing.promise
  }

  // --- Connections --------------------------------------------------------------------------------------------------

  async #run(): Promise<void> {
    const final = await this.#connector.run()
    if (final) this.#giveUp(final)
  }

  async #use(server: Server): Promise<void> {
    try {
      if (this.#orphan.isPending) await this.#orphan.close(server)
      else if (this.state !== 'closed') await this.#serve(server)
    } catch (error) {
      this.#connection?.destroy(new NotConnected('it is of no use', { cause: error }))
      if (this.state !== 'closed') await this.#measureLimit(server)
      throw error
    }
  }

  /** Measures which requests the server accepts, if it closed the connection at a large one. */
  #measureLimit(server: Server): Promise<void> {
    const { sessionTimeout, connectTimeout, maxReplyBytes, tls } = this.#options
    const duration = sessionTimeout * MEASURING_FRACTION
    const options = {
      server,
      tls,
      maxReplyBytes,
      clock: this.#clock,
      connectTimeout: Math.min(connectTimeout, duration),
    }
    const isAnswered = (bytes: number) => {
      if (this.state === 'closed') throw new NotConnected('the client is closed')
      return isFrameAnswered(bytes, options)
    }
    return this.limit.measure(isAnswered, monotonic() + duration)
  }

  /** Attaches to the current session, or to a new one, and stays until the connection is over. */
  async #serve(server: Server): Promise<void> {
    const held = this.#open
    const at = this.#clock()
    const { connection, over } = this.#createConnection(server)
    const response = await connection.attach({
      lastZxid: this.#lastZxid,
      timeout: this.#options.sessionTimeout,
      session: held?.id ?? 0n,
      password: held?.password ?? NO_PASSWORD,
      readOnly: this.#options.readOnly ?? false,
    })
    if (this.#connection !== connection) throw new NotConnected(`${formatEndpoint(server)} hung up`)
    if (response.timeout <= 0) {
      connection.destroy(new SessionExpired('the server says that the session is over'))
      if (!held) throw new NotConnected(`${formatEndpoint(server)} refused a new session`)
      return this.#end(new SessionExpired('the session is over: the server has expired it'))
    }
    // The loss of the session is reported before anything is sent: code that relied on it would otherwise continue under the new session.
    if (held && response.session !== held.id) return this.#replaced(held)
    this.#adopt(response, at)
    await this.#handshake.authenticate(connection)
    if (this.#connection !== connection) throw await over
    connection.keepAlive(response.timeout)
    this.#sender.startPreparing()
    await this.#handshake.begin(connection, {
      arming: this.#owner.arming(this.#lastZxid),
      // Watches that are not armed would stay silent for ever: such a connection is closed.
      fault: (error) => connection.destroy(asError(error)),
    })
    if (this.#connection === connection) this.#becomeConnected(connection)
    throw await over
  }

  #createConnection(server: Server): { connection: Connection; over: Promise<Error> } {
    const { connectTimeout, maxReplyBytes, tls, log } = this.#options
    const over = createDeferred<Error>()
    const connection: Connection = new Connection(
      {
        ...{ server, tls, connectTimeout, maxReplyBytes },
        ...{ clock: this.#clock, counters: this.#counters, numbers: this.#numbers },
      },
      {
        isAlive: () => this.#keeper.isAlive(),
        events: (batch) => this.#owner.events(batch),
        replyReceived: (sentAt, { xid, zxid }) => {
          this.#keeper.replyReceived(sentAt)
          if (zxid > this.#newestZxid) this.#newestZxid = zxid
          // A watch may still have to report the transactions that the answer to a ping names.
          if (xid > 0 && zxid > this.#lastZxid) this.#lastZxid = zxid
        },
        quorumAcknowledged: (what, sentAt) => this.#keeper.quorumAcknowledged(what, sentAt),
        drained: () => this.#sender.flush(),
        mayRetry: (over) => this.#mayRetry(over),
        closed: (cause, unanswered) => {
          this.limit.connectionEnded(cause, unanswered)
          this.#disconnected(connection, cause)
          over.resolve(cause)
        },
      },
    )
    this.#connection = connection
    log.debug({ server: formatEndpoint(server), address: server.address }, 'connecting to ZooKeeper')
    return { connection, over: over.promise }
  }

  #becomeConnected(connection: Connection): void {
    const held = this.#open
    if (!held) return
    this.#connector.served()
    this.#sender.attach({ connection, session: held.id }, () => {
      this.#state.transitionTo('connected')
      if (this.state === 'connected' && this.#previousId !== held.id) this.#announce(held.id)
      if (this.state === 'connected') this.#owner.gap()
    })
    // A listener may have closed the client, and sending may have shown that the session cannot be relied on.
    if (this.#connection !== connection || this.state !== 'connected') return
    this.#keeper.connected()
    if (held.readOnly) this.#writerSearch.start(connection)
    this.#first.resolve()
  }

  #announce(id: bigint): void {
    const previous = this.#previousId
    this.#previousId = id
    this.#counters.sessions++
    this.#owner.sessionChanged({ session: id, ...defined({ previous }) })
  }

  #disconnected(connection: Connection, cause: Error): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#sender.detach()
    this.#writerSearch.stop()
    if (this.#open?.provisional) {
      const message = 'the session of a read-only server is over with its connection'
      this.#end(new SessionExpired(message, { outcome: 'unknown', cause }))
    } else if (this.state === 'connected') this.#state.transitionTo('suspended', cause)
  }

  // --- The session's life ---------------------------------------------------------------------------------------------

  #adopt({ session: id, password, timeout, readOnly }: ConnectResponse, at: Instant): void {
    const provisional = readOnly && this.#open === undefined
    this.#open = { id, password, timeout, readOnly, provisional }
    this.#keeper.attached({ id, timeout }, { at, through: readOnly ? 'server' : 'leader' })
  }

  /** Gives up a session after a server has answered with another one: the server may still keep it, so its outcome is unknown. */
  #replaced(held: OpenSession): void {
    if (!held.provisional) this.#orphan.add(held)
    const message = 'the session is over: the server answered with the id of another session'
    this.#end(new SessionExpired(message, { outcome: 'unknown' }))
  }

  /** Gives the session up at the end of its lease. No server has reported its end, so its outcome is unknown. */
  #leaseOver(verdict: string): void {
    if (!this.#open) return
    const { timeout, provisional } = this.#open
    if (!provisional) this.#orphan.add(this.#open)
    const message = `the session of ${timeout} ms cannot be relied on: ${verdict}`
    this.#end(new SessionExpired(message, { outcome: 'unknown', cause: this.#connector.lastFault }))
  }

  #giveUp(reason: FinalFault): void {
    this.#finalError = reason
    this.#orphan.clear()
    this.#end(reason)
    this.#first.reject(reason)
  }

  #end(reason: SessionExpired | FinalFault): void {
    const connection = this.#connection
    this.#open = undefined
    this.#connection = undefined
    this.#sender.detach()
    this.#writerSearch.stop()
    // Another session may begin on a server that lags behind: its watches report a gap, and it starts from there.
    this.#lastZxid = 0n
    this.#newestZxid = 0n
    this.#keeper.ended()
    if (this.state !== 'closed' && this.state !== 'lost') this.#state.transitionTo('lost', reason)
    const type = reason instanceof AuthFailed ? AuthFailed : SessionExpired
    this.#sender.reject(type, 'the session is over', { cause: reason, retryable: this.#mayRetry() })
    connection?.destroy(reason)
    if (this.state !== 'lost') return
    if (this.#mayRetry()) this.#state.transitionTo('connecting')
    else this.#rejectAll(reason)
  }

  /** Returns whether another connection, or another session, may follow. */
  #mayRetry(over: 'connection' | 'session' = 'connection'): boolean {
    if (this.state === 'closed') return false
    if (this.state !== 'lost' && over === 'connection') return true
    return this.#options.newSession === 'automatic' && !this.#finalError
  }

  /** Rejects everything that waits for a session: none will follow. */
  #rejectAll(reason?: Error): void {
    this.#keeper.close(reason)
    this.#handshake.close()
  }

  async #shutDown(): Promise<void> {
    const { sessionTimeout } = this.#options
    const attached = this.#sender.connection !== undefined
    const wasNew = this.state === 'new'
    this.#state.transitionTo('closed')
    this.#connector.stop()
    const timeoutMs = Math.min(CLOSE_TIMEOUT_MS, sessionTimeout / 3)
    const deadline = monotonic() + timeoutMs
    const timer = startTimer(() => this.#connection?.destroy(new NotConnected('closing took too long')), timeoutMs)
    try {
      if (attached) await this.#closeAtServer()
      this.#sender.reject(NotSent, 'the client is closed', { retryable: false })
      this.#connection?.destroy(new NotConnected('the client is closed'))
      this.#rejectAll()
      await this.#loop
      if (!attached) await this.#closeWithoutConnection(deadline)
    } finally {
      clearTimeout(timer)
    }
    if (!wasNew) this.#first.reject(new NotConnected('the client is closed', { retryable: false }))
  }

  /** Closes the session after all earlier requests, so that these are answered. */
  async #closeAtServer(): Promise<void> {
    // A listener that closes the client on `connected` runs before the waiting requests are sent.
    await Promise.resolve()
    const closing = new PendingRequest(closeSession(), monotonic(), { currentConnectionOnly: true })
    this.#sender.push(closing)
    this.#sender.flush()
    const answered = closing.promise.then(
      () => true,
      () => false,
    )
    if (await answered) this.#open = undefined
  }

  /** Closes the session without a current connection, so that its ephemeral znodes are deleted before it expires. */
  async #closeWithoutConnection(deadline: number): Promise<void> {
    const held = this.#open
    this.#open = undefined
    if (held && !held.provisional) this.#orphan.add(held)
    await this.#orphan.closeAnywhere(deadline)
  }
}
