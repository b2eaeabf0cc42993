/** Isolation of tasks: whether a task runs in a child process, and the limits of that process. */
import { InvalidArgument } from '../../core/errors.ts'
import { type MemorySize, toBytes } from '../../core/memory-size.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'

/** The limits of the child process of a task. */
export interface IsolateOptions {
  /** The memory that the child may use; the pool's limit by default. */
  readonly memory?: MemorySize
  /** Whether each `execute` and `revert` gets a child of its own, which ends after it, as RQ's jobs do. */
  readonly fresh?: boolean
  /** The time that the task has to stop after its signal has fired, before its child is killed; the pool's by default. */
  readonly grace?: Duration
  /**
   * The consequence when the child is out of memory. `retry` (the default): the task has failed, and retries decide as after any failure.
   * `fail`: the retries of the flow are skipped, and the job is trashed. `{ queue }`: the retries of the flow are skipped, and the job is moved
   * to this queue, so that a conductor with larger children claims it; a job that is in this queue already is trashed.
   */
  readonly onOutOfMemory?: OnOutOfMemory
}

/** The consequence when the child of a task is out of memory: see {@link IsolateOptions.onOutOfMemory}. */
export type OnOutOfMemory =
  | 'retry'
  | 'fail'
  | { readonly queue: string; readonly size?: never }
  /** @deprecated The queue with this name. */
  | { readonly size: 'small' | 'medium' | 'large'; readonly queue?: never }

/** Whether, and with which limits, tasks run in child processes. */
export type Isolate = boolean | IsolateOptions

const KNOWN_OPTIONS: KnownOptions<IsolateOptions> = { memory: true, fresh: true, grace: true, onOutOfMemory: true }

/** Checks the option `isolate`. @param what the task or the flow, for errors @throws InvalidArgument naming the invalid option */
export function assertIsolate(isolate: unknown, what: string): void {
  if (isolate === undefined || typeof isolate === 'boolean') return
  assertOptions(isolate, KNOWN_OPTIONS, `${what}: isolate`)
  const { memory, fresh, grace, onOutOfMemory } = isolate as IsolateOptions
  if (memory !== undefined) toBytes(memory, { what: `${what}: isolate.memory` })
  if (fresh !== undefined && typeof fresh !== 'boolean')
    throw new InvalidArgument(`${what}: isolate.fresh must be true or false, got ${String(fresh)}`)
  if (grace !== undefined) toMilliseconds(grace, `${what}: isolate.grace`)
  assertOnOutOfMemory(onOutOfMemory, what)
}

function assertOnOutOfMemory(choice: unknown, what: string): void {
  if (choice === undefined || choice === 'retry' || choice === 'fail') return
  const { queue, size, ...others }: { readonly queue?: unknown; readonly size?: unknown } = Object(choice)
  const isOne = (queue === undefined) !== (size === undefined) && Object.keys(others).length === 0
  const name = queue ?? size
  if (typeof choice === 'object' && isOne && typeof name === 'string' && name !== '') return
  throw new InvalidArgument(`${what}: isolate.onOutOfMemory must be 'retry', 'fail', or { queue: NAME }`)
}

/** The limits of a task that runs in a child process. */
export interface Isolation {
  /** The limit of memory in bytes; undefined for the pool's limit. */
  readonly memory: number | undefined
  readonly isFresh: boolean
  /** The grace period in milliseconds; undefined for the pool's. */
  readonly graceMs: number | undefined
  readonly onOutOfMemory: OnOutOfMemory
}

/** Returns the limits; undefined for a task that runs in the process of its engine. */
export function toIsolation(isolate: Isolate | undefined): Isolation | undefined {
  if (isolate === undefined || isolate === false) return undefined
  const { memory, fresh = false, grace, onOutOfMemory = 'retry' }: IsolateOptions = isolate === true ? {} : isolate
  return {
    memory: memory === undefined ? undefined : toBytes(memory, { what: 'isolate.memory' }),
    isFresh: fresh,
    graceMs: grace === undefined ? undefined : toMilliseconds(grace, 'isolate.grace'),
    onOutOfMemory,
  }
}
