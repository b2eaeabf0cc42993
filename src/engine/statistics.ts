/** What an engine has done, and what its time went into. */
import type { EngineState } from '../core/states.ts'
import { monotonic } from '../core/time.ts'

/** What an engine has done so far, in this process. */
export interface Statistics {
  /** How often an atom was executed with success, was reverted, failed at either, and was given another attempt. */
  readonly executed: number
  readonly reverted: number
  readonly failed: number
  readonly retried: number
  /** How many atoms run now. */
  readonly underWay: number
  /** To the logbook. */
  readonly writes: number
  /** How long it was in each state, in milliseconds. */
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

/** What is asked of a run. */
interface ObservedRun {
  readonly counts: AtomCounts
  readonly underWay: number
}

export class Stopwatch {
  readonly #spent: Partial<Record<EngineState, number>> = {}
  #since = 0

  /** The time since the last call of this or `begin` went into this state. */
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
