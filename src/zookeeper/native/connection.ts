/**
 * One connection of the C client: one handle of the `zookeeper` package, for one address of one server.
 *
 * The package polls the C client's socket in the event loop of Node by its number. When that number is closed, the poll
 * must be stopped before the event loop polls again, and before anything else in this process opens a socket, which gets
 * the same number. Otherwise libuv aborts the process (`epoll_ctl` fails), or the other socket is never polled again. The
 * package stops the poll where it notices that the socket is closed, but it does not notice every time. So:
 *
 *     a request fails to be sent    the C client closes its socket inside the call and reports it nowhere, but its state
 *                                   is `notConnected`. It is read after every request, and the handle is closed in the
 *                                   same call, which stops the poll
 *     nothing is received for 2/3   the C client closes its socket in a timer and keeps the poll. The connection is given
 *     of the session's timeout      up here earlier: `set_servers` closes the socket, then the handle is closed. The timer
 *                                   that looks for it is always due before the C client's, also after a process was stopped
 *     the connection breaks,        the package stops the poll before its callback returns. So nothing but setImmediate
 *     or is refused                 runs inside a callback; and as there is only one address, the C client does not open
 *                                   another socket in the same callback, which might fail and leave the poll of the old one
 *     names are resolved anew       the C client does that in every poll, and closes its socket where the answer is
 *                                   another. An address in digits is always the same
 *
 * So a handle has one connection, and what follows is another handle that attaches to the same session. Watches stay behind
 * (`watches.ts`). A handle that is closed while it is connected ends its session: `release` avoids that.
 */
import { type Instant, monotonic, startInterval, systemClock } from '../../core/time.ts'
import type { Server } from '../connection/hosts.ts'
import { formatEndpoint } from '../protocol/connect-string.ts'
import { MAX_INT32 } from '../protocol/jute.ts'
import {
  NATIVE_CODE,
  NATIVE_STATE,
  type NativeCallback,
  type NativeHandle,
  type NativePackage,
  type NativeRequest,
  parseSessionId,
} from './package.ts'

export interface NativeAuth {
  readonly scheme: string
  readonly auth: string
}

/** Session to which a handle attaches, in the package's format. */
export interface NativeIdentity {
  readonly client_id: string
  readonly client_password: string
}

export interface NativeConnectionOptions {
  readonly package: NativePackage
  readonly server: Server
  readonly chroot: string
  /** Requested timeout in milliseconds. */
  readonly sessionTimeout: number
  readonly auth: readonly NativeAuth[]
  /** Session to attach to; a new one without it. */
  readonly identity?: NativeIdentity | undefined
  /** First request of the connection, which is ready when it was answered, and fails if it is refused. */
  readonly barrier: NativeRequest<void>
}

/** Callbacks of a connection. They are called outside of every callback of the package, in the order of the events. */
export interface NativeConnectionOwner {
  /** Reports that the server has granted the session. */
  attached(connection: NativeConnection): void
  /** Reports that the barrier was answered; it may have been sent as early as the connection was opened. */
  ready(connection: NativeConnection): void
  /** Reports that the connection is over; called once. Not called after `end` or `release`. */
  closed(connection: NativeConnection, end: NativeCloseReason): void
}

/** Reason of a connection's end: a text for people, and the package's code where the session is over with it. */
export interface NativeCloseReason {
  readonly why: string
  readonly sessionOver?: number
}

/** Outcome of a request: `unsent` means that no server has it, and none will receive it. */
export type SendResult = 'sent' | 'unsent' | { readonly refused: number }

/** Time limit for one address, as a fraction of the session's timeout. */
const CONNECT_TIMEOUT_FRACTION = 1 / 3
/** Time limit for silence. The C client would wait for two thirds; see the table above. */
const SILENCE_FRACTION = 7 / 12
/**
 * The C client's timer is a third of the timeout behind what was received last, and something is asked four times in a
 * timeout (`lease.ts`). So a timer of this period is due before it whenever this process stops.
 */
const CHECKS_PER_TIMEOUT = 16
/**
 * `set_servers` closes the socket where its server has another address than this, whatever the ports. This one is reserved
 * for documentation (RFC 5737), and is never connected to: the handle is closed at once.
 */
const UNREACHABLE_ADDRESS = '192.0.2.1:1'
const LOST_CODES: ReadonlySet<number> = new Set([
  NATIVE_CODE.connectionLoss,
  NATIVE_CODE.operationTimeout,
  NATIVE_CODE.closing,
])

export class NativeConnection {
  readonly #options: NativeConnectionOptions
  readonly #owner: NativeConnectionOwner
  #handle: NativeHandle | undefined
  #openedAt: Instant = systemClock()
  #attached = false
  /** Time of the newest receipt, on the clock of `monotonic()`. */
  #receivedAt = 0
  #checkTimer: NodeJS.Timeout | undefined
  #isDisconnected = false

  constructor(options: NativeConnectionOptions, owner: NativeConnectionOwner) {
    this.#options = options
    this.#owner = owner
  }

