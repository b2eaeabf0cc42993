/** What a conductor can be told, what it does where it is told nothing, and what is said to whoever told it nonsense. */
import { availableParallelism } from 'node:os'
import type { JobBoard } from '../board/index.ts'
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger, redactedLog, silent } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { Redaction } from '../core/redaction.ts'
import { type Duration, milliseconds } from '../core/time.ts'
import { DEFAULT_CONCURRENCY } from '../engine/index.ts'
import type { AnyFlow } from '../flow/index.ts'
import type { LogbookCodec, Persistence } from '../persistence/index.ts'
import type { OnFailure } from './decide.ts'

export interface ConductorOptions {
  /** A URI, opened here and closed at the stop; or an open board, left open. */
  readonly board: string | JobBoard
  /** Where the logbooks are. A URI, opened here and closed at the stop; or an open persistence, left open. */
  readonly persistence: string | Persistence
  /** Of logbooks that are opened here: see `openPersistence`. */
  readonly codec?: LogbookCodec | readonly LogbookCodec[]
  /** What it can run. Jobs of other flows and versions are left to others. */
  readonly flows: readonly AnyFlow[]
  /** How many jobs run at once; as many as the machine has processors by default. */
  readonly concurrency?: number
  /** How many tasks of one flow run at once; 16 by default, 1 for one after the other. */
  readonly flowConcurrency?: number
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
   * Names of keys: what stands under them in what is logged, tasks' `ctx.log` too, is shown as `[redacted]`, at any depth and
   * in any spelling (`password` also means `pass_word`).
   */
  readonly redact?: readonly string[]
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
  concurrency: true,
  flowConcurrency: true,
  name: true,
  drainTimeout: true,
  abortTimeout: true,
  onFailure: true,
  removeLogbooksAfter: true,
  redact: true,
  log: true,
  signal: true,
}

/** The options that have a default, with it. */
export type ConductorSettings = Required<
  Pick<ConductorOptions, 'concurrency' | 'flowConcurrency' | 'drainTimeout' | 'abortTimeout' | 'onFailure' | 'log'>
> &
  Pick<ConductorOptions, 'removeLogbooksAfter'>

/** @throws InvalidArgument naming the option that makes no sense, and one that does */
export function conductorSettings(options: ConductorOptions): ConductorSettings {
  assertOptions(options, CONDUCTOR_OPTIONS, 'a conductor')
  const { concurrency = availableParallelism(), drainTimeout = '25s', abortTimeout = '5s' } = options
  const { board, persistence, name, onFailure = 'retry', removeLogbooksAfter } = options
  const { flowConcurrency = DEFAULT_CONCURRENCY } = options
  assertPlace(board, 'claimNext', 'board has to be a URI such as zookeeper://127.0.0.1:2181/demo, or an open board')
  assertPlace(
    persistence,
    'acquire',
    'persistence, where the logbooks are, has to be a URI such as directory:./logbooks',
  )
  for (const [option, number] of Object.entries({ concurrency, flowConcurrency })) {
    if (!Number.isSafeInteger(number) || number < 1)
      throw new InvalidArgument(`a conductor: ${option} has to be a whole number from 1, not ${number}`)
  }
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new InvalidArgument('a conductor: name has to be a text that is not empty; leave it out for host:pid')
  if (onFailure !== 'retry' && onFailure !== 'consume')
    throw new InvalidArgument("a conductor: onFailure is either 'retry' or 'consume'")
  const log = logOf(options)
  milliseconds(drainTimeout, 'drainTimeout')
  milliseconds(abortTimeout, 'abortTimeout')
  const settings = { concurrency, flowConcurrency, drainTimeout, abortTimeout, onFailure, log }
  if (removeLogbooksAfter === undefined) return settings
  milliseconds(removeLogbooksAfter, 'removeLogbooksAfter')
  return { ...settings, removeLogbooksAfter }
}

function logOf({ log = silent, redact }: ConductorOptions): Logger {
  assertLogger(log)
  if (typeof log.child !== 'function')
    throw new InvalidArgument('a conductor: log has to be a logger of pino, as in log: pino()')
  return redact === undefined ? log : redactedLog(log, new Redaction(redact))
}

/** @param method what an open one has */
function assertPlace(place: unknown, method: string, message: string): void {
  const open: Record<string, unknown> = Object(place)
  if ((typeof place === 'string' && place !== '') || typeof open[method] === 'function') return
  throw new InvalidArgument(`a conductor: ${message}`)
}
