/** What a flow comes out as when it is compiled: what an engine works on. */

import type { Need } from '../atoms/atom.ts'
import type { Context, RevertContext } from '../atoms/context.ts'
import type { AnyRetry, FailureContext, RetryContext, RetryDecision } from '../atoms/retry.ts'
import type { AnyTask } from '../atoms/task.ts'
import type { Decider, Depth } from '../patterns/edges.ts'
import type { AnyFlow } from '../patterns/flow.ts'

type Args = Readonly<Record<string, unknown>>
type AtomFunction<C> = (args: Args, ctx: C) => unknown

/** A task as an engine calls it: types were checked when the flow was written, names are checked before it runs. */
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
  /** Its position in the graph's list. */
  readonly index: number
  /** Undefined in a join, which has no work of its own: it is where edges meet. */
  readonly atom: ExecutableAtom | undefined
  /** What has to be done before this node may start. Only the nearest: what orders those is theirs. */
  readonly predecessors: readonly ExecutionNode[]
  readonly successors: readonly ExecutionNode[]
  /** The retry of the nearest flow around it that has one; of a retry, that of a flow around its own. */
  readonly retry: AtomNode | undefined
  readonly needs: readonly Need[]
  /** Where each required name comes from, unless the store has it. Names that only the store can give are missing. */
  readonly sources: ReadonlyMap<string, AtomNode>
  /** All who provide a name, the nearest first: where the nearest was left out by a decider, the next one counts. */
  readonly providers: (name: string) => Iterable<AtomNode>
  /** Who is asked before it, and what is inside the flow that it leads into, may start. */
  readonly gates: readonly DeciderGate[]
  /** The flow that it is written in. Nodes of one flow have the same. */
  readonly scope: FlowScope | undefined
}

export interface FlowScope {
  readonly flow: AnyFlow
}

/** A node that has work of its own. */
export interface AtomNode extends ExecutionNode {
  readonly atom: ExecutableAtom
}

/** Nodes from `first` on, up to but without `end`. */
export interface NodeRange {
  readonly first: number
  readonly end: number
}

export interface DeciderGate {
  readonly decider: Decider
  readonly depth: Depth
  /** The nodes whose results the decider is told. */
  readonly history: NodeRange
  /** The nodes it decides about: an atom, or all of a flow. */
  readonly target: NodeRange
  /** The last of them. */
  readonly exit: ExecutionNode
  /** The graph that the link is drawn in. */
  readonly scope: FlowScope
}

export interface ExecutionGraph {
  /** Each after all of its predecessors; a part's nodes side by side. */
  readonly nodes: readonly ExecutionNode[]
  /** Those with an atom. */
  readonly atoms: readonly AtomNode[]
  readonly byName: ReadonlyMap<string, AtomNode>
}
