/** A request on its way: waiting to be sent, sent, or settled. */
import { createDeferred, type Deferred, onAbort } from '../../core/async/abort.ts'
import type { Instant } from '../../core/clock.ts'
import { NO_NODE, toError, ZooKeeperError } from '../protocol/errors.ts'
import type { JuteReader } from '../protocol/jute.ts'
import type { ReplyHeader } from '../protocol/records.ts'
import type { Request } from '../protocol/requests.ts'

/** What every request can be told. */
export interface RequestOptions {
  /** Gives the request up: the promise rejects with the signal's reason. What was sent before may still happen. */
  readonly signal?: AbortSignal
  /** Send it on this session or not at all (SessionExpired). */
  readonly session?: bigint
}

export interface PendingRequestOptions extends RequestOptions {
  /** Send it on the connection there is, or is about to be, or not at all (NotSent). */
  readonly currentConnectionOnly?: true
}

/** Whether there may be another when this one is over. */
export type RetryCheck = (over: 'connection' | 'session') => boolean

export class PendingRequest<T = unknown> {
  readonly request: Request<T>
  /** The session it must be sent on, if it matters. */
  readonly session: bigint | undefined
  /** It makes no sense on another connection. */
  readonly currentConnectionOnly: boolean
  /** When it was made: a request does not wait for a connection for ever. */
  readonly createdAt: number
  /** When it was handed to the socket. */
  sentAt: Instant | undefined
  /** The number it was sent under. */
  xid = 0
  readonly #deferred: Deferred<T> = createDeferred<T>()
  /** Stops listening to the signal; few requests have one. */
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

  /** Nobody waits for the answer any more. One that was sent keeps its place all the same: answers come in order. */
  get settled(): boolean {
    return this.#settled
  }

  /**
   * @param prospects what comes after an error
   * @returns how it was answered
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
      // Everything else than a refusal means that the answer makes no sense.
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

  /** From now on the error that it may come to says who asked. Called where it is asked: later nobody knows any more. */
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
    // Told to many, and not ours to change: it does not say who asked.
    const abort = () => this.#reject(signal.reason)
    if (signal.aborted) abort()
    else this.#unfollow = onAbort(signal, abort)
  }
}

/** The first line of a captured stack names no error. */
function addCallerStack(error: Error, caller: { readonly stack?: string }): string {
  const [, ...frames] = (caller.stack ?? '').split('\n')
  return [error.stack ?? error.message, '  asked by', ...frames].join('\n')
}
