const NONE: readonly never[] = []

/** A map or a set, whose keys are in the order in which they were added. */
interface OrderedKeys<K> {
  readonly size: number
  keys(): Iterable<K>
  delete(key: K): boolean
}

/**
 * Deletes the oldest keys of a map or a set that has more than `max`, and returns them. It deletes an eighth of `max` at once: to find the
 * first key, V8 steps over all deleted ones before it, so that a delete for each new key takes 10 µs in a map of 10,000.
 *
 * ```ts
 * seen.set(id, uuid)
 * keepNewest(seen, 10_000)
 * ```
 */
export function keepNewest<K>(ordered: OrderedKeys<K>, max: number): readonly K[] {
  if (ordered.size <= max) return NONE
  const deleted: K[] = []
  const kept = Math.ceil((max * 7) / 8)
  for (const key of ordered.keys()) {
    if (ordered.size <= kept) break
    ordered.delete(key)
    deleted.push(key)
  }
  return deleted
}
