/**
 * Opens one connection of the C client after the other, as long as one is wanted: the next address at once when a good
 * connection broke, later and later while none is made. The C client would wait for a third of the session's timeout.
 */
import { abortAfter, followSignals } from '../../core/async/abort.ts'
import { NotConnected } from '../../core/errors.ts'
import { monotonic, startTimer } from '../../core/time.ts'
import { ReconnectBackoff } from '../connection/connector.ts'
import type { Hosts } from '../connection/hosts.ts'
import {
  type NativeCloseReason,
  NativeConnection,
  type NativeConnectionOptions,
  type NativeConnectionOwner,
} from './connection.ts'

export interface NativeConnectorOptions extends Omit<NativeConnectionOptions, 'server' | 'identity' | 'barrier'> {
  readonly hosts: Hosts
}

export interface NativeConnectorOwner extends NativeConnectionOwner {
  /** Returns the session to which the next connection attaches; called right before it is opened. */
  wantedSession(): Pick<NativeConnectionOptions, 'identity' | 'barrier'>
}

/** Time limit for resolving a name, as a fraction of the session's timeout. */
const RESOLVE_TIMEOUT_FRACTION = 1 / 3

export class NativeConnector {
  readonly #options: NativeConnectorOptions
  readonly #owner: NativeConnectorOwner
  readonly #backoff: ReconnectBackoff
  /** Aborts when no connection is wanted any longer. */
  #run: AbortController | undefined
  #retryTimer: NodeJS.Timeout | undefined
  #connection: NativeConnection | undefined
  #readySince: number | undefined

  constructor(options: NativeConnectorOptions, owner: NativeConnectorOwner) {
    this.#options = options
    this.#owner = owner
    this.#backoff = new ReconnectBackoff(options.sessionTimeout)
  }

  /** Current connection, or the one being opened. */
  get connection(): NativeConnection | undefined {
    return this.#connection
  }

  /** Opens connections until `stop`. */
  start(): void {
    const run = new AbortController()
    this.#run = run
    void this.#open(run.signal)
  }

  /** Stops opening connections, and returns the current one, which its caller ends or releases. Idempotent. */
  stop(): NativeConnection | undefined {
    this.#run?.abort()
    this.#run = undefined
    clearTimeout(this.#retryTimer)
    const connection = this.#connection
    this.#connection = undefined
    return connection
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { hosts, sessionTimeout } = this.#options
    this.#readySince = undefined
    using limit = followSignals([signal])
    const late = () => new NotConnected('no address of a server was found in time')
    using _timer = abortAfter(limit, sessionTimeout * RESOLVE_TIMEOUT_FRACTION, late)
    const server = await hosts.next({ signal: limit.signal }).catch(() => undefined)
    if (signal.aborted) return
    if (!server) {
      this.#openLater(signal)
      return
    }
    const connection = new NativeConnection(
      { ...this.#options, ...this.#owner.wantedSession(), server },
      this.#createOwner(signal),
    )
    this.#connection = connection
    connection.open()
  }

  #createOwner(signal: AbortSignal): NativeConnectionOwner {
    const owner = this.#owner
    return {
      attached: (connection) => signal.aborted || owner.attached(connection),
      ready: (connection) => {
        if (signal.aborted) return
        this.#readySince = monotonic()
        owner.ready(connection)
      },
      closed: (connection: NativeConnection, end: NativeCloseReason) => {
        if (signal.aborted) return
        this.#connection = undefined
        owner.closed(connection, end)
        // The owner may have stopped this meanwhile.
        if (!signal.aborted) this.#openLater(signal)
      },
    }
  }

  #openLater(signal: AbortSignal): void {
    const served = this.#readySince === undefined ? undefined : monotonic() - this.#readySince
    this.#retryTimer = startTimer(() => void this.#open(signal), this.#backoff.pauseAfter(served))
  }
}
