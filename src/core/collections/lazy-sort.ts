/** The number of steps of the preparation after which an empty batch is yielded: some milliseconds. */
const STEPS_PER_BATCH = 1_000

/**
 * Yields the items in order, in batches, and sorts no more of them than are read: the first hundred of 200,000 cost an eighth to a third of a
 * sort. While it prepares, it yields empty batches, so that the caller can let other work of the process run. The array must not be used after this.
 *
 * The items are in a heap, and its first item is removed again and again. Items that are in order already are not moved.
 *
 * ```ts
 * for (const batch of sortLazily(jobs, { compare: compareClaimOrder, batch: 100 })) if (show(batch)) break
 * ```
 */
export function* sortLazily<T>(
  items: T[],
  { compare, batch }: { readonly compare: (a: T, b: T) => number; readonly batch: number },
): Generator<T[], void, undefined> {
  if (yield* isInOrder(items, compare)) {
    for (let from = 0; from < items.length; from += batch) yield items.slice(from, from + batch)
    return
  }
  for (let root = (items.length >> 1) - 1; root >= 0; root -= 1) {
    siftDown(items, root, compare)
    if (root % STEPS_PER_BATCH === 0) yield []
  }
  while (items.length > 0) {
    const next: T[] = []
    while (next.length < batch && items.length > 0) next.push(removeFirst(items, compare))
    yield next
  }
}

/** Returns whether the items are in order. Yields an empty batch now and then meanwhile. */
function* isInOrder<T>(items: readonly T[], compare: (a: T, b: T) => number): Generator<T[], boolean, undefined> {
  for (let index = 1; index < items.length; index += 1) {
    if (compare(items[index - 1] as T, items[index] as T) > 0) return false
    if (index % STEPS_PER_BATCH === 0) yield []
  }
  return true
}

/** Removes and returns the first item of a heap that is not empty. */
function removeFirst<T>(heap: T[], compare: (a: T, b: T) => number): T {
  const first = heap[0] as T
  const last = heap.pop() as T
  if (heap.length === 0) return first
  heap[0] = last
  siftDown(heap, 0, compare)
  return first
}

/** Moves an item down until no item below it comes before it. */
function siftDown<T>(heap: T[], root: number, compare: (a: T, b: T) => number): void {
  const item = heap[root] as T
  let at = root
  for (;;) {
    let below = 2 * at + 1
    if (below >= heap.length) break
    if (below + 1 < heap.length && compare(heap[below + 1] as T, heap[below] as T) < 0) below += 1
    if (compare(item, heap[below] as T) <= 0) break
    heap[at] = heap[below] as T
    at = below
  }
  heap[at] = item
}
