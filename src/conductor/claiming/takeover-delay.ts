/** Delays the takeover of half-done jobs of dead owners: keeps the time from which each may be taken over. */
import type { JobBoard, Posting } from '../../board/index.ts'
import { MAX_TIMER_MS, monotonic } from '../../core/time.ts'

export interface TakeoverDelayOptions {
  readonly board: Pick<JobBoard, 'on'>
  /** The delay in milliseconds. */
  readonly takeoverDelay: number
  /** Called when a delayed job may be taken over. */
  readonly onRecheck: () => void
}

export class TakeoverDelay implements Disposable {
  readonly #options: TakeoverDelayOptions
  /**
   * The half-done run and the time from which it may be taken over, by job UUID. Holds only unclaimed jobs that are on
   * the board.
   */
  readonly #waiting = new Map<string, { readonly run: number; readonly from: number }>()
  /** The timer of all jobs, for the earliest time: a server that dies leaves thousands of jobs at once. */
  #timer: NodeJS.Timeout | undefined
  #wakesAt = Number.POSITIVE_INFINITY
  #unsubscribe: (() => void)[] | undefined

  constructor(options: TakeoverDelayOptions) {
    this.#options = options
  }

  mayTakeOver({ uuid, runs: run, attempts }: Posting): boolean {
    const { takeoverDelay } = this.#options
    const last = attempts.at(-1)
    if (takeoverDelay === 0 || !last || last.ended !== undefined) return true
    const known = this.#waiting.get(uuid)
    const now = monotonic()
    const from = known?.run === run ? known.from : now + takeoverDelay
    if (from <= now) return true
    if (known?.run !== run) this.#remember(uuid, { run, from })
    this.#wakeAt(from, now)
    return false
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    for (const leave of this.#unsubscribe ?? []) leave()
  }

  #remember(uuid: string, waits: { run: number; from: number }): void {
    this.#waiting.set(uuid, waits)
    const forget = ({ job }: { job: { uuid: string } }) => this.#waiting.delete(job.uuid)
    const { board } = this.#options
    this.#unsubscribe ??= (['claimed', 'consumed', 'trashed'] as const).map((event) => board.on(event, forget))
  }

  #wakeAt(from: number, now: number): void {
    if (from >= this.#wakesAt) return
    clearTimeout(this.#timer)
    this.#wakesAt = from
    const wake = () => {
      this.#wakesAt = Number.POSITIVE_INFINITY
      this.#options.onRecheck()
    }
    // Adds a millisecond: timers fire a little early by the monotonic clock.
    this.#timer = setTimeout(wake, Math.min(from - now + 1, MAX_TIMER_MS)).unref()
  }
}
