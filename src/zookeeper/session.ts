/**
 * Holds a session over however many connections it takes, and says at any time how far it can be relied on.
 *
 * One loop runs from connect() to close(): choose a server, attach, stay until the connection is over, try again. The
 * states and what leads from one to the next are in `states.ts`; what ends a session is here:
 *
 * - a server answers that it is over;
 * - its lease ends (`lease.ts`), seen by a timer, or before anything received is looked at or anything is sent. Then it is
 *   over for us while the server may still believe in it, so before the next session is opened this one is attached to
 *   once more and closed: its ephemeral znodes go at once, not when the server loses patience.
 */
import { type Deferred, deferred } from '../core/abort.ts'
import { IncompatibleVersion, InvalidState, NotConnected } from '../core/errors.ts'
import { describeError } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { monotonic, sleep } from '../core/time.ts'
import { AbandonedSession, type Credentials } from './abandoned.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Endpoint, Rotation } from './connect-string.ts'
import { formatEndpoint } from './connect-string.ts'
import { Connection } from './connection.ts'
import { NotSent, SessionExpired, Unimplemented } from './errors.ts'
import { MalformedBytes } from './jute.ts'
import { Lease } from './lease.ts'
import { notSent, Outbox } from './outbox.ts'
import { Pacing } from './pacing.ts'
import { Pending } from './pending.ts'
import { type ConnectResponse, NO_PASSWORD, type WatchEvent } from './records.ts'
import { closeSession, type Request } from './requests.ts'
import { type ClientState, mayFollow } from './states.ts'

export interface SessionOptions {
  readonly rotation: Rotation
  readonly sessionTimeout: number
  readonly connectTimeout: number
  readonly maxReplyBytes: number
  readonly newSession: 'automatic' | 'never'
  readonly log: Logger
  readonly clock?: Clock
}

/** What a session tells the client around it. Everything is called synchronously. */
export interface SessionOwner {
  stateChanged(event: { state: ClientState; previous: ClientState; session?: bigint; reason?: Error }): void
  sessionChanged(event: { session: bigint; previous?: bigint }): void
  events(batch: readonly WatchEvent[]): void
  /** The watches are armed on a new connection; what happened since the last one was not told. */
  gap(): void
  /** The requests that arm the watches; at least one, even without watches. */
  arming(lastZxid: bigint): Request<undefined>[]
}

/** What is known of a session. */
export interface SessionInfo {
  readonly id: bigint
  /** What the server granted, in milliseconds. */
  readonly timeout: number
  /** Until when the session is certain to be alive, on the clock of `monotonic()`. */
  readonly leaseUntil: number
}

interface Held extends Credentials {
  readonly lease: Lease
}

/** Written at once, at most: about what a socket takes without waiting. */
const WRITE_BYTES = 256 * 1_024
const LONGEST_GOODBYE = 3_000

const LOG_LEVEL = {
  new: 'debug',
  connecting: 'debug',
  connected: 'info',
  suspended: 'warn',
  lost: 'warn',
  closed: 'debug',
} as const satisfies Record<ClientState, string>

export class Session {
  readonly #options: SessionOptions
  readonly #owner: SessionOwner
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #pacing: Pacing
  readonly #stop = new AbortController()
  readonly #first: Deferred<void> = deferred()
  #state: ClientState = 'new'
  #held: Held | undefined
  #abandoned: AbandonedSession | undefined
  /** The newest transaction seen in this session: a server that is behind it would show the past. */
  #lastZxid = 0n
  #previousId: bigint | undefined
  /** The connection there is, or is to be. */
  #connection: Connection | undefined
  /** The same, once requests may go over it. */
  #attached: Connection | undefined
  #attachedAt: number | undefined
  #leaseTimer: NodeJS.Timeout | undefined
  #flushing = false
  #versionKnown = false
  #lastFault: Error | undefined
  #loop: Promise<void> | undefined
  #closing: Deferred<void> | undefined

  constructor(options: SessionOptions, owner: SessionOwner) {
    this.#options = options
    this.#owner = owner
    this.#clock = options.clock ?? systemClock
    this.#outbox = new Outbox(options.sessionTimeout)
    this.#pacing = new Pacing(options.sessionTimeout)
  }

  get state(): ClientState {
    return this.#state
  }

