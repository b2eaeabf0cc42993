/** Runs one flow now, in the foreground: for tests, for trying a flow, and for work that must not compete with jobs. */
import type { JobBoard, PostAndClaimOptions } from '../board/index.ts'
import { InvalidArgument } from '../core/errors.ts'
import { WrappedFailure } from '../core/failure.ts'
import { type Logger, silentLog } from '../core/log.ts'
import { assertOptions, defined, type KnownOptions } from '../core/options.ts'
import type { Duration } from '../core/time.ts'
import { newUuid } from '../core/uuid.ts'
import { type Ending, Engine, IN_PROCESS } from '../engine/index.ts'
import { type AnyFlow, checkStore, type Flow, isFlow } from '../flow/index.ts'
import { type LogbookCodec, openPersistence, type Persistence } from '../persistence/index.ts'
import { type ConductorPool, openPool } from './isolation/open-pool.ts'
import { assertFailuresOnBoard, type FailuresOnBoard } from './runs/disclosure.ts'
import { type ForegroundRun, runOnBoard, runWithoutBoard } from './runs/foreground-run.ts'
import type { ServiceContext } from './services/define.ts'
import { openServices, type ServicesGiven, servicesForRun } from './services/open.ts'

/**
 * The options of `runFlow`.
 *
 * @typeParam S the services that the flow's tasks need in `ctx.services`
 */
export interface RunFlowOptions<S = unknown> {
  /** The location of the logbook; by default it is in memory, and is discarded at the end. */
  readonly persistence?: string | Persistence
  /** The codecs for results, where `persistence` is a URI; several are applied in this order. */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /**
   * A URI, or an open board, which is left open. The flow runs as a job on that board, claimed by this process, and
   * holds the resources that the flow declares and `job` requests. Without a board it holds no resources.
   */
  readonly board?: string | JobBoard
  /** The options of the job on the board, such as `resources`, `name` and `priority`. */
  readonly job?: Omit<PostAndClaimOptions, 'signal' | 'deadline'>
  /**
   * Whether the job keeps the limits of its flow, and the limits that `job` names; false by default, because a caller waits for it. Resources
   * are always held.
   */
  readonly limits?: boolean
  /** The signal that stops the running task; the flow is suspended, and the signal's reason thrown. */
  readonly signal?: AbortSignal
  /**
   * The object that tasks find as `ctx.services`, which is not disposed of; or a function that makes it, whose result
   * is disposed of at the end. Required where a task's context is annotated with it.
   */
  readonly services?: ServicesGiven<S>
  readonly log?: Logger
  /** The child processes for isolated tasks, as for conductors; required for flows that have some. False to isolate nothing. */
  readonly pool?: ConductorPool | false
  /** The number of tasks that run at once; 16 by default. */
  readonly concurrency?: number
  /** The time limit; when it is over, the flow is reverted and a Timeout thrown. */
  readonly deadline?: Duration
  /** Names of keys whose values are redacted on the board, as for conductors. */
  readonly redact?: readonly string[]
  /** The content of a failed revert on the board, as for conductors. */
  readonly failuresOnBoard?: FailuresOnBoard
}

/** The optional arguments: options may be left out, unless the flow needs services. */
type RunFlowArguments<S> = unknown extends S
  ? [options?: RunFlowOptions]
  : [options: RunFlowOptions<S> & { readonly services: ServicesGiven<S> }]

const KNOWN_OPTIONS: KnownOptions<RunFlowOptions> = {
  persistence: true,
  codec: true,
  board: true,
  job: true,
  limits: true,
  signal: true,
  services: true,
  log: true,
  pool: true,
  concurrency: true,
  deadline: true,
  redact: true,
  failuresOnBoard: true,
}

/**
 * Resolves with the values that the flow's tasks provide. With a board, it waits until the job's resources are free;
 * when it resolves or throws, the job has left the board, and the caller learns whether it succeeded or was reverted. A
 * job whose revert failed is in the trash. A job that was suspended, or whose process died, can be continued by
 * conductors where the logbooks are shared.
 *
 * @throws MissingDependencies before anything runs, when the store lacks an input
 * @throws InvalidArgument when the flow's schema refuses the store
 * @throws ClaimLost when the board lost its session meanwhile; Timeout when `job.timeout` was over before its turn came
 * @throws the very error that a task threw, after everything was reverted; WrappedFailure when several tasks failed, or
 * reverting failed, too
 * @example const { results } = await runFlow(hello, { name: 'Ada' })
 */
