/**
 * Holds a session of the C client, and another one after it, and reports them as our own client does (`session/states.ts`).
 *
 * Each connection is a handle of its own that attaches to the session (`connection.ts`). A session without a
 * connection is given up one timeout after the sending of the newest request that was answered, or a third of it after the
 * connection was lost if that is later. Where the session is relied on it ends with its lease (`lease.ts`), which is
 * earlier. Requests wait on this side while there is no connection: the C client would take them, too, but fails what it
 * has sent and what it has not sent with one and the same code.
 */
import { createDeferred, type Deferred, onAbort } from '../../core/async/abort.ts'
import { InvalidState } from '../../core/errors.ts'
import type { Emitter } from '../../core/events.ts'
import { defined } from '../../core/options.ts'
import { type Instant, monotonic, startTimer, systemClock } from '../../core/time.ts'
import type { DriverEvents } from '../client-events.ts'
import type { Hosts } from '../connection/hosts.ts'
import type { RequestOptions } from '../connection/pending.ts'
import {
  AuthFailed,
  connectionLossError,
  NotSent,
  SessionExpired,
  toError,
  type ZooKeeperError,
} from '../protocol/errors.ts'
import type { LeaseKeeper } from '../session/lease-keeper.ts'
import { type ClientState, canTransition } from '../session/states.ts'
import type { NativeAuth, NativeCloseReason, NativeConnection, NativeIdentity } from './connection.ts'
import { NativeConnector } from './connector.ts'
import { ECHO_REQUEST, NativeLease, PROOF_REQUEST } from './lease.ts'
import { NATIVE_CODE, type NativePackage, type NativeRequest } from './package.ts'

export interface NativeSessionOptions {
  readonly hosts: Hosts
  readonly chroot: string
  readonly sessionTimeout: number
  /** Granted timeout, in milliseconds. */
  readonly tick: number | undefined
  readonly newSession: 'automatic' | 'never'
  readonly auth: readonly NativeAuth[]
  /** Reports that the session is over, and its watches with it. */
  readonly onOver: (reason: Error) => void
  /** The session has another connection, which knows no watches; `ask` sends on it, before everything else. */
  readonly onReattached: (ask: <T>(question: NativeRequest<T>) => Promise<T>) => void
}

interface QueuedRequest {
  readonly subject: RequestName
  readonly options: RequestOptions
  /** Whether the request need not be sent again: it is under way, or was rejected. */
  readonly send: (connection: NativeConnection) => boolean
  readonly fail: (error: unknown) => void
}

const CLOSE_TIMEOUT_MS = 3_000

export class NativeSession {
  readonly #options: NativeSessionOptions
  readonly #emitter: Emitter<DriverEvents>
  readonly #first = createDeferred()
  readonly #lease: NativeLease
  #connector: NativeConnector | undefined
  #state: ClientState = 'new'
  /** Connection over which requests are sent. */
  #connection: NativeConnection | undefined
  #info: { readonly id: bigint; readonly timeout: number; readonly identity: NativeIdentity } | undefined
  /** Session that the newest connection was granted; it is `#info` as soon as that is ready. */
  #granted: { readonly id: bigint; readonly timeout: number; readonly identity: NativeIdentity } | undefined
  #previousId: bigint | undefined
  /** Time at which the session was certainly alive, by an answer. */
  #aliveAt = 0
  #waiting: QueuedRequest[] = []
  #timeoutTimer: NodeJS.Timeout | undefined
  #giveUpTimer: NodeJS.Timeout | undefined
  readonly #inFlight = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined
  /** Whether another connection may follow. */
  #mayReconnect = true

