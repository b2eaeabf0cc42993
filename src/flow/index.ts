/** Descriptions of work: tasks, retries, and flows of them. Pure values; an engine runs them. */
export { type AnyAtom, namesProvided, type Provides, pickPart, type Rebind } from './atom.ts'
export { type BackOffOptions, backOff } from './back-off.ts'
export { compile } from './compile.ts'
export type { Context, RevertContext } from './context.ts'
export { type DrawOptions, type StatesOfAtoms, toDot, toMermaid } from './draw.ts'
export type { DeciderHistory, Depth } from './edges.ts'
export type {
  AtomNode,
  DeciderGate,
  ExecutableAtom,
  ExecutableRetry,
  ExecutableTask,
  ExecutionGraph,
  ExecutionNode,
  NodeRange,
} from './execution-graph.ts'
export type { Fitting, Results } from './fit.ts'
export { type AnyFlow, type AnyPart, type Flow, type Input, input, isFlow, missingInputs } from './flow.ts'
export { mapTask, reduceTask } from './functors.ts'
export { type GraphOptions, graph } from './graph.ts'
export { History, type RetryAttempt } from './history.ts'
export { linear } from './linear.ts'
export { type Link, link } from './link.ts'
export type { FlowOptions } from './parts.ts'
export type { PostingDefaults } from './posting-defaults.ts'
export { alwaysRevert, alwaysRevertAll, forEach, parameterizedForEach, times } from './retries.ts'
export {
  type AnyRetry,
  type Decision,
  type FailureContext,
  isRetry,
  type Retry,
  type RetryContext,
  type RetryDecision,
  type RetryOptions,
  retry,
} from './retry.ts'
export { checkStore, type StandardSchema } from './schema.ts'
export type { ServicesOf } from './services.ts'
export { type AnyTask, isTask, type Task, type TaskOptions, task } from './task.ts'
export { unordered } from './unordered.ts'
