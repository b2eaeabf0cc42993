/**
 * Registry of watches and their handlers. Paths are the user's (see Chroot), except in requests that arm watches.
 *
 * Persistent watches stay until they are removed, one-shot watches (`one-shot-watches.ts`) until they fire. A server
 * drops both with the connection, so this registry is the source for arming them on the next one. One-shot watches then
 * receive what they missed; for persistent ones nothing is replayed, and every handler is notified of the gap. One-shot
 * watches end with the session, with a notice; persistent ones continue in the next.
 *
 * A path is watched in one mode at a time. Servers before 3.9 keep one per path and connection: a one-shot watch would
 * silence a persistent one after the next event. Watches above or below do not matter.
 */
import { InvalidArgument, InvalidState } from '../../core/errors.ts'
import { assertOneOf } from '../protocol/arguments.ts'
import { SessionExpired } from '../protocol/errors.ts'
import { WATCH_MODE } from '../protocol/opcodes.ts'
import { type Chroot, parentPath } from '../protocol/path.ts'
import type { WatchEvent } from '../protocol/records.ts'
import type { ArmedKind, ArmedPaths, WatchMode } from '../protocol/requests.ts'
import { invokeHandler } from './handler-faults.ts'
import { type OneShotHandler, type OneShotKind, OneShotWatches } from './one-shot-watches.ts'

/** Handler of a persistent watch. */
export interface WatchHandler {
  /** Receives events in the order in which they happened. Called synchronously, and not awaited if it is async. */
  events(batch: readonly WatchEvent[]): unknown
  /**
   * Reports that events may have been missed: read everything again. Called whenever the watch was armed on a new
   * connection.
   */
  gap(): unknown
}

/** Registration of one handler on one path. */
export interface WatchRegistration {
  readonly path: string
  readonly handler: WatchHandler
}

interface WatchedPath {
  readonly mode: WatchMode
  readonly registrations: Set<WatchRegistration>
}

export interface WatchRegistryOptions {
  readonly chroot: Chroot
  /** Returns the size limit in bytes for a request that arms watches. */
  readonly armingBytes: () => number
  /** Receives errors of a handler of a watch of that path; the other handlers still receive the events. */
  readonly onFault: (error: unknown, path: string) => void
}

const PATH_LENGTH_BYTES = 4
const NO_REGISTRATIONS: readonly WatchRegistration[] = []

export class WatchRegistry {
  readonly #options: WatchRegistryOptions
  readonly #paths = new Map<string, WatchedPath>()
  readonly #oneShots = new OneShotWatches()
  #closed: SessionExpired | undefined

  constructor(options: WatchRegistryOptions) {
    this.#options = options
  }

  // --- Persistent watches -------------------------------------------------------------------------------------------

