/**
 * Many requests under one signal. With a listener for each Node would warn of a leak at the eleventh; how many may listen to
 * it is its owner's to say, not ours. So there is one listener for a signal, which tells all who wait, and none when nobody
 * waits: a signal may outlive everything that was asked under it.
 */
import { deferred } from '../core/abort.ts'

interface Followed {
  readonly callbacks: Set<() => void>
  readonly fire: () => void
}

const followed = new WeakMap<AbortSignal, Followed>()

/** Calls back when a signal fires that has not fired yet, unless what is returned was called before. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const { callbacks, fire } = followed.get(signal) ?? follow(signal)
  callbacks.add(callback)
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0) return
    signal.removeEventListener('abort', fire)
    followed.delete(signal)
  }
}

function follow(signal: AbortSignal): Followed {
  const callbacks = new Set<() => void>()
  const fire = () => {
    followed.delete(signal)
    for (const callback of [...callbacks]) callback()
    callbacks.clear()
  }
  signal.addEventListener('abort', fire, { once: true })
  const made = { callbacks, fire }
  followed.set(signal, made)
  return made
}

/** The promise's outcome, or the signal's reason if that fires first. The promise itself goes on. */
export async function unlessGivenUp<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  const { promise: givenUp, reject } = deferred<never>()
  const giveUp = () => reject(signal.reason)
  const forget = signal.aborted ? giveUp() : onAbort(signal, giveUp)
  try {
    return await Promise.race([givenUp, promise])
  } finally {
    forget?.()
  }
}
