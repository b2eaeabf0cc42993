/**
 * Entries in claim order: priority, then posting order, then the digits of the id (postings of one batch share their
 * posting order).
 *
 * A sorted list of sorted chunks: finding, adding and removing cost about the square root of the length, and a walk from
 * the head costs nothing to start. A heap could not be walked past entries that are not accepted, a plain array would
 * move all that follows.
 */
import { type Priority, rank } from './priority.ts'

export interface Ordered {
  readonly id: string
  readonly priority: Priority
  readonly order: bigint
}

const CHUNK = 512

export class ClaimOrder<T extends Ordered> implements Iterable<T> {
  readonly #chunks: T[][] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adding what is there already changes nothing. */
  add(item: T): void {
    const at = this.#chunkOf(item)
    const chunk = this.#chunks[at]
    if (!chunk) {
      this.#chunks.push([item])
      this.#size += 1
      return
    }
    const index = firstNotBefore(chunk, item)
    const found = chunk[index]
    if (found && compareClaimOrder(found, item) === 0) return
    chunk.splice(index, 0, item)
    this.#size += 1
    if (chunk.length > 2 * CHUNK) this.#chunks.splice(at, 1, chunk.slice(0, CHUNK), chunk.slice(CHUNK))
  }

  delete(item: T): boolean {
    const at = this.#chunkOf(item)
    const chunk = this.#chunks[at]
    if (!chunk) return false
    const index = firstNotBefore(chunk, item)
    const found = chunk[index]
    if (!found || compareClaimOrder(found, item) !== 0) return false
    chunk.splice(index, 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    this.#size -= 1
    return true
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const chunk of this.#chunks) yield* chunk
  }

  /** The chunk that holds the item, or would: the first whose last entry is not before it, else the last one. */
  #chunkOf(item: T): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      const last = this.#chunks[middle]?.at(-1)
      if (last && compareClaimOrder(last, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

export function compareClaimOrder(a: Ordered, b: Ordered): number {
  const byPriority = rank(a.priority) - rank(b.priority)
  if (byPriority !== 0) return byPriority
  if (a.order !== b.order) return a.order < b.order ? -1 : 1
  if (a.id.length !== b.id.length) return a.id.length - b.id.length
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

function firstNotBefore<T extends Ordered>(chunk: readonly T[], item: T): number {
  let low = 0
  let high = chunk.length
  while (low < high) {
    const middle = (low + high) >> 1
    const at = chunk[middle]
    if (at && compareClaimOrder(at, item) < 0) low = middle + 1
    else high = middle
  }
  return low
}
