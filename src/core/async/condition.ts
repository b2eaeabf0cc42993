/** Waiting for something to have changed, any number of waiters at once. */
import { createDeferred, type Deferred, rejectOnAbort } from './abort.ts'

export class Condition {
  #next: Deferred<void> = createDeferred()

  /** Wakes everyone who waits now. Nothing is kept for those who come later: they look at the state first. */
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
