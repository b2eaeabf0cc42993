/** A queue whose head is taken in constant time; `Array.shift` moves all later items. */

const COMPACT_AT_ITEMS = 1_024

export class FifoQueue<T> {
  #items: (T | undefined)[] = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (this.#head === this.#items.length) return undefined
    this.#items[this.#head] = undefined
    this.#head++
    if (this.#head >= COMPACT_AT_ITEMS && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Empties the queue and returns what was in it, in order. */
  drain(): T[] {
    const items: T[] = []
    for (let item = this.shift(); item !== undefined; item = this.shift()) items.push(item)
    return items
  }
}
