/** Draws large flows in less detail: the atoms of an inner flow become one node. */
import type { FlowOutline, OutlineNode } from '../compile/outline.ts'

/** A node to be drawn: an atom, a point in which edges meet, or an inner flow. */
export interface DrawnNode {
  readonly id: string
  readonly kind: 'task' | 'retry' | 'flow' | 'point'
  /** The name of the atom, or of the inner flow; absent for a point. */
  readonly name?: string
  /** The name of the inner flow that has the atom. */
  readonly flow?: string
  readonly isolated?: true
  /** The names of the atoms that an inner flow stands for. */
  readonly atoms?: readonly string[]
}

export interface DrawnEdge {
  readonly from: string
  readonly to: string
  readonly kind: 'next' | 'decided'
}

export interface DrawnGraph {
  readonly nodes: readonly DrawnNode[]
  readonly edges: readonly DrawnEdge[]
  readonly collapsed: boolean
}

/** Returns the nodes and edges to draw, in the order of the flow: with more atoms than `maxAtoms`, each inner flow is one node. */
export function toDrawnGraph({ nodes }: FlowOutline, { maxAtoms }: { readonly maxAtoms: number }): DrawnGraph {
  const collapsed = nodes.length > maxAtoms && nodes.some(({ flow }) => flow !== undefined)
  const ids = collapsed ? collapsedIds(nodes) : nodes.map((_, index) => `n${index}`)
  return { nodes: drawnNodes(nodes, ids), edges: drawnEdges(nodes, ids), collapsed }
}

/** Returns, for each node, the id of the node that stands for it: the atoms of one inner flow share the id of the first of them. */
function collapsedIds(nodes: readonly OutlineNode[]): string[] {
  const first = new Map<string, string>()
  return nodes.map(({ flow }, index) => {
    if (flow === undefined) return `n${index}`
    const id = first.get(flow) ?? `f${index}`
    first.set(flow, id)
    return id
  })
}

function drawnNodes(nodes: readonly OutlineNode[], ids: readonly string[]): DrawnNode[] {
  const inner = new Map<string, string[]>()
  const drawn = new Map<string, DrawnNode>()
  for (const [index, node] of nodes.entries()) {
    const id = ids[index] ?? ''
    if (!id.startsWith('f')) {
      drawn.set(id, toDrawnNode(id, node))
      continue
    }
    const atoms = inner.get(id) ?? []
    inner.set(id, atoms)
    if (node.name !== undefined) atoms.push(node.name)
    if (!drawn.has(id)) drawn.set(id, { id, kind: 'flow', name: node.flow ?? '', atoms })
  }
  return [...drawn.values()]
}

function toDrawnNode(id: string, { name, kind, flow, isolated }: OutlineNode): DrawnNode {
  if (name === undefined) return { id, kind: 'point' }
  return { id, kind: kind ?? 'task', name, ...(flow === undefined ? {} : { flow }), ...(isolated ? { isolated } : {}) }
}

/** Returns each edge once; edges within an inner flow that is one node are omitted. */
function drawnEdges(nodes: readonly OutlineNode[], ids: readonly string[]): DrawnEdge[] {
  const edges = new Map<string, DrawnEdge>()
  for (const [index, { next = [], decides = [] }] of nodes.entries())
    for (const after of next) {
      const [from, to] = [ids[index], ids[after]]
      // Conductors of other releases write outlines, too: an edge to a node that is not there is none.
      if (from === undefined || to === undefined || from === to) continue
      edges.set(`${from} ${to}`, { from, to, kind: decides.includes(after) ? 'decided' : 'next' })
    }
  return [...edges.values()]
}
