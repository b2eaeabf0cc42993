/**
 * Which job and task the code that runs now belongs to, through every await, timer and callback that it begins. It is for
 * faults that no promise leads back to a task: an exception in a timer, a rejection that is not handled.
 *
 * Node makes every promise of a process slower once such a context was entered, so nothing enters one unless somebody
 * traces: `runConductor` does, which alone listens for faults of the process.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** What the code that runs now belongs to. */
export interface ExecutionContext {
  /** The uuid of the job. */
  readonly job: string
  readonly name: string
  readonly run: number
  readonly task?: string
  /** Ends the run of the job as failed, if it is not over. */
  readonly fail: (error: Error) => void
}

const context = new AsyncLocalStorage<ExecutionContext>()
let tracerCount = 0

/** Has every run that begins from now on, until it is disposed, carry its context. */
export function traceExecution(): Disposable {
  let over = false
  tracerCount += 1
  return {
    [Symbol.dispose]: () => {
      if (!over) tracerCount -= 1
      over = true
    },
  }
}

/** Calls `run` as part of this work where somebody traces. */
export function runInExecution<T>(work: ExecutionContext, run: () => T): T {
  return tracerCount > 0 ? context.run(work, run) : run()
}

/** Calls `run` as part of this task of the work that is going on, if there is any. */
export function runInTask<T>(task: string, run: () => T): T {
  const work = context.getStore()
  return work ? context.run({ ...work, task }, run) : run()
}

/** Returns the work that the code which runs now belongs to. */
export function currentExecution(): ExecutionContext | undefined {
  return context.getStore()
}