  /**
   * Registers a handler.
   *
   * @throws InvalidArgument for an unknown mode or an invalid handler
   * @throws InvalidState when the path is watched in another mode
   */
  add(path: string, mode: WatchMode, handler: WatchHandler): WatchRegistration {
    assertOneOf(mode, Object.keys(WATCH_MODE), 'watch: mode')
    const { events, gap }: Partial<WatchHandler> = Object(handler)
    if (typeof events !== 'function' || typeof gap !== 'function')
      throw new InvalidArgument(`watch ${path}: the handler must have two functions, { events(batch) {}, gap() {} }`)
    const watched = this.#paths.get(path) ?? { mode, registrations: new Set() }
    if (watched.mode !== mode) throw conflictingModesError(path, watched.mode, mode)
    if (this.#oneShots.has(path)) throw conflictingModesError(path, 'one-shot', mode)
    const registration = { path, handler }
    watched.registrations.add(registration)
    this.#paths.set(path, watched)
    return registration
  }

  has(registration: WatchRegistration): boolean {
    return this.#paths.get(registration.path)?.registrations.has(registration) ?? false
  }

  /** Returns whether the path has no watch of any kind. */
  isFree(path: string): boolean {
    return !this.#paths.has(path) && !this.#oneShots.has(path)
  }

  /** Removes a registration; returns whether it was the last one, so that the server may drop the watch. */
  remove(registration: WatchRegistration): boolean {
    const watched = this.#paths.get(registration.path)
    if (!watched?.registrations.delete(registration) || watched.registrations.size > 0) return false
    return this.#paths.delete(registration.path)
  }

  /** Removes every persistent watch of the path; returns whether there was any. */
  removeAll(path: string): boolean {
    return this.#paths.delete(path)
  }

  // --- One-shot watches -----------------------------------------------------------------------------------------------

  /**
   * Records that a request for a one-shot watch is about to be made; `noteSettled` must follow.
   *
   * @throws InvalidState when there is a persistent watch on the path
   */
  noteRequested(path: string, kind: OneShotKind): void {
    const watched = this.#paths.get(path)
    if (watched) throw conflictingModesError(path, watched.mode, 'one-shot')
    this.#oneShots.noteRequested(path, kind)
  }

  /** Records that the server watches. Without a handler the caller has given up. */
  noteArmed(path: string, kind: OneShotKind, options: { present: boolean; handler?: OneShotHandler }): void {
    if (!this.#closed) this.#oneShots.noteArmed(path, kind, options)
    else if (options.handler) this.#lose(path, [options.handler], this.#closed)
  }

  /** Records that the request is settled. Returns whether the server now has a watch without a handler. */
  noteSettled(path: string, kind: OneShotKind): boolean {
    return this.#oneShots.noteSettled(path, kind)
  }

  removeOneShot(path: string, kind: OneShotKind, handler?: OneShotHandler): { found: boolean; idle: boolean } {
    return this.#oneShots.remove(path, kind, handler)
  }

  // --- Dispatching ----------------------------------------------------------------------------------------------------

  /** Calls each handler once with its part of the batch; then each one-shot handler with its event. */
  dispatch(batch: readonly WatchEvent[]): void {
    const parts = new Map<WatchRegistration, WatchEvent[]>()
    const fired: [OneShotHandler, WatchEvent][] = []
    const concern = (registration: WatchRegistration, event: WatchEvent) => {
      const part = parts.get(registration)
      if (part) part.push(event)
      else parts.set(registration, [event])
    }
    // Most events of a batch are in the same few folders.
    const above = new Map<string, readonly WatchRegistration[]>()
    for (const outward of batch) {
      const event = this.#toUserEvent(outward)
      if (!event) continue
      for (const registration of this.#handlersAt(event)) concern(registration, event)
      for (const registration of this.#handlersAbove(event, above)) concern(registration, event)
      for (const handler of this.#oneShots.takeHandlers(event)) fired.push([handler, event])
    }
    for (const [registration, part] of parts) this.#call(registration, () => registration.handler.events(part))
    for (const [handler, event] of fired) this.#catchHandlerErrors(() => handler(event), event.path)
  }

  gap(): void {
    const all = [...this.#paths.values()].flatMap(({ registrations }) => [...registrations])
    for (const registration of all) this.#call(registration, () => registration.handler.gap())
  }

  /** Ends the one-shot watches with their session. */
  sessionOver(reason: Error = new SessionExpired('the session is over')): void {
    for (const [path, handlers] of this.#oneShots.takeAll()) this.#lose(path, handlers, reason)
  }

  /** Ends all watches; requests that were made before may still be answered. */
  close(): void {
    this.#closed ??= new SessionExpired('the client was closed, and its session with it')
    this.sessionOver(this.#closed)
  }

  #lose(path: string, handlers: Iterable<OneShotHandler>, reason: Error): void {
    for (const handler of handlers) this.#catchHandlerErrors(() => handler({ type: 'lost', path, reason }), path)
  }

  // --- Arming again -----------------------------------------------------------------------------------------------------

  /** Returns the watches to arm on a new connection, in portions for one request each; always at least one. */
  armingPortions(): ArmedPaths[] {
    let portion = emptyPortion()
    const portions = [portion]
    const most = this.#options.armingBytes()
    let bytes = 0
    for (const { path, kind } of this.#listToArm()) {
      const outward = this.#options.chroot.toServerPath(path)
      const size = Buffer.byteLength(outward) + PATH_LENGTH_BYTES
      if (bytes > 0 && bytes + size > most) {
        portion = emptyPortion()
        portions.push(portion)
        bytes = 0
      }
      bytes += size
      portion[kind].push(outward)
    }
    return portions
  }

  *#listToArm(): Iterable<{ readonly path: string; readonly kind: ArmedKind }> {
    yield* this.#oneShots.listToArm()
    for (const [path, { mode: kind }] of this.#paths) yield { path, kind }
  }

  // --- Finding handlers ---------------------------------------------------------------------------------------------------

  /** Converts an event's path to the user's; undefined for one outside of the chroot. */
  #toUserEvent(event: WatchEvent): WatchEvent | undefined {
    const path = this.#options.chroot.toUserPath(event.path)
    if (path === event.path) return event
    return path === undefined ? undefined : { type: event.type, path }
  }

  #handlersAt({ type, path }: WatchEvent): Iterable<WatchRegistration> {
    const here = this.#paths.get(path)
    return here && (here.mode === 'persistent' || type !== 'childrenChanged') ? here.registrations : NO_REGISTRATIONS
  }

  /** @param known handlers above each parent, as found so far */
  #handlersAbove(
    { type, path }: WatchEvent,
    known: Map<string, readonly WatchRegistration[]>,
  ): readonly WatchRegistration[] {
    const parent = type === 'childrenChanged' ? undefined : parentPath(path)
    if (parent === undefined) return NO_REGISTRATIONS
    let watching = known.get(parent)
    if (!watching) {
      watching = this.#recursiveHandlers(parent)
      known.set(parent, watching)
    }
    return watching
  }

  #recursiveHandlers(path: string): readonly WatchRegistration[] {
    const found: WatchRegistration[] = []
    for (let at: string | undefined = path; at !== undefined; at = parentPath(at)) {
      const watched = this.#paths.get(at)
      if (watched?.mode === 'recursive') found.push(...watched.registrations)
    }
    return found
  }

  #call(registration: WatchRegistration, call: () => unknown): void {
    // A handler that was called just before may have removed this one.
    if (this.has(registration)) this.#catchHandlerErrors(call, registration.path)
  }

  #catchHandlerErrors(call: () => unknown, path: string): void {
    invokeHandler(call, (error) => this.#options.onFault(error, path))
  }
}

function emptyPortion(): Record<ArmedKind, string[]> {
  return { data: [], exist: [], child: [], persistent: [], recursive: [] }
}

function conflictingModesError(path: string, present: string, wanted: string): InvalidState {
  return new InvalidState(
    `${path} has a ${present} watch and cannot have a ${wanted} one beside it: a server keeps one mode per path. ` +
      'Remove the first, or use another client',
  )
}
