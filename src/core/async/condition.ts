/** Lets any number of callers wait for a change. */
import { createDeferred, type Deferred, rejectOnAbort } from './abort.ts'

export class Condition {
  #next: Deferred<void> = createDeferred()

  /** Wakes all present waiters. A later caller is not woken by it, and has to check the state before it waits. */
  notify(): void {
    const woken = this.#next
    this.#next = createDeferred()
    woken.resolve()
  }

  /** Resolves at the next {@link notify}; rejects with the signal's reason if that fires first. */
  wait(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    return rejectOnAbort(this.#next.promise, options.signal)
  }
}
