/**
 * Sends requests over the current connection: all of one turn of the event loop in one write, and never more than may
 * be in flight.
 */
import type { Logger } from '../../core/log.ts'
import type { Connection } from '../connection/connection.ts'
import { PendingRequest } from '../connection/pending.ts'
import type { ZooKeeperError } from '../protocol/errors.ts'
import { multi } from '../protocol/multi.ts'
import { type Request, sync } from '../protocol/requests.ts'
import { connectionGoneError, RequestQueue, type Retryability } from './request-queue.ts'

/** Limit for one write: about what a socket accepts without waiting. */
const MAX_WRITE_BYTES = 256 * 1_024
/** Fraction of the in-flight limit that must be free before more is sent. */
const MIN_FREE_FRACTION = 1 / 8

export interface SenderOptions {
  readonly maxInFlight: number
  /** Milliseconds that a request waits for a connection. */
  readonly timeoutMs: number
  readonly log: Logger
  /** Returns the error for a request that must not be sent. */
  readonly refusalOf: (request: Request<unknown>) => Error | undefined
  /** Whether the session is alive. Checked before requests are sent. */
  readonly isSessionAlive: () => boolean
}

interface ActiveConnection {
  readonly connection: Connection
  readonly session: bigint
}

export class Sender {
  readonly #options: SenderOptions
  readonly #outbox: RequestQueue
  #active: ActiveConnection | undefined
  /** Requests bound to the connection that is being prepared. */
  #held: PendingRequest[] | undefined
  #flushing = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#outbox = new RequestQueue(options.timeoutMs)
  }

  /** Connection over which requests are sent. */
  get connection(): Connection | undefined {
    return this.#active?.connection
  }

  get waiting(): number {
    return this.#outbox.size
  }

  push(pending: PendingRequest): void {
    if (pending.currentConnectionOnly && !this.#active) {
      if (this.#held) this.#held.push(pending)
      else pending.fail(connectionGoneError(pending))
      return
    }
    this.#outbox.push(pending)
    if (this.#active && !this.#flushing) {
      this.#flushing = true
      process.nextTick(() => {
        this.#flushing = false
        this.flush()
      })
    }
  }

  /** Starts to hold the requests that are bound to the connection being prepared, until it is attached. */
  startPreparing(): void {
    this.#held = []
  }

  /**
   * Sends requests over this connection from now on: first the requests bound to it, then the requests that `first` makes, then the
   * waiting ones.
   */
  attach(line: ActiveConnection, first: () => void): void {
    const early = this.#held ?? []
    this.#held = undefined
    this.#active = line
    this.#outbox.connected()
    this.#outbox.pushFirst(() => {
      for (const pending of early) this.#outbox.push(pending)
      first()
    })
    this.flush()
  }

  detach(): void {
    if (this.#active) this.#outbox.disconnected()
    this.#active = undefined
    for (const pending of this.#held ?? []) pending.fail(connectionGoneError(pending))
    this.#held = undefined
  }

  /** Rejects all waiting requests. */
  reject(type: typeof ZooKeeperError, why: string, retryability: Retryability): void {
    this.#outbox.reject(type, why, retryability)
  }

  flush(): void {
    const { maxInFlight, isSessionAlive, refusalOf, log } = this.#options
    // The check of the session may find that it is over, and detach.
    while (this.#outbox.size > 0 && this.#active?.connection.writable && isSessionAlive() && this.#active) {
      const { connection, session } = this.#active
      const room = maxInFlight - connection.inFlight
      // Answers make room one by one, and a write for each would cost more than the requests.
      if (room < Math.max(1, maxInFlight * MIN_FREE_FRACTION)) return
      const batch = this.#outbox.take(session, { bytes: MAX_WRITE_BYTES, count: room, refusalOf })
      if (batch.length === 0) continue
      if (log.isLevelEnabled('trace')) log.trace({ requests: batch.map(describeRequest) }, 'sending to ZooKeeper')
      connection.send(batch)
    }
  }

  /**
   * Requests an echo and, when that was received, a proof (see `lease.ts`): a sync, and an empty transaction. Both
   * bypass the queue and the limit of requests in flight.
   */
  prove(): void {
    const line = this.#active
    const echo = line && this.#sendNow(line, sync('/'))
    echo?.then(
      () => this.#sendNow(line, multi([]))?.catch(() => undefined),
      () => undefined,
    )
  }

  /** Sends a request at once, unless that connection is no longer the current one. */
  #sendNow<T>(line: ActiveConnection | undefined, request: Request<T>): Promise<T> | undefined {
    if (!line || this.#active !== line || !this.#options.isSessionAlive() || this.#active !== line) return undefined
    const pending = new PendingRequest(request, 0)
    line.connection.send([pending])
    return pending.promise
  }
}

function describeRequest({ request: { operation, path } }: { readonly request: Request<unknown> }): string {
  return path === undefined ? operation : `${operation} ${path}`
}