export async function runFlow<I extends object, R, S = unknown>(
  flow: Flow<I, R, S>,
  store: NoInfer<I>,
  ...[options = {}]: RunFlowArguments<NoInfer<S>>
): Promise<{ readonly results: R }> {
  if (!isFlow(flow)) throw new InvalidArgument('runFlow: the first argument must be a flow, as linear(…) makes it')
  assertOptions(options, KNOWN_OPTIONS, 'runFlow')
  assertFailuresOnBoard(options.failuresOnBoard, 'runFlow')
  const checked = await checkStore(flow, store)
  const { persistence: place = 'memory:', codec, signal, log: logger } = options
  if (options.board === undefined && (flow.posting?.resources !== undefined || flow.posting?.mutex))
    logger?.warn(
      { flow: flow.name },
      'the flow declares resources or a mutex, which only a board keeps: give runFlow a board',
    )
  const opening = defined({ codec, log: typeof place === 'string' ? logger : undefined })
  const persistence = await openPersistence(place, opening)
  try {
    await using turn =
      options.board === undefined
        ? runWithoutBoard(flow)
        : await runOnBoard(options.board, { flow, store, options, persistence })
    const ending = await runTurn(turn, { flow, store: checked, persistence, options })
    await turn.settle(ending)
    if (ending.state === 'SUSPENDED') throw signal?.reason
    if (ending.state === 'REVERTED' && ending.error !== undefined && ending.failures.length < 2) throw ending.error
    if (ending.state !== 'SUCCESS') throw new WrappedFailure([...ending.failures, ...ending.revertFailures])
    // The flow's type lists what its tasks provide, and on SUCCESS every task has provided it.
    return { results: ending.results as R }
  } finally {
    if (persistence !== place) await persistence.close()
  }
}

interface TurnOptions {
  readonly flow: AnyFlow
  readonly store: Readonly<Record<string, unknown>>
  readonly persistence: Persistence
  readonly options: RunFlowOptions
}

/** Runs the flow with an engine. If that cannot begin, its job leaves the board: no other process may run it. */
async function runTurn(turn: ForegroundRun, { flow, store, persistence, options }: TurnOptions): Promise<Ending> {
  const { signal, services, log: logger, concurrency, deadline, pool } = options
  let hasBegun = false
  try {
    const { name, version } = flow
    const { uuid, run, book, sessionTimeout, sessionLeft } = turn
    await using log = await persistence.acquire({ book, flow: { uuid, name, version }, run, claim: newUuid() })
    await using opened = await openServices(services, { onError: (error) => reportServices(error, logger), signal })
    await using isolator = await openPool({
      ...{ flows: [flow], pool, sessionTimeout, sessionLeft, log: logger ?? silentLog },
      ...{ onEvent: () => undefined, onRoom: () => undefined, onCodeChanged: () => undefined },
    })
    await using running = await servicesForRun(opened, toServiceContext(turn, signal))
    const engine = new Engine({
      ...{ flow, store, log, services: running.services },
      isolator: isolator ?? (pool === false ? IN_PROCESS : undefined),
      ...turn.engine,
      signals: { ...turn.engine.signals, ...defined({ suspend: signal }) },
      ...defined({ logger, concurrency, deadline }),
    })
    hasBegun = true
    return await engine.run()
  } catch (error) {
    if (!hasBegun) await turn.withdraw()
    throw error
  }
}

const NEVER_FIRES = new AbortController().signal

function toServiceContext({ run, engine }: ForegroundRun, signal: AbortSignal = NEVER_FIRES): ServiceContext {
  const { fence = 0n, job, schedule, batch } = engine.context ?? {}
  return { run, fence, job, schedule, batch, signal }
}

/** Logs a service that could not be disposed of: the result is not affected. */
function reportServices(error: unknown, logger: Logger | undefined): void {
  logger?.error({ err: error }, 'a service of the flow could not be disposed of')
}
