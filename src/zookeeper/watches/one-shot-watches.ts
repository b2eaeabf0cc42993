/**
 * Watches that report one change: the ones that every ZooKeeper client calls simply watches.
 *
 * The server keeps one per path and kind, however many functions here wait for it, and removes it when it has reported
 * a change. So an entry lives from the first request for it until no handler waits any longer; when the last handler is
 * removed before a change, the watch is removed at the server too, so that no server keeps an unused one. Answers come
 * in order: while a request that may arm the same watch is in flight, removing it would remove that request's watch
 * too, so the removal is left to its answer.
 */
import type { WatchEvent } from '../protocol/records.ts'

/** Kind of watch: `data` is set by exists and getData, `children` by getChildren. */
export type OneShotKind = 'data' | 'children'

/** Notice that the watch ended without an event, because the session has ended. Read again. */
export interface WatchLost {
  readonly type: 'lost'
  readonly path: string
  readonly reason: Error
}

/** A function that is called at most once, synchronously, and not awaited if it is async. */
export type OneShotHandler = (event: WatchEvent | WatchLost) => unknown

interface WatchEntry {
  readonly handlers: Set<OneShotHandler>
  /** The number of unanswered requests for this watch. */
  unanswered: number
  /** Whether the server has it, as far as known. */
  armed: boolean
  /** Whether the znode existed: that decides how the watch is armed again. */
  present: boolean
}

/** Events that a server reports to a watch of each kind. */
const EVENTS_BY_KIND: Readonly<Record<OneShotKind, ReadonlySet<WatchEvent['type']>>> = {
  data: new Set(['created', 'deleted', 'dataChanged']),
  children: new Set(['childrenChanged', 'deleted']),
}

const NO_HANDLERS: ReadonlySet<OneShotHandler> = new Set()

export const ONE_SHOT_KINDS: readonly OneShotKind[] = ['data', 'children']

export class OneShotWatches {
  readonly #entries: Readonly<Record<OneShotKind, Map<string, WatchEntry>>> = { data: new Map(), children: new Map() }

  /** Returns whether a handler waits, or a request may add one, for a change of that path. */
  has(path: string): boolean {
    return ONE_SHOT_KINDS.some((kind) => this.#entries[kind].has(path))
  }

  /** Records that a request for the watch is about to be made. */
  noteRequested(path: string, kind: OneShotKind): void {
    const entry = this.#entries[kind].get(path) ?? { handlers: new Set(), unanswered: 0, armed: false, present: true }
    entry.unanswered++
    this.#entries[kind].set(path, entry)
  }

  /** Records that the server has answered, and watches. */
  noteArmed(
    path: string,
    kind: OneShotKind,
    options: { readonly present: boolean; readonly handler?: OneShotHandler },
  ): void {
    const entry = this.#entries[kind].get(path)
    if (!entry) return
    entry.armed = true
    entry.present = options.present
    if (options.handler) entry.handlers.add(options.handler)
  }

  /** Records that the request is settled. Returns whether the server now has a watch without a handler. */
  noteSettled(path: string, kind: OneShotKind): boolean {
    const entry = this.#entries[kind].get(path)
    if (!entry) return false
    entry.unanswered--
    return this.#removeIfUnused(path, kind, entry)
  }

  /** Removes and returns the handlers to be called, each once. */
  takeHandlers({ type, path }: WatchEvent): ReadonlySet<OneShotHandler> {
    if (this.#entries.data.size + this.#entries.children.size === 0) return NO_HANDLERS
    const concerned = new Set<OneShotHandler>()
    for (const kind of ONE_SHOT_KINDS) {
      const entry = EVENTS_BY_KIND[kind].has(type) ? this.#entries[kind].get(path) : undefined
      if (!entry) continue
      for (const handler of entry.handlers) concerned.add(handler)
      entry.handlers.clear()
      entry.armed = false
      this.#removeIfUnused(path, kind, entry)
    }
    return concerned
  }

  /**
   * Removes one handler of a path, or all: returns whether there was any, and whether the server's watch is now unused.
   */
  remove(path: string, kind: OneShotKind, handler?: OneShotHandler): { found: boolean; idle: boolean } {
    const entry = this.#entries[kind].get(path)
    if (!entry) return { found: false, idle: false }
    const found = handler ? entry.handlers.delete(handler) : entry.handlers.size > 0
    if (!handler) entry.handlers.clear()
    return { found, idle: this.#removeIfUnused(path, kind, entry) }
  }

  /**
   * Removes and returns all handlers with their paths, because the session is over. Requests may still be in flight.
   */
  takeAll(): [string, Set<OneShotHandler>][] {
    const all = new Map<string, Set<OneShotHandler>>()
    for (const kind of ONE_SHOT_KINDS) {
      for (const [path, entry] of this.#entries[kind]) {
        const handlers = all.get(path) ?? new Set()
        for (const handler of entry.handlers) handlers.add(handler)
        all.set(path, handlers)
        entry.handlers.clear()
        entry.armed = false
        this.#removeIfUnused(path, kind, entry)
      }
    }
    return [...all]
  }

  /** Lists the watches to arm on a new connection. */
  *listToArm(): Iterable<{ readonly path: string; readonly kind: 'data' | 'exist' | 'child' }> {
    for (const kind of ONE_SHOT_KINDS) {
      for (const [path, entry] of this.#entries[kind]) {
        entry.armed = entry.handlers.size > 0
        if (entry.armed) yield { path, kind: kind === 'children' ? 'child' : entry.present ? 'data' : 'exist' }
      }
    }
  }

  #removeIfUnused(path: string, kind: OneShotKind, entry: WatchEntry): boolean {
    if (entry.unanswered > 0 || entry.handlers.size > 0) return false
    this.#entries[kind].delete(path)
    return entry.armed
  }
}
