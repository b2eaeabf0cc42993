/**
 * Requests that wait to be sent: for the end of the tick, for room in the socket or under way, or for a connection.
 *
 * Any number may wait, because each has a caller who holds it anyway: a producer that is to be slowed down awaits what it
 * asks. For room they wait as long as it takes; for a connection, only as long as a session lasts.
 */
import { monotonic } from '../core/time.ts'
import { AuthFailed, NotSent, SessionExpired, type ZooKeeperError } from './errors.ts'
import { Fifo } from './fifo.ts'
import type { Pending } from './pending.ts'

export class Outbox {
  readonly #patience: number
  #waiting = new Fifo<Pending>()
  /** Since when there is no connection. */
  #disconnectedAt: number | undefined = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /** @param patience milliseconds without a connection after which a request is rejected */
  constructor(patience: number) {
    this.#patience = patience
  }

  get size(): number {
    return this.#waiting.size
  }

  push(pending: Pending): void {
    this.#waiting.push(pending)
    if (this.#disconnectedAt !== undefined) this.#timer ??= setTimeout(() => this.#expire(), this.#patience)
  }

  connected(): void {
    this.#disconnectedAt = undefined
    this.#stopTimer()
  }

  disconnected(): void {
    this.#disconnectedAt = monotonic()
    for (const pending of this.#waiting.drain()) {
      if (pending.here) pending.fail(connectionGone(pending))
      else this.#waiting.push(pending)
    }
    if (this.size > 0) this.#timer ??= setTimeout(() => this.#expire(), this.#patience)
  }

  /** Calls `first`, and puts whatever it pushes ahead of everything that waits already. */
  before(first: () => void): void {
    const waiting = this.#waiting
    this.#waiting = new Fifo()
    try {
      first()
    } finally {
      for (const pending of waiting.drain()) this.#waiting.push(pending)
    }
  }

  /** The oldest requests, so many or about so many bytes, for this session; those bound to another one are rejected. */
  take(session: bigint, most: { readonly bytes: number; readonly count: number }): Pending[] {
    const taken: Pending[] = []
    for (let size = 0; size < most.bytes && taken.length < most.count; ) {
      const pending = this.#waiting.shift()
      if (!pending) break
      if (pending.settled) continue
      if (pending.session !== undefined && pending.session !== session) {
        pending.fail(notSent(pending, SessionExpired, 'it was meant for a session that is over', { again: false }))
        continue
      }
      taken.push(pending)
      size += pending.request.frame.length
    }
    if (this.#waiting.size === 0) this.#stopTimer()
    return taken
  }

  /** Rejects everything that waits. */
  reject(type: typeof ZooKeeperError, why: string, options: Prospect): void {
    this.#stopTimer()
    for (const pending of this.#waiting.drain()) {
      // The session that it is bound to is not the next one.
      pending.fail(notSent(pending, type, why, { ...options, again: options.again && pending.session === undefined }))
    }
  }

  #stopTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #expire(): void {
    this.#timer = undefined
    const waiting = this.#waiting.drain().filter((pending) => !pending.settled)
    const now = monotonic()
    const since = this.#disconnectedAt ?? now
    let next = Number.POSITIVE_INFINITY
    for (const pending of waiting) {
      const left = Math.max(pending.madeAt, since) + this.#patience - now
      // Timers may fire a fraction of a millisecond early.
      if (left < 1)
        pending.fail(notSent(pending, NotSent, `there was no connection for ${this.#patience} ms`, { again: true }))
      else {
        this.#waiting.push(pending)
        next = Math.min(next, left)
      }
    }
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => this.#expire(), next)
  }
}

/** What comes after a request that was not sent. */
export interface Prospect {
  /** Whether the same may be asked again with a chance to be sent. */
  readonly again: boolean
  readonly cause?: Error | undefined
}

/**
 * Rejects what is asked of a client that sends nothing: not yet, or not any more.
 *
 * @param prospect.cause why there will be no further session
 */
export function refuse(pending: Pending, state: 'new' | 'closed' | 'lost', { again, cause }: Prospect): void {
  const refused = (type: typeof ZooKeeperError, why: string, prospect: Prospect) =>
    pending.fail(notSent(pending, type, why, prospect))
  if (state === 'new') refused(NotSent, 'connect() was not called', { again: false })
  else if (state === 'closed') refused(NotSent, 'the client is closed', { again: false })
  else {
    const type = cause instanceof AuthFailed ? AuthFailed : SessionExpired
    refused(type, 'the session is over', { cause, again: again && pending.session === undefined })
  }
}

/** The error for a request that was meant for one connection. */
export function connectionGone(pending: Pending): ZooKeeperError {
  return notSent(pending, NotSent, 'the connection that it was meant for is gone', { again: true })
}

/** The error for a request that never left. */
function notSent({ request }: Pending, type: typeof ZooKeeperError, why: string, prospect: Prospect): ZooKeeperError {
  const { operation, path } = request
  const { again: retryable, cause } = prospect
  const subject = path === undefined ? operation : `${operation} ${path}`
  return new type(`${subject}: not sent, ${why}`, { outcome: 'not-sent', path, cause, retryable })
}
