/** The outline of a flow: its structure as plain data, with which it is listed and drawn without its code. */
import type { AnyFlow } from '../patterns/flow.ts'
import { isFlow } from '../patterns/flow.ts'
import { compile } from './compile.ts'
import { flowDigest } from './digest.ts'
import type { ExecutionNode } from './execution-graph.ts'

/** The most inputs that an outline lists, because any client can write outlines and each post reads them. */
export const MAX_REQUIRES = 1_000

/** A flow as plain data. */
export interface FlowOutline {
  readonly name: string
  readonly version: string
  /** Differs if the structure does: `flowDigest`. */
  readonly digest: string
  /**
   * The inputs without which a job cannot be posted; absent where they are not known, as for a flow with a schema, which may add some, and where
   * there are more than 1,000.
   */
  readonly requires?: readonly string[]
  /** The nodes, each after the nodes that it follows. */
  readonly nodes: readonly OutlineNode[]
}

/** An atom of an outline, or a point in which edges meet. */
export interface OutlineNode {
  /** The name of the atom; absent for a point in which edges meet. */
  readonly name?: string
  readonly kind?: 'task' | 'retry'
  readonly version?: string
  /** The name of the flow that has the atom, if that is within another. */
  readonly flow?: string
  /** Whether it runs in a child process. */
  readonly isolated?: true
  /** The positions of the nodes that follow it. */
  readonly next?: readonly number[]
  /** The parts about which a decider decides. */
  readonly decides?: readonly number[]
  /** The position of the retry that it follows when it fails. */
  readonly retry?: number
}

/** Returns the outline of a flow; an outline is returned as it is. */
export function toOutline(flow: AnyFlow | FlowOutline): FlowOutline {
  if (!isFlow(flow)) return flow
  const { nodes } = compile(flow)
  const shown = nodes.filter((node) => node.atom !== undefined || hasBothSides(node))
  const positions = new Map(shown.map((node, index) => [node, index]))
  return {
    ...{ name: flow.name, version: flow.version, digest: flowDigest(flow) },
    ...(flow.schema || flow.requires.length > MAX_REQUIRES ? {} : { requires: flow.requires }),
    nodes: shown.map((node) => toOutlineNode(node, { positions, outer: flow })),
  }
}

function toOutlineNode(
  node: ExecutionNode,
  { positions, outer }: { readonly positions: ReadonlyMap<ExecutionNode, number>; readonly outer: AnyFlow },
): OutlineNode {
  const { atom, successors, retry, scope } = node
  const edges = successors.flatMap((after) => {
    const to = positions.get(after)
    const isDecided = after.gates.some(({ history }) => node.index >= history.first && node.index < history.end)
    return to === undefined ? [] : [{ to, isDecided }]
  })
  const decides = edges.filter(({ isDecided }) => isDecided).map(({ to }) => to)
  const retryAt = retry && positions.get(retry)
  return {
    ...(atom ? { name: atom.name, kind: atom.kind, version: atom.version } : {}),
    ...(scope && scope.flow !== outer ? { flow: scope.flow.name } : {}),
    ...('isolation' in node && node.isolation !== undefined ? { isolated: true as const } : {}),
    ...(edges.length > 0 ? { next: edges.map(({ to }) => to) } : {}),
    ...(decides.length > 0 ? { decides } : {}),
    ...(retryAt === undefined ? {} : { retry: retryAt }),
  }
}

/** Returns whether a node has edges on both sides. A join with edges on one side only is not drawn. */
function hasBothSides({ predecessors, successors }: ExecutionNode): boolean {
  return predecessors.length > 0 && successors.length > 0
}
