/** Statistics of an engine: the counts of its actions, and the time in each state. */
import type { EngineState } from '../core/states.ts'
import { monotonic } from '../core/time.ts'

/** The statistics of an engine so far, in this process. */
export interface Statistics {
  /** The number of successful executions; then of reverts, of failures of either, and of further attempts by retries. */
  readonly executed: number
  readonly reverted: number
  readonly failed: number
  readonly retried: number
  /** The number of atoms that run now. */
  readonly underWay: number
  /** The number of writes to the logbook. */
  readonly writes: number
  /** The time in each state, in milliseconds. */
  readonly spent: Readonly<Partial<Record<EngineState, number>>>
}

export interface AtomCounts {
  executed: number
  reverted: number
  failed: number
  retried: number
}

export function newAtomCounts(): AtomCounts {
  return { executed: 0, reverted: 0, failed: 0, retried: 0 }
}

/** The properties of a run that statistics read. */
interface ObservedRun {
  readonly counts: AtomCounts
  readonly underWay: number
}

export class Stopwatch {
  readonly #spent: Partial<Record<EngineState, number>> = {}
  #since = 0

  /** Adds the time since the last call of `lap` or `begin` to this state. */
  lap(state: EngineState): void {
    const since = this.#since
    this.begin()
    this.#spent[state] = (this.#spent[state] ?? 0) + this.#since - since
  }

  begin(): void {
    this.#since = monotonic()
  }

  statistics(run: ObservedRun | undefined, writes: number): Statistics {
    const counts = run?.counts ?? newAtomCounts()
    return { ...counts, underWay: run?.underWay ?? 0, writes, spent: { ...this.#spent } }
  }
}
