/** The options of a conductor: their defaults, and the checks that reject invalid values. */
import { availableParallelism } from 'node:os'
import type {
  DeclaredFlowSettings,
  DeclaredLimits,
  DeclaredSchedule,
  DeclaredSchedules,
  JobBoard,
  ServedQueues,
  Size,
} from '../board/index.ts'
import { QueueChoice, queuesOfSizes } from '../board/internal.ts'
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger, redactedLog, silentLog } from '../core/log.ts'
import { assertOptions, defined, type KnownOptions } from '../core/options.ts'
import { Redactor } from '../core/redaction.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import { DEFAULT_CONCURRENCY } from '../engine/index.ts'
import type { AnyFlow } from '../flow/index.ts'
import type { LogbookCodec, Persistence } from '../persistence/index.ts'
import { assertTelemetry, type Telemetry } from '../telemetry/index.ts'
import { type ConductorBoard, isUriOrOpen } from './boards/board-entries.ts'
import type { HealthAddress } from './health-server.ts'
import { assertHooks, type ConductorHooks } from './hooks.ts'
import type { ConductorPool } from './isolation/open-pool.ts'
import { assertMetrics, type MetricsOptions } from './metrics.ts'
import type { OnFailure } from './runs/decide.ts'
import { assertFailuresOnBoard, type FailuresOnBoard } from './runs/disclosure.ts'
import type { ErrorHandler } from './runs/on-error.ts'

export const DEFAULT_ABORT_TIMEOUT = '5s'

/** The options of a conductor. Durations are milliseconds, or texts such as `'25s'`. */
export interface ConductorOptions {
  /** The board: a URI, opened here and closed at the stop; or an open board, left open. Required unless there are `boards`. */
  readonly board?: string | JobBoard
  /**
   * Several boards instead of one, whose jobs share the slots: in order, so that jobs of earlier boards come first, or by weight. A board
   * that is away stops none of the others.
   */
  readonly boards?: readonly (string | JobBoard | ConductorBoard)[]
  /** The logbooks: a URI, opened here and closed at the stop; or an open persistence, left open. */
  readonly persistence: string | Persistence
  /** The codecs of logbooks that are opened here: see `openPersistence`. */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /** The flows that the conductor can run. It does not claim jobs of other flows and versions. */
  readonly flows: readonly AnyFlow[]
  /**
   * The object that tasks find as `ctx.services`, or a function that makes it or a promise of it, called once. The
   * result of the function is disposed of at the end, with `Symbol.asyncDispose` or `Symbol.dispose`: the object
   * itself, or else each of its values.
   */
  readonly services?: unknown
  /** The number of jobs that run at once; by default the number of processors of the machine. */
  readonly concurrency?: number
  /** The number of tasks of one flow that run at once; 16 by default, 1 for one after the other. */
  readonly flowConcurrency?: number
  /**
   * The child processes for isolated tasks; required for flows that have some. With false, these run in this process: for tests, and while
   * a flow is developed.
   */
  readonly pool?: ConductorPool | false
  /**
   * The schedules that it sets on the board when it starts; with several boards, on the first one. Every conductor fires all schedules of
   * the board, also the schedules that others have set.
   */
  readonly schedules?: readonly DeclaredSchedule[] | DeclaredSchedules
  /** The limits that it sets on the board, or on each of several, when it starts. Limits set at run time stay. */
  readonly limits?: DeclaredLimits
  /** The settings of flows that it sets on the board, or on each of several, when it starts. Settings set at run time stay. */
  readonly flowSettings?: DeclaredFlowSettings
  /**
   * The queues whose jobs it claims, on each of its boards; all queues by default. With a list, jobs of earlier queues are claimed before jobs of
   * later ones; with weights, each queue that has jobs gets its share of the claims. A name may end with `*`, for all queues with the prefix.
   */
  readonly queues?: ServedQueues
  /** @deprecated The queues with these names: `queues: ['large']`. */
  readonly sizes?: readonly Size[]
  /**
   * The time before the conductor takes over a half-done job of a dead owner; none by default. It lets external work
   * that the owner had begun, such as a request to another service, come to an end.
   */
  readonly takeoverDelay?: Duration
  /** Whether the conductor stops when no job is left to claim and its claimed jobs are over. */
  readonly burst?: boolean
  /** The number of claimed jobs after which the conductor stops, once they are over. */
  readonly maxJobs?: number
  /** The time without a running job after which the conductor stops. */
  readonly maxIdleTime?: Duration
  /** The address of the HTTP server for `/healthz` and `/readyz`; none by default. */
  readonly health?: HealthAddress
  /**
   * The name, unique among living conductors; the board's `who` by default, with a number appended from the second
   * conductor on.
   */
  readonly name?: string
  /** The time that a stop gives running jobs before it aborts them; 25 s by default. */
  readonly drainTimeout?: Duration
  /** The time that an abort waits for tasks that ignore their signal; 5 s by default. */
  readonly abortTimeout?: Duration
  /** The time limit of each run of a job that was posted without a deadline; none by default. */
  readonly defaultDeadline?: Duration
  /**
   * The handling of jobs whose flow failed and was reverted. `retry` (the default): tried again while attempts are
   * left, then trashed. `consume`: as in TaskFlow.
   */
  readonly onFailure?: OnFailure
  /**
   * Whether it records metrics, which `/metrics` of the option `health` answers in the text format of Prometheus; false by default.
   */
  readonly metrics?: boolean | MetricsOptions
  /** The receiver of the metrics and spans of the conductor, and of the boards that it opens: `openTelemetry(api)` returns one. */
  readonly telemetry?: Telemetry
  /** Functions that are called before it claims, and when jobs end or children start. */
  readonly hooks?: ConductorHooks
  /** The name of the release of the application, for hooks that run once for each release. */
  readonly release?: string
  /**
   * Is called when a job has failed, before it is given back or trashed, and may choose what becomes of it: see `ErrorHandler`. Of several, the
   * first answer holds. If one throws, that is logged, and the next one is asked; if they do not answer within ten seconds, the job is handled as
   * without them.
   */
  readonly onError?: ErrorHandler | readonly ErrorHandler[]
  /**
   * The age, since the last change, at which finished logbooks are removed; by default they are kept forever. A flow with `keepLogbooks`
   * decides about its own.
   */
  readonly removeLogbooksAfter?: Duration
  /** The time in the trash after which jobs are removed for good; by default they are kept forever. */
  readonly removeTrashAfter?: Duration
  /**
   * Names of keys whose values are shown as `[redacted]`, at any depth and in any spelling (`password` also means
   * `pass_word`): in logs, including the tasks' `ctx.log`, and in reasons and failures on the board.
   */
  readonly redact?: readonly string[]
  /**
   * The content of reasons and failures on the board, also in its trash. `whole`: with the messages and stacks of the
   * errors that tasks threw. `named`: only the classes and codes of the errors; the rest is in the logbook. By default
   * `named` where logbooks encrypt, else `whole`.
   */
  readonly failuresOnBoard?: FailuresOnBoard
  /**
   * A Pino logger; by default `startConductor` logs nothing, and `runConductor` writes JSON lines to standard error.
   */
  readonly log?: Logger
  /** The signal that cancels the start. */
  readonly signal?: AbortSignal
}

