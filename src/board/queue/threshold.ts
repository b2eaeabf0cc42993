/**
 * Items in order with a bound among them: what stands before the bound passes, the rest waits. Moving the bound costs what
 * stands between where it was and where it is, however many stand behind it.
 */
import { type Compare, SortedList } from './sorted.ts'

/** Where those that pass end: before this one, or with the last. `none`: nobody passes. */
export type ThresholdBound<K> = K | 'all' | 'none'

export class Threshold<T extends K, K extends object = T> implements Iterable<T> {
  readonly #compare: Compare<K>
  readonly #items: SortedList<T, K>
  #bound: ThresholdBound<K> = 'none'

  /** Nobody passes before the bound was moved for the first time. */
  constructor(compare: Compare<K>) {
    this.#compare = compare
    this.#items = new SortedList<T, K>(compare)
  }

  get size(): number {
    return this.#items.size
  }

  get first(): T | undefined {
    return this.#items.first
  }

  /** In order, those that pass first. Nothing may be added or removed during the walk. */
  [Symbol.iterator](): Iterator<T, void, undefined> {
    return this.#items[Symbol.iterator]()
  }

  /** Whether it passes from the beginning. */
  add(item: T): boolean {
    this.#items.add(item)
    return this.passes(item)
  }

  delete(item: T): void {
    this.#items.delete(item)
  }

  passes(item: T): boolean {
    if (this.#bound === 'all') return true
    return this.#bound !== 'none' && this.#compare(item, this.#bound) < 0
  }

  /** @param onPasses hears of everyone for whom this makes a difference */
  move(bound: ThresholdBound<K>, onPasses: (item: T, passes: boolean) => void): void {
    const old = this.#bound
    if (old === bound) return
    this.#bound = bound
    const opens = this.#isBefore(old, bound)
    const [start, end] = opens ? [old, bound] : [bound, old]
    if (start === 'all' || end === 'none') return
    for (const item of start === 'none' ? this.#items : this.#items.from(start)) {
      if (end !== 'all' && this.#compare(item, end) >= 0) return
      onPasses(item, opens)
    }
  }

  #isBefore(a: ThresholdBound<K>, b: ThresholdBound<K>): boolean {
    if (a === 'none' || b === 'all') return a !== b
    if (a === 'all' || b === 'none') return false
    return this.#compare(a, b) < 0
  }
}
