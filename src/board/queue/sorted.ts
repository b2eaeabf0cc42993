/**
 * A sorted list without duplicates, stored as a list of sorted chunks.
 *
 * Finding, adding and removing cost about the square root of the length, and an iteration from the head or from the middle starts
 * at no cost. A heap does not support iteration in order; a plain array would move all items behind a change.
 */
export type Compare<K> = (a: K, b: K) => number

const CHUNK_SIZE = 512

/** A sorted list. `K` is the part of an item that the order compares; lookups need this part only. */
export class SortedList<T extends K, K = T> implements Iterable<T> {
  readonly #compare: Compare<K>
  #chunks: T[][] = []
  #size = 0

  constructor(compare: Compare<K>) {
    this.#compare = compare
  }

  get size(): number {
    return this.#size
  }

  get first(): T | undefined {
    return this.#chunks[0]?.[0]
  }

  /** Adds an item; an equal item in the list stays. @throws RangeError for an item without a place in the order, such as an item with NaN */
  add(item: T): void {
    // Without this, such an item would stay at the head, and no other item would ever come first.
    if (this.#compare(item, item) !== 0)
      throw new RangeError('the item is not equal to itself, and has no place in an order')
    const at = this.#findChunk(item)
    const chunk = this.#chunks[at]
    if (!chunk) {
      // An array literal reserves no space for more items: most lists of a board with many resources never hold a second one.
      this.#chunks = [[item]]
      this.#size = 1
      return
    }
    const index = this.#firstNotBefore(chunk, item)
    const found = chunk[index]
    if (found !== undefined && this.#compare(found, item) === 0) return
    chunk.splice(index, 0, item)
    this.#size += 1
    if (chunk.length > 2 * CHUNK_SIZE) this.#chunks.splice(at, 1, chunk.slice(0, CHUNK_SIZE), chunk.slice(CHUNK_SIZE))
  }

  delete(item: K): boolean {
    const at = this.#findChunk(item)
    const chunk = this.#chunks[at]
    if (!chunk) return false
    const index = this.#firstNotBefore(chunk, item)
    const found = chunk[index]
    if (found === undefined || this.#compare(found, item) !== 0) return false
    chunk.splice(index, 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    this.#size -= 1
    return true
  }

  /** Yields the items in order. The list must not change during the iteration. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const chunk of this.#chunks) yield* chunk
  }

  /** Yields the items that are not before `start`, in order. The list must not change during the iteration. */
  *from(start: K): Generator<T, void, undefined> {
    let at = this.#findChunk(start)
    let chunk = this.#chunks[at]
    let index = chunk ? this.#firstNotBefore(chunk, start) : 0
    while (chunk) {
      for (; index < chunk.length; index += 1) yield chunk[index] as T
      at += 1
      chunk = this.#chunks[at]
      index = 0
    }
  }

  /** Returns the index of the chunk for the item: the first whose last item is not before it, else the last chunk. */
  #findChunk(item: K): number {
    let low = 0
    let high = this.#chunks.length - 1
    const beforeLastChunk = this.#chunks[high - 1]?.at(-1)
    // Fast path: most items are added at the end.
    if (beforeLastChunk !== undefined && this.#compare(beforeLastChunk, item) < 0) return high
    while (low < high) {
      const middle = (low + high) >> 1
      const last = this.#chunks[middle]?.at(-1)
      if (last !== undefined && this.#compare(last, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #firstNotBefore(chunk: readonly T[], item: K): number {
    const [first, last] = [chunk[0], chunk.at(-1)]
    // Fast paths: most items are added at the end and removed from the head.
    if (last !== undefined && this.#compare(last, item) < 0) return chunk.length
    if (first !== undefined && this.#compare(first, item) >= 0) return 0
    let low = 0
    let high = chunk.length
    while (low < high) {
      const middle = (low + high) >> 1
      const at = chunk[middle]
      if (at !== undefined && this.#compare(at, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
