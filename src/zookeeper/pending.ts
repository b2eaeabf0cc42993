/** A request on its way: waiting to be sent, sent, or settled. */
import { type Deferred, deferred } from '../core/abort.ts'
import type { Instant } from './clock.ts'
import { errorOfCode, ZooKeeperError } from './errors.ts'
import type { JuteReader } from './jute.ts'
import type { ReplyHeader } from './records.ts'
import type { Request } from './requests.ts'

export interface RequestOptions {
  /** Gives the request up: the promise rejects with the signal's reason. What was sent before may still happen. */
  readonly signal?: AbortSignal
  /** Send it on this session or not at all (SessionExpired). */
  readonly session?: bigint
}

export class Pending<T = unknown> {
  readonly request: Request<T>
  /** The session it must be sent on, if it matters. */
  readonly session: bigint | undefined
  /** When it was made: a request does not wait for a connection for ever. */
  readonly madeAt: number
  /** When it was handed to the socket. */
  sentAt: Instant | undefined
  /** The number it was sent under. */
  xid = 0
  readonly #deferred: Deferred<T> = deferred<T>()
  readonly #signal: AbortSignal | undefined
  readonly #abort = () => this.fail(this.#signal?.reason)
  #settled = false

  constructor(request: Request<T>, madeAt: number, options: RequestOptions = {}) {
    this.request = request
    this.madeAt = madeAt
    this.session = options.session
    this.#signal = options.signal
    if (this.#signal?.aborted) this.#abort()
    else this.#signal?.addEventListener('abort', this.#abort, { once: true })
  }

  get promise(): Promise<T> {
    return this.#deferred.promise
  }

  /** Nobody waits for the answer any more. One that was sent keeps its place all the same: answers come in order. */
  get settled(): boolean {
    return this.#settled
  }

  /** @throws MalformedBytes when the answer cannot be read; the request is still waiting then */
  answer(header: ReplyHeader, body: JuteReader): void {
    if (this.#settled) return
    try {
      const { operation, path } = this.request
      if (header.code !== 0) throw errorOfCode(header.code, { operation, path })
      const value = this.request.read(body, header.zxid)
      this.#settle()
      this.#deferred.resolve(value)
    } catch (error) {
      // Everything else than a refusal means that the answer makes no sense.
      if (!(error instanceof ZooKeeperError)) throw error
      this.fail(error)
    }
  }

  fail(error: unknown): void {
    if (this.#settled) return
    this.#settle()
    this.#deferred.reject(error)
  }

  #settle(): void {
    this.#settled = true
    this.#signal?.removeEventListener('abort', this.#abort)
  }
}
