/**
 * Who watches what, and who is to be told of an event.
 *
 * All watches are persistent: they stay until they are removed. A server forgets them with the connection, so this
 * registry is what they are armed from on the next one. Nothing is replayed then, and every handler is told of the gap.
 */
import { InvalidState } from '../core/errors.ts'
import type { WatchEvent } from './records.ts'
import type { ArmedPaths, WatchMode } from './requests.ts'

export interface WatchHandler {
  /** What happened, in the order in which it happened. Called synchronously; it must not wait. */
  events(batch: readonly WatchEvent[]): void
  /** Events may have been missed: read everything again. Called whenever the watch was armed on a new connection. */
  gap(): void
}

/** One handler on one path. */
export interface Registration {
  readonly path: string
  readonly handler: WatchHandler
}

interface WatchedPath {
  readonly mode: WatchMode
  readonly registrations: Set<Registration>
}

/** Servers take 1 MiB a frame; smaller frames let other requests in between. */
const ARMING_BYTES = 128 * 1_024

export class Watches {
  readonly #paths = new Map<string, WatchedPath>()
  readonly #onFault: (error: unknown) => void

  /** @param onFault told of a handler that threw; the others still hear the events */
  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault
  }

  /**
   * @throws InvalidState when the path is watched in the other mode: servers before 3.9 keep one mode per path and
   * connection, and the second would silence the first
   */
  add(path: string, mode: WatchMode, handler: WatchHandler): Registration {
    const watched = this.#paths.get(path) ?? { mode, registrations: new Set() }
    if (watched.mode !== mode) throw new InvalidState(`${path} is watched already, as ${watched.mode}, not ${mode}`)
    const registration = { path, handler }
    watched.registrations.add(registration)
    this.#paths.set(path, watched)
    return registration
  }

  /** True when nobody watches the path any more, so that the server may forget it. */
  remove(registration: Registration): boolean {
    const watched = this.#paths.get(registration.path)
    if (!watched?.registrations.delete(registration) || watched.registrations.size > 0) return false
    return this.#paths.delete(registration.path)
  }

  /** Hands each handler its part of the batch, as one. */
  dispatch(batch: readonly WatchEvent[]): void {
    const parts = new Map<Registration, WatchEvent[]>()
    for (const event of batch) {
      for (const registration of this.#concerned(event)) {
        const part = parts.get(registration)
        if (part) part.push(event)
        else parts.set(registration, [event])
      }
    }
    for (const [registration, part] of parts) this.#call(registration, () => registration.handler.events(part))
  }

  gap(): void {
    const all = [...this.#paths.values()].flatMap(({ registrations }) => [...registrations])
    for (const registration of all) this.#call(registration, () => registration.handler.gap())
  }

  /** What to arm on a new connection, in portions for one frame each; always at least one. */
  portions(): ArmedPaths[] {
    let portion: Record<WatchMode, string[]> = { persistent: [], recursive: [] }
    const portions = [portion]
    let bytes = 0
    for (const [path, { mode }] of this.#paths) {
      const size = Buffer.byteLength(path)
      if (bytes + size > ARMING_BYTES) {
        portion = { persistent: [], recursive: [] }
        portions.push(portion)
        bytes = 0
      }
      bytes += size
      portion[mode].push(path)
    }
    return portions
  }

  *#concerned({ type, path }: WatchEvent): Iterable<Registration> {
    const here = this.#paths.get(path)
    if (here && (here.mode === 'persistent' || type !== 'childrenChanged')) yield* here.registrations
    if (type === 'childrenChanged') return
    for (let above = parentOf(path); above !== undefined; above = parentOf(above)) {
      const watched = this.#paths.get(above)
      if (watched?.mode === 'recursive') yield* watched.registrations
    }
  }

  #call(registration: Registration, tell: () => void): void {
    // A handler called just before may have removed this one.
    if (!this.#paths.get(registration.path)?.registrations.has(registration)) return
    try {
      tell()
    } catch (error) {
      this.#onFault(error)
    }
  }
}

function parentOf(path: string): string | undefined {
  if (path === '/') return undefined
  const slash = path.lastIndexOf('/')
  return slash <= 0 ? '/' : path.slice(0, slash)
}
