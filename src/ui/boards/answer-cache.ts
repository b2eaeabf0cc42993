/** Keeps answers for some seconds, so that they are computed once for all who ask at about the same time. */
import { monotonic } from '../../core/time.ts'

interface Kept {
  readonly value: Promise<unknown>
  readonly at: number
  isStale: boolean
}

export class AnswerCache {
  readonly #kept = new Map<string, Kept>()

  /** Marks all answers as stale: each is computed again when it is asked for, unless it is younger than its `minAgeMs`. */
  invalidate(): void {
    for (const kept of this.#kept.values()) kept.isStale = true
  }

  clear(): void {
    this.#kept.clear()
  }

  /**
   * Returns the answer of this key, and computes it if there is none or it is too old. A key must be used by one caller only, because its type
   * is that of the caller's answer.
   *
   * @param options.minAgeMs how long an answer is kept although something has changed
   * @param options.maxAgeMs how long it is kept while nothing has changed
   */
  get<T>(
    key: string,
    { minAgeMs, maxAgeMs }: { readonly minAgeMs: number; readonly maxAgeMs: number },
    compute: () => Promise<T>,
  ): Promise<T> {
    const known = this.#kept.get(key)
    const age = known ? monotonic() - known.at : Number.POSITIVE_INFINITY
    if (known && age < (known.isStale ? minAgeMs : maxAgeMs)) return known.value as Promise<T>
    const value = compute()
    const kept: Kept = { value, at: monotonic(), isStale: false }
    this.#kept.set(key, kept)
    value.catch(() => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key)
    })
    return value
  }
}
