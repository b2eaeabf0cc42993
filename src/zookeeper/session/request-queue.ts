/**
 * Requests that wait to be sent: for the end of the tick, for room in the socket or in flight, or for a connection.
 *
 * Their number is not limited, because each has a caller who holds it anyway: to slow a producer down, await its
 * requests. They wait for room without a limit; for a connection, only as long as a session lasts.
 */
import { FifoQueue } from '../../core/collections/fifo.ts'
import { monotonic, startTimer } from '../../core/time.ts'
import type { PendingRequest } from '../connection/pending.ts'
import { AuthFailed, NotSent, SessionExpired, type ZooKeeperError } from '../protocol/errors.ts'
import type { Request } from '../protocol/requests.ts'

/** The limits of the requests that are taken at once. */
export interface TakeLimits {
  readonly bytes: number
  readonly count: number
  /** Returns the error for a request that must not be sent. */
  readonly refusalOf?: (request: Request<unknown>) => Error | undefined
}

export class RequestQueue {
  readonly #timeoutMs: number
  #waiting = new FifoQueue<PendingRequest>()
  /** Time since which there is no connection. */
  #disconnectedAt: number | undefined = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /** @param timeoutMs milliseconds without a connection after which a request is rejected */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  get size(): number {
    return this.#waiting.size
  }

  push(pending: PendingRequest): void {
    this.#waiting.push(pending)
    if (this.#disconnectedAt !== undefined) this.#timer ??= startTimer(() => this.#expire(), this.#timeoutMs)
  }

  connected(): void {
    this.#disconnectedAt = undefined
    this.#stopTimer()
  }

  disconnected(): void {
    this.#disconnectedAt = monotonic()
    for (const pending of this.#waiting.drain()) {
      if (pending.currentConnectionOnly) pending.fail(connectionGoneError(pending))
      else this.#waiting.push(pending)
    }
    if (this.size > 0) this.#timer ??= startTimer(() => this.#expire(), this.#timeoutMs)
  }

  /** Calls `first`, and puts the requests that it pushes before all waiting ones. */
  pushFirst(first: () => void): void {
    const waiting = this.#waiting
    this.#waiting = new FifoQueue()
    try {
      first()
    } finally {
      for (const pending of waiting.drain()) this.#waiting.push(pending)
    }
  }

  /**
   * Takes the oldest requests for this session, up to a count or about a number of bytes; rejects requests bound to
   * another one.
   */
  take(session: bigint, most: TakeLimits): PendingRequest[] {
    const taken: PendingRequest[] = []
    for (let size = 0; size < most.bytes && taken.length < most.count; ) {
      const pending = this.#waiting.shift()
      if (!pending) break
      if (pending.settled) continue
      if (pending.session !== undefined && pending.session !== session) {
        pending.fail(
          notSentError(pending, SessionExpired, 'it was bound to a session that is over', { retryable: false }),
        )
        continue
      }
      // Its size was checked when it was made; the limit may have become smaller since.
      const refused = most.refusalOf?.(pending.request)
      if (refused) {
        pending.fail(refused)
        continue
      }
      taken.push(pending)
      size += pending.request.frame.length
    }
    if (this.#waiting.size === 0) this.#stopTimer()
    return taken
  }

  /** Rejects all waiting requests. */
  reject(type: typeof ZooKeeperError, why: string, options: Retryability): void {
    this.#stopTimer()
    for (const pending of this.#waiting.drain()) {
      // The request is bound to this session, not to the next one.
      pending.fail(
        notSentError(pending, type, why, { ...options, retryable: options.retryable && pending.session === undefined }),
      )
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
      const left = Math.max(pending.createdAt, since) + this.#timeoutMs - now
      // Timers may fire a fraction of a millisecond early.
      if (left < 1)
        pending.fail(
          notSentError(pending, NotSent, `there was no connection for ${this.#timeoutMs} ms`, { retryable: true }),
        )
      else {
        this.#waiting.push(pending)
        next = Math.min(next, left)
      }
    }
    if (this.#waiting.size > 0) this.#timer = startTimer(() => this.#expire(), next)
  }
}

/** Prospects of a request that was not sent. */
export interface Retryability {
  /** Whether a repeated request has a chance to be sent. */
  readonly retryable: boolean
  readonly cause?: Error | undefined
}

/**
 * Rejects a request to a client that does not send: not yet, or never again.
 *
 * @param prospect.cause the reason why no session will follow
 */
export function rejectRequest(
  pending: PendingRequest,
  state: 'new' | 'closed' | 'lost',
  { retryable, cause }: Retryability,
): void {
  const refused = (type: typeof ZooKeeperError, why: string, retryability: Retryability) =>
    pending.fail(notSentError(pending, type, why, retryability))
  if (state === 'new') refused(NotSent, 'connect() was not called', { retryable: false })
  else if (state === 'closed') refused(NotSent, 'the client is closed', { retryable: false })
  else {
    const type = cause instanceof AuthFailed ? AuthFailed : SessionExpired
    refused(type, 'the session is over', { cause, retryable: retryable && pending.session === undefined })
  }
}

/** Returns the error for a request that was bound to one connection. */
export function connectionGoneError(pending: PendingRequest): ZooKeeperError {
  return notSentError(pending, NotSent, 'the connection that it was bound to is closed', { retryable: true })
}

/** Returns the error for a request that was never sent. */
function notSentError(
  { request }: PendingRequest,
  type: typeof ZooKeeperError,
  why: string,
  retryability: Retryability,
): ZooKeeperError {
  const { operation, path } = request
  const { retryable, cause } = retryability
  const subject = path === undefined ? operation : `${operation} ${path}`
  return new type(`${subject}: not sent, ${why}`, { outcome: 'not-sent', path, cause, retryable })
}
