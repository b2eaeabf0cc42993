/** Descriptions of work: tasks, retries, and flows. They are plain values; an engine runs them. */
export { type AnyAtom, namesProvided, type Provides, pickPart, type Rebind } from './atoms/atom.ts'
export { type BackOffOptions, backOff } from './atoms/back-off.ts'
export type {
  BatchRun,
  Context,
  ContextCheckpoint,
  ContextDependencies,
  ContextLimits,
  ContextTakeOptions,
  EndedDependency,
  RevertContext,
  RunningJob,
  ScheduledRun,
} from './atoms/context.ts'
export { mapTask, reduceTask } from './atoms/functors.ts'
export { History, type RetryAttempt } from './atoms/history.ts'
export type { Isolate, IsolateOptions, Isolation, OnOutOfMemory } from './atoms/isolation.ts'
export { addAttempt, addFailure, type KeptAttempt, type OmittedAttempts } from './atoms/kept-history.ts'
export { encodeCheckpoint, toProgressMessage } from './atoms/reports.ts'
export { alwaysRevert, alwaysRevertAll, forEach, parameterizedForEach, times } from './atoms/retries.ts'
export {
  type AnyRetry,
  type Decision,
  type FailureContext,
  type Retry,
  type RetryContext,
  type RetryDecision,
  retry,
} from './atoms/retry.ts'
export { type AnyTask, isTask, type OnInterrupted, type Task, task } from './atoms/task.ts'
export { compile } from './compile/compile.ts'
export { flowDigest } from './compile/digest.ts'
export type {
  AtomNode,
  DeciderGate,
  ExecutableAtom,
  ExecutableTask,
  ExecutionGraph,
  ExecutionNode,
  NodeRange,
} from './compile/execution-graph.ts'
export { type FlowOutline, MAX_REQUIRES, type OutlineNode, toOutline } from './compile/outline.ts'
export { collectProvided } from './compile/provided-results.ts'
export { type FlowLayout, layoutFlow } from './drawing/layout.ts'
export type { LaidEdge, LaidNode } from './drawing/placement.ts'
export { toSvg } from './drawing/svg.ts'
export { type StatesOfAtoms, toDot, toMermaid } from './drawing/text-diagrams.ts'
export type { Depth } from './patterns/edges.ts'
export type { ServicesOf } from './patterns/fit.ts'
export { type AnyFlow, type AnyPart, type Flow, input, isFlow, missingInputs } from './patterns/flow.ts'
export { type FlowDefaults, withFlowDefaults } from './patterns/flow-defaults.ts'
export { type GraphOptions, graph } from './patterns/graph.ts'
export type { KeepLogbooks } from './patterns/keep-logbooks.ts'
export { linear } from './patterns/linear.ts'
export { type Link, link } from './patterns/link.ts'
export type { FlowOptions } from './patterns/parts.ts'
export { evaluateDeclarations, type PostingDefaults } from './patterns/posting-defaults.ts'
export { checkStore, type StandardSchema } from './patterns/schema.ts'
export { unordered } from './patterns/unordered.ts'
