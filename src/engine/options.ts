/** What an engine is told, and what of it can mean nothing. */
import type { AlarmClock } from '../core/alarm-clock.ts'
import type { Stoppable } from '../core/async/stop.ts'
import { InvalidArgument } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import type { AnyFlow } from '../flow/index.ts'
import type { FlowLog } from '../persistence/index.ts'
import type { Store } from './scope.ts'

/** What an engine runs, where it records it, and what may stop it. */
export interface EngineOptions {
  readonly flow: AnyFlow
  /** The inputs of the flow. */
  readonly store?: Store
  /** The flow's record, acquired by this run. The engine does not close it. */
  readonly log: FlowLog
  readonly signals?: { readonly stop?: Stoppable; readonly suspend?: Stoppable; readonly cancel?: Stoppable }
  /**
   * Throws when this run has no right to go on. Asked before and after each write, and so before each task: signals fire on
   * timers, which are late in a process that was stopped.
   */
  readonly assertOwner?: () => void
  /** What tasks are told beside their arguments; the run is the log's. */
  readonly context?: { readonly fence?: bigint; readonly job?: { readonly uuid: string; readonly name: string } }
  /** What tasks find as `ctx.services`; the engine does not dispose of it. */
  readonly services?: unknown
  readonly logger?: Logger
  /** How many atoms run at once; 1 is TaskFlow's serial engine. 16 by default. */
  readonly concurrency?: number
  /**
   * Whether a retry that gives up leaves the decision to whoever is further out, in the end to nobody: then everything is
   * reverted. True by default; false, TaskFlow's default, reverts no more than the retry's own flow: of two
   * parts without an order that both fail, the one that fails first decides then how much that is.
   */
  readonly deferReverts?: boolean
  /** Reverts and retries nothing: a flow with a failure ends as FAILURE, as it is; the next engine runs what failed again. */
  readonly neverResolve?: boolean
  /** How long the run may take; then it is cancelled, with a Timeout as the reason. */
  readonly deadline?: Duration
  /** @internal What deadlines and the pauses of retries go by. */
  readonly clock?: AlarmClock | undefined
  /** @internal Is called when the code of an atom begins to run; what it returns is called when that code has ended. */
  readonly performing?: ((atom: string, how: Performing) => () => void) | undefined
}

export type Performing = 'execute' | 'revert'

const KNOWN_OPTIONS: KnownOptions<EngineOptions> = {
  flow: true,
  store: true,
  log: true,
  signals: true,
  assertOwner: true,
  context: true,
  services: true,
  logger: true,
  concurrency: true,
  deferReverts: true,
  neverResolve: true,
  deadline: true,
  clock: true,
  performing: true,
}

export const DEFAULT_CONCURRENCY = 16

/** @throws InvalidArgument */
export function assertEngineOptions(options: EngineOptions): void {
  assertOptions(options, KNOWN_OPTIONS, 'an engine')
  const { store = {}, concurrency = DEFAULT_CONCURRENCY, deadline } = options
  if (typeof store !== 'object' || store === null || Array.isArray(store))
    throw new InvalidArgument("an engine: store has to be an object of the flow's inputs, as in { name: 'Ada' }")
  if (!Number.isSafeInteger(concurrency) || concurrency < 1)
    throw new InvalidArgument(`an engine: concurrency has to be a whole number from 1, not ${concurrency}`)
  if (deadline !== undefined) toMilliseconds(deadline, 'deadline')
}
