/**
 * A cheap AbortController for code that runs for every job. An AbortSignal is an event target, and a few of them for each
 * job cost more than a small job does. An AbortFlag makes its signal only when other code asks for one.
 */
import { setMaxListeners } from 'node:events'

export class AbortFlag {
  #aborted = false
  #reason: unknown
  #controller: AbortController | undefined
  /** The first listener, as long as there is only one: a set for each of a job's flags would cost more than the flags. */
  #onlyListener: (() => void) | undefined
  #listeners: Set<() => void> | undefined

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  /** The signal, for code that does not know AbortFlag; the same object each time. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      // Parallel work adds more than ten listeners, which Node takes for a leak.
      setMaxListeners(0, this.#controller.signal)
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason
  }

  /** Aborts with the reason. Later calls do nothing. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    const only = this.#onlyListener
    this.#onlyListener = undefined
    only?.()
    // A listener that another listener removes during this loop is not called.
    if (this.#listeners) for (const listener of this.#listeners) listener()
    this.#listeners = undefined
  }

  /** Calls `listener` on abort, until the returned function is called. Each caller passes a function of its own. */
  onAbort(listener: () => void): () => void {
    this.addListener(listener)
    return () => this.removeListener(listener)
  }

  /** Calls `listener` on abort, until {@link removeListener} is called with it; each listener is added once. */
  addListener(listener: () => void): void {
    if (this.#aborted) return
    if (this.#listeners) this.#listeners.add(listener)
    else if (!this.#onlyListener) this.#onlyListener = listener
    else {
      this.#listeners = new Set([this.#onlyListener, listener])
      this.#onlyListener = undefined
    }
  }

  removeListener(listener: () => void): void {
    if (this.#onlyListener === listener) this.#onlyListener = undefined
    else this.#listeners?.delete(listener)
  }
}

/** An object that can be asked whether to stop. */
export type Stoppable = AbortSignal | AbortFlag

export function toAbortSignal(stoppable: Stoppable): AbortSignal {
  return stoppable instanceof AbortFlag ? stoppable.signal : stoppable
}
