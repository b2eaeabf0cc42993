/** Places a graph in layers, in linear time: each node below all that it follows, in the order of the flow, in the middle of its row. */
import type { DrawnEdge } from './collapse.ts'
import { COLUMN_GAP, type LaidEdge, MARGIN, type Placement, ROW_GAP, type SizedNode } from './placement.ts'

/** The widest row; a layer that is wider takes several rows. */
const MAX_ROW_WIDTH = 4_000

type Centre = { readonly x: number; readonly y: number }

export function placeInLayers({
  nodes,
  edges,
}: {
  readonly nodes: readonly SizedNode[]
  readonly edges: readonly DrawnEdge[]
}): Placement {
  const rows = toLayers({ nodes, edges }).flatMap(toRows)
  const width = Math.max(0, ...rows.map(rowWidth)) + 2 * MARGIN
  const centres = new Map<string, Centre>()
  let top = MARGIN
  for (const row of rows) {
    const height = Math.max(...row.map((node) => node.height))
    let left = (width - rowWidth(row)) / 2
    for (const node of row) {
      centres.set(node.id, { x: Math.round(left + node.width / 2), y: Math.round(top + height / 2) })
      left += node.width + COLUMN_GAP
    }
    top += height + ROW_GAP
  }
  const sizes = new Map(nodes.map((node) => [node.id, node]))
  const points = edges.map((edge) => straightLine(edge, { centres, sizes }))
  return { width: Math.ceil(width), height: rows.length === 0 ? 2 * MARGIN : top - ROW_GAP + MARGIN, centres, points }
}

/** Returns the nodes in layers: the layer of a node is the length of the longest path to it. */
function toLayers(graph: {
  readonly nodes: readonly SizedNode[]
  readonly edges: readonly DrawnEdge[]
}): SizedNode[][] {
  const depths = toDepths(graph)
  const layers: SizedNode[][] = []
  for (const node of graph.nodes) {
    const depth = depths.get(node.id) ?? 0
    const layer = layers[depth] ?? []
    layers[depth] = layer
    layer.push(node)
  }
  return layers.filter((layer) => layer !== undefined)
}

/** Returns the length of the longest path to each node. In an outline, each node comes after the nodes that it follows. */
export function toDepths({
  nodes,
  edges,
}: {
  readonly nodes: readonly { readonly id: string }[]
  readonly edges: readonly DrawnEdge[]
}): ReadonlyMap<string, number> {
  const before = new Map<string, string[]>()
  for (const { from, to } of edges) {
    const known = before.get(to)
    if (known) known.push(from)
    else before.set(to, [from])
  }
  const depths = new Map<string, number>()
  for (const { id } of nodes) {
    let depth = 0
    for (const from of before.get(id) ?? []) depth = Math.max(depth, (depths.get(from) ?? -1) + 1)
    depths.set(id, depth)
  }
  return depths
}

function toRows(layer: readonly SizedNode[]): SizedNode[][] {
  const rows: SizedNode[][] = []
  let left = Number.POSITIVE_INFINITY
  for (const node of layer) {
    if (left + node.width > MAX_ROW_WIDTH) {
      rows.push([])
      left = 0
    }
    rows.at(-1)?.push(node)
    left += node.width + COLUMN_GAP
  }
  return rows
}

function rowWidth(row: readonly SizedNode[]): number {
  return row.reduce((sum, { width }) => sum + width + COLUMN_GAP, -COLUMN_GAP)
}

function straightLine(
  { from, to }: DrawnEdge,
  { centres, sizes }: { readonly centres: ReadonlyMap<string, Centre>; readonly sizes: ReadonlyMap<string, SizedNode> },
): LaidEdge['points'] {
  const [start, end] = [centres.get(from), centres.get(to)]
  if (!start || !end) return []
  const half = (id: string) => (sizes.get(id)?.height ?? 0) / 2
  const isDown = end.y >= start.y
  return [
    [start.x, isDown ? start.y + half(from) : start.y - half(from)],
    [end.x, isDown ? end.y - half(to) : end.y + half(to)],
  ]
}
