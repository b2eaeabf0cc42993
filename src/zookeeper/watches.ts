/**
 * Who watches what, and who is to be told of an event. Paths are the user's (see Chroot), except in what is armed.
 *
 * Persistent watches stay until they are removed, one-shot watches (`one-shots.ts`) until they fired. A server forgets
 * both with the connection, so this registry is what they are armed from on the next one. One-shot watches are told then
 * of what they missed; of persistent ones nothing is replayed, and every handler is told of the gap. With the session
 * one-shot watches end, and say so; persistent ones go on in the next.
 *
 * A path is watched in one mode at a time. Servers before 3.9 keep one per path and connection: a one-shot watch would
 * silence a persistent one after the next event. What is watched above or below does not matter.
 */
import { InvalidArgument, InvalidState } from '../core/errors.ts'
import { assertOneOf } from './arguments.ts'
import { SessionExpired } from './errors.ts'
import { callHandler } from './handlers.ts'
import { type OneShotHandler, type OneShotKind, OneShots } from './one-shots.ts'
import { WATCH_MODE } from './opcodes.ts'
import { type Chroot, parentOf } from './path.ts'
import type { WatchEvent } from './records.ts'
import type { ArmedKind, ArmedPaths, WatchMode } from './requests.ts'

/** Told of what a persistent watch sees. */
export interface WatchHandler {
  /** What happened, in the order in which it happened. Called synchronously, and not waited for if it is async. */
  events(batch: readonly WatchEvent[]): unknown
  /** Events may have been missed: read everything again. Called whenever the watch was armed on a new connection. */
  gap(): unknown
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

export interface WatchesOptions {
  readonly chroot: Chroot
  /** How large a request to arm may be. */
  readonly armingBytes: number
  /** Told of a handler of a watch of that path that threw or rejected; the others still hear the events. */
  readonly onFault: (error: unknown, path: string) => void
}

const PATH_LENGTH_BYTES = 4
const NOBODY: readonly Registration[] = []

export class Watches {
  readonly #options: WatchesOptions
  readonly #paths = new Map<string, WatchedPath>()
  readonly #oneShots = new OneShots()
  #closed: SessionExpired | undefined

  constructor(options: WatchesOptions) {
    this.#options = options
  }

  // --- Persistent ones ----------------------------------------------------------------------------------------------

