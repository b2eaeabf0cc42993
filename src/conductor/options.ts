/** What a conductor can be told, what it does where it is told nothing, and what is said to whoever told it nonsense. */
import { availableParallelism } from 'node:os'
import { type JobBoard, SIZES, type Size } from '../board/index.ts'
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger, redactedLog, silentLog } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { Redactor } from '../core/redaction.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import { DEFAULT_CONCURRENCY } from '../engine/index.ts'
import type { AnyFlow } from '../flow/index.ts'
import type { LogbookCodec, Persistence } from '../persistence/index.ts'
import type { HealthAddress } from './health-server.ts'
import type { OnFailure } from './runs/decide.ts'
import { assertFailuresOnBoard, type FailuresOnBoard } from './runs/disclosure.ts'

export const DEFAULT_ABORT_TIMEOUT = '5s'

/** What a conductor runs, where, and how it ends. Durations are milliseconds, or texts such as `'25s'`. */
export interface ConductorOptions {
  /** A URI, opened here and closed at the stop; or an open board, left open. */
  readonly board: string | JobBoard
  /** Where the logbooks are. A URI, opened here and closed at the stop; or an open persistence, left open. */
  readonly persistence: string | Persistence
  /** Of logbooks that are opened here: see `openPersistence`. */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /** What it can run. Jobs of other flows and versions are left to others. */
  readonly flows: readonly AnyFlow[]
  /**
   * What tasks find as `ctx.services`: an object, or a function that makes one (a promise of one, say), called once. What
   * it makes is disposed of at the end, with `Symbol.asyncDispose` or `Symbol.dispose`: itself, or else each of its values.
   */
  readonly services?: unknown
  /** How many jobs run at once; as many as the machine has processors by default. */
  readonly concurrency?: number
  /** How many tasks of one flow run at once; 16 by default, 1 for one after the other. */
  readonly flowConcurrency?: number
  /** Jobs of these sizes only; of all sizes by default. */
  readonly sizes?: readonly Size[]
  /**
   * How long a half-done job of a dead owner is left alone before it is taken over; not at all by default. Time for what its
   * owner had begun outside, such as a request to another service, to come to an end.
   */
  readonly takeoverDelay?: Duration
  /** Stops when nothing is left to claim and what it claimed is over. */
  readonly burst?: boolean
  /** Stops when it has claimed so many jobs and they are over. */
  readonly maxJobs?: number
  /** Stops when it has run nothing for so long. */
  readonly maxIdleTime?: Duration
  /** Answers there, over HTTP, how it is doing: `/healthz` and `/readyz`. */
  readonly health?: HealthAddress
  /** Unique among living conductors; the board's `who` by default, with a number behind it from the second on. */
  readonly name?: string
  /** How long a stop waits for what runs before it aborts it; 25 s by default. */
  readonly drainTimeout?: Duration
  /** How long an abort waits for tasks that do not heed their signal before it leaves them behind; 5 s by default. */
  readonly abortTimeout?: Duration
  /** `retry` (the default): tried again while attempts are left, then trashed. `consume` is TaskFlow's way. */
  readonly onFailure?: OnFailure
  /** Removes logbooks that are over and have not changed for so long; by default they are kept forever. */
  readonly removeLogbooksAfter?: Duration
  /**
   * Names of keys: what stands under them in what is logged, tasks' `ctx.log` too, and in reasons and failures on the board,
   * is shown as `[redacted]`, at any depth and in any spelling (`password` also means `pass_word`).
   */
  readonly redact?: readonly string[]
  /**
   * `whole`: reasons and failures on the board, also in its trash, have the messages and stacks of what tasks threw. `named`:
   * only the classes and codes of the errors; the rest is in the logbook. By default `named` where logbooks encrypt, else
   * `whole`.
   */
  readonly failuresOnBoard?: FailuresOnBoard
  /** Pino's; `startConductor` says nothing by default, `runConductor` writes JSON lines to standard error. */
  readonly log?: Logger
  /** Gives up starting. */
  readonly signal?: AbortSignal
}

