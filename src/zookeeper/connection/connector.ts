/** Connects to server after server: which one is next, how long to wait before, and why the last one failed. */
import { abortAfter, followSignals } from '../../core/async/abort.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { backoffDelay, monotonic, sleep } from '../../core/time.ts'
import { formatEndpoint } from '../protocol/connect-string.ts'
import type { Counters } from './counters.ts'
import {
  ConnectionFault,
  type FinalFault,
  HangUpDetector,
  HungUp,
  isFinal,
  TlsFailureDetector,
  toFaultKind,
} from './faults.ts'
import type { Hosts, Server } from './hosts.ts'
import type { TlsOptions } from './socket.ts'
import { protocolMismatchAdvice, speaksOtherProtocol } from './tls-faults.ts'

export interface ConnectorOptions {
  readonly hosts: Hosts
  readonly sessionTimeout: number
  readonly connectTimeout: number
  readonly tls?: TlsOptions | undefined
  readonly log: Logger
}

export interface ConnectorOwner {
  /** Returns whether a server is needed. */
  isServerWanted(): boolean
  /** Uses the server until that fails; throws the reason. */
  use(server: Server): Promise<void>
  /** Returns whether the requested session has seen transactions. */
  isResuming(): boolean
}

export class Connector {
  readonly #options: ConnectorOptions
  readonly #owner: ConnectorOwner
  readonly #counters: Counters
  readonly #backoff: ReconnectBackoff
  readonly #hangUps = new HangUpDetector()
  readonly #tlsFailures = new TlsFailureDetector()
  readonly #stop = new AbortController()
  #servedSince: number | undefined
  #lastFault: Error | undefined

  constructor(options: ConnectorOptions, counters: Counters, owner: ConnectorOwner) {
    this.#options = options
    this.#owner = owner
    this.#counters = counters
    this.#backoff = new ReconnectBackoff(options.sessionTimeout)
  }

  /** Reason why there is no connection; undefined while there is one. */
  get lastFault(): Error | undefined {
    return this.#lastFault
  }

  /** Connects until no server is wanted; returns the final fault, if there was one. */
  async run(): Promise<FinalFault | undefined> {
    while (this.#owner.isServerWanted()) {
      this.#servedSince = undefined
      const fault = await this.#connectOnce()
      if (fault && isFinal(fault)) return fault
      const served = this.#servedSince === undefined ? undefined : monotonic() - this.#servedSince
      const wait = this.#backoff.pauseAfter(served)
      if (wait > 0) await sleep(wait, { signal: this.#stop.signal }).catch(() => undefined)
    }
    return undefined
  }

  /** Records that the current server serves. */
  served(): void {
    this.#servedSince = monotonic()
    // Earlier faults are unrelated to later ones.
    this.#lastFault = undefined
    this.#counters.connections++
    this.#hangUps.served()
    this.#tlsFailures.served()
  }

  /** Stops waiting, and records no more faults. */
  stop(): void {
    this.#stop.abort(new NotConnected('the client is closed'))
  }

  /** Resolves to the reason why the connection ended; undefined where that is intended. */
  async #connectOnce(): Promise<Error | undefined> {
    let server: Server | undefined
    try {
      server = await this.#nextServer()
      await this.#owner.use(server)
      return undefined
    } catch (error) {
      const found = asError(error)
      return this.#noteFault(server ? await this.#explainHangUp(found, server) : found)
    }
  }

  /** Explains a server that closed the connection of a client that was never served: it may use another protocol. */
  async #explainHangUp(error: Error, server: Server): Promise<Error> {
    if (toFaultKind(error) !== 'hung-up' || this.#counters.connections > 0 || this.#stop.signal.aborted) return error
    const { connectTimeout: timeout, tls: options } = this.#options
    const tls = options !== undefined
    if (!(await speaksOtherProtocol(server, { tls, timeout, signal: this.#stop.signal }))) return error
    const fault = protocolMismatchAdvice({ tls })
    return new NotConnected(`${formatEndpoint(server)}: ${fault.message}`, { cause: fault })
  }

  /** Chooses the next server, with a limit on the time for resolving names. */
  async #nextServer(): Promise<Server> {
    const { hosts, connectTimeout } = this.#options
    const none = `no address of a server was found within ${connectTimeout} ms`
    using limit = followSignals([this.#stop.signal])
    using _timer = abortAfter(limit, connectTimeout, () => new ConnectionFault('unreachable', none))
    return await hosts.next({ signal: limit.signal })
  }

  #noteFault(found: Error): Error {
    if (this.#stop.signal.aborted) return found
    const { hosts, log } = this.#options
    const kind = toFaultKind(found)
    this.#counters.fault(kind)
    const judged = this.#tlsFailures.classify(found, { servers: hosts.size })
    this.#lastFault = this.#hangUps.classify(judged, { servers: hosts.size, resuming: this.#owner.isResuming() })
    // An unreachable server is ordinary; an unreadable one is a defect in a program.
    const ours = kind === 'malformed' || kind === 'defect'
    const level = ours ? 'error' : this.#lastFault instanceof HungUp ? 'warn' : 'debug'
    log[level]({ kind, reason: describeError(this.#lastFault) }, 'no connection to ZooKeeper')
    return this.#lastFault
  }
}

const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 2_000
/** Duration after which a connection counts as a good one. */
const STEADY_AFTER_MS = 1_000

/**
 * Computes the pause before the next connection.
 *
 * There is none when a good connection broke: after a change of leader the next server is ready at once, and a session
 * is short. Then pauses grow, with jitter, both while no server can be reached and while connections are made and break
 * at once.
 */
export class ReconnectBackoff {
  readonly #longest: number
  readonly #random: () => number
  #unreachable = 0
  #shortLived = 0

  /** @param sessionTimeout several attempts must fit into it, or the session expires while the client waits */
  constructor(sessionTimeout: number, random: () => number = Math.random) {
    this.#longest = Math.min(MAX_PAUSE_MS, sessionTimeout / 6)
    this.#random = random
  }

  /**
   * Returns the milliseconds to wait after a connection that served for that long; undefined means that it never
   * served.
   */
  pauseAfter(served: number | undefined): number {
    if (served === undefined) this.#unreachable++
    else {
      this.#unreachable = 0
      this.#shortLived = served > STEADY_AFTER_MS ? 0 : this.#shortLived + 1
    }
    const failures = this.#unreachable + this.#shortLived
    return failures <= 1
      ? 0
      : backoffDelay(failures - 1, { first: FIRST_PAUSE_MS, max: this.#longest, random: this.#random })
  }
}
