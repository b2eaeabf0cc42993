/** Delays the takeover of half-done jobs of dead owners: keeps the time from which each may be taken over. */
import type { JobBoard, Posting } from '../../board/index.ts'
import { monotonic, startTimer } from '../../core/time.ts'

/** The time for which it is remembered that a job may be taken over. */
const KEPT_MS = 3_600_000

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
  /** The listeners of the board while a job waits: they keep its view open. */
  #unsubscribe: readonly (() => void)[] = []

  constructor(options: TakeoverDelayOptions) {
    this.#options = options
  }

  /** Returns whether the job may be taken over now; if not, begins its delay. */
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
    this.#stopListening()
  }

  #remember(uuid: string, waits: { run: number; from: number }): void {
    const { board } = this.#options
    this.#waiting.set(uuid, waits)
    if (this.#unsubscribe.length > 0) return
    const forget = ({ job }: { readonly job: { readonly uuid: string } }) => {
      if (this.#waiting.delete(job.uuid) && this.#waiting.size === 0) this.#stopListening()
    }
    this.#unsubscribe = (['claimed', 'consumed', 'trashed'] as const).map((event) => board.on(event, forget))
  }

  /** Removes old entries, and the listeners if no job waits any more: a job may have left the board without an event. */
  #forgetOld(): void {
    const now = monotonic()
    let isWaiting = false
    for (const [uuid, { from }] of this.#waiting) {
      if (from > now) isWaiting = true
      else if (from < now - KEPT_MS) this.#waiting.delete(uuid)
    }
    if (!isWaiting) this.#stopListening()
  }

  #stopListening(): void {
    for (const leave of this.#unsubscribe) leave()
    this.#unsubscribe = []
  }

  #wakeAt(from: number, now: number): void {
    if (from >= this.#wakesAt) return
    clearTimeout(this.#timer)
    this.#wakesAt = from
    const wake = () => {
      this.#wakesAt = Number.POSITIVE_INFINITY
      this.#forgetOld()
      this.#options.onRecheck()
    }
    // Adds a millisecond: timers fire a little early by the monotonic clock.
    this.#timer = startTimer(wake, from - now + 1).unref()
  }
}
