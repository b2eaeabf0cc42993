/** Small tools around AbortSignal that leave no listener behind on a signal that outlives them. */
import { setMaxListeners } from 'node:events'
import { type AlarmClock, systemAlarmClock } from '../alarm-clock.ts'
import { InvalidArgument } from '../errors.ts'
import { type Duration, formatDuration, toMilliseconds } from '../time.ts'
import { AbortFlag, type Stoppable } from './stop.ts'

/** An AbortController whose signal any number may listen to: Node warns of a leak at the eleventh. */
export function createSharedController(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

interface AbortSubscription {
  readonly listeners: Set<() => void>
  readonly notify: () => void
}

/** Who hears of each signal's abort, through one listener of ours: Node takes eleven for a leak. */
const subscriptions = new WeakMap<AbortSignal, AbortSubscription>()

/**
 * Calls `told`, which nobody else listens with, when the signal aborts, until the function returned is called; never for
 * one that has aborted before. Every request under a signal passes here: it has to be quick.
 *
 * @throws InvalidArgument for what is no AbortSignal
 */
export function onAbort(signal: Stoppable, listener: () => void): () => void {
  if (signal instanceof AbortFlag) return signal.onAbort(listener)
  if (signal.aborted) return () => undefined
  const { listeners, notify } = subscriptions.get(signal) ?? subscribe(signal)
  listeners.add(listener)
  return () => {
    if (!listeners.delete(listener) || listeners.size > 0) return
    signal.removeEventListener('abort', notify)
    subscriptions.delete(signal)
  }
}

function subscribe(signal: AbortSignal): AbortSubscription {
  assertSignal(signal)
  const listeners = new Set<() => void>()
  const notify = () => {
    subscriptions.delete(signal)
    for (const listener of listeners) listener()
  }
  signal.addEventListener('abort', notify, { once: true })
  const made = { listeners, notify }
  subscriptions.set(signal, made)
  return made
}

/** Follows several signals until it is disposed. `AbortSignal.any` would hold on to long-lived sources. */
export class FollowingSignal extends AbortFlag implements Disposable {
  readonly #unfollow: (() => void)[] = []

  /** @internal Made by {@link followSignals}. */
  follow(source: Stoppable): void {
    if (source.aborted) this.abort(source.reason)
    else this.#unfollow.push(onAbort(source, () => this.abort(source.reason)))
  }

  [Symbol.dispose](): void {
    for (const leave of this.#unfollow.splice(0)) leave()
  }
}

/** Aborts with the reason of whichever source aborts first; dispose it when the work is over. */
export function followSignals(sources: Iterable<Stoppable | undefined>): FollowingSignal {
  const following = new FollowingSignal()
  const followed = [...sources].filter((source) => source !== undefined && source !== null)
  // Before any is followed, or the listener would stay.
  for (const source of followed) assertSignal(source)
  for (const source of followed) if (!following.aborted) following.follow(source)
  return following
}

/** @throws InvalidArgument for what is no AbortSignal; its controller, say */
function assertSignal(source: unknown): void {
  if (source instanceof AbortFlag) return
  const { aborted, addEventListener }: Partial<AbortSignal> = Object(source)
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function')
    throw new InvalidArgument('signal: an AbortSignal is needed, as in { signal: AbortSignal.timeout(1_000) }')
}

/**
 * Aborts `target` when the time is over, unless disposed before; without a time, never.
 *
 * @param reason makes the reason; it is given the time as people read it
 * @param clock the process' own by default
 */
export function abortAfter(
  target: Pick<AbortFlag, 'abort'>,
  after: Duration | undefined,
  reason: (time: string) => unknown,
  clock: AlarmClock = systemAlarmClock,
): Disposable {
  if (after === undefined) return { [Symbol.dispose]: () => undefined }
  const abort = () => target.abort(reason(formatDuration(after)))
  return clock.alarm(toMilliseconds(after, 'timeout'), { kind: 'deadline', ring: abort })
}

/**
 * The promise's outcome, or the signal's reason if that fires first. The promise itself goes on.
 *
 * @throws InvalidArgument for what is no AbortSignal
 */
export async function rejectOnAbort<T>(promise: Promise<T>, signal: Stoppable | undefined): Promise<T> {
  if (!signal) return promise
  // Also of a promise that is not raced: nobody else may be looking at it.
  promise.catch(() => undefined)
  if (signal.aborted) throw signal.reason
  const { promise: aborted, reject } = createDeferred<never>()
  const leave = onAbort(signal, () => reject(signal.reason))
  try {
    return await Promise.race([promise, aborted])
  } finally {
    leave()
  }
}

/** What was opened, or the signal's reason if that fires first; what is there only then is closed. */
export async function openOrAbort<T extends AsyncDisposable>(
  signal: Stoppable | undefined,
  opening: Promise<T>,
): Promise<T> {
  try {
    return await rejectOnAbort(opening, signal)
  } catch (error) {
    if (signal?.aborted) opening.then((opened) => opened[Symbol.asyncDispose]()).catch(() => undefined)
    throw error
  }
}

export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(reason: unknown): void
}

/** A promise and its ends (Node 20 has no `Promise.withResolvers`). */
export function createDeferred<T = void>(): Deferred<T> {
  let ends: Pick<Deferred<T>, 'resolve' | 'reject'> | undefined
  const promise = new Promise<T>((resolve, reject) => {
    ends = { resolve, reject }
  })
  if (!ends) throw new Error('a promise runs its executor at once')
  return { promise, ...ends }
}
