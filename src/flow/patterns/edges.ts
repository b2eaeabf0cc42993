/** The edges of a graph flow, and what a decider on one of them means. */

/**
 * What is left out when a decider says no. ALL: what it decides about, and everything after it. FLOW: what it decides
 * about, and the tasks after it in the same flow. NEIGHBORS: what it decides about, and the tasks right after it. ATOM:
 * only what it decides about. What is left out counts as done for what comes after, but provides nothing.
 */
export type Depth = 'ALL' | 'FLOW' | 'NEIGHBORS' | 'ATOM'

export const DEPTHS: readonly Depth[] = ['ALL', 'FLOW', 'NEIGHBORS', 'ATOM']

/** What the tasks before the edge returned, by their names; those that were left out are not in it. */
export type DeciderHistory = Readonly<Record<string, unknown>>

export type Decider<H = DeciderHistory> = (history: H) => boolean

export interface FlowLink {
  /** Positions among the parts of the flow. */
  readonly from: number
  readonly to: number
  readonly decider: Decider | undefined
  readonly depth: Depth
}
