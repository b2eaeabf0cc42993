/** Answers that are computed once for all who ask at about the same time. */
import { monotonic } from '../../core/time.ts'

interface Kept {
  readonly value: Promise<unknown>
  readonly at: number
  isStale: boolean
}

export class ShortMemory {
  readonly #kept = new Map<string, Kept>()

  /** Marks everything as changed: it is computed again after its shortest time. */
  change(): void {
    for (const kept of this.#kept.values()) kept.isStale = true
  }

  clear(): void {
    this.#kept.clear()
  }

  /**
   * Returns what was computed, for `leastMs` in any case, and for `mostMs` while nothing has changed.
   */
  get<T>(
    key: string,
    { leastMs, mostMs }: { readonly leastMs: number; readonly mostMs: number },
    compute: () => Promise<T>,
  ): Promise<T> {
    const known = this.#kept.get(key)
    const age = known ? monotonic() - known.at : Number.POSITIVE_INFINITY
    if (known && age < (known.isStale ? leastMs : mostMs)) return known.value as Promise<T>
    const value = compute()
    const kept: Kept = { value, at: monotonic(), isStale: false }
    this.#kept.set(key, kept)
    value.catch(() => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key)
    })
    return value
  }
}
