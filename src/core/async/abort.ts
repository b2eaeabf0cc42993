/** Functions that wait until something happens or a signal fires. They remove their listeners from signals that outlive the wait. */
import { setMaxListeners } from 'node:events'
import { InvalidArgument, Timeout } from '../errors.ts'
import {
  type AlarmClock,
  type Duration,
  formatDuration,
  startTimer,
  systemAlarmClock,
  toMilliseconds,
} from '../time.ts'
import { AbortFlag, type Stoppable } from './abort-flag.ts'

/** Returns an AbortController without a limit of listeners: Node warns of a leak at the eleventh. */
export function createSharedController(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

interface AbortSubscription {
  readonly listeners: Set<() => void>
  readonly notify: () => void
}

/** The listeners of each signal, all called by one listener on the signal: Node takes eleven for a leak. */
const subscriptions = new WeakMap<AbortSignal, AbortSubscription>()

/**
 * Calls `listener` when the signal aborts, until the returned function is called. Each caller passes a function of its own.
 * A signal that has aborted before never calls it. Every request with a signal comes through here, so it has to be fast.
 *
 * @throws InvalidArgument unless `signal` is an AbortSignal
 */
export function onAbort(signal: Stoppable, listener: () => void): () => void {
  addListener(signal, listener)
  return () => removeListener(signal, listener)
}

function addListener(signal: Stoppable, listener: () => void): void {
  if (signal instanceof AbortFlag) signal.addListener(listener)
  else if (!signal.aborted) (subscriptions.get(signal) ?? subscribe(signal)).listeners.add(listener)
}

function removeListener(signal: Stoppable, listener: () => void): void {
  if (signal instanceof AbortFlag) {
    signal.removeListener(listener)
    return
  }
  const subscription = subscriptions.get(signal)
  if (!subscription?.listeners.delete(listener) || subscription.listeners.size > 0) return
  signal.removeEventListener('abort', subscription.notify)
  subscriptions.delete(signal)
}

function subscribe(signal: AbortSignal): AbortSubscription {
  assertSignal(signal)
  const listeners = new Set<() => void>()
  const notify = () => {
    // A listener that another listener removes during this loop is not called.
    for (const listener of listeners) listener()
    subscriptions.delete(signal)
  }
  signal.addEventListener('abort', notify, { once: true })
  const subscription = { listeners, notify }
  subscriptions.set(signal, subscription)
  return subscription
}

const NO_SOURCES: readonly Stoppable[] = []

/** A flag that follows several signals until it is disposed. `AbortSignal.any` would stay referenced by long-lived sources. */
export class FollowingSignal extends AbortFlag implements Disposable {
  #sources: readonly (Stoppable | undefined)[] = NO_SOURCES
  readonly #onSourceAborted = () => this.abort(this.#sources.find((source) => source?.aborted)?.reason)

  /** @internal Used by {@link followSignals}. */
  follow(sources: readonly (Stoppable | undefined)[]): void {
    const aborted = sources.find((source) => source?.aborted)
    if (aborted) {
      this.abort(aborted.reason)
      return
    }
    this.#sources = sources
    for (const source of sources) if (source) addListener(source, this.#onSourceAborted)
  }

  [Symbol.dispose](): void {
    const sources = this.#sources
    this.#sources = NO_SOURCES
    for (const source of sources) if (source) removeListener(source, this.#onSourceAborted)
  }
}

/** Returns a flag that aborts with the reason of the first source that aborts. Dispose it when the work is over. */
export function followSignals(sources: readonly (Stoppable | undefined)[]): FollowingSignal {
  const following = new FollowingSignal()
  // All are checked before any is followed: after an error, a listener would stay.
  for (const source of sources) if (source !== undefined && source !== null) assertSignal(source)
  following.follow(sources)
  return following
}

/** @throws InvalidArgument unless the value is an AbortSignal; for its controller, say */
function assertSignal(source: unknown): void {
  if (source instanceof AbortFlag) return
  const { aborted, addEventListener }: Partial<AbortSignal> = Object(source)
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function')
    throw new InvalidArgument('signal must be an AbortSignal, as in { signal: AbortSignal.timeout(1_000) }')
}

const NOTHING_HELD: Disposable = { [Symbol.dispose]: () => undefined }

/**
 * Aborts `target` when the time is over, unless the result is disposed before. Without a time it never aborts.
 *
 * @param reason returns the reason, from the time as people read it
 * @param clock the process' own clock by default
 */
export function abortAfter(
  target: Pick<AbortFlag, 'abort'>,
  after: Duration | undefined,
  reason: (time: string) => unknown,
  clock: AlarmClock = systemAlarmClock,
): Disposable {
  if (after === undefined) return NOTHING_HELD
  const abort = () => target.abort(reason(formatDuration(after)))
  return clock.alarm(toMilliseconds(after, 'timeout'), { kind: 'deadline', ring: abort })
}

/**
 * Resolves as the promise does, or rejects with the signal's reason if that fires first. The promise itself continues.
 *
 * @throws InvalidArgument unless `signal` is an AbortSignal
 */
export function rejectOnAbort<T>(promise: Promise<T>, signal: Stoppable | undefined): Promise<T> {
  if (!signal) return promise
  // One promise, without a race of others: every job goes through here several times.
  return new Promise((resolve, reject) => {
    let leave: (() => void) | undefined
    promise.then(
      (value) => {
        leave?.()
        resolve(value)
      },
      (error: unknown) => {
        leave?.()
        reject(error)
      },
    )
    if (signal.aborted) reject(signal.reason)
    else leave = onAbort(signal, () => reject(signal.reason))
  })
}

/** The time after a time limit for which a call still waits for the answer to a request under way, in milliseconds. */
const GRACE_MS = 500
/** The time limit of a call with a timeout of 0: it waits only for the answers of the servers. */
const AT_ONCE_MS = 5_000

/**
 * Enforces the time limit and the signal of a caller also while servers do not answer. While the work waits for a change, it ends in time
 * by itself. But a request that is open in an outage is answered only when the session ends. So this function rejects a moment after the
 * limit, and the work continues without the caller.
 *
 * @param undo called with the result of the work if it comes after the rejection
 * @throws what the work throws; the signal's reason; what `late` returns
 */
export async function answerInTime<T>(
  limits: { readonly signal?: Stoppable | undefined; readonly timeout?: Duration | undefined },
  { work, late, undo }: { work: () => Promise<T>; late?: (time: string) => unknown; undo?: (value: T) => unknown },
): Promise<T> {
  const { signal, timeout } = limits
  using stop = followSignals([signal])
  using _timer = abortAfter(stop, timeout === 0 ? AT_ONCE_MS : timeout, late ?? toTimeout)
  const over = new AbortFlag()
  let grace: NodeJS.Timeout | undefined
  const begin = () => {
    grace = setTimeout(() => over.abort(stop.reason), GRACE_MS)
  }
  const leave = stop.aborted ? undefined : onAbort(stop, begin)
  if (stop.aborted) begin()
  const working = work()
  try {
    return await rejectOnAbort(working, over)
  } catch (error) {
    // The caller has its answer: a late result is undone, and a late error is ignored.
    if (over.aborted) working.then(async (value) => undo?.(value)).catch(() => undefined)
    throw error
  } finally {
    leave?.()
    clearTimeout(grace)
  }
}

function toTimeout(time: string): Timeout {
  return new Timeout(`no answer within ${time}`)
}

/** Resolves with true when the promise has resolved, or with false after `ms`; rejects if the promise does before. The promise itself continues. */
export async function isSettledWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const { promise: over, resolve } = createDeferred<boolean>()
  const timer = startTimer(() => resolve(false), ms)
  try {
    return await Promise.race([promise.then(() => true), over])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves to the opened thing, or rejects with the signal's reason if that fires first; then closes it once it is open. */
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

/** Returns a promise with its `resolve` and `reject` (Node 20 has no `Promise.withResolvers`). */
export function createDeferred<T = void>(): Deferred<T> {
  let ends: Pick<Deferred<T>, 'resolve' | 'reject'> | undefined
  const promise = new Promise<T>((resolve, reject) => {
    ends = { resolve, reject }
  })
  if (!ends) throw new Error('a promise runs its executor at once')
  return { promise, ...ends }
}

/** Lets any number of callers wait for a change. A conductor waits anew after each change of its board, so a wait has to be cheap. */
export class Condition {
  #waiters = new Set<() => void>()

  /** Wakes all present waiters. A later caller is not woken by it, and has to check the state before it waits. */
  notify(): void {
    if (this.#waiters.size === 0) return
    const woken = this.#waiters
    this.#waiters = new Set()
    for (const wake of woken) wake()
  }

  /** Resolves at the next {@link notify}; rejects with the signal's reason if that fires first. */
  wait({ signal }: { readonly signal?: Stoppable | undefined } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) throw signal.reason
      const wake = () => {
        leave?.()
        resolve()
      }
      const leave =
        signal &&
        onAbort(signal, () => {
          this.#waiters.delete(wake)
          reject(signal.reason)
        })
      this.#waiters.add(wake)
    })
  }
}
