/**
 * What an AbortController is, for code that runs for every job: an AbortSignal is an event target, and making a handful for
 * each job that passes costs more than a small job does. A Stop makes its signal when somebody outside asks for one.
 */
import { setMaxListeners } from 'node:events'

export class Stop {
  #aborted = false
  #reason: unknown
  #controller: AbortController | undefined
  #told: Set<() => void> | undefined

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
    for (const tell of this.#told ?? []) tell()
    this.#told = undefined
  }

  /** Calls `told`, which nobody else listens with, when it aborts, until the function returned is called. */
  onAbort(told: () => void): () => void {
    if (this.#aborted) return () => undefined
    this.#told ??= new Set()
    this.#told.add(told)
    return () => {
      this.#told?.delete(told)
    }
  }
}

/** Whatever can be asked whether to stop. */
export type Stoppable = AbortSignal | Stop

export function signalOf(stoppable: Stoppable): AbortSignal {
  return stoppable instanceof Stop ? stoppable.signal : stoppable
}
