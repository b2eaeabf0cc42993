/**
 * Finds what is set for a key, among settings of keys and of patterns. The work depends on the number of different lengths of patterns, and
 * not on the number of settings: lists look up each of very many keys.
 */
export class PatternMap<T> {
  readonly #exact = new Map<string, T>()
  /** The patterns by their prefixes. */
  readonly #patterns = new Map<string, T>()
  /** The lengths of the prefixes, longest first. */
  readonly #lengths: readonly number[]

  /** @param keyOf returns the key or pattern of a setting */
  constructor(settings: readonly T[], keyOf: (setting: T) => string) {
    for (const setting of settings) {
      const key = keyOf(setting)
      if (key.endsWith('*')) this.#patterns.set(key.slice(0, -1), setting)
      else this.#exact.set(key, setting)
    }
    this.#lengths = [...new Set([...this.#patterns.keys()].map(({ length }) => length))].sort((a, b) => b - a)
  }

  get size(): number {
    return this.#exact.size + this.#patterns.size
  }

  some(test: (setting: T) => boolean): boolean {
    return this.values().some(test)
  }

  /** Returns all settings, in no certain order. */
  values(): readonly T[] {
    return [...this.#exact.values(), ...this.#patterns.values()]
  }

  find(key: string): T | undefined {
    return this.findAll(key)[0]
  }

  /** Returns all settings that apply to the key, the most specific first. */
  findAll(key: string): T[] {
    const exact = this.#exact.get(key)
    const found = this.#lengths.flatMap((length) => {
      const pattern = length <= key.length ? this.#patterns.get(key.slice(0, length)) : undefined
      return pattern ? [pattern] : []
    })
    return exact ? [exact, ...found] : found
  }
}
