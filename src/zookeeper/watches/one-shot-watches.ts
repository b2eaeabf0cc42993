/**
 * Watches that are told of one change: what every ZooKeeper client calls simply watches.
 *
 * The server keeps one per path and kind, however many functions here wait for it, and forgets it when it has told of a
 * change. So an entry lives from the first request that asks for it until nobody waits any more; and it is taken away at
 * the server when the last function is removed before the change, so that no server is left watching for nobody. Answers
 * come in order: while a request that may arm the same watch is under way, taking it away would take that one's, too,
 * and is left to its answer.
 */
import type { WatchEvent } from '../protocol/records.ts'

/** `data` is asked for by exists and getData, `children` by getChildren. */
export type OneShotKind = 'data' | 'children'

/** The watch is over and there was no event: the session has ended. Look again. */
export interface WatchLost {
  readonly type: 'lost'
  readonly path: string
  readonly reason: Error
}

/** Called once at the most, synchronously, and not waited for if it is async. */
export type OneShotHandler = (event: WatchEvent | WatchLost) => unknown

interface WatchEntry {
  readonly handlers: Set<OneShotHandler>
  /** Requests that ask for this watch and are not answered yet. */
  asked: number
  /** The server has it, as far as known. */
  armed: boolean
  /** Whether the znode was there: what to arm again depends on it. */
  present: boolean
}

/** What a server tells a watch of each kind of. */
const EVENTS_BY_KIND: Readonly<Record<OneShotKind, ReadonlySet<WatchEvent['type']>>> = {
  data: new Set(['created', 'deleted', 'dataChanged']),
  children: new Set(['childrenChanged', 'deleted']),
}

const NO_HANDLERS: ReadonlySet<OneShotHandler> = new Set()

export const ONE_SHOT_KINDS: readonly OneShotKind[] = ['data', 'children']

export class OneShotWatches {
  readonly #entries: Readonly<Record<OneShotKind, Map<string, WatchEntry>>> = { data: new Map(), children: new Map() }

  /** Whether anybody waits, or may come to wait, for a change of that path. */
  has(path: string): boolean {
    return ONE_SHOT_KINDS.some((kind) => this.#entries[kind].has(path))
  }

  /** A request that asks for the watch is about to be made. */
  noteRequested(path: string, kind: OneShotKind): void {
    const entry = this.#entries[kind].get(path) ?? { handlers: new Set(), asked: 0, armed: false, present: true }
    entry.asked++
    this.#entries[kind].set(path, entry)
  }

  /** The server has answered, and watches. */
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

  /** That request was answered, or never will be. True when the server watches for nobody now. */
  noteSettled(path: string, kind: OneShotKind): boolean {
    const entry = this.#entries[kind].get(path)
    if (!entry) return false
    entry.asked--
    return this.#removeIfUnused(path, kind, entry)
  }

  /** Those who are to be called, each once. They are not registered any more. */
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

  /** Forgets one handler of a path, or all: whether there was any, and whether the server now watches for nobody. */
  remove(path: string, kind: OneShotKind, handler?: OneShotHandler): { found: boolean; idle: boolean } {
    const entry = this.#entries[kind].get(path)
    if (!entry) return { found: false, idle: false }
    const found = handler ? entry.handlers.delete(handler) : entry.handlers.size > 0
    if (!handler) entry.handlers.clear()
    return { found, idle: this.#removeIfUnused(path, kind, entry) }
  }

  /** The session is over, and its watches with it: everybody who waits, with the path. Requests may be under way still. */
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

  /** What to arm on a new connection, whose server knows nothing yet. */
  *listToArm(): Iterable<{ readonly path: string; readonly kind: 'data' | 'exist' | 'child' }> {
    for (const kind of ONE_SHOT_KINDS) {
      for (const [path, entry] of this.#entries[kind]) {
        entry.armed = entry.handlers.size > 0
        if (entry.armed) yield { path, kind: kind === 'children' ? 'child' : entry.present ? 'data' : 'exist' }
      }
    }
  }

  #removeIfUnused(path: string, kind: OneShotKind, entry: WatchEntry): boolean {
    if (entry.asked > 0 || entry.handlers.size > 0) return false
    this.#entries[kind].delete(path)
    return entry.armed
  }
}