  get info(): SessionInfo | undefined {
    if (!this.#held) return undefined
    const { id, timeout, lease } = this.#held
    const now = this.#clock()
    return { id, timeout, leaseUntil: now.monotonic + lease.remaining(now) }
  }

  /** Why there is no connection, as far as known. */
  get lastFault(): Error | undefined {
    return this.#lastFault
  }

  /** Begins to connect; resolves with the first session. It goes on trying until close(). */
  start(): Promise<void> {
    if (this.#state !== 'new') throw new InvalidState(`connect() is called once, and the client is ${this.#state}`)
    this.#become('connecting')
    this.#loop = this.#run()
    return this.#first.promise
  }

  /** Takes a request; it leaves with everything else that is asked in the same turn of the event loop. */
  submit(pending: Pending): void {
    if (this.#state === 'new') pending.fail(notSent(pending, NotSent, 'connect() was not called'))
    else if (this.#state === 'closed') pending.fail(notSent(pending, NotSent, 'the client is closed'))
    else if (this.#state === 'lost') pending.fail(notSent(pending, SessionExpired, 'the session is over'))
    else {
      this.#outbox.push(pending)
      if (this.#attached) this.#flushSoon()
    }
  }

  /** Ends the session at the server, so that its ephemeral znodes go; settles whatever is pending. Bounded in time. */
  close(): Promise<void> {
    if (!this.#closing) {
      // Set first: a listener that hears of the closing may close, too.
      this.#closing = deferred()
      this.#shut().then(this.#closing.resolve, this.#closing.reject)
    }
    return this.#closing.promise
  }

  // --- The loop -----------------------------------------------------------------------------------------------------

  async #run(): Promise<void> {
    while (this.#wantsConnection()) {
      this.#attachedAt = undefined
      try {
        if (this.#abandoned) await this.#closeAbandoned(this.#abandoned)
        if (this.#state !== 'lost') await this.#serve()
      } catch (error) {
        if (error instanceof IncompatibleVersion) {
          this.#first.reject(error)
          return
        }
        this.#fault(error)
      }
      const wait = this.#pacing.after(this.#attachedAt === undefined ? undefined : monotonic() - this.#attachedAt)
      if (wait > 0) await sleep(wait, { signal: this.#stop.signal }).catch(() => undefined)
    }
  }

  #wantsConnection(): boolean {
    return this.#state !== 'closed' && (this.#state !== 'lost' || this.#abandoned !== undefined)
  }

  #fault(error: unknown): void {
    this.#lastFault = error instanceof Error ? error : new Error(String(error))
    // A server that cannot be reached is everyday; one that cannot be understood is somebody's defect.
    const level = error instanceof MalformedBytes ? 'error' : 'debug'
    this.#options.log[level]({ reason: describeError(error) }, 'no connection to ZooKeeper')
  }

  /** Attaches to the session there is, or to a new one, and stays until the connection is over. */
  async #serve(): Promise<void> {
    const endpoint = this.#options.rotation.next()
    const held = this.#held
    const sentAt = this.#clock()
    const { connection, over } = this.#dial(endpoint)
    const response = await connection.attach({
      lastZxid: this.#lastZxid,
      timeout: this.#options.sessionTimeout,
      session: held?.id ?? 0n,
      password: held?.password ?? NO_PASSWORD,
    })
    if (this.#connection !== connection) throw new NotConnected(`${formatEndpoint(endpoint)} hung up`)
    if (response.timeout <= 0) {
      connection.destroy(new SessionExpired('the server says that the session is over'))
      if (!held) throw new NotConnected(`${formatEndpoint(endpoint)} refused a new session`)
      return this.#end(new SessionExpired('the session is over: the server has expired it'))
    }
    this.#hold(response, new Lease(response.timeout, sentAt))
    connection.keepAlive(response.timeout)
    await this.#arm(connection, endpoint)
    if (this.#connection === connection) this.#becomeConnected(connection)
    this.#fault(await over)
  }

  #dial(endpoint: Endpoint): { connection: Connection; over: Promise<Error> } {
    const { connectTimeout, maxReplyBytes } = this.#options
    const over = deferred<Error>()
    const connection: Connection = new Connection(
      { endpoint, connectTimeout, maxReplyBytes, clock: this.#clock },
      {
        alive: () => this.#alive(),
        events: (batch) => this.#owner.events(batch),
        answered: (sentAt, zxid) => {
          this.#held?.lease.answered(sentAt)
          if (zxid > this.#lastZxid) this.#lastZxid = zxid
        },
        drained: () => this.#flush(),
        closed: (cause) => {
          this.#disconnected(connection, cause)
          over.resolve(cause)
        },
      },
    )
    this.#connection = connection
    return { connection, over: over.promise }
  }

  /**
   * Arms the watches, first of all on every connection. The request for it came with ZooKeeper 3.6, so the first answer
   * to it also tells whether the server is new enough, for one round trip in the life of a client.
   */
  async #arm(connection: Connection, endpoint: Endpoint): Promise<void> {
    const arming = this.#owner.arming(this.#lastZxid).map((request) => new Pending(request, monotonic()))
    connection.send(arming)
    const armed = Promise.all(arming.map((pending) => pending.promise))
    // Watches that are not armed would be silent for ever: such a connection is not kept.
    armed.catch((error: unknown) => connection.destroy(error instanceof Error ? error : new Error(String(error))))
    if (this.#versionKnown) return
    try {
      await armed
      this.#versionKnown = true
    } catch (error) {
      if (!(error instanceof Unimplemented)) throw error
      const message = `the ZooKeeper server at ${formatEndpoint(endpoint)} is too old: 3.6 or newer is needed`
      throw new IncompatibleVersion(message, { cause: error })
    }
  }

  #becomeConnected(connection: Connection): void {
    const held = this.#held
    if (!held) return
    this.#attached = connection
    this.#attachedAt = monotonic()
    this.#outbox.before(() => {
      this.#become('connected')
      if (this.#previousId !== held.id) this.#announce(held.id)
      if (this.#attached === connection) this.#owner.gap()
    })
    this.#first.resolve()
    this.#flush()
  }

  #announce(id: bigint): void {
    const previous = this.#previousId
    this.#previousId = id
    this.#owner.sessionChanged({ session: id, ...(previous === undefined ? {} : { previous }) })
  }

  #disconnected(connection: Connection, cause: Error): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#attached = undefined
    if (this.#state === 'connected') this.#become('suspended', cause)
  }

  // --- Sending ------------------------------------------------------------------------------------------------------

  #flushSoon(): void {
    if (this.#flushing) return
    this.#flushing = true
    process.nextTick(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(): void {
    while (this.#outbox.size > 0 && this.#held && this.#attached?.writable && this.#alive()) {
      const batch = this.#outbox.take(this.#held.id, WRITE_BYTES)
      if (batch.length > 0) this.#attached?.send(batch)
    }
  }

  // --- The session's life ---------------------------------------------------------------------------------------------

  #hold({ session: id, password, timeout }: ConnectResponse, lease: Lease): void {
    this.#held = { id, password, timeout, lease }
    this.#watchLease(lease)
  }

  #watchLease(lease: Lease): void {
    clearTimeout(this.#leaseTimer)
    const wait = Math.max(1, lease.remaining(this.#clock()))
    this.#leaseTimer = setTimeout(() => {
      if (this.#alive()) this.#watchLease(lease)
    }, wait)
  }

  /** Whether the session can be relied on; ends it if it cannot any more. True where there is none. */
  #alive(): boolean {
    if (!this.#held || this.#held.lease.remaining(this.#clock()) > 0) return true
    const { timeout } = this.#held
    this.#abandoned = new AbandonedSession(this.#held)
    const message = `the session cannot be relied on: nothing that was sent in the last ${timeout} ms is known to have arrived`
    this.#end(new SessionExpired(message, { cause: this.#lastFault }))
    return false
  }

  #end(reason: SessionExpired): void {
    const connection = this.#connection
    this.#held = undefined
    this.#connection = undefined
    this.#attached = undefined
    // Another session may begin on a server that is behind: its watches say so (a gap), and it starts from there.
    this.#lastZxid = 0n
    clearTimeout(this.#leaseTimer)
    if (this.#state !== 'closed') this.#become('lost', reason)
    this.#outbox.reject(SessionExpired, 'the session is over', reason)
    connection?.destroy(reason)
    if (this.#state === 'lost' && this.#options.newSession === 'automatic') this.#become('connecting')
  }

  async #closeAbandoned(abandoned: AbandonedSession): Promise<void> {
    if (!abandoned.forgotten) await abandoned.close(this.#dial(this.#options.rotation.next()).connection)
    this.#abandoned = undefined
  }

  async #shut(): Promise<void> {
    const { sessionTimeout } = this.#options
    const attached = this.#attached
    const wasNew = this.#state === 'new'
    this.#become('closed')
    const late = new NotConnected('closing took too long')
    const patience = Math.min(LONGEST_GOODBYE, sessionTimeout / 3)
    const deadline = monotonic() + patience
    const timer = setTimeout(() => this.#connection?.destroy(late), patience)
    try {
      if (attached) await this.#sayGoodbye()
      this.#outbox.reject(NotSent, 'the client is closed')
      this.#stop.abort()
      this.#connection?.destroy(new NotConnected('the client is closed'))
      clearTimeout(this.#leaseTimer)
      await this.#loop
      if (!attached) await this.#closeFromAfar(deadline)
    } finally {
      clearTimeout(timer)
    }
    if (!wasNew) this.#first.reject(new NotConnected('the client is closed'))
  }

  /** Behind everything that was asked before, so that it is all answered. */
  async #sayGoodbye(): Promise<void> {
    const farewell = new Pending(closeSession(), monotonic())
    this.#outbox.push(farewell)
    this.#flush()
    await farewell.promise.then(
      () => {
        this.#held = undefined
      },
      (error: unknown) => this.#fault(error),
    )
  }

  /** Closing while there is no connection: one try at each server, so that ephemeral znodes need not wait for expiry. */
  async #closeFromAfar(deadline: number): Promise<void> {
    const held = this.#held
    this.#held = undefined
    if (held) this.#abandoned = new AbandonedSession(held)
    const { rotation } = this.#options
    for (let server = 0; server < rotation.size && this.#abandoned && monotonic() < deadline; server++) {
      await this.#closeAbandoned(this.#abandoned).catch((error: unknown) => this.#fault(error))
    }
  }

  #become(state: ClientState, reason?: Error): void {
    const previous = this.#state
    if (!mayFollow(previous, state)) throw new InvalidState(`a client cannot go from ${previous} to ${state}`)
    this.#state = state
    const event = { state, previous }
    this.#options.log[LOG_LEVEL[state]](
      { ...event, ...(reason ? { reason: describeError(reason) } : {}) },
      'ZooKeeper client',
    )
    this.#owner.stateChanged({
      ...event,
      ...(this.#held ? { session: this.#held.id } : {}),
      ...(reason ? { reason } : {}),
    })
  }
}
