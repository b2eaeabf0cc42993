/** Collects the keys for which jobs have begun to wait. Each is reported at most once in a minute. */
import type { QueuePlace } from '../model/entry.ts'

/** The time without waiting jobs after which a key is reported again. */
const REPORT_PERIOD_MS = 60_000
/** The maximum number of keys for which the time of the last wait is kept. */
const MAX_KEPT_KEYS = 10_000

/** A key for which jobs have begun to wait. */
export interface LimitedKey {
  readonly key: string
  /** The first job that waits. */
  readonly first: QueuePlace
  /** The time from which the key has room, in milliseconds since 1970; undefined if it is not known. */
  readonly until: number | undefined
}

const NONE: readonly LimitedKey[] = []

export class LimitedKeys {
  /** The time of the last wait for each key. */
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
