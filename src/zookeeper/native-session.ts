/**
 * Holds a session of the C client, and another one after it, and tells of them as our own client does (`states.ts`).
 *
 * The C client keeps trying for the same session for ever, and says nothing of time. So a suspended session is given up
 * here, one timeout after the sending of the newest request that was answered, or a third of it after the connection was
 * lost if that is later: the C client hears nothing for two thirds before it calls a connection dead. Where somebody
 * relies on the session it ends with its lease (`native-lease.ts`), which is earlier. Requests wait on this side while
 * there is no connection. The C client would take them, too, but fails what it has sent and what it has
 * not sent with one and the same code.
 */
import { type Deferred, deferred, onAbort } from '../core/abort.ts'
import { type Instant, systemClock } from '../core/clock.ts'
import { InvalidState } from '../core/errors.ts'
import type { Emitter } from '../core/events.ts'
import { monotonic } from '../core/time.ts'
import type { DriverEvents } from './client-events.ts'
import { AuthFailed, connectionLoss, errorOfCode, NotSent, SessionExpired, type ZooKeeperError } from './errors.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import { ECHO, NativeLease } from './native-lease.ts'
import { idOf, NATIVE_CODE, type NativeHandle, type NativePackage } from './native-package.ts'
import type { Question } from './native-question.ts'
import type { RequestOptions } from './pending.ts'
import { type ClientState, mayFollow } from './states.ts'

export interface NativeSessionOptions {
  readonly hosts: string
  readonly sessionTimeout: number
  /** The server's, in milliseconds. */
  readonly tick: number | undefined
  readonly newSession: 'automatic' | 'never'
  readonly auth: readonly NativeAuth[]
  /** The session is over, and its watches with it. */
  readonly over: (reason: Error) => void
}

export interface NativeAuth {
  readonly scheme: string
  readonly auth: string
}

interface Waiting {
  readonly subject: Subject
  readonly options: RequestOptions
  readonly send: (handle: NativeHandle) => void
  readonly fail: (error: unknown) => void
}

const LONGEST_GOODBYE = 3_000
const REOPEN_AFTER = 1_000
const NO_HANDLE = 0
const LARGEST_INT = 2 ** 31 - 1