export const CONDUCTOR_OPTIONS: KnownOptions<ConductorOptions> = {
  board: true,
  boards: true,
  persistence: true,
  codec: true,
  flows: true,
  services: true,
  concurrency: true,
  flowConcurrency: true,
  pool: true,
  schedules: true,
  limits: true,
  flowSettings: true,
  queues: true,
  sizes: true,
  takeoverDelay: true,
  burst: true,
  maxJobs: true,
  maxIdleTime: true,
  health: true,
  name: true,
  drainTimeout: true,
  abortTimeout: true,
  defaultDeadline: true,
  onFailure: true,
  onError: true,
  metrics: true,
  telemetry: true,
  hooks: true,
  release: true,
  removeLogbooksAfter: true,
  removeTrashAfter: true,
  redact: true,
  failuresOnBoard: true,
  log: true,
  signal: true,
}

/** The options of a conductor that can be changed while it runs. */
export interface ConductorChanges
  extends Pick<ConductorOptions, 'concurrency' | 'schedules' | 'limits' | 'flowSettings'> {}

const CONDUCTOR_CHANGES: KnownOptions<ConductorChanges> = {
  ...{ concurrency: true, schedules: true, limits: true, flowSettings: true },
}

/** Checks changes of a running conductor. @throws InvalidArgument */
export function assertChanges(changes: ConductorChanges): void {
  assertOptions(changes, CONDUCTOR_CHANGES, 'reconfigure')
  assertCounts(defined({ concurrency: changes.concurrency }))
}

type DefaultedOption =
  | 'concurrency'
  | 'flowConcurrency'
  | 'drainTimeout'
  | 'abortTimeout'
  | 'onFailure'
  | 'takeoverDelay'
  | 'burst'
  | 'log'

/** The options with a default, and the options that may be left out. */
export type ConductorSettings = Required<Pick<ConductorOptions, DefaultedOption>> &
  Pick<
    ConductorOptions,
    | 'onError'
    | 'metrics'
    | 'telemetry'
    | 'hooks'
    | 'release'
    | 'removeLogbooksAfter'
    | 'removeTrashAfter'
    | 'defaultDeadline'
    | 'queues'
    | 'maxJobs'
    | 'maxIdleTime'
    | 'health'
    | 'redact'
    | 'failuresOnBoard'
  >

