/** What a client has done so far, in numbers that only grow. */
import type { FaultKind } from './faults.ts'

/** What became of the requests of one kind. */
export interface OperationCounts {
  /** Handed to a socket. */
  readonly sent: number
  readonly done: number
  /** Answered with an error. */
  readonly refused: number
  /** The connection broke before the answer came. */
  readonly unknown: number
}

/** A snapshot; see `ZooKeeper.counters`. */
export interface ClientCounters {
  /**
   * By the name an operation has in errors. The client sends some of its own accord: `ping`, `setWatches`, `sasl` and
   * `addAuth` on each connection, `removeWatches`, `closeSession`; and, while somebody holds the lease, a `sync` and an
   * empty `multi` now and then.
   */
  readonly operations: Readonly<Record<string, OperationCounts>>
  readonly bytesIn: number
  readonly bytesOut: number
  /** Sent and not answered yet. */
  readonly inFlight: number
  /** Asked and not sent yet. */
  readonly waiting: number
  /** How often a session was attached to; one more than there were reconnects. */
  readonly connections: number
  /** How often there was a new session. */
  readonly sessions: number
  /** How often attaching failed or a connection ended, by the reason. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>
}

type MutableCounts = { -readonly [K in keyof OperationCounts]: OperationCounts[K] }

export class Counters {
  bytesIn = 0
  bytesOut = 0
  connections = 0
  sessions = 0
  readonly #operations = new Map<string, MutableCounts>()
  readonly #faults = new Map<FaultKind, number>()

  /** The counts of one operation, to be raised. */
  countsFor(operation: string): MutableCounts {
    const known = this.#operations.get(operation)
    if (known) return known
    const counts = { sent: 0, done: 0, refused: 0, unknown: 0 }
    this.#operations.set(operation, counts)
    return counts
  }

  fault(kind: FaultKind): void {
    this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + 1)
  }

  snapshot(now: { readonly inFlight: number; readonly waiting: number }): ClientCounters {
    const { bytesIn, bytesOut, connections, sessions } = this
    const operations = Object.fromEntries([...this.#operations].map(([name, counts]) => [name, { ...counts }]))
    return { operations, bytesIn, bytesOut, ...now, connections, sessions, faults: Object.fromEntries(this.#faults) }
  }
}
