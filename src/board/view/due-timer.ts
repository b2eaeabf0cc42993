/** Wakes the view when the next delay is over. */

/** What a timer of Node can wait; whoever is woken too early looks again. */
const LONGEST_TIMER = 2 ** 31 - 1

export interface DueTimerOptions {
  /** In milliseconds on the server's clock. */
  readonly now: () => number
  readonly due: () => void
}

export class DueTimer {
  readonly #options: DueTimerOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: DueTimerOptions) {
    this.#options = options
  }

  /** The only time that counts is the last one that was set; undefined is never. */
  set(time: number | undefined): void {
    this.stop()
    if (time === undefined) return
    const { now, due } = this.#options
    const left = Math.max(1, time - now())
    this.#timer = setTimeout(due, Math.min(left, LONGEST_TIMER)).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
