/**
 * Holds a session of the C client, and another one after it, and reports them as our own client does (`states.ts`).
 *
 * Each connection is a handle of its own that attaches to the session (`native-connection.ts`). A session without a
 * connection is given up one timeout after the sending of the newest request that was answered, or a third of it after the
 * connection was lost if that is later. Where the session is relied on it ends with its lease (`native-lease.ts`), which is
 * earlier. Requests wait on this side while there is no connection: the C client would take them, too, but fails what it
 * has sent and what it has not sent with one and the same code.
 */
import { type Deferred, deferred, onAbort } from '../core/abort.ts'
import { type Instant, systemClock } from '../core/clock.ts'
import { InvalidState } from '../core/errors.ts'
import type { Emitter } from '../core/events.ts'
import { monotonic } from '../core/time.ts'
import type { DriverEvents } from './client-events.ts'
import { AuthFailed, connectionLoss, errorOfCode, NotSent, SessionExpired, type ZooKeeperError } from './errors.ts'
import type { Hosts } from './hosts.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { NativeAuth, NativeConnection, NativeEnd, NativeIdentity } from './native-connection.ts'
import { NativeConnector } from './native-connector.ts'
import { ECHO, NativeLease, PROOF } from './native-lease.ts'
import { NATIVE_CODE, type NativePackage } from './native-package.ts'
import type { Question } from './native-question.ts'
import type { RequestOptions } from './pending.ts'
import { type ClientState, mayFollow } from './states.ts'

export interface NativeSessionOptions {
  readonly hosts: Hosts
  readonly chroot: string
  readonly sessionTimeout: number
  /** The server's, in milliseconds. */
  readonly tick: number | undefined
  readonly newSession: 'automatic' | 'never'
  readonly auth: readonly NativeAuth[]
  /** The session is over, and its watches with it. */
  readonly over: (reason: Error) => void
  /** The session has another connection, which knows no watches; `ask` sends on it, before everything else. */
  readonly attachedAgain: (ask: <T>(question: Question<T>) => Promise<T>) => void
}

interface Waiting {
  readonly subject: Subject
  readonly options: RequestOptions
  /** Whether the request need not be sent again: it is under way, or was rejected. */
  readonly send: (connection: NativeConnection) => boolean
  readonly fail: (error: unknown) => void
}

const LONGEST_GOODBYE = 3_000

export class NativeSession {
  readonly #options: NativeSessionOptions
  readonly #emitter: Emitter<DriverEvents>
  readonly #first = deferred()
  readonly #lease: NativeLease
  #connector: NativeConnector | undefined
  #state: ClientState = 'new'
  /** The connection that requests go out on. */
  #connection: NativeConnection | undefined
  #info: { readonly id: bigint; readonly timeout: number; readonly identity: NativeIdentity } | undefined
  /** What the newest connection was granted; it is `#info` as soon as that is ready. */
  #granted: { readonly id: bigint; readonly timeout: number; readonly identity: NativeIdentity } | undefined
  #previousId: bigint | undefined
  /** When the session was certainly alive, by an answer. */
  #aliveAt = 0
  #waiting: Waiting[] = []
  #patience: NodeJS.Timeout | undefined
  #giveUp: NodeJS.Timeout | undefined
  readonly #inFlight = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined
  /** Whether there may be another connection. */
  #goesOn = true

