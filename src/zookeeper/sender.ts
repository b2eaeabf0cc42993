/**
 * Sends what was asked over whatever connection there is: everything of one turn of the event loop in one write, and
 * never more than may be under way at once.
 */
import type { Logger } from '../core/log.ts'
import type { Connection } from './connection.ts'
import type { ZooKeeperError } from './errors.ts'
import { multi } from './multi.ts'
import { connectionGone, Outbox, type Prospect } from './outbox.ts'
import { Pending } from './pending.ts'
import { type Request, sync } from './requests.ts'

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
  /** While a connection is being made ready: what is meant for it alone. */
  #early: Pending[] | undefined
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
    if (pending.here && !this.#line) {
      if (this.#early) this.#early.push(pending)
      else pending.fail(connectionGone(pending))
      return
    }
    this.#outbox.push(pending)
    if (this.#line && !this.#flushing) {
      this.#flushing = true
      process.nextTick(() => {
        this.#flushing = false
        this.flush()
      })
    }
  }

  /** A connection is being made ready: what is meant for it alone waits from now on until it is attached. */
  expect(): void {
    this.#early = []
  }

  /**
   * From now on requests may go over this connection: those that were meant for it alone, those that `first` asks, and
   * those that wait.
   */
  attach(line: Line, first: () => void): void {
    const early = this.#early ?? []
    this.#early = undefined
    this.#line = line
    this.#outbox.connected()
    this.#outbox.before(() => {
      for (const pending of early) this.#outbox.push(pending)
      first()
    })
    this.flush()
  }

  detach(): void {
    if (this.#line) this.#outbox.disconnected()
    this.#line = undefined
    for (const pending of this.#early ?? []) pending.fail(connectionGone(pending))
    this.#early = undefined
  }

  /** Rejects everything that waits. */
  reject(type: typeof ZooKeeperError, why: string, prospect: Prospect): void {
    this.#outbox.reject(type, why, prospect)
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

  /**
   * Asks for an echo and, when that was heard, for a proof (see `lease.ts`): a sync, and an empty transaction. Past the
   * queue, and past the limit of what may be under way.
   */
  prove(): void {
    const line = this.#line
    const echo = line && this.#aside(line, sync('/'))
    echo?.then(
      () => this.#aside(line, multi([]))?.catch(() => undefined),
      () => undefined,
    )
  }

  /** Sends it at once, unless that line is none any more. */
  #aside<T>(line: Line | undefined, request: Request<T>): Promise<T> | undefined {
    if (!line || this.#line !== line || !this.#options.alive() || this.#line !== line) return undefined
    const pending = new Pending(request, 0)
    line.connection.send([pending])
    return pending.promise
  }
}

function named({ request: { operation, path } }: { readonly request: Request<unknown> }): string {
  return path === undefined ? operation : `${operation} ${path}`
}
