/** An emitter whose events are typed and whose listeners cannot harm the one who emits. */
import { InvalidArgument } from './errors.ts'
import { suggestion } from './spelling.ts'

type Listener<T> = (event: T) => unknown

export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>()
  readonly #onListenerError: (error: unknown, event: keyof Events) => void
  readonly #events: Readonly<Record<keyof Events, true>> | undefined

  /**
   * @param onListenerError told of a listener that threw or rejected; the others still hear the event
   * @param options.events all there are, for callers without a compiler: without them any name is taken
   */
  constructor(
    onListenerError: (error: unknown, event: keyof Events) => void,
    options: { readonly events?: Readonly<Record<keyof Events, true>> } = {},
  ) {
    this.#onListenerError = onListenerError
    this.#events = options.events
  }

  /**
   * Calls `listener` at each event until the function returned is called.
   *
   * @throws InvalidArgument for an event that there is not, or a listener that is no function
   */
  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>): () => void {
    if (this.#events && !Object.hasOwn(this.#events, event)) {
      const names = Object.keys(this.#events)
      throw new InvalidArgument(`there is no event ${JSON.stringify(event)}${suggestion(String(event), names)}`)
    }
    if (typeof listener !== 'function') throw new InvalidArgument(`on ${String(event)}: the listener is no function`)
    const listeners = this.#listeners.get(event) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(event, listeners)
    return () => {
      listeners.delete(listener)
    }
  }

  /** False when nobody listens. */
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