  /** Time at which the handle was made: this connection requested nothing before. */
  get openedAt(): Instant {
    return this.#openedAt
  }

  /** Session as the server granted it; undefined once the connection is over. */
  get session(): (NativeIdentity & { readonly id: bigint; readonly timeout: number }) | undefined {
    const handle = this.#handle
    if (!handle || !this.#attached) return undefined
    const { client_id, client_password, timeout } = handle
    return { client_id, client_password, timeout, id: parseSessionId(client_id) }
  }

  /** Starts to connect. */
  open(): void {
    const { auth, barrier, chroot, identity, server, sessionTimeout } = this.#options
    const handle = new this.#options.package({
      // Without brackets around an address of IPv6: the C client takes what is before the last colon as it is.
      connect: `${server.address}:${server.port}${chroot}`,
      timeout: Math.round(sessionTimeout),
      debug_level: 0,
      host_order_deterministic: false,
      response_counter_limit: MAX_INT32,
    })
    this.#handle = handle
    this.#openedAt = systemClock()
    this.#receivedAt = monotonic()
    handle.on('connect', () => this.#received(() => this.#connected(handle)))
    handle.on('connecting', () => setImmediate(() => this.#closeWith('it broke')))
    handle.on('close', (_, code) => setImmediate(() => this.#closeWith('the server has ended it', code)))
    handle.init({ ...identity })
    if (handle.state !== NATIVE_STATE.connecting && handle.state !== NATIVE_STATE.associating) {
      setImmediate(() => this.#closeWith('no socket could be opened'))
      return
    }
    for (const { scheme, auth: given } of auth) handle.add_auth(scheme, given, () => undefined)
    // The C client keeps it until there is a connection, and fails it if there will be none, which it reports in no other way.
    this.#request(handle, barrier, (code) => {
      if (!this.#handle) return
      if (code === NATIVE_CODE.ok) this.#owner.ready(this)
      else this.#closeWith(this.#attached ? `the server refused its first request (${code})` : 'no connection was made')
    })
    this.#scheduleChecks(sessionTimeout)
  }

  /** Sends a request; `answer` is called later, unless it was not sent or is refused. */
  send<T>(question: NativeRequest<T>, answer: NativeCallback<T>): SendResult {
    const handle = this.#handle
    // The C client would keep it for a connection of its own, which this handle will not have.
    if (handle?.state !== NATIVE_STATE.connected) return 'unsent'
    return this.#request(handle, question, answer)
  }

  /** Closes it and leaves the session as it is. Requests under way are answered with `connectionLoss`. */
  release(): void {
    const handle = this.#takeHandle()
    this.#isDisconnected = true
    if (handle?.state === NATIVE_STATE.connected) handle.set_servers(UNREACHABLE_ADDRESS)
    handle?.close()
  }

  /** Ends the session if it is connected, and closes it. Requests under way are answered with `closing`. */
  end(): void {
    this.#takeHandle()?.close()
  }

  #request<T>(handle: NativeHandle, question: NativeRequest<T>, answer: NativeCallback<T>): SendResult {
    let unsent = false
    const refused = question.send(handle, (code, read) => {
      if (LOST_CODES.has(code))
        setImmediate(() => unsent || answer(this.#isDisconnected ? NATIVE_CODE.connectionLoss : code, read))
      else this.#received(() => answer(code, read))
    })
    if (handle.state === NATIVE_STATE.notConnected) {
      // A message that the C client could not write completely is in none of the server's requests.
      unsent = true
      // Before the answers to the requests under way, which `release` fails.
      setImmediate(() => this.#owner.closed(this, this.#ended('a request could not be sent')))
      this.release()
      return 'unsent'
    }
    return refused === NATIVE_CODE.ok ? 'sent' : { refused }
  }

  #received(then: () => void): void {
    this.#receivedAt = monotonic()
    setImmediate(then)
  }

  #connected(handle: NativeHandle): void {
    if (this.#handle !== handle) return
    this.#attached = true
    this.#scheduleChecks(handle.timeout)
    this.#owner.attached(this)
  }

  #scheduleChecks(timeout: number): void {
    clearInterval(this.#checkTimer)
    const limit = timeout * (this.#attached ? SILENCE_FRACTION : CONNECT_TIMEOUT_FRACTION)
    this.#checkTimer = startInterval(() => {
      const silence = monotonic() - this.#receivedAt
      if (silence >= limit) this.#closeWith(`nothing was received for ${Math.round(silence)} ms`)
    }, timeout / CHECKS_PER_TIMEOUT)
  }

  #closeWith(why: string, code?: number): void {
    if (!this.#handle) return
    const sessionOver = code !== undefined && code < 0 ? { sessionOver: code } : {}
    this.release()
    this.#owner.closed(this, { ...this.#ended(why), ...sessionOver })
  }

  #ended(why: string): NativeCloseReason {
    return { why: `the connection to ${formatEndpoint(this.#options.server)} is over: ${why}` }
  }

  #takeHandle(): NativeHandle | undefined {
    clearInterval(this.#checkTimer)
    const handle = this.#handle
    this.#handle = undefined
    return handle
  }
}