/** Checks the options, and adds the defaults. @throws InvalidArgument naming the invalid option and a valid value */
export function conductorSettings(options: ConductorOptions): ConductorSettings {
  assertOptions(options, CONDUCTOR_OPTIONS, 'a conductor')
  const { persistence, name } = options
  if (!isUriOrOpen(persistence, 'acquire'))
    throw new InvalidArgument(
      'a conductor: persistence must be a URI such as directory:./logbooks, or an open persistence',
    )
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new InvalidArgument('a conductor: name must be a non-empty string; leave it out for host:pid')
  const settings: ConductorSettings = {
    concurrency: availableParallelism(),
    flowConcurrency: DEFAULT_CONCURRENCY,
    drainTimeout: '25s',
    abortTimeout: DEFAULT_ABORT_TIMEOUT,
    onFailure: 'retry',
    takeoverDelay: 0,
    burst: false,
    ...defined(selectSettings(options)),
    ...defined({ queues: toServed(options) }),
    log: toLogger(options),
  }
  assertCounts(settings)
  for (const option of [
    'drainTimeout',
    'abortTimeout',
    'takeoverDelay',
    'defaultDeadline',
    'maxIdleTime',
    'removeLogbooksAfter',
    'removeTrashAfter',
  ] as const) {
    const duration = settings[option]
    if (duration !== undefined) toMilliseconds(duration, option)
  }
  assertChoices(settings)
  assertHealth(settings.health)
  assertMetrics(settings.metrics)
  assertTelemetry(settings.telemetry, 'a conductor')
  assertRelease(settings.release)
  assertHooks(settings.hooks, settings)
  assertFailuresOnBoard(settings.failuresOnBoard, 'a conductor')
  return settings
}

function assertCounts({
  concurrency,
  flowConcurrency,
  maxJobs,
}: Partial<Pick<ConductorSettings, 'concurrency' | 'flowConcurrency' | 'maxJobs'>>): void {
  for (const [option, number] of Object.entries({ concurrency, flowConcurrency, maxJobs })) {
    if (number !== undefined && (!Number.isSafeInteger(number) || number < 1))
      throw new InvalidArgument(`a conductor: ${option} must be a whole number from 1, got ${number}`)
  }
}

function assertChoices({ onFailure, onError, burst }: ConductorSettings): void {
  if (![onError ?? []].flat().every((handler) => typeof handler === 'function'))
    throw new InvalidArgument(
      'a conductor: onError must be a function of a failure and its run, or a list of such functions',
    )
  if (onFailure !== 'retry' && onFailure !== 'consume')
    throw new InvalidArgument("a conductor: onFailure must be 'retry' or 'consume'")
  if (typeof burst !== 'boolean') throw new InvalidArgument('a conductor: burst must be true or false')
}

/** Returns the queues that the conductor serves, frozen, so that its claims take turns by them; undefined for all. @throws InvalidArgument */
function toServed({ queues, sizes }: Pick<ConductorOptions, 'queues' | 'sizes'>): ServedQueues | undefined {
  if (queues !== undefined && sizes !== undefined)
    throw new InvalidArgument('a conductor: give queues, or sizes, which are deprecated, and not both of them')
  const served = sizes === undefined ? queues : queuesOfSizes(sizes, 'a conductor')
  if (served === undefined) return undefined
  QueueChoice.parse(served, 'a conductor')
  return Object.freeze(Array.isArray(served) ? [...served] : { ...served })
}

function assertRelease(release: string | undefined): void {
  if (release !== undefined && (typeof release !== 'string' || release === ''))
    throw new InvalidArgument(
      "a conductor: release must be the name of the application's release, as in release: '2.1'",
    )
}

function assertHealth(health: HealthAddress | undefined): void {
  if (health === undefined) return
  const { port, host } = Object(health) as Partial<HealthAddress>
  const isPort = Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535
  if (!isPort || !(host === undefined || (typeof host === 'string' && host !== '')))
    throw new InvalidArgument(
      "a conductor: health must be the address to listen on, as in { port: 8080, host: '0.0.0.0' }",
    )
}

const SETTING_NAMES: Readonly<Record<keyof ConductorSettings, true>> = {
  concurrency: true,
  flowConcurrency: true,
  drainTimeout: true,
  abortTimeout: true,
  defaultDeadline: true,
  onFailure: true,
  takeoverDelay: true,
  burst: true,
  log: true,
  onError: true,
  metrics: true,
  telemetry: true,
  hooks: true,
  release: true,
  removeLogbooksAfter: true,
  removeTrashAfter: true,
  queues: true,
  maxJobs: true,
  maxIdleTime: true,
  health: true,
  redact: true,
  failuresOnBoard: true,
}

function selectSettings(options: ConductorOptions): Partial<ConductorSettings> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(SETTING_NAMES, name)))
}

function toLogger({ log = silentLog, redact }: ConductorOptions): Logger {
  assertLogger(log)
  if (typeof log.child !== 'function')
    throw new InvalidArgument('a conductor: log must be a Pino logger, as in log: pino()')
  return redact === undefined ? log : redactedLog(log, new Redactor(redact))
}
