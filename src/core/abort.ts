/** Small tools around AbortSignal that leave no listener behind on a signal that outlives them. */
import { setMaxListeners } from 'node:events'
import { type Duration, milliseconds, printableDuration } from './time.ts'

/** An AbortController whose signal any number may listen to: Node warns of a leak at the eleventh. */
export function sharedController(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/** Who hears of each signal's abort, through one listener of ours: Node takes eleven for a leak. */
const listening = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls `told` when the signal aborts, until the function returned is called; never for one that has aborted before. */
export function onAbort(signal: AbortSignal, told: () => void): () => void {
  if (signal.aborted) return () => undefined
  const listeners = listening.get(signal) ?? new Set()
  // Of its own, so that the same function may listen twice.
  const listener = () => told()
  if (listeners.size === 0) {
    listening.set(signal, listeners)
    signal.addEventListener('abort', tellAll)
  }
  listeners.add(listener)
  return () => {
    if (listeners.delete(listener) && listeners.size === 0) signal.removeEventListener('abort', tellAll)
  }
}

function tellAll(this: AbortSignal): void {
  const listeners = listening.get(this) ?? []
  listening.delete(this)
  for (const listener of listeners) listener()
}

/** A signal that follows several others until it is disposed. `AbortSignal.any` would hold on to long-lived sources. */
export interface FollowingSignal extends Disposable {
  readonly signal: AbortSignal
  abort(reason: unknown): void
}

/** Aborts with the reason of whichever source aborts first; dispose it when the work is over. */
export function followSignals(sources: Iterable<AbortSignal | undefined>): FollowingSignal {
  const controller = new AbortController()
  const unfollow: (() => void)[] = []
  for (const source of sources) {
    if (!source) continue
    if (source.aborted) {
      controller.abort(source.reason)
      break
    }
    unfollow.push(onAbort(source, () => controller.abort(source.reason)))
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    [Symbol.dispose]: () => {
      for (const leave of unfollow) leave()
    },
  }
}

/** What a timer of Node can wait (about 24 days); beyond it fires at once. */
const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Aborts `target` when the time is over, unless disposed before; without a time, never.
 *
 * @param reason makes the reason; it is given the time as people read it
 */
export function abortAfter(
  target: Pick<FollowingSignal, 'abort'>,
  after: Duration | undefined,
  reason: (time: string) => unknown,
): Disposable {
  if (after === undefined) return { [Symbol.dispose]: () => undefined }
  const abort = () => target.abort(reason(printableDuration(after)))
  const timer = setTimeout(abort, Math.min(milliseconds(after, 'timeout'), LONGEST_TIMER))
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}

/** The promise's outcome, or the signal's reason if that fires first. The promise itself goes on. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  if (signal.aborted) {
    promise.catch(() => undefined)
    throw signal.reason
  }
  const { promise: aborted, reject } = deferred<never>()
  const leave = onAbort(signal, () => reject(signal.reason))
  try {
    return await Promise.race([promise, aborted])
  } finally {
    leave()
  }
}

export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(reason: unknown): void
}

/** A promise and its ends (Node 20 has no `Promise.withResolvers`). */
export function deferred<T = void>(): Deferred<T> {
  let ends: Pick<Deferred<T>, 'resolve' | 'reject'> | undefined
  const promise = new Promise<T>((resolve, reject) => {
    ends = { resolve, reject }
  })
  if (!ends) throw new Error('a promise runs its executor at once')
  return { promise, ...ends }
}
