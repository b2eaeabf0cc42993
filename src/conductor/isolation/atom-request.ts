/**
 * The messages about one task that runs in a child process. Arguments and results are encoded by the codec of logbooks: a task
 * receives and returns the same plain data wherever it runs, and the size of a message is known before it is sent.
 */
import type { Failure } from '../../core/failure.ts'
import type { TraceContext } from '../../core/tracing.ts'
import type { Performing } from '../../engine/index.ts'
import type { BatchRun, RunningJob, ScheduledRun } from '../../flow/index.ts'

/** The settings of a child, sent once. */
export interface AtomWorkerSettings {
  /** The URLs of the modules that export the flows, and maybe `services`. */
  readonly modules: readonly string[]
  /** The level of `ctx.log`: lines below it are not sent. */
  readonly logLevel: string
  readonly maxMessage: number
}

/** The facts that a child sends when it is ready. */
export interface AtomWorkerFacts {
  readonly flows: readonly { readonly name: string; readonly version: string; readonly digest: string }[]
}

/** A call of `execute` or `revert` of a task. */
export interface AtomRequest {
  readonly flow: { readonly name: string; readonly version: string }
  readonly atom: string
  readonly how: Performing
  /** The encoded arguments. */
  readonly args: Uint8Array
  readonly run: number
  readonly fence: bigint
  readonly job: RunningJob | undefined
  readonly schedule: ScheduledRun | undefined
  readonly batch: BatchRun | undefined
  /** The encoded checkpoint that a former run of the task has saved last. */
  readonly checkpoint: Uint8Array
  /** The span within which the code runs. */
  readonly trace: TraceContext | undefined
  /** The encoded result of `execute`, and its failure; for a revert. */
  readonly reverted?:
    | { readonly result: Uint8Array; readonly failure: Failure | undefined; readonly failures: readonly Failure[] }
    | undefined
}

/**
 * The question of a task under way: for tokens of a limit, or to save its encoded checkpoint, both with an empty answer; or how the jobs
 * ended after which its job is run, with an encoded answer.
 */
export type AtomQuestion =
  | { readonly take: { readonly key: string; readonly cost?: number } }
  | { readonly save: Uint8Array }
  | { readonly read: 'dependencies' }

/** A note of a task under way, as it is sent: a line of the log is JSON. */
export type AtomNote = { readonly progress: number; readonly message?: string } | { readonly log: string }
