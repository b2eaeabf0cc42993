/** The timer for the next time at which the view has to be evaluated although nothing has changed: a delay is over, a limit has room, or a job expires. */
import { monotonic, startTimer } from '../../core/time.ts'

/** The timer is set again if its end differs by more than this. */
const MAX_ERROR_MS = 100

export class DueTimer {
  readonly #now: () => number
  readonly #onDue: () => void
  #timer: NodeJS.Timeout | undefined
  /** The time for which the timer is set, on the backend's clock, and the time at which it fires, on the monotonic clock. */
  #at: number | undefined
  #end = 0

  /** @param options.now returns the time of the backend's clock */
  constructor({ now, onDue }: { readonly now: () => number; readonly onDue: () => void }) {
    this.#now = now
    this.#onDue = onDue
  }

  /** Sets the timer for this time on the backend's clock; undefined for no time. To be called often: mostly it does nothing. */
  set(at: number | undefined): void {
    if (at === undefined && this.#at === undefined) return
    const left = at === undefined ? 0 : Math.max(1, at - this.#now())
    const end = monotonic() + left
    // The clock may have been wrong when the timer was set: it is known only after an answer of the server.
    if (at === this.#at && Math.abs(end - this.#end) < MAX_ERROR_MS) return
    this.stop()
    this.#at = at
    this.#end = end
    if (at !== undefined) this.#timer = startTimer(() => this.#fire(), left).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#at = undefined
  }

  #fire(): void {
    this.#at = undefined
    this.#onDue()
  }
}