  constructor(options: NativeSessionOptions, emitter: Emitter<DriverEvents>) {
    this.#options = options
    this.#emitter = emitter
    this.#lease = new NativeLease({
      clock: systemClock,
      tick: options.tick,
      ask: (question) => this.#aside(question),
      over: (verdict) => this.#leaseOver(verdict),
    })
  }

  get state(): ClientState {
    return this.#state
  }

  get info(): { readonly id: bigint; readonly timeout: number; readonly leaseUntil: number } | undefined {
    if (!this.#info) return undefined
    const { id, timeout } = this.#info
    return { id, timeout, leaseUntil: this.#lease.keeper.until }
  }

  get lease(): Pick<LeaseKeeper, 'hold'> {
    return this.#lease.keeper
  }

  /** Begins to connect; resolves with the first session. */
  start(load: () => Promise<NativePackage>): Promise<void> {
    if (this.#state !== 'new') throw new InvalidState(`connect() is called once, and the client is ${this.#state}`)
    this.#become('connecting')
    load().then((loaded) => {
      if (this.#state !== 'connecting') return
      this.#connector = this.#connectorOf(loaded)
      this.#connector.start()
    }, this.#first.reject)
    return this.#first.promise
  }

  ask<T>(question: Question<T>, options: RequestOptions): Promise<T> {
    const answer = deferred<T>()
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
    this.#lease.keeper.alive()
    if (this.#closing || this.#state === 'closed') waiting.fail(notSent(question, 'the client is closed', FINAL))
    else if (this.#state === 'new') waiting.fail(notSent(question, 'connect() was not called', FINAL))
    else if (this.#state === 'lost') waiting.fail(notSent(question, 'the session is over', this.#prospect(options)))
    else if (!this.#sent(waiting)) this.#wait(waiting)
    return answer.promise
  }

  /** Ends the session at the server. The C client blocks the process while it says goodbye, a moment as a rule. */
  close(): Promise<void> {
    this.#closing ??= this.#shut()
    return this.#closing
  }

  // --- Asking -------------------------------------------------------------------------------------------------------

  #prepare<T>(question: Question<T>, options: RequestOptions, answer: Deferred<T>): Waiting {
    const send = (connection: NativeConnection) => {
      if (options.signal?.aborted) return true
      if (options.session !== undefined && options.session !== this.#info?.id) {
        const why = 'it was meant for a session that is over'
        answer.reject(notSent(question, why, { type: SessionExpired, again: false }))
        return true
      }
      const answered = deferred()
      const sentAt = systemClock()
      const sending = connection.ask(question, (code, read) => {
        answered.resolve()
        this.#inFlight.delete(answered.promise)
        if (this.#connection === connection) this.#heard(question, code, sentAt)
        settle(answer, code === NATIVE_CODE.ok ? read : () => raise(this.#errorOf(question, code, options)))
      })
      if (sending === 'unsent') return false
      if (sending === 'sent') this.#inFlight.add(answered.promise)
      else answer.reject(notSent(question, `the C client does not take it (${sending.refused})`, { again: true }))
      return true
    }
    return { subject: question, options, send, fail: answer.reject }
  }

  #sent({ send }: Waiting): boolean {
    return this.#state === 'connected' && this.#connection !== undefined && send(this.#connection)
  }

  /** Asks on the connection there is, or not at all; does not wait for another. */
  #aside<T>(question: Question<T>): Promise<T> {
    const answer = deferred<T>()
    const { send, fail } = this.#prepare(question, {}, answer)
    const sent = this.#connection !== undefined && send(this.#connection)
    if (!sent) fail(notSent(question, 'there is no connection', { again: true }))
    return answer.promise
  }

  #heard({ operation }: Subject, code: number, sentAt: Instant): void {
    if (code === NATIVE_CODE.ok) this.#aliveAt = Math.max(this.#aliveAt, sentAt.monotonic)
    this.#lease.heard(operation, code, sentAt)
  }

  #wait(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#patience ??= setTimeout(() => {
      const why = `there was no connection for ${this.#options.sessionTimeout} ms`
      this.#rejectWaiting(why, () => ({ again: true }))
    }, this.#options.sessionTimeout)
  }

  #rejectWaiting(why: string, prospect: (options: RequestOptions) => Prospect): void {
    for (const { subject, options, fail } of this.#takeWaiting()) fail(notSent(subject, why, prospect(options)))
  }

  /** What is asked of a session that is over may be asked of the next one, if there is to be one. */
  #prospect({ session }: RequestOptions): Prospect {
    return { type: SessionExpired, again: session === undefined && this.#goesOn }
  }

  #errorOf(subject: Subject, code: number, { session }: RequestOptions): ZooKeeperError {
    const lost = code === NATIVE_CODE.connectionLoss || code === NATIVE_CODE.operationTimeout
    if (!lost && code !== NATIVE_CODE.closing) {
      const anew = session === undefined && this.#goesOn && this.#options.newSession === 'automatic'
      return errorOfCode(code, subject, { again: this.#goesOn, anew })
    }
    const why = `${lost ? 'the connection was lost' : 'the client was closed'} before the answer came`
    return connectionLoss(subject, why, { again: lost && this.#goesOn })
  }

  #takeWaiting(): Waiting[] {
    clearTimeout(this.#patience)
    this.#patience = undefined
    const waiting = this.#waiting
    this.#waiting = []
    return waiting
  }

  // --- The session's life -------------------------------------------------------------------------------------------

  #connectorOf(loaded: NativePackage): NativeConnector {
    const { hosts, chroot, sessionTimeout, auth } = this.#options
    return new NativeConnector(
      { package: loaded, hosts, chroot, sessionTimeout, auth },
      {
        wanted: () => (this.#info ? { identity: this.#info.identity, barrier: PROOF } : { barrier: ECHO }),
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
      this.#lose(new SessionExpired('the session is over: the server has made another one'), { again: true })
      return
    }
    if (!this.#info) this.#aliveAt = 0
    this.#lease.attached({ id, timeout }, connection.openedAt)
    this.#granted = { id, timeout, identity }
  }

  #ready(connection: NativeConnection): void {
    clearTimeout(this.#giveUp)
    const info = this.#granted
    if (!info) return
    const again = this.#info !== undefined
    this.#info = info
    this.#connection = connection
    // The barrier, which the connection has asked for itself.
    this.#heard(again ? PROOF : ECHO, NATIVE_CODE.ok, connection.openedAt)
    if (again) this.#options.attachedAgain((question) => this.#aside(question))
    this.#becomeConnected(info, connection)
  }

  #becomeConnected(
    { id, timeout }: { readonly id: bigint; readonly timeout: number },
    connection: NativeConnection,
  ): void {
    if (this.#state !== 'connecting' && this.#state !== 'suspended') return
    this.#become('connected')
    if (this.#previousId !== id) {
      const previous = this.#previousId
      this.#previousId = id
      this.#emitter.emit('session', { session: id, ...(previous === undefined ? {} : { previous }) })
    }
    // A listener may have closed the client.
    if (this.#connection !== connection) return
    this.#lease.connected(timeout)
    this.#first.resolve()
    for (const waiting of this.#takeWaiting()) if (!this.#sent(waiting)) this.#wait(waiting)
  }

  #disconnected({ why, sessionOver }: NativeEnd): void {
    if (sessionOver !== undefined) {
      this.#lose(endOf(sessionOver), { again: sessionOver === NATIVE_CODE.expired })
      return
    }
    this.#connection = undefined
    if (this.#state !== 'connected' || !this.#info) return
    const { timeout } = this.#info
    this.#lease.disconnected()
    this.#become('suspended', new NotSent(why))
    // A listener may have closed the client.
    if (!this.#info) return
    const patience = Math.max(timeout / 3, this.#aliveAt + timeout - monotonic())
    this.#giveUp = setTimeout(() => {
      const message = `no connection within ${Math.round(patience)} ms: the session may be over any moment`
      this.#lose(new SessionExpired(message, { outcome: 'unknown' }), { again: true })
    }, patience)
  }

  #leaseOver(verdict: string): void {
    if (!this.#info) return
    const message = `the session of ${this.#info.timeout} ms cannot be relied on: ${verdict}`
    this.#lose(new SessionExpired(message, { outcome: 'unknown' }), { again: true })
  }

  #lose(reason: Error, options: { again: boolean }): void {
    clearTimeout(this.#giveUp)
    this.#lease.disconnected()
    this.#lease.keeper.ended()
    const connection = this.#connector?.stop()
    this.#connection = undefined
    this.#info = undefined
    this.#goesOn = options.again && this.#options.newSession === 'automatic'
    this.#become('lost', reason)
    this.#first.reject(reason)
    this.#options.over(reason)
    this.#rejectWaiting('the session is over', (asked) => this.#prospect(asked))
    // Ending the session of a connection blocks the process: the listeners of the loss come first.
    setImmediate(() => {
      connection?.end()
      if (!this.#goesOn) this.#lease.keeper.close(reason)
      if (this.#state !== 'lost' || this.#closing || !this.#goesOn) return
      this.#become('connecting')
      this.#connector?.start()
    })
  }

  async #shut(): Promise<void> {
    clearTimeout(this.#giveUp)
    this.#goesOn = false
    this.#rejectWaiting('the client is closed', () => FINAL)
    if (this.#state === 'connected') await this.#answered()
    await new Promise((resolve) => setImmediate(resolve))
    const connection = this.#connector?.stop()
    this.#connection = undefined
    this.#info = undefined
    this.#lease.disconnected()
    this.#lease.keeper.close()
    connection?.end()
    if (this.#state !== 'closed') this.#become('closed')
    const reason = new SessionExpired('the client was closed, and its session with it')
    this.#options.over(reason)
    this.#first.reject(reason)
    this.#first.promise.catch(() => undefined)
  }

  /** When whatever is under way is answered, or after a while. */
  async #answered(): Promise<void> {
    const late = deferred()
    const timer = setTimeout(late.resolve, LONGEST_GOODBYE)
    await Promise.race([Promise.all(this.#inFlight), late.promise])
    clearTimeout(timer)
  }

  #become(state: ClientState, reason?: Error): void {
    const previous = this.#state
    if (!mayFollow(previous, state)) return
    this.#state = state
    const session = this.#info?.id
    this.#emitter.emit('state', {
      state,
      previous,
      ...(session === undefined ? {} : { session }),
      ...(reason ? { reason } : {}),
    })
  }
}

/** What the C client closes a session for by itself. */
function endOf(code: number): ZooKeeperError {
  if (code === NATIVE_CODE.authFailed) return new AuthFailed('session: the server does not accept the auth given')
  return new SessionExpired('the session is over: the server has expired it')
}

/** Never throws: it is called by the C client. */
function settle<T>(answer: Deferred<T>, read: () => T): void {
  try {
    answer.resolve(read())
  } catch (error) {
    answer.reject(error)
  }
}

function raise(error: Error): never {
  throw error
}

interface Subject {
  readonly operation: string
  readonly path?: string
}

interface Prospect {
  readonly type?: typeof ZooKeeperError
  /** Whether the same may be asked again with a chance to be sent. */
  readonly again: boolean
}

const FINAL: Prospect = { again: false }

function notSent(subject: Subject, why: string, { type = NotSent, again }: Prospect): ZooKeeperError {
  const { operation, path } = subject
  const name = path === undefined ? operation : `${operation} ${path}`
  return new type(`${name}: not sent, ${why}`, { outcome: 'not-sent', path, retryable: again })
}
