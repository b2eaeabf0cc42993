/**
 * Sends what was asked over whatever connection there is: everything of one turn of the event loop in one write, and
 * never more than may be under way at once.
 */
import type { Logger } from '../core/log.ts'
import type { Connection } from './connection.ts'
import type { ZooKeeperError } from './errors.ts'
import { multi } from './multi.ts'
import { Outbox } from './outbox.ts'
import { Pending } from './pending.ts'
import type { Request } from './requests.ts'

/** Written at once, at most: about what a socket takes without waiting. */
const WRITE_BYTES = 256 * 1_024
/** The part of what may be under way that must be free before more is sent. */
const LEAST_ROOM = 1 / 8

export interface SenderOptions {
  readonly maxInFlight: number
  /** Milliseconds that a request waits for a connection. */
  readonly patience: number
  readonly log: Logger
  /** Asked before anything is sent; false when the session is given up. */
  readonly alive: () => boolean
}

interface Line {
  readonly connection: Connection
  readonly session: bigint
}

export class Sender {
  readonly #options: SenderOptions
  readonly #outbox: Outbox
  #line: Line | undefined
  #flushing = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#outbox = new Outbox(options.patience)
  }

  /** The connection that requests go over. */
  get connection(): Connection | undefined {
    return this.#line?.connection
  }

  get waiting(): number {
    return this.#outbox.size
  }

  push(pending: Pending): void {
    this.#outbox.push(pending)
    if (this.#line && !this.#flushing) {
      this.#flushing = true
      process.nextTick(() => {
        this.#flushing = false
        this.flush()
      })
    }
  }

  /** From now on requests may go over this connection, those that `first` asks before those that wait. */
  attach(line: Line, first: () => void): void {
    this.#line = line
    this.#outbox.connected()
    this.#outbox.before(first)
    this.flush()
  }

  detach(): void {
    if (this.#line) this.#outbox.disconnected()
    this.#line = undefined
  }

  /** Rejects everything that waits. */
  reject(type: typeof ZooKeeperError, why: string, cause?: Error): void {
    this.#outbox.reject(type, why, cause)
  }

  flush(): void {
    const { maxInFlight, alive, log } = this.#options
    // Whoever is asked whether it is alive may find that it is not, and detach.
    while (this.#outbox.size > 0 && this.#line?.connection.writable && alive() && this.#line) {
      const { connection, session } = this.#line
      const room = maxInFlight - connection.inFlight
      // Answers make room one by one, and a write for each would cost more than the requests.
      if (room < Math.max(1, maxInFlight * LEAST_ROOM)) return
      const batch = this.#outbox.take(session, { bytes: WRITE_BYTES, count: room })
      if (batch.length === 0) continue
      if (log.isLevelEnabled('trace')) log.trace({ requests: batch.map(named) }, 'sending to ZooKeeper')
      connection.send(batch)
    }
  }

  /** An empty transaction that nobody waits for: past the queue, and past the limit of what may be under way. */
  prove(): void {
    if (!this.#line || !this.#options.alive()) return
    const pending = new Pending(multi([]), 0)
    pending.promise.catch(() => undefined)
    this.#line?.connection.send([pending])
  }
}

function named({ request: { operation, path } }: { readonly request: Request<unknown> }): string {
  return path === undefined ? operation : `${operation} ${path}`
}
