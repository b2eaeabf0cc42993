/** Collects the keys of limits for which jobs have begun to wait, so that each is reported once in a while. */
import type { QueueEntry } from '../model/entry.ts'

/** The time in which a key for which jobs wait again and again is reported once. */
const REPORT_PERIOD_MS = 60_000
/** The number of keys of which the time of the last wait is kept. */
const MAX_KEPT_KEYS = 10_000

/** A key for which jobs have begun to wait. */
export interface LimitedKey {
  readonly key: string
  /** The first job that waits. */
  readonly first: QueueEntry
  /** The time from which the key has room, in milliseconds since 1970; undefined if it is not known. */
  readonly until: number | undefined
}

const NONE: readonly LimitedKey[] = []

export class LimitedKeys {
  /** The time at which a job has last begun to wait for each key. */
  readonly #waitedAt = new Map<string, number>()
  #found: LimitedKey[] = []

  /** Notes that jobs wait for a key. A key for which jobs have waited within the last minute is not reported again. */
  note(limited: LimitedKey, now: number): void {
    const { key } = limited
    const before = this.#waitedAt.get(key) ?? Number.NEGATIVE_INFINITY
    if (this.#waitedAt.size >= MAX_KEPT_KEYS) this.#waitedAt.clear()
    this.#waitedAt.set(key, now)
    if (now - before >= REPORT_PERIOD_MS) this.#found.push(limited)
  }

  /** Returns the keys to report since the last call. */
  take(): readonly LimitedKey[] {
    if (this.#found.length === 0) return NONE
    const found = this.#found
    this.#found = []
    return found
  }
}
