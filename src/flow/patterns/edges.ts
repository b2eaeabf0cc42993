/** The edges of a graph flow, and the deciders on them. */

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
  /** The position of the first part in the flow; `to` is that of the second. */
  readonly from: number
  readonly to: number
  readonly decider: Decider | undefined
  readonly depth: Depth
}
