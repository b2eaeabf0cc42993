/** Places a graph by dagre. Its result depends on the order in which nodes and edges are added: the order of the flow. */
import { graphlib, layout as layOut } from '@dagrejs/dagre'
import type { DrawnEdge } from './collapse.ts'
import { COLUMN_GAP, type LaidEdge, MARGIN, type Placement, ROW_GAP, type SizedNode } from './placement.ts'

/** Returns the places of nodes and edges; undefined if dagre fails, as it does for some graphs (dagrejs/dagre#234, #255). */
export function placeByDagre({
  nodes,
  edges,
}: {
  readonly nodes: readonly SizedNode[]
  readonly edges: readonly DrawnEdge[]
}): Placement | undefined {
  const graph = new graphlib.Graph()
  graph.setGraph({ rankdir: 'TB', nodesep: COLUMN_GAP, ranksep: ROW_GAP, marginx: MARGIN, marginy: MARGIN })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { id, width, height } of nodes) graph.setNode(id, { width, height })
  for (const { from, to } of edges) graph.setEdge(from, to)
  try {
    layOut(graph)
  } catch {
    return undefined
  }
  const centres = new Map(nodes.map(({ id }) => [id, toPoint(graph.node(id))]))
  const points = edges.map(({ from, to }) => toLine(graph.edge(from, to)))
  const { width, height } = Object(graph.graph())
  const placed = [width, height, ...[...centres.values()].flatMap(({ x, y }) => [x, y]), ...points.flat(2)]
  if (!placed.every((value) => Number.isFinite(value))) return nodes.length === 0 ? EMPTY : undefined
  return { width: Math.ceil(width), height: Math.ceil(height), centres, points }
}

const EMPTY: Placement = { width: 2 * MARGIN, height: 2 * MARGIN, centres: new Map(), points: [] }

function toPoint(value: unknown): { readonly x: number; readonly y: number } {
  const { x, y } = Object(value)
  return { x: round(x), y: round(y) }
}

function toLine(edge: unknown): LaidEdge['points'] {
  const { points }: { points?: readonly unknown[] } = Object(edge)
  return (points ?? []).map(toPoint).map(({ x, y }) => [x, y] as const)
}

/** Rounds to a tenth of a pixel, which is exact enough and keeps answers short. */
function round(value: number): number {
  return Math.round(value * 10) / 10
}
