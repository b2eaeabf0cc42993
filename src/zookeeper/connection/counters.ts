/** Counters of a client, which only grow. */
import type { FaultKind } from './faults.ts'

/** Outcomes of the requests of one operation. */
export interface OperationCounts {
  /** Number of requests written to a socket. */
  readonly sent: number
  readonly done: number
  /** Number of requests answered with an error. */
  readonly refused: number
  /** Number of requests whose connection broke before the answer came. */
  readonly unknown: number
}

/** A snapshot; see `ZooKeeper.counters`. */
export interface ClientCounters {
  /**
   * Counts by the name of the operation in errors. The client sends some requests by itself: `ping`, `setWatches`,
   * `sasl` and `addAuth` on each connection, `removeWatches`, `closeSession`; and, while a lease is held, a `sync` and
   * an empty `multi` now and then.
   */
  readonly operations: Readonly<Record<string, OperationCounts>>
  readonly bytesIn: number
  readonly bytesOut: number
  /** Number of requests sent and not answered yet. */
  readonly inFlight: number
  /** Number of requests made and not sent yet. */
  readonly waiting: number
  /** Number of times that a connection was attached to a session; one more than the number of reconnects. */
  readonly connections: number
  /** Number of sessions. */
  readonly sessions: number
  /** Number of failed attempts and ended connections, by reason. */
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

  /** Returns the mutable counts of one operation. */
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
