/** An emitter whose events are typed and whose listeners cannot harm the one who emits. */

type Listener<T> = (event: T) => unknown

export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>()
  readonly #onListenerError: (error: unknown, event: keyof Events) => void

  /** @param onListenerError told of a listener that threw or rejected; the others still hear the event */
  constructor(onListenerError: (error: unknown, event: keyof Events) => void) {
    this.#onListenerError = onListenerError
  }

  /** Calls `listener` at each event until the function returned is called. */
  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>): () => void {
    const listeners = this.#listeners.get(event) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(event, listeners)
    return () => {
      listeners.delete(listener)
    }
  }

  emit<E extends keyof Events>(event: E, payload: Events[E]): void {
    const listeners = this.#listeners.get(event)
    if (!listeners) return
    for (const listener of [...listeners] as Listener<Events[E]>[]) {
      try {
        const answer = listener(payload)
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#onListenerError(error, event))
      } catch (error) {
        this.#onListenerError(error, event)
      }
    }
  }
}
