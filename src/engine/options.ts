/** The options of an engine, and their checks. */

import type { Stoppable } from '../core/async/abort-flag.ts'
import { InvalidArgument } from '../core/errors.ts'
import type { TooManyRequests } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { type AlarmClock, type Duration, toMilliseconds } from '../core/time.ts'
import type { Span } from '../core/tracing.ts'
import type { AnyFlow, BatchRun, ContextDependencies, ContextLimits, RunningJob, ScheduledRun } from '../flow/index.ts'
import type { FlowLog } from '../persistence/index.ts'
import type { EngineEvents } from './events.ts'
import type { AtomIsolator, Performing } from './isolated.ts'
import type { Store } from './scope.ts'

/** The options of an engine: its flow, its log, its signals and its limits. */
export interface EngineOptions {
  readonly flow: AnyFlow
  /** The inputs of the flow. */
  readonly store?: Store
  /** The flow's record, acquired by this run. The engine does not close it. */
  readonly log: FlowLog
  readonly signals?: { readonly stop?: Stoppable; readonly suspend?: Stoppable; readonly cancel?: Stoppable }
  /**
   * Throws when this run has no right to continue. It is called before and after each write, and so before each task: signals
   * fire on timers, which are late in a process that was paused.
   */
  readonly assertOwner?: () => void
  /** The fence, the job, its schedule, batch and dependencies, and the limits in the context of tasks; the number of the run comes from the log. */
  readonly context?: {
    readonly fence?: bigint
    readonly job?: RunningJob
    readonly schedule?: ScheduledRun | undefined
    readonly batch?: BatchRun | undefined
    /** Takes tokens for tasks; without it, `ctx.limits.take` resolves at once. */
    readonly limits?: ContextLimits | undefined
    /** Reads how the jobs ended after which this one is run; without it, there are none. */
    readonly dependencies?: ContextDependencies | undefined
  }
  /** The services for tasks, `ctx.services`; the engine does not dispose of them. */
  readonly services?: unknown
  /** Runs the tasks that are isolated; required for flows that have some. */
  readonly isolator?: AtomIsolator | undefined
  readonly logger?: Logger
  /** The number of atoms that may run at once; 16 by default. 1 is TaskFlow's serial engine. */
  readonly concurrency?: number
  /**
   * Whether a retry that gives up leaves the decision to the retry of the outer flow; if there is none, everything is
   * reverted. True by default. False, TaskFlow's default, reverts only the retry's own flow: if two unordered parts fail,
   * the first failure decides how much that is.
   */
  readonly deferReverts?: boolean
  /** Whether nothing is reverted or retried: a flow with a failure ends as FAILURE; the next engine runs failed atoms again. */
  readonly neverResolve?: boolean
  /** The time limit of the run; after it the run is cancelled, with a Timeout as the reason. */
  readonly deadline?: Duration
  /** @internal The span of the run: tasks have spans below it, and log lines name it. */
  readonly span?: Span | undefined
  /** @internal The clock for deadlines and the pauses of retries. */
  readonly clock?: AlarmClock | undefined
  /** @internal Called at each progress that an atom reports, as listeners of `progress` are. */
  readonly onProgress?: ((event: EngineEvents['progress']) => void) | undefined
  /**
   * @internal Called with each TooManyRequests that a task throws; the flow is then suspended. Without it, the error is a failure as any
   * other.
   */
  readonly onTooManyRequests?: ((error: TooManyRequests) => void) | undefined
  /**
   * @internal Called when the code of an atom begins to run; the returned function is called when that code has ended. `limit` fires when
   * the atom's own deadline has passed, or for another reason; undefined for an atom that cannot outlast its deadline.
   */
  readonly performing?: ((atom: string, how: Performing, limit: Stoppable | undefined) => () => void) | undefined
}

const KNOWN_OPTIONS: KnownOptions<EngineOptions> = {
  flow: true,
  store: true,
  log: true,
  signals: true,
  assertOwner: true,
  context: true,
  services: true,
  isolator: true,
  logger: true,
  concurrency: true,
  deferReverts: true,
  neverResolve: true,
  deadline: true,
  span: true,
  clock: true,
  onProgress: true,
  onTooManyRequests: true,
  performing: true,
}

export const DEFAULT_CONCURRENCY = 16

/** @throws InvalidArgument */
export function assertEngineOptions(options: EngineOptions): void {
  assertOptions(options, KNOWN_OPTIONS, 'an engine')
  const { store = {}, concurrency = DEFAULT_CONCURRENCY, deadline } = options
  if (typeof store !== 'object' || store === null || Array.isArray(store))
    throw new InvalidArgument("an engine: store must be an object of the flow's inputs, as in { name: 'Ada' }")
  if (!Number.isSafeInteger(concurrency) || concurrency < 1)
    throw new InvalidArgument(`an engine: concurrency must be a whole number from 1, got ${concurrency}`)
  if (deadline !== undefined) toMilliseconds(deadline, 'deadline')
}
