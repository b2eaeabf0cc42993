/**
 * One-shot watches of the C client. A handle reports changes as long as its connection lasts; the next connection is
 * another handle, where every watch that was set is set again (`rearm`). What the server says then is compared with what
 * it said when the watch was set: what differs is reported as the event that the server would have sent. The requests
 * that set watches again are the first of a connection, so a change is reported before any later answer.
 */
import { asError } from '../../core/errors.ts'
import type { Stat, WatchEventType } from '../protocol/records.ts'
import { invokeHandler } from '../watches/handler-faults.ts'
import type { OneShotHandler, OneShotKind } from '../watches/one-shot-watches.ts'
import { NATIVE_CODE, type NativeRequest, type NativeStat, type NativeWatch, toStat } from './package.ts'

/** Other types are about the session, which is reported in other ways. */
const WATCH_EVENT_TYPES: Readonly<Record<number, WatchEventType>> = {
  1: 'created',
  2: 'deleted',
  3: 'dataChanged',
  4: 'childrenChanged',
}

/** A handler that waits for one event. */
export class NativeOneShot {
  readonly path: string
  readonly kind: OneShotKind
  readonly handler: OneShotHandler
  readonly #watches: NativeWatches
  #seen: WatchedState | undefined

  constructor(watches: NativeWatches, of: Pick<NativeOneShot, 'path' | 'kind' | 'handler'>) {
    this.#watches = watches
    this.path = of.path
    this.kind = of.kind
    this.handler = of.handler
  }

  /**
   * Returns a function for a handle to call. It is another one each time: the package keeps the handle in the function,
   * and aborts the process when an earlier handle calls it. It runs inside of a callback of the package, so it defers.
   */
  listener(): NativeWatch {
    return (type, _, path) => {
      const event = WATCH_EVENT_TYPES[type]
      if (event) setImmediate(() => this.#watches.report(this, { type: event, path }))
    }
  }

  /** Znode at the time at which the server began to watch; undefined before that. */
  get seen(): WatchedState | undefined {
    return this.#seen
  }

  /** Records that the server watches, with its answer. */
  set(stat: Stat | undefined): void {
    this.#seen = { stat }
  }
}

interface WatchedState {
  /** Undefined where there was no znode. */
  readonly stat: Stat | undefined
}

export class NativeWatches {
  readonly #waiting = new Set<NativeOneShot>()
  readonly #onFault: (error: unknown, path: string) => void

  /** @param onFault called with what a handler of a watch of that path threw, or rejected with */
  constructor(onFault: (error: unknown, path: string) => void) {
    this.#onFault = onFault
  }

  add(path: string, kind: OneShotKind, handler: OneShotHandler): NativeOneShot {
    const watch = new NativeOneShot(this, { path, kind, handler })
    this.#waiting.add(watch)
    return watch
  }

  /** Forgets a watch whose request failed: the server does not watch. */
  forget(watch: NativeOneShot): void {
    this.#waiting.delete(watch)
  }

  /** Calls the handler, once. */
  report(watch: NativeOneShot, event: Parameters<OneShotHandler>[0]): void {
    if (!this.#waiting.delete(watch)) return
    invokeHandler(
      () => watch.handler(event),
      (error) => this.#onFault(error, watch.path),
    )
  }

  /**
   * Sets on a new connection what was set on the last one, and reports what has changed in between. Where a watch cannot be
   * set any more it is reported as lost.
   *
   * @param ask sends requests in order on that connection, and rejects with `isGap` errors where it breaks
   * @param isGap whether an error says that the connection broke; the next connection sets the watch again then
   */
  rearm(
    ask: (question: NativeRequest<Stat | undefined>) => Promise<Stat | undefined>,
    isGap: (error: unknown) => boolean,
  ): void {
    for (const watch of [...this.#waiting]) {
      const { seen, path } = watch
      if (!seen) continue
      ask(toSetRequest(watch)).then(
        (stat) => {
          const type = toMissedEvent(watch.kind, seen.stat, stat)
          if (type) this.report(watch, { type, path })
          else watch.set(stat)
        },
        (error: unknown) => {
          if (isGap(error)) return
          this.report(watch, { type: 'lost', path, reason: asError(error) })
        },
      )
    }
  }

  /** Reports to every handler that its watch is lost with the session. */
  sessionOver(reason: Error): void {
    for (const watch of [...this.#waiting]) this.report(watch, { type: 'lost', path: watch.path, reason })
  }
}

function toSetRequest(watch: NativeOneShot): NativeRequest<Stat | undefined> {
  const { kind, path } = watch
  return {
    operation: kind === 'children' ? 'getChildren' : 'exists',
    path,
    send: (handle, answer) => {
      const done = (code: number, stat: NativeStat | null) =>
        answer(code === NATIVE_CODE.noNode ? NATIVE_CODE.ok : code, () => (stat ? toStat(stat) : undefined))
      if (kind === 'data') return handle.aw_exists(path, watch.listener(), (code, _, stat) => done(code, stat))
      return handle.aw_get_children2(path, watch.listener(), (code, _, _names, stat) => done(code, stat))
    },
  }
}

/** Returns the event that the server reports when a watch is set on a znode that was `before` and is `now`. */
function toMissedEvent(kind: OneShotKind, before: Stat | undefined, now: Stat | undefined): WatchEventType | undefined {
  if (!now) return before && 'deleted'
  if (!before) return 'created'
  if (kind === 'children') return now.pzxid === before.pzxid ? undefined : 'childrenChanged'
  return now.mzxid === before.mzxid ? undefined : 'dataChanged'
}
