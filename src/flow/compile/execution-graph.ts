/** The execution graph: the compiled form of a flow, which an engine runs. */

import type { Need } from '../atoms/atom.ts'
import type { Context, RevertContext } from '../atoms/context.ts'
import type { Isolation } from '../atoms/isolation.ts'
import type { AnyRetry, FailureContext, RetryContext, RetryDecision } from '../atoms/retry.ts'
import type { AnyTask } from '../atoms/task.ts'
import type { Decider, Depth } from '../patterns/edges.ts'
import type { AnyFlow } from '../patterns/flow.ts'

type Args = Readonly<Record<string, unknown>>
type AtomFunction<C> = (args: Args, ctx: C) => unknown

/** A task as an engine calls it. The compiler has checked the types; names are checked before the flow runs. */
export interface ExecutableTask extends AnyTask {
  readonly execute: AtomFunction<Context>
  readonly revert: AtomFunction<RevertContext<unknown>> | undefined
  readonly preExecute: AtomFunction<Context> | undefined
  readonly postExecute: AtomFunction<Context> | undefined
  readonly preRevert: AtomFunction<RevertContext<unknown>> | undefined
  readonly postRevert: AtomFunction<RevertContext<unknown>> | undefined
}

export interface ExecutableRetry extends AnyRetry {
  readonly execute: AtomFunction<RetryContext<unknown>>
  readonly onFailure: (args: Args, ctx: FailureContext<unknown>) => RetryDecision | Promise<RetryDecision>
  readonly revert: AtomFunction<RevertContext<unknown> & RetryContext<unknown>> | undefined
}

export type ExecutableAtom = ExecutableTask | ExecutableRetry

export interface ExecutionNode {
  /** The position in the graph's list of nodes. */
  readonly index: number
  /** The atom; undefined in a join, which only connects edges. */
  readonly atom: ExecutableAtom | undefined
  /** The nodes that have to be done before this one may start; only the direct predecessors. */
  readonly predecessors: readonly ExecutionNode[]
  readonly successors: readonly ExecutionNode[]
  /** The retry of the nearest enclosing flow that has one; for a retry, of a flow that encloses its own. */
  readonly retry: AtomNode | undefined
  readonly needs: readonly Need[]
  /** The node that provides each required name, unless the store has it. Names that only the store can have are missing. */
  readonly sources: ReadonlyMap<string, AtomNode>
  /** Returns all nodes that provide a name, the nearest first: if a decider leaves out the nearest, the next one counts. */
  readonly providers: (name: string) => Iterable<AtomNode>
  /** The deciders that are asked before this node, and the flow that it leads into, may start. */
  readonly gates: readonly DeciderGate[]
  /** The scope of its flow; nodes of one flow share it. */
  readonly scope: FlowScope | undefined
}

export interface FlowScope {
  readonly flow: AnyFlow
}

/** A node with an atom. */
export interface AtomNode extends ExecutionNode {
  readonly atom: ExecutableAtom
  /** The limits of its child process; undefined for an atom that runs in the process of its engine, as retries do. */
  readonly isolation: Isolation | undefined
}

/** The nodes from `first` up to, but not including, `end`. */
export interface NodeRange {
  readonly first: number
  readonly end: number
}

export interface DeciderGate {
  readonly decider: Decider
  readonly depth: Depth
  /** The nodes whose results the decider receives. */
  readonly history: NodeRange
  /** The nodes that it decides about: an atom, or all of a flow. */
  readonly target: NodeRange
  /** The last node of the target. */
  readonly exit: ExecutionNode
  /** The scope of the graph flow that has the link. */
  readonly scope: FlowScope
}

export interface ExecutionGraph {
  /** The nodes, each after its predecessors; the nodes of a part are contiguous. */
  readonly nodes: readonly ExecutionNode[]
  /** The nodes with an atom. */
  readonly atoms: readonly AtomNode[]
  readonly byName: ReadonlyMap<string, AtomNode>
}
