/**
 * Tracks the job and the task of the running code, through every await, timer and callback that it starts. This is for
 * faults that no promise connects to a task: an exception in a timer, an unhandled rejection.
 *
 * Node makes every promise of a process slower once such a context was entered. Code enters one only while tracing is on:
 * `runConductor` turns it on, because it alone listens for faults of the process.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** The job and the task of the running code. */
export interface ExecutionContext {
  /** The uuid of the job. */
  readonly job: string
  readonly name: string
  readonly run: number
  readonly task?: string
  /** Ends the run of the job as failed, unless it is over, or the error is the reason of a signal that stops it. */
  readonly fail: (error: Error) => void
}

const context = new AsyncLocalStorage<ExecutionContext>()
let tracerCount = 0

/** Turns tracing on, until the result is disposed: every run that begins meanwhile carries its context. */
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

/** Calls `run` as part of this work, if tracing is on. */
export function runInExecution<T>(work: ExecutionContext, run: () => T): T {
  return tracerCount > 0 ? context.run(work, run) : run()
}

/** Calls `run` as part of this task of the current work, if there is any. */
export function runInTask<T>(task: string, run: () => T): T {
  const work = context.getStore()
  return work ? context.run({ ...work, task }, run) : run()
}

/** Returns the work that the running code belongs to. */
export function currentExecution(): ExecutionContext | undefined {
  return context.getStore()
}
