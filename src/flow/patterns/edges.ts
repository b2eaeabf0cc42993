/** The edges of a graph flow, the deciders on them, and the topological order that they make. */

/**
 * The part of a flow that is left out when a decider says no. ALL: the decider's target, and everything after it. FLOW: the
 * target, and the tasks after it in the same flow. NEIGHBORS: the target, and the tasks directly after it. ATOM: only the
 * target. An atom that is left out counts as done for its successors, but provides nothing.
 */
export type Depth = 'ALL' | 'FLOW' | 'NEIGHBORS' | 'ATOM'

export const DEPTHS: readonly Depth[] = ['ALL', 'FLOW', 'NEIGHBORS', 'ATOM']

/** The results of the tasks before the edge, by name; tasks that were left out are missing. */
export type DeciderHistory = Readonly<Record<string, unknown>>

export type Decider<H = DeciderHistory> = (history: H) => boolean

export interface FlowLink {
  /** The position of the first part in the flow; `to` is the position of the second part. */
  readonly from: number
  readonly to: number
  readonly decider: Decider | undefined
  readonly depth: Depth
}

export interface Edge {
  readonly from: number
  readonly to: number
}

/**
 * Returns the numbers from 0 to `count - 1`, each after all that have an edge to it, otherwise in ascending order. Numbers in
 * a circle, and numbers behind a circle, are missing. Takes time linear in numbers and edges.
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
