/** Runs one flow now, in the foreground: for tests, for trying a flow, and for work that must not get in the way of jobs. */
import type { JobBoard, PostAndClaimOptions } from '../board/index.ts'
import { InvalidArgument } from '../core/errors.ts'
import { WrappedFailure } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import type { Duration } from '../core/time.ts'
import { newUuid } from '../core/uuid.ts'
import { Engine } from '../engine/index.ts'
import { checkStore, type Flow, isFlow } from '../flow/index.ts'
import { type LogbookCodec, openPersistence, type Persistence } from '../persistence/index.ts'
import { assertFailuresOnBoard, type FailuresOnBoard } from './runs/disclosure.ts'
import { runOnBoard, runWithoutBoard } from './runs/foreground-run.ts'
import { openServices, type ServicesGiven } from './services.ts'

/**
 * Where a flow is run, what its tasks find, and what may stop it.
 *
 * @typeParam S what the flow's tasks need of `ctx.services`
 */
export interface RunFlowOptions<S = unknown> {
  /** Where its logbook is kept; in memory, and forgotten, by default. */
  readonly persistence?: string | Persistence
  /** What is done to results before they are kept, where `persistence` is a URI; several are done in this order. */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /**
   * A URI, or an open board, which is left open: there it is a job that this process has claimed, and holds the resources
   * that `job` asks for. Without one nothing is held.
   */
  readonly board?: string | JobBoard
  /** Of the job, where there is a board: `resources`, `name`, `priority`, say. */
  readonly job?: Omit<PostAndClaimOptions, 'signal' | 'deadline'>
  /** Tells the running task to stop; the flow is suspended, and the signal's reason thrown. */
  readonly signal?: AbortSignal
  /**
   * What tasks find as `ctx.services`: an object, which is left as it is; or a function that makes one, which is disposed of
   * at the end. Needed where a task's context is annotated with it.
   */
  readonly services?: ServicesGiven<S>
  readonly log?: Logger
  /** How many tasks run at once; 16 by default. */
  readonly concurrency?: number
  /** How long it may take; then it is reverted, and a Timeout thrown. */
  readonly deadline?: Duration
  /** Names of keys whose values are hidden in what goes to the board, as those of conductors. */
  readonly redact?: readonly string[]
  /** As of conductors: what goes to the board of a failure that could not be reverted. */
  readonly failuresOnBoard?: FailuresOnBoard
}

/** Options may be left out, unless the flow needs services. */
type RunFlowArguments<S> = unknown extends S
  ? [options?: RunFlowOptions]
  : [options: RunFlowOptions<S> & { readonly services: ServicesGiven<S> }]

const KNOWN_OPTIONS: KnownOptions<RunFlowOptions> = {
  persistence: true,
  codec: true,
  board: true,
  job: true,
  signal: true,
  services: true,
  log: true,
  concurrency: true,
  deadline: true,
  redact: true,
  failuresOnBoard: true,
}

/**
 * Resolves with what the flow's tasks provided. On a board it waits until the job's resources are free, and the job has left
 * the board by then: whether it succeeded or was reverted is for the caller to hear. One that could not be reverted is in the
 * trash; one that was suspended, or whose process died, is for conductors to go on with, where the logbooks are shared.
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
  if (!isFlow(flow)) throw new InvalidArgument('runFlow takes a flow, as linear(…) makes it, and its store')
  assertOptions(options, KNOWN_OPTIONS, 'runFlow')
  assertFailuresOnBoard(options.failuresOnBoard, 'runFlow')
  const checked = await checkStore(flow, store)
  const { persistence: given = 'memory:', codec, signal, services, log: logger, concurrency, deadline } = options
  const persistence = await openPersistence(given, {
    ...(codec === undefined ? {} : { codec }),
    ...(logger === undefined || typeof given !== 'string' ? {} : { log: logger }),
  })
  try {
    await using turn =
      options.board === undefined
        ? runWithoutBoard(flow)
        : await runOnBoard(options.board, { flow, store, options, encrypted: persistence.encrypts === true })
    const { name, version } = flow
    const { uuid, run } = turn
    await using log = await persistence.acquire({
      book: turn.book,
      flow: { uuid, name, version },
      run,
      claim: newUuid(),
    })
    await using opened = await openServices(services, { failed: (error) => reportServices(error, logger) })
    const engine = new Engine({
      flow,
      store: checked,
      log,
      services: opened.services,
      ...turn.engine,
      signals: { ...turn.engine.signals, ...(signal ? { suspend: signal } : {}) },
      ...(logger ? { logger } : {}),
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(deadline === undefined ? {} : { deadline }),
    })
    const ending = await engine.run()
    await turn.settle(ending)
    if (ending.state === 'SUSPENDED') throw signal?.reason
    if (ending.state === 'REVERTED' && ending.error !== undefined && ending.failures.length < 2) throw ending.error
    if (ending.state !== 'SUCCESS') throw new WrappedFailure([...ending.failures, ...ending.revertFailures])
    // The flow's type says what its tasks provide, and on SUCCESS every one of them has.
    return { results: ending.results as R }
  } finally {
    if (persistence !== given) await persistence.close()
  }
}

/** What cannot be closed at the end harms no result: it is logged. */
function reportServices(error: unknown, logger: Logger | undefined): void {
  logger?.error({ err: error }, 'a service of the flow could not be disposed of')
}
