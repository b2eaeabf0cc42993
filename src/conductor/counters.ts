/** Counts what a conductor has done since its start, for its entity, its health and `jobboard conductors`. */
import { Cancelled } from '../core/errors.ts'
import { monotonic } from '../core/time.ts'
import type { RunSettled, RunStarted } from './runs/runs.ts'

/** The counts of a conductor since its start. */
export interface ConductorCounts {
  /** The jobs that were consumed. */
  readonly done: number
  /** The runs that failed: their jobs are tried again, or are in the trash. */
  readonly failed: number
  /** The runs that ended in another way: given back uncharged, cancelled, or lost. */
  readonly other: number
  /** The time in milliseconds that runs have taken together, runs under way included. */
  readonly workedMs: number
}

export class RunCounters {
  #done = 0
  #failed = 0
  #other = 0
  #workedMs = 0
  /** The starts of the runs under way, by job and run: a uuid that was posted twice can have two. */
  readonly #startedAt = new Map<string, number>()

  get counts(): ConductorCounts {
    const now = monotonic()
    const underWay = [...this.#startedAt.values()].reduce((sum, at) => sum + now - at, 0)
    const workedMs = Math.round(this.#workedMs + underWay)
    return { done: this.#done, failed: this.#failed, other: this.#other, workedMs }
  }

  onStarted(event: RunStarted): void {
    this.#startedAt.set(toKey(event), monotonic())
  }

  onSettled(event: RunSettled): void {
    const { settled, failure } = event
    if (settled === 'consumed') this.#done += 1
    else if (failure && failure.code !== Cancelled.code && settled !== 'lost') this.#failed += 1
    else this.#other += 1
    const startedAt = this.#startedAt.get(toKey(event))
    this.#startedAt.delete(toKey(event))
    if (startedAt !== undefined) this.#workedMs += monotonic() - startedAt
  }
}

/** Returns the sum of the counts on several boards. */
export function sumCounts(all: readonly ConductorCounts[]): ConductorCounts {
  const sum = { done: 0, failed: 0, other: 0, workedMs: 0 }
  for (const counts of all) for (const name of Object.keys(sum) as (keyof ConductorCounts)[]) sum[name] += counts[name]
  return sum
}

function toKey({ job, run }: RunStarted): string {
  return `${job.ref} ${run}`
}
