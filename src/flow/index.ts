/** Descriptions of work: tasks, and flows of tasks. Pure values; an engine runs them. */
export { compile, type ExecutableTask, type ExecutionGraph, type ExecutionNode } from './compile.ts'
export type { Context, RevertContext } from './context.ts'
export type { Fitting, Results } from './fit.ts'
export { type AnyFlow, type Flow, type Input, input, isFlow, missingInputs } from './flow.ts'
export { linear } from './linear.ts'
export { type AnyTask, isTask, type Task, type TaskOptions, task } from './task.ts'
