/** Lists the unclaimed jobs of the view that have an expiry: the waiting jobs, by the time of their expiry, and the expired jobs. */
import { compareNumbers } from '../../core/time.ts'
import { compareIds } from '../model/claim-order.ts'
import type { JobEntry, QueuePlace } from '../model/entry.ts'
import { expiryTime } from '../model/expiry.ts'
import { SortedList } from './sorted.ts'

export class ExpiringJobs {
  readonly #waiting = new SortedList<QueuePlace>(
    (a, b) => compareNumbers(this.#timeOf(a), this.#timeOf(b)) || compareIds(a, b),
  )
  readonly #expired = new Set<QueuePlace>()
  /** The later times at which jobs are checked again after their expiry. A time must not change while its job is in the list. */
  readonly #postponed = new WeakMap<JobEntry, number>()

  /** The time at which the next job expires, in milliseconds on the server's clock. */
  get next(): number | undefined {
    const { first } = this.#waiting
    return first && this.#timeOf(first)
  }

  /** Whether there are jobs whose time has come, for {@link take}. */
  get hasExpired(): boolean {
    return this.#expired.size > 0
  }

  add(place: QueuePlace): void {
    if (expiryTime(place.stored) !== undefined) this.#waiting.add(place)
  }

  delete(place: QueuePlace): void {
    if (expiryTime(place.stored) === undefined) return
    this.#waiting.delete(place)
    this.#expired.delete(place)
  }

  /** Moves the jobs whose time has come to the expired ones. @param now the time in milliseconds on the server's clock */
  advance(now: number): void {
    for (let { first } = this.#waiting; first && this.#timeOf(first) <= now; { first } = this.#waiting) {
      this.#waiting.delete(first)
      this.#expired.add(first)
    }
  }

  /** Removes up to `max` jobs whose time has come, and returns them. A job that stays on the board is given back by {@link postpone}. */
  take(max: number): readonly QueuePlace[] {
    const taken = [...this.#expired].slice(0, max)
    for (const place of taken) this.#expired.delete(place)
    return taken
  }

  /** Gives a job back that was taken. @param until the time in milliseconds on the server's clock; by default the job's own */
  postpone(place: QueuePlace, until?: number): void {
    if (place.entry.queuePlace !== place || place.state === 'claimed') return
    this.delete(place)
    if (until === undefined) this.#postponed.delete(place.entry)
    else this.#postponed.set(place.entry, until)
    this.add(place)
  }

  #timeOf({ entry, stored }: QueuePlace): number {
    return this.#postponed.get(entry) ?? expiryTime(stored) ?? Number.POSITIVE_INFINITY
  }
}
