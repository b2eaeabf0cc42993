/** The interface by which an engine has tasks run in child processes. It does not know how these are started. */
import type { Stoppable } from '../core/async/abort-flag.ts'
import { InvalidState } from '../core/errors.ts'
import type { Failure } from '../core/failure.ts'
import type { TraceContext } from '../core/tracing.ts'
import type { AtomNode, Context, Isolation } from '../flow/index.ts'

/** The work of an atom: its `execute` or its `revert`. */
export type Performing = 'execute' | 'revert'

/** A call of `execute` or `revert` of a task. */
export interface IsolatedAtom {
  /** The name and the version of the flow that the engine runs. */
  readonly flow: { readonly name: string; readonly version: string }
  readonly node: AtomNode
  readonly how: Performing
  /** The arguments. Injected arguments are not sent, because the child has them. */
  readonly args: Readonly<Record<string, unknown>>
  readonly context: Pick<
    Context,
    | 'fence'
    | 'run'
    | 'job'
    | 'schedule'
    | 'batch'
    | 'limits'
    | 'dependencies'
    | 'signal'
    | 'log'
    | 'progress'
    | 'checkpoint'
  >
  /** The additional fields of a revert's context. */
  readonly reverted?: {
    readonly result: unknown
    readonly failure: Failure | undefined
    readonly failures: readonly Failure[]
  }
  readonly isolation: Isolation
  /** The span of the call, within which the code runs in the child; absent where nothing is traced. */
  readonly trace: TraceContext | undefined
  /** Fires when the right to run the flow is lost: the child is killed at once. */
  readonly kill: Stoppable
  /** Called when a child has begun to work: until then the task has waited for one. */
  readonly onAssigned: () => void
}

/** Runs tasks in child processes. */
export interface AtomIsolator {
  /** Returns the limits for an atom; undefined for an atom that runs in this process. */
  isolationOf(node: AtomNode): Isolation | undefined

  /**
   * Runs a task in a child process; resolves with its result, as plain data.
   *
   * @throws the task's failure, as WrappedFailure; ChildDied, OutOfMemory, MessageTooLarge; the reason of a signal
   * @throws ChildUnavailable when there is no child, and nothing was begun
   */
  run(atom: IsolatedAtom): Promise<unknown>
}

/** Isolates nothing: isolated tasks run in the process of the engine, as tests want it. */
export const IN_PROCESS: AtomIsolator = {
  isolationOf: () => undefined,
  run: async ({ node }) => {
    throw new InvalidState(`task ${node.atom.name} is not isolated`)
  },
}