export class NativeSession {
  readonly #options: NativeSessionOptions
  readonly #emitter: Emitter<DriverEvents>
  readonly #first = deferred()
  readonly #lease: NativeLease
  #package: NativePackage | undefined
  #state: ClientState = 'new'
  #handle: NativeHandle | undefined
  #openedAt: Instant = systemClock()
  #info: { id: bigint; timeout: number } | undefined
  #previousId: bigint | undefined
  /** When the session was certainly alive, by an answer. */
  #aliveAt = 0
  #waiting: Waiting[] = []
  #patience: NodeJS.Timeout | undefined
  #giveUp: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined
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
    return this.#info && { ...this.#info, leaseUntil: this.#lease.keeper.until }
  }

  get lease(): Pick<LeaseKeeper, 'hold'> {
    return this.#lease.keeper
  }

  /** Begins to connect; resolves with the first session. */
  start(load: () => Promise<NativePackage>): Promise<void> {
    if (this.#state !== 'new') throw new InvalidState(`connect() is called once, and the client is ${this.#state}`)
    this.#become('connecting')
    load().then((loaded) => {
      this.#package = loaded
      if (this.#state === 'connecting') this.#open()
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
    else if (this.#state === 'connected' && this.#handle) waiting.send(this.#handle)
    else this.#wait(waiting)
    return answer.promise
  }

  /** Ends the session at the server. The C client blocks the process while it says goodbye, a moment as a rule. */
  close(): Promise<void> {
    this.#closing ??= this.#shut()
    return this.#closing
  }

  // --- Asking -------------------------------------------------------------------------------------------------------

  #prepare<T>(question: Question<T>, options: RequestOptions, answer: Deferred<T>): Waiting {
    const send = (handle: NativeHandle) => {
      if (options.signal?.aborted) return
      if (options.session !== undefined && options.session !== this.#info?.id) {
        const why = 'it was meant for a session that is over'
        answer.reject(notSent(question, why, { type: SessionExpired, again: false }))
        return
      }
      const answered = deferred()
      const sentAt = systemClock()
      const refused = question.ask(handle, (code, read) => {
        answered.resolve()
        this.#inFlight.delete(answered.promise)
        if (this.#handle === handle) this.#heard(question, code, sentAt)
        settle(answer, code === NATIVE_CODE.ok ? read : () => raise(this.#errorOf(question, code, options)))
      })
      if (refused === NATIVE_CODE.ok) this.#inFlight.add(answered.promise)
      else answer.reject(notSent(question, `the C client does not take it (${refused})`, { again: true }))
    }
    return { subject: question, options, send, fail: answer.reject }
  }

  /** On the connection there is, or not at all; does not wait for another. */
  #aside(question: Question<void>): Promise<void> {
    const answer = deferred()
    const { send, fail } = this.#prepare(question, {}, answer)
    if (this.#handle) send(this.#handle)
    else fail(notSent(question, 'there is no connection', { again: true }))
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

  #open(): void {
    const { hosts, sessionTimeout } = this.#options
    if (!this.#package) return
    const handle = new this.#package({
      connect: hosts,
      timeout: Math.round(sessionTimeout),
      debug_level: 0,
      host_order_deterministic: false,
      response_counter_limit: LARGEST_INT,
    })
    this.#handle = handle
    this.#openedAt = systemClock()
    const current = () => this.#handle === handle
    handle.on('connect', () => current() && this.#connected(handle))
    handle.on('connecting', () => current() && this.#suspended())
    handle.on('close', (_, code) => {
      if (current()) this.#lose(endOf(code), { again: code === NATIVE_CODE.expired })
    })
    handle.init({})
    if (handle.state !== NO_HANDLE) {
      // The C client gives them again on every connection, before it sends anything else.
      for (const { scheme, auth } of this.#options.auth) handle.add_auth(scheme, auth, () => undefined)
      return
    }
    // A name that cannot be resolved: the C client gives up for good, and says so nowhere else.
    this.#handle = undefined
    this.#again = setTimeout(() => this.#open(), REOPEN_AFTER)
  }

  #connected(handle: NativeHandle): void {
    clearTimeout(this.#giveUp)
    const id = idOf(handle.client_id)
    const info = { id, timeout: handle.timeout }
    if (id === this.#info?.id) {
      this.#lease.attached(info)
      this.#becomeConnected(info, handle)
      return
    }
    this.#aliveAt = 0
    this.#lease.attached(info, this.#openedAt)
    // Without an answer there is another connection to come.
    this.#aside(ECHO).then(
      () => this.#handle === handle && this.#becomeConnected(info, handle),
      () => undefined,
    )
  }

  #becomeConnected(info: { readonly id: bigint; readonly timeout: number }, handle: NativeHandle): void {
    const { id } = info
    this.#info = info
    if (this.#state !== 'connecting' && this.#state !== 'suspended') return
    this.#become('connected')
    if (this.#previousId !== id) {
      const previous = this.#previousId
      this.#previousId = id
      this.#emitter.emit('session', { session: id, ...(previous === undefined ? {} : { previous }) })
    }
    // A listener may have closed the client.
    if (this.#handle !== handle) return
    this.#lease.connected(info.timeout)
    this.#first.resolve()
    for (const { send } of this.#takeWaiting()) send(handle)
  }

  #suspended(): void {
    if (this.#state !== 'connected' || !this.#info) return
    const { timeout } = this.#info
    this.#lease.disconnected()
    this.#become('suspended', new NotSent('the C client has lost its connection'))
    const patience = Math.max(timeout / 3, this.#aliveAt + timeout - monotonic())
    this.#giveUp = setTimeout(() => {
      const why = `no connection within ${Math.round(patience)} ms: the session may be over any moment`
      this.#lose(new SessionExpired(why, { outcome: 'unknown' }), { again: true })
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
    const handle = this.#handle
    this.#handle = undefined
    this.#info = undefined
    this.#goesOn = options.again && this.#options.newSession === 'automatic'
    this.#become('lost', reason)
    this.#first.reject(reason)
    this.#options.over(reason)
    this.#rejectWaiting('the session is over', (asked) => this.#prospect(asked))
    // Never inside a callback of the C client: it would be freed while it is in use.
    setImmediate(() => {
      handle?.close()
      if (!this.#goesOn) this.#lease.keeper.close(reason)
      if (this.#state !== 'lost' || this.#closing || !this.#goesOn) return
      this.#become('connecting')
      this.#open()
    })
  }

  async #shut(): Promise<void> {
    clearTimeout(this.#giveUp)
    clearTimeout(this.#again)
    this.#goesOn = false
    this.#rejectWaiting('the client is closed', () => FINAL)
    if (this.#state === 'connected') await this.#answered()
    await new Promise((resolve) => setImmediate(resolve))
    const handle = this.#handle
    this.#handle = undefined
    this.#info = undefined
    this.#lease.disconnected()
    this.#lease.keeper.close()
    handle?.close()
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
