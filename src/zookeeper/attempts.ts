/** Server after server: which one next, how long to wait before it, and what was wrong with the last one. */
import { abortAfter, followSignals } from '../core/abort.ts'
import { NotConnected } from '../core/errors.ts'
import { describeError } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { monotonic, sleep } from '../core/time.ts'
import { formatEndpoint } from './connect-string.ts'
import type { Counters } from './counters.ts'
import { ConnectionFault, type FinalFault, HangUps, HungUp, isFinal, kindOf, TlsFailures } from './faults.ts'
import type { Hosts, Server } from './hosts.ts'
import { Pacing } from './pacing.ts'
import type { TlsOptions } from './socket.ts'
import { languageFault, speaksOtherwise } from './tls-faults.ts'

export interface AttemptsOptions {
  readonly hosts: Hosts
  readonly sessionTimeout: number
  readonly connectTimeout: number
  readonly tls?: TlsOptions | undefined
  readonly log: Logger
}

export interface AttemptsOwner {
  /** Whether a server is needed. */
  wanted(): boolean
  /** Uses it as long as that goes well; throws why it does not any more. */
  use(server: Server): Promise<void>
  /** Whether the session that is wanted has seen transactions. */
  resuming(): boolean
}

export class Attempts {
  readonly #options: AttemptsOptions
  readonly #owner: AttemptsOwner
  readonly #counters: Counters
  readonly #pacing: Pacing
  readonly #hangUps = new HangUps()
  readonly #tlsFailures = new TlsFailures()
  readonly #stop = new AbortController()
  #servedSince: number | undefined
  #lastFault: Error | undefined

  constructor(options: AttemptsOptions, counters: Counters, owner: AttemptsOwner) {
    this.#options = options
    this.#owner = owner
    this.#counters = counters
    this.#pacing = new Pacing(options.sessionTimeout)
  }

  /** Why there is no connection; undefined while there is one. */
  get lastFault(): Error | undefined {
    return this.#lastFault
  }

  /** Goes on until no server is wanted; returns what was final, if anything was. */
  async run(): Promise<FinalFault | undefined> {
    while (this.#owner.wanted()) {
      this.#servedSince = undefined
      const fault = await this.#attempt()
      if (fault && isFinal(fault)) return fault
      const served = this.#servedSince === undefined ? undefined : monotonic() - this.#servedSince
      const wait = this.#pacing.after(served)
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
  async #attempt(): Promise<Error | undefined> {
    let server: Server | undefined
    try {
      server = await this.#nextServer()
      await this.#owner.use(server)
      return undefined
    } catch (error) {
      const found = error instanceof Error ? error : new Error(String(error))
      return this.#fault(server ? await this.#explained(found, server) : found)
    }
  }

  /** Who hangs up on a client that was never served may not have understood it. */
  async #explained(error: Error, server: Server): Promise<Error> {
    if (kindOf(error) !== 'hung-up' || this.#counters.connections > 0 || this.#stop.signal.aborted) return error
    const { connectTimeout: timeout, tls: options } = this.#options
    const tls = options !== undefined
    if (!(await speaksOtherwise(server, { tls, timeout, signal: this.#stop.signal }))) return error
    const fault = languageFault({ tls })
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

  #fault(found: Error): Error {
    if (this.#stop.signal.aborted) return found
    const { hosts, log } = this.#options
    const kind = kindOf(found)
    this.#counters.fault(kind)
    const judged = this.#tlsFailures.judge(found, { servers: hosts.size })
    this.#lastFault = this.#hangUps.judge(judged, { servers: hosts.size, resuming: this.#owner.resuming() })
    // A server that cannot be reached is everyday; one that cannot be understood is somebody's defect.
    const ours = kind === 'malformed' || kind === 'defect'
    const level = ours ? 'error' : this.#lastFault instanceof HungUp ? 'warn' : 'debug'
    log[level]({ kind, reason: describeError(this.#lastFault) }, 'no connection to ZooKeeper')
    return this.#lastFault
  }
}