export const CONDUCTOR_OPTIONS: KnownOptions<ConductorOptions> = {
  board: true,
  persistence: true,
  codec: true,
  flows: true,
  services: true,
  concurrency: true,
  flowConcurrency: true,
  sizes: true,
  takeoverDelay: true,
  burst: true,
  maxJobs: true,
  maxIdleTime: true,
  health: true,
  name: true,
  drainTimeout: true,
  abortTimeout: true,
  onFailure: true,
  removeLogbooksAfter: true,
  redact: true,
  failuresOnBoard: true,
  log: true,
  signal: true,
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

/** The options that have a default, with it, and those that may be left out. */
export type ConductorSettings = Required<Pick<ConductorOptions, DefaultedOption>> &
  Pick<
    ConductorOptions,
    'removeLogbooksAfter' | 'sizes' | 'maxJobs' | 'maxIdleTime' | 'health' | 'redact' | 'failuresOnBoard'
  >

/** @throws InvalidArgument naming the option that makes no sense, and one that does */
export function conductorSettings(options: ConductorOptions): ConductorSettings {
  assertOptions(options, CONDUCTOR_OPTIONS, 'a conductor')
  const { board, persistence, name } = options
  assertUriOrObject(
    board,
    'claimNext',
    'board has to be a URI such as zookeeper://127.0.0.1:2181/demo, or an open board',
  )
  assertUriOrObject(
    persistence,
    'acquire',
    'persistence, where the logbooks are, has to be a URI such as directory:./logbooks',
  )
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new InvalidArgument('a conductor: name has to be a text that is not empty; leave it out for host:pid')
  const settings: ConductorSettings = {
    concurrency: availableParallelism(),
    flowConcurrency: DEFAULT_CONCURRENCY,
    drainTimeout: '25s',
    abortTimeout: DEFAULT_ABORT_TIMEOUT,
    onFailure: 'retry',
    takeoverDelay: 0,
    burst: false,
    ...definedOptions(options),
    log: toLogger(options),
  }
  assertCounts(settings)
  for (const option of [
    'drainTimeout',
    'abortTimeout',
    'takeoverDelay',
    'maxIdleTime',
    'removeLogbooksAfter',
  ] as const) {
    const duration = settings[option]
    if (duration !== undefined) toMilliseconds(duration, option)
  }
  assertChoices(settings)
  assertHealth(settings.health)
  assertFailuresOnBoard(settings.failuresOnBoard, 'a conductor')
  return settings
}

function assertCounts({ concurrency, flowConcurrency, maxJobs }: ConductorSettings): void {
  for (const [option, number] of Object.entries({ concurrency, flowConcurrency, maxJobs })) {
    if (number !== undefined && (!Number.isSafeInteger(number) || number < 1))
      throw new InvalidArgument(`a conductor: ${option} has to be a whole number from 1, not ${number}`)
  }
}

function assertChoices({ onFailure, burst, sizes }: ConductorSettings): void {
  if (onFailure !== 'retry' && onFailure !== 'consume')
    throw new InvalidArgument("a conductor: onFailure is either 'retry' or 'consume'")
  if (typeof burst !== 'boolean') throw new InvalidArgument('a conductor: burst is true or false')
  if (sizes === undefined) return
  if (!Array.isArray(sizes) || sizes.length === 0 || !sizes.every((size) => SIZES.includes(size)))
    throw new InvalidArgument(`a conductor: sizes has to be a list of some of ${SIZES.join(', ')}`)
}

function assertHealth(health: HealthAddress | undefined): void {
  if (health === undefined) return
  const { port, host } = Object(health) as Partial<HealthAddress>
  const isPort = Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535
  if (!isPort || !(host === undefined || (typeof host === 'string' && host !== '')))
    throw new InvalidArgument("a conductor: health has to be where to listen, as in { port: 8080, host: '0.0.0.0' }")
}

const SETTING_NAMES: Readonly<Record<keyof ConductorSettings, true>> = {
  concurrency: true,
  flowConcurrency: true,
  drainTimeout: true,
  abortTimeout: true,
  onFailure: true,
  takeoverDelay: true,
  burst: true,
  log: true,
  removeLogbooksAfter: true,
  sizes: true,
  maxJobs: true,
  maxIdleTime: true,
  health: true,
  redact: true,
  failuresOnBoard: true,
}

/** An option that is given as undefined is left out. */
function definedOptions(options: ConductorOptions): Partial<ConductorSettings> {
  const said = Object.entries(options).filter(
    ([name, value]) => Object.hasOwn(SETTING_NAMES, name) && value !== undefined,
  )
  return Object.fromEntries(said) as Partial<ConductorSettings>
}

function toLogger({ log = silentLog, redact }: ConductorOptions): Logger {
  assertLogger(log)
  if (typeof log.child !== 'function')
    throw new InvalidArgument('a conductor: log has to be a logger of pino, as in log: pino()')
  return redact === undefined ? log : redactedLog(log, new Redactor(redact))
}

/** @param method what an open one has */
function assertUriOrObject(place: unknown, method: string, message: string): void {
  const open: Record<string, unknown> = Object(place)
  if ((typeof place === 'string' && place !== '') || typeof open[method] === 'function') return
  throw new InvalidArgument(`a conductor: ${message}`)
}
