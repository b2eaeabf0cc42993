/** A random choice of jobs, so that processes with the same view do not all try to claim the same ones. */

/** Returns `count` random items in no particular order; `items` is not changed. @param options.random returns numbers from 0 to below 1 */
export function pickAtRandom<T>(items: readonly T[], options: { count: number; random: () => number }): T[] {
  const rest = [...items]
  const picked: T[] = []
  while (picked.length < options.count && rest.length > 0) {
    const last = rest.pop() as T
    // The last item replaces the drawn one, unless it is drawn itself: this removes an item in constant time.
    const index = Math.floor(options.random() * (rest.length + 1))
    picked.push(rest[index] ?? last)
    if (index < rest.length) rest[index] = last
  }
  return picked
}
