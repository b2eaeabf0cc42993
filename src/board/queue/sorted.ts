/**
 * Items in order, without doubles: a list of sorted chunks.
 *
 * Finding, adding and removing cost about the square root of the length, and a walk from the head or from the middle costs
 * nothing to start. A heap could not be walked, a plain array would move all that follows.
 */
export type Compare<K> = (a: K, b: K) => number

const CHUNK_SIZE = 512

/** `K` is what the order looks at; whatever has that can be asked for. */
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

  /** Adding what is there already changes nothing. */
  add(item: T): void {
    const at = this.#findChunk(item)
    const chunk = this.#chunks[at]
    if (!chunk) {
      // A literal, which takes no room for more: most lists of a board with many resources never hold a second item.
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

  /** Nothing may be added or removed during the walk. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const chunk of this.#chunks) yield* chunk
  }

  /** What is not before `start`, in order. Nothing may be added or removed during the walk. */
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

  /** The chunk that holds the item, or would: the first whose last item is not before it, else the last one. */
  #findChunk(item: K): number {
    let low = 0
    let high = this.#chunks.length - 1
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
    // Mostly what comes goes to the end, and what goes is the first.
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
