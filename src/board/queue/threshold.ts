/**
 * A sorted list with a bound: items before the bound pass, the others wait. Moving the bound costs as much as there are items between its
 * old and its new position. The number of items behind it does not matter.
 */
import { type Compare, SortedList } from './sorted.ts'

/** The bound: items before the given key pass; with `all` all items pass, with `none` none. */
export type ThresholdBound<K> = K | 'all' | 'none'

export class Threshold<T extends K, K extends object = T> implements Iterable<T> {
  readonly #compare: Compare<K>
  readonly #items: SortedList<T, K>
  #bound: ThresholdBound<K> = 'none'

  /** Creates an empty list. Its bound is `none` until it is moved. */
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

  /** Iterates over the items in order, passing ones first. The list must not change during the iteration. */
  [Symbol.iterator](): Iterator<T, void, undefined> {
    return this.#items[Symbol.iterator]()
  }

  /** Adds an item and returns whether it passes. */
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

  /** Moves the bound. @param onPasses called for each item that begins or ceases to pass */
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
