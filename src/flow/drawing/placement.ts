/** Nodes and edges with their places, and what a way to place them returns. */
import type { DrawnEdge, DrawnNode } from './collapse.ts'

/** The distances of all layouts, in pixels. */
export const MARGIN = 12
export const ROW_GAP = 34
export const COLUMN_GAP = 22

/** A node with its place: the centre and the size, in pixels at scale 1. */
export interface LaidNode extends DrawnNode {
  /** The name as far as it fits; absent for a point. */
  readonly label?: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface LaidEdge extends DrawnEdge {
  /** The points of the line, the first at the edge of `from`. */
  readonly points: readonly (readonly [x: number, y: number])[]
}

/** A node with its size, before it has a place. */
export interface SizedNode extends DrawnNode {
  readonly label?: string
  readonly width: number
  readonly height: number
}

/** The positions that a layout has found, by the ids of nodes; `points` by the positions of edges. */
export interface Placement {
  readonly width: number
  readonly height: number
  readonly centres: ReadonlyMap<string, { readonly x: number; readonly y: number }>
  readonly points: readonly LaidEdge['points'][]
}
