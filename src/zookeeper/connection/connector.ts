/** Server after server: which one next, how long to wait before it, and what was wrong with the last one. */
import { abortAfter, followSignals } from '../../core/async/abort.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { monotonic, sleep } from '../../core/time.ts'
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
import { ReconnectBackoff } from './reconnect-backoff.ts'
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
  /** Whether a server is needed. */
  isServerWanted(): boolean
  /** Uses it as long as that goes well; throws why it does not any more. */
  use(server: Server): Promise<void>
  /** Whether the session that is wanted has seen transactions. */
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

  /** Why there is no connection; undefined while there is one. */
  get lastFault(): Error | undefined {
    return this.#lastFault
  }

  /** Goes on until no server is wanted; returns what was final, if anything was. */
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

  /** The server at hand serves. */
  served(): void {
    this.#servedSince = monotonic()
    // What was wrong before has nothing to do with what goes wrong from now on.
    this.#lastFault = undefined
    this.#counters.connections++
    this.#hangUps.served()
    this.#tlsFailures.served()
  }

  /** No longer waits for anything, and takes nothing for a fault. */
  stop(): void {
    this.#stop.abort(new NotConnected('the client is closed'))
  }

  /** Resolves to why it is over; undefined where that is as it should be. */
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

  /** Who hangs up on a client that was never served may not have understood it. */
  async #explainHangUp(error: Error, server: Server): Promise<Error> {
    if (toFaultKind(error) !== 'hung-up' || this.#counters.connections > 0 || this.#stop.signal.aborted) return error
    const { connectTimeout: timeout, tls: options } = this.#options
    const tls = options !== undefined
    if (!(await speaksOtherProtocol(server, { tls, timeout, signal: this.#stop.signal }))) return error
    const fault = protocolMismatchAdvice({ tls })
    return new NotConnected(`${formatEndpoint(server)}: ${fault.message}`, { cause: fault })
  }

  /** Names can take long to resolve. */
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
    // A server that cannot be reached is everyday; one that cannot be understood is somebody's defect.
    const ours = kind === 'malformed' || kind === 'defect'
    const level = ours ? 'error' : this.#lastFault instanceof HungUp ? 'warn' : 'debug'
    log[level]({ kind, reason: describeError(this.#lastFault) }, 'no connection to ZooKeeper')
    return this.#lastFault
  }
}
