/** A request in one of its states: waiting to be sent, sent, or settled. */
import { createDeferred, type Deferred, onAbort } from '../../core/async/abort.ts'
import type { Instant } from '../../core/time.ts'
import { NO_NODE, toError, ZooKeeperError } from '../protocol/errors.ts'
import type { JuteReader } from '../protocol/jute.ts'
import type { ReplyHeader } from '../protocol/records.ts'
import type { Request } from '../protocol/requests.ts'

/** Options of every request. */
export interface RequestOptions {
  /**
   * Signal that cancels the request: the promise rejects with its reason. A request that was sent may still be carried
   * out.
   */
  readonly signal?: AbortSignal
  /** Session in which the request must be sent; in another one it is not sent (SessionExpired). */
  readonly session?: bigint
}

export interface PendingRequestOptions extends RequestOptions {
  /** Whether to send it on the current connection, or the connection that is being opened, or not at all (NotSent). */
  readonly currentConnectionOnly?: true
}

/** Whether another connection or session may follow. */
export type RetryCheck = (over: 'connection' | 'session') => boolean

export class PendingRequest<T = unknown> {
  readonly request: Request<T>
  /** Session in which it must be sent, if any. */
  readonly session: bigint | undefined
  /** Whether it must not be sent on another connection. */
  readonly currentConnectionOnly: boolean
  /** Time of creation: the time that a request waits for a connection is limited. */
  readonly createdAt: number
  /** Time at which it was written to the socket; undefined before. */
  sentAt: Instant | undefined
  /** Number under which it was sent. */
  xid = 0
  readonly #deferred: Deferred<T> = createDeferred<T>()
  /** Removes the listener of the signal; few requests have one. */
  #unfollow: (() => void) | undefined
  #settled = false
  #caller: { readonly stack?: string } | undefined

  constructor(request: Request<T>, madeAt: number, options: PendingRequestOptions = {}) {
    this.request = request
    this.createdAt = madeAt
    this.session = options.session
    this.currentConnectionOnly = options.currentConnectionOnly ?? false
    if (options.signal) this.#follow(options.signal)
  }

  get promise(): Promise<T> {
    return this.#deferred.promise
  }

  /** Whether the caller waits no longer. A sent request keeps its place in the queue, because answers come in order. */
  get settled(): boolean {
    return this.#settled
  }

  /**
   * Settles the request with an answer.
   *
   * @param prospects whether a connection or session may follow, for errors
   * @returns the kind of the answer
   * @throws MalformedBytes when the answer cannot be read; the request is still waiting then
   */
  handleReply(header: ReplyHeader, body: JuteReader, prospects: RetryCheck): 'done' | 'refused' {
    if (this.#settled) return header.code === 0 ? 'done' : 'refused'
    try {
      const value = this.#read(header, body, prospects)
      this.#settle()
      this.#deferred.resolve(value)
      return 'done'
    } catch (error) {
      // An error other than a refusal means that the answer cannot be decoded.
      if (!(error instanceof ZooKeeperError)) throw error
      this.fail(error)
      return 'refused'
    }
  }

  #read(header: ReplyHeader, body: JuteReader, goesOn: RetryCheck): T {
    const { operation, path, onAbsent } = this.request
    if (header.code === NO_NODE && onAbsent) return onAbsent()
    if (header.code !== 0) {
      const anew = this.session === undefined && goesOn('session')
      throw toError(header.code, { operation, path }, { again: goesOn('connection'), anew })
    }
    return this.request.read(body, header.zxid)
  }

  /**
   * Captures the caller's stack for a later error. Called synchronously by the caller: later its stack is not
   * available.
   */
  traceCaller(): void {
    const caller: { readonly stack?: string } = {}
    Error.captureStackTrace(caller, this.traceCaller)
    this.#caller = caller
  }

  fail(error: unknown): void {
    if (this.#settled) return
    if (this.#caller && error instanceof ZooKeeperError) error.stack = addCallerStack(error, this.#caller)
    this.#reject(error)
  }

  #reject(error: unknown): void {
    if (this.#settled) return
    this.#settle()
    this.#deferred.reject(error)
  }

  #settle(): void {
    this.#settled = true
    this.#unfollow?.()
  }

  #follow(signal: AbortSignal): void {
    // The reason is shared by all users of the signal and must not be changed: it gets no caller's stack.
    const abort = () => this.#reject(signal.reason)
    if (signal.aborted) abort()
    else this.#unfollow = onAbort(signal, abort)
  }
}

/** Appends a captured stack, whose first line names no error. */
function addCallerStack(error: Error, caller: { readonly stack?: string }): string {
  const [, ...frames] = (caller.stack ?? '').split('\n')
  return [error.stack ?? error.message, '  asked by', ...frames].join('\n')
}
