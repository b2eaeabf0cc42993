/** Adds and removes watches, in the registry (`watches.ts`) and at the server. */
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { RequestOptions } from '../connection/pending.ts'
import { assertOneOf } from '../protocol/arguments.ts'
import { ConnectionLoss, NoWatcher, ZooKeeperError } from '../protocol/errors.ts'
import { WATCH_KIND } from '../protocol/opcodes.ts'
import {
  addWatch,
  mapReply,
  type Request,
  removeWatches,
  type WatchKind,
  type WatchMode,
} from '../protocol/requests.ts'
import type { RequestSender } from '../session/request-sender.ts'
import { ONE_SHOT_KINDS, type OneShotHandler, type OneShotKind } from './one-shot-watches.ts'
import type { WatchHandler, WatchRegistration, WatchRegistry } from './watches.ts'

/** A persistent watch, until it is removed. */
export interface Watch {
  readonly path: string
  /** Stops calling the handler, at once. */
  remove(): Promise<void>
}

/** Options of a read that may set a watch. */
export interface ReadOptions extends RequestOptions {
  /**
   * Handler that is called at most once: at the next change of the data read, or with `lost` when the session ends
   * before. It stays armed across connections of the same session, and then receives a change that happened in between.
   */
  readonly watch?: OneShotHandler
}

export class WatchManager {
  readonly #sender: RequestSender
  readonly #watches: WatchRegistry

  constructor(sender: RequestSender, watches: WatchRegistry) {
    this.#sender = sender
    this.#watches = watches
  }

  async watch(
    path: string,
    options: { readonly mode: WatchMode; readonly signal?: AbortSignal },
    handler: WatchHandler,
  ): Promise<Watch> {
    if (typeof options !== 'object' || options === null)
      throw new InvalidArgument(`watch ${path}: its options have to be an object, as in { mode: 'recursive' }`)
    const outward = this.#sender.toServerPath(path)
    const registration = this.#watches.add(path, options.mode, handler)
    const remove = async () => {
      if (this.#watches.remove(registration)) await this.#removeAtServer(outward, 'any')
    }
    try {
      await this.#arm(registration, () => addWatch(outward, options.mode), defined({ signal: options.signal }))
    } catch (error) {
      remove().catch(() => undefined)
      throw error
    }
    // It was removed while the request waited for a connection, when the server had no watch to remove yet.
    if (this.#watches.isFree(path)) this.#removeAtServerQuietly(path, 'any')
    return { path, remove }
  }

  /**
   * Arms a watch. A registered watch is armed with every new connection; arming it again after a lost one does no harm.
   */
  async #arm(registration: WatchRegistration, make: () => Request<undefined>, options: RequestOptions): Promise<void> {
    while (this.#watches.has(registration)) {
      try {
        return await this.#sender.send(make, options)
      } catch (error) {
        if (!(error instanceof ConnectionLoss)) throw error
      }
    }
  }

  /** Reads with a watch, if one is wanted. A missing znode reads as undefined where it is no error. */
  read<T>(
    path: string,
    kind: OneShotKind,
    options: ReadOptions,
    make: (outward: string, reading: { readonly watch: boolean }) => Request<T>,
  ): Promise<T> {
    const { watch: handler, signal, ...rest } = options
    const makeRequest = (watch: boolean) => make(this.#sender.toServerPath(path), { watch })
    if (handler === undefined) return this.#sender.send(() => makeRequest(false), options)
    let asking = false
    const begin = () => {
      signal?.throwIfAborted()
      if (typeof handler !== 'function') throw new InvalidArgument(`watch ${path}: the watch must be a function`)
      const request = makeRequest(true)
      this.#watches.noteRequested(path, kind)
      asking = true
      // Recorded while the answer is read, not when the caller's await continues: the next message may be the event.
      return mapReply(request, (value) => {
        this.#watches.noteArmed(path, kind, {
          present: value !== undefined,
          ...defined({ handler: signal?.aborted ? undefined : handler }),
        })
        return value
      })
    }
    // Without the signal: the registry must know whether the server watches even if the caller has stopped waiting.
    const answer = this.#sender.send(begin, rest)
    const settled = () => {
      if (asking && this.#watches.noteSettled(path, kind)) this.#removeAtServerQuietly(path, kind)
    }
    answer.then(settled, settled)
    return signal ? rejectOnAbort(answer, signal) : answer
  }

  async remove(path: string, options: { readonly kind: WatchKind; readonly handler?: OneShotHandler }): Promise<void> {
    const { kind, handler } = options
    assertOneOf(kind, Object.keys(WATCH_KIND), 'removeWatches: kind')
    const outward = this.#sender.toServerPath(path)
    const removed = ONE_SHOT_KINDS.filter((each) => kind === 'any' || kind === each).map((each) => ({
      kind: each,
      ...this.#watches.removeOneShot(path, each, handler),
    }))
    const persistent = kind === 'any' && handler === undefined && this.#watches.removeAll(path)
    if (!persistent && !removed.some(({ found }) => found)) {
      throw new NoWatcher(`removeWatches ${path}: this client has no such watch`, { outcome: 'not-sent', path })
    }
    const idle: WatchKind[] = removed.filter((each) => each.idle).map((each) => each.kind)
    if (persistent) idle.push('any')
    await Promise.all(idle.map((each) => this.#removeAtServer(outward, each)))
  }

  #removeAtServerQuietly(path: string, kind: WatchKind): void {
    this.#removeAtServer(this.#sender.toServerPath(path), kind).catch(() => undefined)
  }

  /** Removes a watch on the connection on which it was armed. The next connection is armed without it. */
  async #removeAtServer(outward: string, kind: WatchKind): Promise<void> {
    try {
      await this.#sender.send(() => removeWatches(outward, kind), { currentConnectionOnly: true })
    } catch (error) {
      // The watch no longer exists: it fired, or was lost with the connection or the session.
      if (error instanceof NoWatcher || (error instanceof ZooKeeperError && error.outcome !== 'refused')) return
      throw error
    }
  }
}
