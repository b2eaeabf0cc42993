/**
 * From a flow as it is written to the graph an engine works on. An engine knows no patterns: whatever a flow looks like,
 * it comes out as nodes, the edges that order them, and for each argument the node it comes from.
 */
import { InvalidArgument } from '../core/errors.ts'
import type { Context, RevertContext } from './context.ts'
import type { AnyFlow } from './flow.ts'
import type { AnyTask } from './task.ts'

/** A task as an engine calls it: types were checked when the flow was written, names are checked before it runs. */
export interface ExecutableTask extends AnyTask {
  readonly execute: (args: Readonly<Record<string, unknown>>, ctx: Context) => unknown
  readonly revert: ((args: Readonly<Record<string, unknown>>, ctx: RevertContext<unknown>) => unknown) | undefined
}

export interface ExecutionNode {
  readonly atom: ExecutableTask
  /** What has to be done before this node may start. Only the nearest: what orders those is theirs. */
  readonly predecessors: readonly ExecutionNode[]
  readonly successors: readonly ExecutionNode[]
  /** Where each required name comes from, unless the store has it. Names that only the store can give are missing. */
  readonly sources: ReadonlyMap<string, ExecutionNode>
}

export interface ExecutionGraph {
  /** Each after all of its predecessors. */
  readonly nodes: readonly ExecutionNode[]
  readonly byName: ReadonlyMap<string, ExecutionNode>
}

const compiled = new WeakMap<AnyFlow, ExecutionGraph>()

/**
 * The execution graph of a flow. Takes time linear in the number of atoms, once for each flow value.
 *
 * @throws InvalidArgument for a pattern that this release does not know
 */
export function compile(flow: AnyFlow): ExecutionGraph {
  const known = compiled.get(flow)
  if (known) return known
  const graph = compileLinear(flow)
  compiled.set(flow, graph)
  return graph
}

/** A node while its edges are still being drawn. */
interface Draft extends ExecutionNode {
  readonly predecessors: ExecutionNode[]
  readonly successors: ExecutionNode[]
}

function compileLinear(flow: AnyFlow): ExecutionGraph {
  const pattern: string = flow.pattern
  if (pattern !== 'linear') throw unknownHere(flow, `the pattern ${pattern}`)
  const nodes: Draft[] = []
  const providers = new Map<string, ExecutionNode>()
  for (const atom of flow.atoms) {
    const kind: string = atom.kind
    if (kind !== 'task') throw unknownHere(flow, `the kind of ${atom.name}, ${kind}`)
    const node: Draft = {
      atom: atom as ExecutableTask,
      predecessors: [],
      successors: [],
      sources: sourcesOf(atom, providers),
    }
    const before = nodes.at(-1)
    if (before) {
      before.successors.push(node)
      node.predecessors.push(before)
    }
    nodes.push(node)
    if (atom.provides !== undefined) providers.set(atom.provides, node)
  }
  return { nodes, byName: new Map(nodes.map((node) => [node.atom.name, node])) }
}

/** Flows can come from another, newer copy of the library. */
function unknownHere(flow: AnyFlow, what: string): InvalidArgument {
  return new InvalidArgument(`flow ${flow.name}: this release does not know ${what}`)
}

/** Of several tasks that provide a name, the nearest before this one counts. */
function sourcesOf(atom: AnyTask, providers: ReadonlyMap<string, ExecutionNode>): Map<string, ExecutionNode> {
  const sources = new Map<string, ExecutionNode>()
  for (const name of atom.requires) {
    const provider = providers.get(name)
    if (provider) sources.set(name, provider)
  }
  return sources
}
