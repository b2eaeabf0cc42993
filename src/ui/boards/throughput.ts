/** Counts what has become of jobs in each minute of the last hour. */
import type { EndedJob } from '../../board/index.ts'
import { isCancellation } from '../../board/internal.ts'
import type { WireOverview } from '../wire/board.ts'
import type { Unencoded } from '../wire/common.ts'

const MINUTE_MS = 60_000
const MINUTES = 60

export type Counter = 'posted' | 'done' | 'trashed' | 'failed'
type Minute = Record<Counter, number>

/** The counts of each minute: from the events of the board while its feed is open, and from its history for the time before. */
export class Throughput {
  readonly #minutes = new Map<number, Minute>()

  /** Fills the minutes before `until` from the history of the board. */
  fill(history: readonly EndedJob[], { from, until }: { readonly from: number; readonly until: number }): void {
    const isWanted = (at: Date) => at.getTime() >= from && at.getTime() < until
    for (const { outcome, postedAt, endedAt, startedAt, reason } of history) {
      if (isWanted(postedAt)) this.count('posted', postedAt.getTime())
      if (!isWanted(endedAt)) continue
      this.count(outcome === 'COMPLETE' ? 'done' : 'trashed', endedAt.getTime())
      if (outcome === 'TRASHED' && startedAt !== undefined && !isCancellation(reason ?? ''))
        this.count('failed', endedAt.getTime())
    }
  }

  count(counter: Counter, at: number): void {
    const minute = Math.floor(at / MINUTE_MS)
    const counts = this.#minutes.get(minute)
    if (counts) counts[counter] += 1
    else {
      this.#minutes.set(minute, { posted: 0, done: 0, trashed: 0, failed: 0, [counter]: 1 })
      if (this.#minutes.size > 2 * MINUTES) this.#forget(at)
    }
  }

  /** Returns the last hour, the oldest minute first. */
  last(now: number): Unencoded<WireOverview['minutes']> {
    const newest = Math.floor(now / MINUTE_MS)
    return Array.from({ length: MINUTES }, (_, index) => {
      const minute = newest - MINUTES + 1 + index
      const counts = this.#minutes.get(minute) ?? { posted: 0, done: 0, trashed: 0, failed: 0 }
      return { at: new Date(minute * MINUTE_MS), ...counts }
    })
  }

  #forget(now: number): void {
    const oldest = Math.floor(now / MINUTE_MS) - MINUTES
    for (const minute of this.#minutes.keys()) if (minute < oldest) this.#minutes.delete(minute)
  }
}
