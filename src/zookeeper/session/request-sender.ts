/** Prepares requests of users for the session: paths through the chroot, checks of sizes. */
import { monotonic } from '../../core/time.ts'
import { PendingRequest, type PendingRequestOptions } from '../connection/pending.ts'
import { checkRequestOptions } from '../protocol/arguments.ts'
import { type Chroot, checkPath } from '../protocol/path.ts'
import type { Request } from '../protocol/requests.ts'
import type { RequestLimit } from './request-limit.ts'

export interface RequestSenderOptions {
  readonly chroot: Chroot
  readonly limit: RequestLimit
  /** Whether errors include the caller's stack. */
  readonly traceCallers: boolean
  readonly submit: (pending: PendingRequest) => void
}

export class RequestSender {
  readonly #options: RequestSenderOptions

  constructor(options: RequestSenderOptions) {
    this.#options = options
  }

  /**
   * Sends a request and returns the promise of the answer itself: with the same number of promises in between for every
   * operation, answers that arrive together are seen in their order.
   *
   * @param make a function whose errors reject the promise
   */
  send<T>(make: () => Request<T>, options: PendingRequestOptions = {}): Promise<T> {
    try {
      checkRequestOptions(options)
      const request = this.#withUserPath(make())
      const tooLarge = this.#options.limit.refusalOf(request)
      if (tooLarge) throw tooLarge
      const pending = new PendingRequest(request, monotonic(), options)
      if (this.#options.traceCallers) pending.traceCaller()
      this.#options.submit(pending)
      return pending.promise
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Replaces the path in errors by the user's. */
  #withUserPath<T>(request: Request<T>): Request<T> {
    const { path } = request
    const inward = path === undefined ? undefined : this.toUserPath(path)
    return inward === undefined || inward === path ? request : { ...request, path: inward }
  }

  /**
   * Returns the server's path for a user's.
   *
   * @throws InvalidArgument for a malformed one
   */
  toServerPath(path: string, options?: { readonly sequential?: boolean }): string {
    checkPath(path, options)
    // A sequential name is appended to the path: without the slash, it would be beside the root and not below it.
    const inward = this.#options.chroot.toServerPath(path)
    return options?.sequential && path === '/' && inward !== '/' ? `${inward}/` : inward
  }

  /** Returns the user's path for a server's; the server's own outside of the chroot. */
  toUserPath(path: string): string {
    return this.#options.chroot.toUserPath(path) ?? path
  }

  /** Converts the server's paths to the user's, without the paths outside of the chroot. */
  toUserPaths(paths: readonly string[]): string[] {
    return paths.map((path) => this.#options.chroot.toUserPath(path)).filter((path) => path !== undefined)
  }
}