  /**
   * @throws InvalidArgument for a mode that there is not, and for what is no handler
   * @throws InvalidState when the path is watched in another mode
   */
  add(path: string, mode: WatchMode, handler: WatchHandler): Registration {
    assertOneOf(mode, Object.keys(WATCH_MODE), 'watch: mode')
    const { events, gap }: Partial<WatchHandler> = Object(handler)
    if (typeof events !== 'function' || typeof gap !== 'function')
      throw new InvalidArgument(`watch ${path}: a handler with two functions is needed, { events(batch) {}, gap() {} }`)
    const watched = this.#paths.get(path) ?? { mode, registrations: new Set() }
    if (watched.mode !== mode) throw twoModes(path, watched.mode, mode)
    if (this.#oneShots.has(path)) throw twoModes(path, 'one-shot', mode)
    const registration = { path, handler }
    watched.registrations.add(registration)
    this.#paths.set(path, watched)
    return registration
  }

  has(registration: Registration): boolean {
    return this.#paths.get(registration.path)?.registrations.has(registration) ?? false
  }

  /** Whether nobody watches the path, in whatever way. */
  isFree(path: string): boolean {
    return !this.#paths.has(path) && !this.#oneShots.has(path)
  }

  /** True when nobody watches the path any more, so that the server may forget it. */
  remove(registration: Registration): boolean {
    const watched = this.#paths.get(registration.path)
    if (!watched?.registrations.delete(registration) || watched.registrations.size > 0) return false
    return this.#paths.delete(registration.path)
  }

  /** Forgets every persistent watch of the path; true when there was any. */
  removeAll(path: string): boolean {
    return this.#paths.delete(path)
  }

  // --- One-shot ones --------------------------------------------------------------------------------------------------

  /**
   * A request that asks for a one-shot watch is about to be made; `settled` has to follow.
   *
   * @throws InvalidState when there is a persistent watch on the path
   */
  asking(path: string, kind: OneShotKind): void {
    const watched = this.#paths.get(path)
    if (watched) throw twoModes(path, watched.mode, 'one-shot')
    this.#oneShots.asking(path, kind)
  }

  /** The server watches. Without a handler nobody wants to know any more. */
  armed(path: string, kind: OneShotKind, options: { present: boolean; handler?: OneShotHandler }): void {
    if (!this.#closed) this.#oneShots.armed(path, kind, options)
    else if (options.handler) this.#lose(path, [options.handler], this.#closed)
  }

  /** True when the server watches for nobody now. */
  settled(path: string, kind: OneShotKind): boolean {
    return this.#oneShots.settled(path, kind)
  }

  removeOneShot(path: string, kind: OneShotKind, handler?: OneShotHandler): { found: boolean; idle: boolean } {
    return this.#oneShots.remove(path, kind, handler)
  }

  // --- Telling --------------------------------------------------------------------------------------------------------

  /** Hands each handler its part of the batch, as one; then each one-shot handler its event. */
  dispatch(batch: readonly WatchEvent[]): void {
    const parts = new Map<Registration, WatchEvent[]>()
    const fired: [OneShotHandler, WatchEvent][] = []
    const concern = (registration: Registration, event: WatchEvent) => {
      const part = parts.get(registration)
      if (part) part.push(event)
      else parts.set(registration, [event])
    }
    // Most events of a batch are of the same few folders.
    const above = new Map<string, readonly Registration[]>()
    for (const outward of batch) {
      const event = this.#inward(outward)
      if (!event) continue
      for (const registration of this.#watchingHere(event)) concern(registration, event)
      for (const registration of this.#watchingAbove(event, above)) concern(registration, event)
      for (const handler of this.#oneShots.take(event)) fired.push([handler, event])
    }
    for (const [registration, part] of parts) this.#call(registration, () => registration.handler.events(part))
    for (const [handler, event] of fired) this.#guard(() => handler(event), event.path)
  }

  gap(): void {
    const all = [...this.#paths.values()].flatMap(({ registrations }) => [...registrations])
    for (const registration of all) this.#call(registration, () => registration.handler.gap())
  }

  /** The session is over, and the one-shot watches with it. */
  sessionOver(reason: Error = new SessionExpired('the session is over')): void {
    for (const [path, handlers] of this.#oneShots.takeAll()) this.#lose(path, handlers, reason)
  }

  /** Nothing is to come any more, though requests that were made before may still be answered. */
  close(): void {
    this.#closed ??= new SessionExpired('the client was closed, and its session with it')
    this.sessionOver(this.#closed)
  }

  #lose(path: string, handlers: Iterable<OneShotHandler>, reason: Error): void {
    for (const handler of handlers) this.#guard(() => handler({ type: 'lost', path, reason }), path)
  }

  // --- Arming again -----------------------------------------------------------------------------------------------------

  /** What to arm on a new connection, in portions for one request each; always at least one. */
  portions(): ArmedPaths[] {
    let portion = emptyPortion()
    const portions = [portion]
    let bytes = 0
    for (const { path, kind } of this.#toArm()) {
      const outward = this.#options.chroot.outward(path)
      const size = Buffer.byteLength(outward) + PATH_LENGTH_BYTES
      if (bytes > 0 && bytes + size > this.#options.armingBytes) {
        portion = emptyPortion()
        portions.push(portion)
        bytes = 0
      }
      bytes += size
      portion[kind].push(outward)
    }
    return portions
  }

  *#toArm(): Iterable<{ readonly path: string; readonly kind: ArmedKind }> {
    yield* this.#oneShots.toArm()
    for (const [path, { mode: kind }] of this.#paths) yield { path, kind }
  }

  // --- Finding who is concerned -------------------------------------------------------------------------------------------

  /** The event as the user knows it; undefined for one outside of the chroot. */
  #inward(event: WatchEvent): WatchEvent | undefined {
    const path = this.#options.chroot.inward(event.path)
    if (path === event.path) return event
    return path === undefined ? undefined : { type: event.type, path }
  }

  #watchingHere({ type, path }: WatchEvent): Iterable<Registration> {
    const here = this.#paths.get(path)
    return here && (here.mode === 'persistent' || type !== 'childrenChanged') ? here.registrations : NOBODY
  }

  /** @param known who watches the tree that a parent is in, as found out so far */
  #watchingAbove({ type, path }: WatchEvent, known: Map<string, readonly Registration[]>): readonly Registration[] {
    const parent = type === 'childrenChanged' ? undefined : parentOf(path)
    if (parent === undefined) return NOBODY
    let watching = known.get(parent)
    if (!watching) {
      watching = this.#watchingTree(parent)
      known.set(parent, watching)
    }
    return watching
  }

  #watchingTree(path: string): readonly Registration[] {
    const found: Registration[] = []
    for (let at: string | undefined = path; at !== undefined; at = parentOf(at)) {
      const watched = this.#paths.get(at)
      if (watched?.mode === 'recursive') found.push(...watched.registrations)
    }
    return found
  }

  #call(registration: Registration, tell: () => unknown): void {
    // A handler called just before may have removed this one.
    if (this.has(registration)) this.#guard(tell, registration.path)
  }

  #guard(tell: () => unknown, path: string): void {
    callHandler(tell, (error) => this.#options.onFault(error, path))
  }
}

function emptyPortion(): Record<ArmedKind, string[]> {
  return { data: [], exist: [], child: [], persistent: [], recursive: [] }
}

function twoModes(path: string, there: string, wanted: string): InvalidState {
  return new InvalidState(
    `${path} has a ${there} watch and cannot have a ${wanted} one beside it: a server keeps one mode per path. ` +
      'Remove the first, or use another client',
  )
}
