/** Between what users say and what servers hear: paths through the chroot, sizes, and the way of a request to the session. */
import { monotonic } from '../core/time.ts'
import { checkRequestOptions } from './arguments.ts'
import { RequestTooLarge } from './errors.ts'
import { type Chroot, checkPath } from './path.ts'
import { Pending, type PendingOptions } from './pending.ts'
import { payloadBytes, type Request } from './requests.ts'

export interface AskerOptions {
  readonly chroot: Chroot
  readonly maxRequestBytes: number
  /** Whether errors name who asked. */
  readonly traceCallers: boolean
  readonly submit: (pending: Pending) => void
}

export class Asker {
  readonly #options: AskerOptions

  constructor(options: AskerOptions) {
    this.#options = options
  }

  /**
   * Asks, and gives the very promise of the answer: with as many promises in between for one operation as for another,
   * answers that arrive together are seen in their order.
   *
   * @param make what it throws, the promise rejects with
   */
  ask<T>(make: () => Request<T>, options: PendingOptions = {}): Promise<T> {
    try {
      checkRequestOptions(options)
      const request = this.#named(make())
      this.#checkSize(request)
      const pending = new Pending(request, monotonic(), options)
      if (this.#options.traceCallers) pending.traceCaller()
      this.#options.submit(pending)
      return pending.promise
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Errors are to name the path as whoever asks knows it. */
  #named<T>(request: Request<T>): Request<T> {
    const { path } = request
    const inward = path === undefined ? undefined : this.inward(path)
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
  outward(path: string, options?: { readonly sequential?: boolean }): string {
    checkPath(path, options)
    return this.#options.chroot.outward(path)
  }

  /** The path the user knows; the server's own for what is outside of the chroot. */
  inward(path: string): string {
    return this.#options.chroot.inward(path) ?? path
  }

  /** Without what is outside of the chroot. */
  inwardAll(paths: readonly string[]): string[] {
    return paths.map((path) => this.#options.chroot.inward(path)).filter((path) => path !== undefined)
  }
}
