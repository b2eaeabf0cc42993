/**
 * Places the parts of a flow on a plane, from top to bottom: by dagre, or in plain layers where the flow is too large for it. The result is
 * plain data, which the dashboard draws and `toSvg` writes.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { type FlowOutline, toOutline } from '../compile/outline.ts'
import type { AnyFlow } from '../patterns/flow.ts'
import { type DrawnGraph, type DrawnNode, toDrawnGraph } from './collapse.ts'
import { placeInLayers, toDepths } from './layers.ts'
import type { LaidEdge, LaidNode, Placement, SizedNode } from './placement.ts'

/** A flow with the places of its parts. */
export interface FlowLayout {
  readonly flow: string
  readonly version: string
  readonly digest: string
  readonly width: number
  readonly height: number
  readonly nodes: readonly LaidNode[]
  readonly edges: readonly LaidEdge[]
  /** Whether inner flows are one node each, because the flow has more than 500 atoms. */
  readonly collapsed: boolean
}

/** The number of atoms above which each inner flow is drawn as one node. */
const MAX_ATOMS = 500
/** The number of nodes above which dagre takes seconds, and layers are used. */
const MAX_DAGRE_NODES = 500
/** The sum of the lengths of all edges, in layers: with more, dagre takes seconds, and with some thousands of edges minutes. */
const MAX_DAGRE_LENGTH = 1_500
/** The number of nodes above which a browser takes seconds for the picture, which is too large to read. */
const MAX_NODES = 2_000
const MAX_EDGES = 10_000

/** The length of a label in columns; longer names are shortened in the middle. */
const MAX_COLUMNS = 32
const COLUMN_PIXELS = 7.5
const PADDING_PIXELS = 12
const NODE_HEIGHT = 34
const POINT_SIZE = 8

/**
 * Places the parts of a flow. The same outline always gives the same layout.
 *
 * @throws InvalidArgument for a flow with more than 2,000 nodes or 10,000 edges to draw
 * @example const layout = await layoutFlow(hello)
 */
export async function layoutFlow(flow: AnyFlow | FlowOutline): Promise<FlowLayout> {
  const outline = toOutline(flow)
  const { name, version, digest } = outline
  const graph = toDrawnGraph(outline, { maxAtoms: MAX_ATOMS })
  if (graph.nodes.length > MAX_NODES)
    throw new InvalidArgument(
      `flow ${name} cannot be drawn: it has ${graph.nodes.length} parts, and at most ${MAX_NODES} are drawn; read its list of tasks`,
    )
  if (graph.edges.length > MAX_EDGES)
    throw new InvalidArgument(
      `flow ${name} cannot be drawn: it has ${graph.edges.length} lines between its parts, and at most ${MAX_EDGES} are drawn; read its list of tasks`,
    )
  // Only here: most processes never draw.
  const { default: columns } = await import('string-width')
  const nodes = graph.nodes.map((node) => withSize(node, columns))
  const { width, height, centres, points } = await place({ ...graph, nodes })
  return {
    ...{ flow: name, version, digest, width, height, collapsed: graph.collapsed },
    nodes: nodes.map((node) => ({ ...node, ...(centres.get(node.id) ?? { x: 0, y: 0 }) })),
    edges: graph.edges.map((edge, index) => ({ ...edge, points: points[index] ?? [] })),
  }
}

interface SizedGraph extends DrawnGraph {
  readonly nodes: readonly SizedNode[]
}

async function place(graph: SizedGraph): Promise<Placement> {
  if (graph.nodes.length > MAX_DAGRE_NODES || lengthOf(graph) > MAX_DAGRE_LENGTH) return placeInLayers(graph)
  const { placeByDagre } = await import('./dagre.ts')
  return placeByDagre(graph) ?? placeInLayers(graph)
}

/** Returns the sum of the lengths of the edges: dagre makes a node in each layer that an edge passes. */
function lengthOf(graph: DrawnGraph): number {
  const depths = toDepths(graph)
  const lengths = graph.edges.map(({ from, to }) => Math.abs((depths.get(to) ?? 0) - (depths.get(from) ?? 0)))
  // An edge in an outline that was written by hand may have length 0.
  return lengths.reduce((sum, length) => sum + Math.max(1, length), 0)
}

/** Returns the number of columns that a text takes. */
type Columns = (text: string) => number

function withSize(node: DrawnNode, columns: Columns): SizedNode {
  if (node.kind === 'point') return { ...node, width: POINT_SIZE, height: POINT_SIZE }
  const label = shorten(toOneLine(node.name ?? ''), columns)
  const width = Math.round(columns(label) * COLUMN_PIXELS) + 2 * PADDING_PIXELS
  // A retry is a hexagon: its tips need room.
  return { ...node, label, width: node.kind === 'retry' ? width + PADDING_PIXELS : width, height: NODE_HEIGHT }
}

/** Replaces the characters that would break a line or act on a terminal: a name may hold any. */
function toOneLine(name: string): string {
  return name.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/gu, '\ufffd')
}

/** Shortens a label in its middle: names often differ at both ends. */
function shorten(label: string, columns: Columns): string {
  // A name can have 10 kB: only its ends are measured.
  if (label.length <= MAX_COLUMNS && columns(label) <= MAX_COLUMNS) return label
  const half = Math.ceil(label.length / 2)
  const start = [...label.slice(0, Math.min(half, MAX_COLUMNS))]
  const end = [...label.slice(Math.max(half, label.length - MAX_COLUMNS))]
  while (columns(`${start.join('')}…${end.join('')}`) > MAX_COLUMNS) {
    if (start.length >= end.length) start.pop()
    else end.shift()
  }
  // The cut may have divided a pair of surrogates.
  return toOneLine(`${start.join('')}…${end.join('')}`)
}
