/** Topological order of dependent things. */

export interface Edge {
  readonly from: number
  readonly to: number
}

/**
 * Returns the numbers from 0 to `count - 1`, each after all that have an edge to it, otherwise in ascending order. Numbers in
 * a circle, and those behind one, are missing. Takes time linear in numbers and edges.
 */
export function topologicalOrder(count: number, edges: readonly Edge[]): number[] {
  const after: number[][] = Array.from({ length: count }, () => [])
  const waitingFor = new Int32Array(count)
  for (const { from, to } of edges) {
    after[from]?.push(to)
    waitingFor[to] = (waitingFor[to] ?? 0) + 1
  }
  const order: number[] = []
  for (let index = 0; index < count; index += 1) if (waitingFor[index] === 0) order.push(index)
  for (let next = 0; next < order.length; next += 1) {
    for (const to of after[order[next] ?? -1] ?? []) {
      const left = (waitingFor[to] ?? 0) - 1
      waitingFor[to] = left
      if (left === 0) order.push(to)
    }
  }
  return order
}

/** Returns the numbers from which one of `targets` can be reached, and the targets themselves. */
export function findAncestors(targets: readonly number[], count: number, edges: readonly Edge[]): ReadonlySet<number> {
  const before: number[][] = Array.from({ length: count }, () => [])
  for (const { from, to } of edges) before[to]?.push(from)
  const found = new Set(targets)
  for (const at of found) for (const from of before[at] ?? []) found.add(from)
  return found
}
