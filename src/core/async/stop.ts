/**
 * What an AbortController is, for code that runs for every job: an AbortSignal is an event target, and making a handful for
 * each job that passes costs more than a small job does. A Stop makes its signal when somebody outside asks for one.
 */
import { setMaxListeners } from 'node:events'

export class AbortFlag {
  #aborted = false
  #reason: unknown
  #controller: AbortController | undefined
  #listeners: Set<() => void> | undefined

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  /** For those who know nothing of Stops; the same one each time. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      // Whoever works in parallel listens more than ten times, which Node takes for a leak.
      setMaxListeners(0, this.#controller.signal)
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason
  }

  /** Only the first one counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    // Who leaves meanwhile, because another was told, is not told any more.
    for (const listener of this.#listeners ?? []) listener()
    this.#listeners = undefined
  }

  /** Calls `told`, which nobody else listens with, when it aborts, until the function returned is called. */
  onAbort(listener: () => void): () => void {
    if (this.#aborted) return () => undefined
    this.#listeners ??= new Set()
    this.#listeners.add(listener)
    return () => {
      this.#listeners?.delete(listener)
    }
  }
}

/** Whatever can be asked whether to stop. */
export type Stoppable = AbortSignal | AbortFlag

export function toAbortSignal(stoppable: Stoppable): AbortSignal {
  return stoppable instanceof AbortFlag ? stoppable.signal : stoppable
}
