/**
 * Sends what was asked over whatever connection there is: everything of one turn of the event loop in one write, and
 * never more than may be under way at once.
 */
import type { Logger } from '../../core/log.ts'
import type { Connection } from '../connection/connection.ts'
import { PendingRequest } from '../connection/pending.ts'
import type { ZooKeeperError } from '../protocol/errors.ts'
import { multi } from '../protocol/multi.ts'
import { type Request, sync } from '../protocol/requests.ts'
import { connectionGoneError, RequestQueue, type Retryability } from './outbox.ts'

/** Written at once, at most: about what a socket takes without waiting. */
const MAX_WRITE_BYTES = 256 * 1_024
/** The part of what may be under way that must be free before more is sent. */
const MIN_FREE_FRACTION = 1 / 8

export interface SenderOptions {
  readonly maxInFlight: number
  /** Milliseconds that a request waits for a connection. */
  readonly timeoutMs: number
  readonly log: Logger
  /** Asked before anything is sent; false when the session is given up. */
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
  /** While a connection is being made ready: what is meant for it alone. */
  #held: PendingRequest[] | undefined
  #flushing = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#outbox = new RequestQueue(options.timeoutMs)
  }

  /** The connection that requests go over. */
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

  /** A connection is being made ready: what is meant for it alone waits from now on until it is attached. */
  startPreparing(): void {
    this.#held = []
  }

  /**
   * From now on requests may go over this connection: those that were meant for it alone, those that `first` asks, and
   * those that wait.
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

  /** Rejects everything that waits. */
  reject(type: typeof ZooKeeperError, why: string, retryability: Retryability): void {
    this.#outbox.reject(type, why, retryability)
  }

  flush(): void {
    const { maxInFlight, isSessionAlive, log } = this.#options
    // Whoever is asked whether it is alive may find that it is not, and detach.
    while (this.#outbox.size > 0 && this.#active?.connection.writable && isSessionAlive() && this.#active) {
      const { connection, session } = this.#active
      const room = maxInFlight - connection.inFlight
      // Answers make room one by one, and a write for each would cost more than the requests.
      if (room < Math.max(1, maxInFlight * MIN_FREE_FRACTION)) return
      const batch = this.#outbox.take(session, { bytes: MAX_WRITE_BYTES, count: room })
      if (batch.length === 0) continue
      if (log.isLevelEnabled('trace')) log.trace({ requests: batch.map(describeRequest) }, 'sending to ZooKeeper')
      connection.send(batch)
    }
  }

  /**
   * Asks for an echo and, when that was heard, for a proof (see `lease.ts`): a sync, and an empty transaction. Past the
   * queue, and past the limit of what may be under way.
   */
  prove(): void {
    const line = this.#active
    const echo = line && this.#sendNow(line, sync('/'))
    echo?.then(
      () => this.#sendNow(line, multi([]))?.catch(() => undefined),
      () => undefined,
    )
  }

  /** Sends it at once, unless that line is none any more. */
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