  constructor(options: NativeSessionOptions, emitter: Emitter<DriverEvents>) {
    this.#options = options
    this.#emitter = emitter
    this.#lease = new NativeLease({
      clock: systemClock,
      tick: options.tick,
      send: (question) => this.#sendNow(question),
      onOver: (verdict) => this.#leaseOver(verdict),
    })
  }

  get state(): ClientState {
    return this.#state
  }

  get info(): { readonly id: bigint; readonly timeout: number; readonly leaseUntil: number } | undefined {
    if (!this.#info) return undefined
    const { id, timeout } = this.#info
    return { id, timeout, leaseUntil: this.#lease.keeper.aliveUntil }
  }

  get lease(): Pick<LeaseKeeper, 'hold'> {
    return this.#lease.keeper
  }

  /** Starts to connect; resolves with the first session. */
  start(load: () => Promise<NativePackage>): Promise<void> {
    if (this.#state !== 'new') throw new InvalidState(`connect() is called once, and the client is ${this.#state}`)
    this.#setState('connecting')
    load().then((loaded) => {
      if (this.#state !== 'connecting') return
      this.#connector = this.#createConnector(loaded)
      this.#connector.start()
    }, this.#first.reject)
    return this.#first.promise
  }

  send<T>(question: NativeRequest<T>, options: RequestOptions): Promise<T> {
    const answer = createDeferred<T>()
    const waiting = this.#prepare(question, options, answer)
    const { signal } = options
    if (signal) {
      const abort = () => answer.reject(signal.reason)
      if (signal.aborted) abort()
      else {
        const forget = onAbort(signal, abort)
        answer.promise.then(forget, forget)
      }
    }
    // Seen here too: the timer of a process that was stopped is late.
    this.#lease.keeper.isAlive()
    if (this.#closing || this.#state === 'closed')
      waiting.fail(notSentError(question, 'the client is closed', NOT_RETRYABLE))
    else if (this.#state === 'new') waiting.fail(notSentError(question, 'connect() was not called', NOT_RETRYABLE))
    else if (this.#state === 'lost')
      waiting.fail(notSentError(question, 'the session is over', this.#toRetryability(options)))
    else if (!this.#trySend(waiting)) this.#enqueue(waiting)
    return answer.promise
  }

  /**
   * Ends the session at the server. The C client blocks the process until the server has answered, usually for a
   * moment.
   */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown()
    return this.#closing
  }

  // --- Asking -------------------------------------------------------------------------------------------------------

  #prepare<T>(question: NativeRequest<T>, options: RequestOptions, answer: Deferred<T>): QueuedRequest {
    const send = (connection: NativeConnection) => {
      if (options.signal?.aborted) return true
      if (options.session !== undefined && options.session !== this.#info?.id) {
        const why = 'it was meant for a session that is over'
        answer.reject(notSentError(question, why, { type: SessionExpired, retryable: false }))
        return true
      }
      const answered = createDeferred()
      const sentAt = systemClock()
      const sending = connection.send(question, (code, read) => {
        answered.resolve()
        this.#inFlight.delete(answered.promise)
        if (this.#connection === connection) this.#noteReply(question, code, sentAt)
        settleAnswer(answer, code === NATIVE_CODE.ok ? read : () => throwLater(this.#toError(question, code, options)))
      })
      if (sending === 'unsent') return false
      if (sending === 'sent') this.#inFlight.add(answered.promise)
      else
        answer.reject(notSentError(question, `the C client does not take it (${sending.refused})`, { retryable: true }))
      return true
    }
    return { subject: question, options, send, fail: answer.reject }
  }

  #trySend({ send }: QueuedRequest): boolean {
    return this.#state === 'connected' && this.#connection !== undefined && send(this.#connection)
  }

  /** Sends a request on the current connection, or not at all. */
  #sendNow<T>(question: NativeRequest<T>): Promise<T> {
    const answer = createDeferred<T>()
    const { send, fail } = this.#prepare(question, {}, answer)
    const sent = this.#connection !== undefined && send(this.#connection)
    if (!sent) fail(notSentError(question, 'there is no connection', { retryable: true }))
    return answer.promise
  }

  #noteReply({ operation }: RequestName, code: number, sentAt: Instant): void {
    if (code === NATIVE_CODE.ok) this.#aliveAt = Math.max(this.#aliveAt, sentAt.monotonic)
    this.#lease.replyReceived(operation, code, sentAt)
  }

  #enqueue(waiting: QueuedRequest): void {
    this.#waiting.push(waiting)
    this.#timeoutTimer ??= startTimer(() => {
      const why = `there was no connection for ${this.#options.sessionTimeout} ms`
      this.#rejectWaiting(why, () => ({ retryable: true }))
    }, this.#options.sessionTimeout)
  }

  #rejectWaiting(why: string, retryability: (options: RequestOptions) => NativeRetryability): void {
    for (const { subject, options, fail } of this.#takeWaiting())
      fail(notSentError(subject, why, retryability(options)))
  }

  /** Whether a request to a session that is over may be repeated in the next one, if one will follow. */
  #toRetryability({ session }: RequestOptions): NativeRetryability {
    return { type: SessionExpired, retryable: session === undefined && this.#mayReconnect }
  }

  #toError(subject: RequestName, code: number, { session }: RequestOptions): ZooKeeperError {
    const lost = code === NATIVE_CODE.connectionLoss || code === NATIVE_CODE.operationTimeout
    if (!lost && code !== NATIVE_CODE.closing) {
      const anew = session === undefined && this.#mayReconnect && this.#options.newSession === 'automatic'
      return toError(code, subject, { again: this.#mayReconnect, anew })
    }
    const why = `${lost ? 'the connection was lost' : 'the client was closed'} before the answer came`
    return connectionLossError(subject, why, { again: lost && this.#mayReconnect })
  }

  #takeWaiting(): QueuedRequest[] {
    clearTimeout(this.#timeoutTimer)
    this.#timeoutTimer = undefined
    const waiting = this.#waiting
    this.#waiting = []
    return waiting
  }

  // --- The session's life -------------------------------------------------------------------------------------------

  #createConnector(loaded: NativePackage): NativeConnector {
    const { hosts, chroot, sessionTimeout, auth } = this.#options
    return new NativeConnector(
      { package: loaded, hosts, chroot, sessionTimeout, auth },
      {
        wantedSession: () =>
          this.#info ? { identity: this.#info.identity, barrier: PROOF_REQUEST } : { barrier: ECHO_REQUEST },
        attached: (connection) => this.#attached(connection),
        ready: (connection) => this.#ready(connection),
        closed: (_, end) => this.#disconnected(end),
      },
    )
  }

  #attached(connection: NativeConnection): void {
    const { session } = connection
    if (!session) return
    const { id, timeout, ...identity } = session
    if (this.#info && this.#info.id !== id) {
      this.#endSession(new SessionExpired('the session is over: the server has made another one'), { again: true })
      return
    }
    if (!this.#info) this.#aliveAt = 0
    this.#lease.attached({ id, timeout }, connection.openedAt)
    this.#granted = { id, timeout, identity }
  }

  #ready(connection: NativeConnection): void {
    clearTimeout(this.#giveUpTimer)
    const info = this.#granted
    if (!info) return
    const again = this.#info !== undefined
    this.#info = info
    this.#connection = connection
    // The barrier, which the connection has asked for itself.
    this.#noteReply(again ? PROOF_REQUEST : ECHO_REQUEST, NATIVE_CODE.ok, connection.openedAt)
    if (again) this.#options.onReattached((question) => this.#sendNow(question))
    this.#becomeConnected(info, connection)
  }

  #becomeConnected(
    { id, timeout }: { readonly id: bigint; readonly timeout: number },
    connection: NativeConnection,
  ): void {
    if (this.#state !== 'connecting' && this.#state !== 'suspended') return
    this.#setState('connected')
    if (this.#previousId !== id) {
      const previous = this.#previousId
      this.#previousId = id
      this.#emitter.emit('session', { session: id, ...defined({ previous }) })
    }
    // A listener may have closed the client.
    if (this.#connection !== connection) return
    this.#lease.connected(timeout)
    this.#first.resolve()
    for (const waiting of this.#takeWaiting()) if (!this.#trySend(waiting)) this.#enqueue(waiting)
  }

  #disconnected({ why, sessionOver }: NativeCloseReason): void {
    if (sessionOver !== undefined) {
      this.#endSession(toSessionEnd(sessionOver), { again: sessionOver === NATIVE_CODE.expired })
      return
    }
    this.#connection = undefined
    if (this.#state !== 'connected' || !this.#info) return
    const { timeout } = this.#info
    this.#lease.disconnected()
    this.#setState('suspended', new NotSent(why))
    // A listener may have closed the client.
    if (!this.#info) return
    const timeoutMs = Math.max(timeout / 3, this.#aliveAt + timeout - monotonic())
    this.#giveUpTimer = startTimer(() => {
      const message = `no connection within ${Math.round(timeoutMs)} ms: the session may be over any moment`
      this.#endSession(new SessionExpired(message, { outcome: 'unknown' }), { again: true })
    }, timeoutMs)
  }

  #leaseOver(verdict: string): void {
    if (!this.#info) return
    const message = `the session of ${this.#info.timeout} ms cannot be relied on: ${verdict}`
    this.#endSession(new SessionExpired(message, { outcome: 'unknown' }), { again: true })
  }

  #endSession(reason: Error, options: { again: boolean }): void {
    clearTimeout(this.#giveUpTimer)
    this.#lease.disconnected()
    this.#lease.keeper.ended()
    const connection = this.#connector?.stop()
    this.#connection = undefined
    this.#info = undefined
    this.#mayReconnect = options.again && this.#options.newSession === 'automatic'
    this.#setState('lost', reason)
    this.#first.reject(reason)
    this.#options.onOver(reason)
    this.#rejectWaiting('the session is over', (asked) => this.#toRetryability(asked))
    // Ending the session of a connection blocks the process: the listeners of the loss come first.
    setImmediate(() => {
      connection?.end()
      if (!this.#mayReconnect) this.#lease.keeper.close(reason)
      if (this.#state !== 'lost' || this.#closing || !this.#mayReconnect) return
      this.#setState('connecting')
      this.#connector?.start()
    })
  }

  async #shutDown(): Promise<void> {
    clearTimeout(this.#giveUpTimer)
    this.#mayReconnect = false
    this.#rejectWaiting('the client is closed', () => NOT_RETRYABLE)
    if (this.#state === 'connected') await this.#whenAnswered()
    await new Promise((resolve) => setImmediate(resolve))
    const connection = this.#connector?.stop()
    this.#connection = undefined
    this.#info = undefined
    this.#lease.disconnected()
    this.#lease.keeper.close()
    connection?.end()
    if (this.#state !== 'closed') this.#setState('closed')
    const reason = new SessionExpired('the client was closed, and its session with it')
    this.#options.onOver(reason)
    this.#first.reject(reason)
    this.#first.promise.catch(() => undefined)
  }

  /** Resolves when all requests in flight are answered, or after a while. */
  async #whenAnswered(): Promise<void> {
    const late = createDeferred()
    const timer = setTimeout(late.resolve, CLOSE_TIMEOUT_MS)
    await Promise.race([Promise.all(this.#inFlight), late.promise])
    clearTimeout(timer)
  }

  #setState(state: ClientState, reason?: Error): void {
    const previous = this.#state
    if (!canTransition(previous, state)) return
    this.#state = state
    this.#emitter.emit('state', { state, previous, ...defined({ session: this.#info?.id, reason }) })
  }
}

/** Codes for which the C client closes a session by itself. */
function toSessionEnd(code: number): ZooKeeperError {
  if (code === NATIVE_CODE.authFailed) return new AuthFailed('session: the server does not accept the auth given')
  return new SessionExpired('the session is over: the server has expired it')
}

/** Never throws: it is called by the C client. */
function settleAnswer<T>(answer: Deferred<T>, read: () => T): void {
  try {
    answer.resolve(read())
  } catch (error) {
    answer.reject(error)
  }
}

function throwLater(error: Error): never {
  throw error
}

interface RequestName {
  readonly operation: string
  readonly path?: string
}

interface NativeRetryability {
  readonly type?: typeof ZooKeeperError
  /** Whether a repeated request has a chance to be sent. */
  readonly retryable: boolean
}

const NOT_RETRYABLE: NativeRetryability = { retryable: false }

function notSentError(
  subject: RequestName,
  why: string,
  { type = NotSent, retryable }: NativeRetryability,
): ZooKeeperError {
  const { operation, path } = subject
  const name = path === undefined ? operation : `${operation} ${path}`
  return new type(`${name}: not sent, ${why}`, { outcome: 'not-sent', path, retryable: retryable })
}
