/** Between what users say and what servers hear: paths through the chroot, sizes, and the way of a request to the session. */
import { monotonic } from '../../core/time.ts'
import { PendingRequest, type PendingRequestOptions } from '../connection/pending.ts'
import { checkRequestOptions } from '../protocol/arguments.ts'
import { RequestTooLarge } from '../protocol/errors.ts'
import { type Chroot, checkPath } from '../protocol/path.ts'
import { payloadBytes, type Request } from '../protocol/requests.ts'

export interface RequestSenderOptions {
  readonly chroot: Chroot
  readonly maxRequestBytes: number
  /** Whether errors name who asked. */
  readonly traceCallers: boolean
  readonly submit: (pending: PendingRequest) => void
}

export class RequestSender {
  readonly #options: RequestSenderOptions

  constructor(options: RequestSenderOptions) {
    this.#options = options
  }

  /**
   * Asks, and gives the very promise of the answer: with as many promises in between for one operation as for another,
   * answers that arrive together are seen in their order.
   *
   * @param make what it throws, the promise rejects with
   */
  send<T>(make: () => Request<T>, options: PendingRequestOptions = {}): Promise<T> {
    try {
      checkRequestOptions(options)
      const request = this.#withUserPath(make())
      this.#checkSize(request)
      const pending = new PendingRequest(request, monotonic(), options)
      if (this.#options.traceCallers) pending.traceCaller()
      this.#options.submit(pending)
      return pending.promise
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Errors are to name the path as whoever asks knows it. */
  #withUserPath<T>(request: Request<T>): Request<T> {
    const { path } = request
    const inward = path === undefined ? undefined : this.toUserPath(path)
    return inward === undefined || inward === path ? request : { ...request, path: inward }
  }

  #checkSize<T>({ frame, operation, path }: Request<T>): void {
    const { maxRequestBytes } = this.#options
    const bytes = payloadBytes(frame)
    if (bytes <= maxRequestBytes) return
    const subject = path === undefined ? operation : `${operation} ${path}`
    const message = `${subject}: not sent, ${bytes} bytes are more than the ${maxRequestBytes} that a server takes`
    throw new RequestTooLarge(message, { path })
  }

  /**
   * The path the server knows.
   *
   * @throws InvalidArgument for a malformed one
   */
  toServerPath(path: string, options?: { readonly sequential?: boolean }): string {
    checkPath(path, options)
    return this.#options.chroot.toServerPath(path)
  }

  /** The path the user knows; the server's own for what is outside of the chroot. */
  toUserPath(path: string): string {
    return this.#options.chroot.toUserPath(path) ?? path
  }

  /** Without what is outside of the chroot. */
  toUserPaths(paths: readonly string[]): string[] {
    return paths.map((path) => this.#options.chroot.toUserPath(path)).filter((path) => path !== undefined)
  }
}
