/** An emitter of typed events. An error in a listener reaches neither the emitter's caller nor the other listeners. */
import { InvalidArgument } from './errors.ts'
import { suggestion } from './texts.ts'

type Listener<T> = (event: T) => unknown

export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>()
  readonly #onListenerError: (error: unknown, event: keyof Events) => void
  readonly #events: Readonly<Record<keyof Events, true>> | undefined

  /**
   * @param onListenerError called when a listener threw or rejected; the other listeners still receive the event
   * @param options.events all events, to check the names that callers without a compiler pass; without it any name is accepted
   */
  constructor(
    onListenerError: (error: unknown, event: keyof Events) => void,
    options: { readonly events?: Readonly<Record<keyof Events, true>> } = {},
  ) {
    this.#onListenerError = onListenerError
    this.#events = options.events
  }

  /**
   * Calls `listener` at each event until the returned function is called.
   *
   * @throws InvalidArgument for an unknown event, or a listener that is not a function
   */
  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>): () => void {
    if (this.#events && !Object.hasOwn(this.#events, event)) {
      const names = Object.keys(this.#events)
      throw new InvalidArgument(`unknown event ${JSON.stringify(event)}${suggestion(String(event), names)}`)
    }
    if (typeof listener !== 'function')
      throw new InvalidArgument(`on ${String(event)}: the listener must be a function`)
    const listeners = this.#listeners.get(event) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(event, listeners)
    return () => {
      listeners.delete(listener)
    }
  }

  /** Calls the listeners of the event. Returns false if there are none. */
  emit<E extends keyof Events>(event: E, payload: Events[E]): boolean {
    const listeners = this.#listeners.get(event)
    if (!listeners || listeners.size === 0) return false
    for (const listener of [...listeners] as Listener<Events[E]>[]) {
      try {
        const answer = listener(payload)
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#onListenerError(error, event))
      } catch (error) {
        this.#onListenerError(error, event)
      }
    }
    return true
  }
}
