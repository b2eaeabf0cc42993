/** Some of many, so that processes that look at the same jobs do not all try the same ones. */

/** In no particular order; the items stay as they are. @param options.random from 0 up to 1 */
export function pickAtRandom<T>(items: readonly T[], options: { count: number; random: () => number }): T[] {
  const rest = [...items]
  const picked: T[] = []
  while (picked.length < options.count && rest.length > 0) {
    const last = rest.pop() as T
    // The last one stands in for the one that is drawn, unless it is drawn itself: removing costs nothing so.
    const index = Math.floor(options.random() * (rest.length + 1))
    picked.push(rest[index] ?? last)
    if (index < rest.length) rest[index] = last
  }
  return picked
}
