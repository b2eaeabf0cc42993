/** Options of a conductor on the command line, except board, logbooks and flows. */
import type { Command } from 'commander'
import type { OpenBoardOptions } from '../../board/index.ts'
import type { ConductorOptions, MetricsOptions } from '../../conductor/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import type { Duration } from '../../core/time.ts'
import type { OpenTelemetryOptions, Telemetry } from '../../telemetry/index.ts'
import { SIZE_CHOICES } from './choices.ts'
import { addPoolFlags, type PoolFlags } from './pool-flags.ts'
import { choiceParser, choicesParser, countParser, parseDuration } from './shared-options.ts'

/** The options as they are on the command line. */
export interface ConductorFlags extends PoolFlags {
  readonly concurrency?: number
  readonly flowConcurrency?: number
  readonly name?: string
  readonly size?: readonly (typeof SIZE_CHOICES)[number][]
  readonly burst?: boolean
  readonly maxJobs?: number
  readonly maxIdleTime?: string
  readonly takeoverDelay?: string
  readonly defaultDeadline?: string
  readonly unacceptedAfter?: string
  readonly drainTimeout?: string
  readonly abortTimeout?: string
  readonly onFailure?: 'retry' | 'consume'
  readonly removeLogbooksAfter?: string
  readonly removeTrashAfter?: string
  readonly failuresOnBoard?: 'whole' | 'named'
  readonly health?: string
  /** With options from the config file. */
  readonly metrics?: boolean | MetricsOptions
  /** With options from the config file. */
  readonly otel?: boolean | Pick<OpenTelemetryOptions, 'propagation'>
}

type FlaggedOption =
  | 'concurrency'
  | 'flowConcurrency'
  | 'name'
  | 'sizes'
  | 'burst'
  | 'maxJobs'
  | 'maxIdleTime'
  | 'takeoverDelay'
  | 'defaultDeadline'
  | 'abortTimeout'
  | 'onFailure'
  | 'removeLogbooksAfter'
  | 'removeTrashAfter'
  | 'failuresOnBoard'
  | 'health'
  | 'metrics'

/** The options as a conductor takes them. */
export type ConductorFlagSettings = Pick<ConductorOptions, FlaggedOption> & { readonly drainTimeout: Duration }

const DEFAULT_DRAIN_TIMEOUT = '25s'

export function addConductorFlags(command: Command): void {
  command
    .option(
      '--concurrency <n>',
      'how many jobs run at once (default: one for each processor)',
      countParser('--concurrency'),
    )
    .option(
      '--flow-concurrency <n>',
      'how many tasks of one flow run at once (default: 16)',
      countParser('--flow-concurrency'),
    )
    .option('--name <name>', 'name on the board, unique among living conductors (default: host:pid)')
    .option(
      '--size <size>',
      `claims jobs of this size only, one of ${SIZE_CHOICES.join(', ')}; may be repeated`,
      choicesParser('--size', SIZE_CHOICES),
    )
    .option('--burst', 'stop when nothing is left to claim')
    .option('--max-jobs <n>', 'stop after n jobs', countParser('--max-jobs'))
    .option('--max-idle-time <duration>', 'stop after this time without a running job')
    .option('--takeover-delay <duration>', 'how long not to claim half-done jobs of dead owners (default: 0s)')
    .option('--default-deadline <duration>', 'how long a job without a deadline may run (default: for ever)')
    .option(
      '--unaccepted-after <duration>',
      'how long a job whose flow no conductor knows blocks other jobs that want its resources (default: 1h)',
    )
    .option('--drain-timeout <duration>', `how long a stop waits for running jobs (default: ${DEFAULT_DRAIN_TIMEOUT})`)
    .option('--abort-timeout <duration>', 'how long an abort waits for tasks that ignore it (default: 5s)')
    .option(
      '--on-failure <what>',
      'retry, then trash, or consume jobs that were reverted (default: retry)',
      choiceParser('--on-failure', ['retry', 'consume']),
    )
    .option(
      '--remove-logbooks-after <duration>',
      'remove logbooks this long after their flows have ended (default: never)',
    )
    .option('--remove-trash-after <duration>', 'remove jobs that have been in the trash for this time (default: never)')
    .option(
      '--failures-on-board <what>',
      'whole, or named: only classes and codes of errors (default: named where logbooks encrypt)',
      choiceParser('--failures-on-board', ['whole', 'named']),
    )
    .option('--health <[host:]port>', 'answer /healthz and /readyz there over HTTP (default host: 127.0.0.1)')
    .option('--metrics', 'with --health, answer /metrics, too, for Prometheus')
    .option('--otel', 'send metrics and spans to the OpenTelemetry SDK that node --import has set up')
  addPoolFlags(command)
}

/** Parses the options before anything is opened. @throws InvalidArgument */
export function toConductorSettings(flags: ConductorFlags): ConductorFlagSettings {
  const { concurrency, flowConcurrency, name, size, burst, maxJobs, onFailure, failuresOnBoard, health, metrics } =
    flags
  if (metrics && health === undefined)
    throw new InvalidArgument('--metrics needs --health [HOST:]PORT, where /metrics is answered')
  const settings = {
    concurrency,
    flowConcurrency,
    name,
    sizes: size,
    burst,
    maxJobs,
    onFailure,
    failuresOnBoard,
    health: health === undefined ? undefined : parseAddress(health),
    metrics,
    maxIdleTime: parseDurationFlag(flags.maxIdleTime, '--max-idle-time'),
    takeoverDelay: parseDurationFlag(flags.takeoverDelay, '--takeover-delay'),
    defaultDeadline: parseDurationFlag(flags.defaultDeadline, '--default-deadline'),
    abortTimeout: parseDurationFlag(flags.abortTimeout, '--abort-timeout'),
    removeLogbooksAfter: parseDurationFlag(flags.removeLogbooksAfter, '--remove-logbooks-after'),
    removeTrashAfter: parseDurationFlag(flags.removeTrashAfter, '--remove-trash-after'),
    drainTimeout: parseDuration(flags.drainTimeout ?? DEFAULT_DRAIN_TIMEOUT, '--drain-timeout'),
  }
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined),
  ) as ConductorFlagSettings
}

function parseDurationFlag(text: string | undefined, flag: string): Duration | undefined {
  return text === undefined ? undefined : parseDuration(text, flag)
}

/** Loads what metrics and spans go to; undefined without `--otel`. @throws InvalidArgument where its package is not installed */
export async function openTelemetryOf({ otel }: Pick<ConductorFlags, 'otel'>): Promise<Telemetry | undefined> {
  if (otel === undefined || otel === false) return undefined
  const { loadOpenTelemetry } = await import('../../telemetry/internal.ts')
  return loadOpenTelemetry(otel === true ? {} : otel)
}

/** Returns the options of the board that the conductor opens. @throws InvalidArgument */
export function boardSettingsOf(flags: ConductorFlags): Pick<OpenBoardOptions, 'who' | 'unacceptedAfter'> {
  const unacceptedAfter = parseDurationFlag(flags.unacceptedAfter, '--unaccepted-after')
  return {
    // The board's claims have the conductor's name.
    ...(flags.name === undefined ? {} : { who: flags.name }),
    ...(unacceptedAfter === undefined ? {} : { unacceptedAfter }),
  }
}

/** Parses an address: `8080`, `0.0.0.0:8080`, `[::]:8080`. */
function parseAddress(text: string): { port: number; host?: string } {
  const [, inBrackets, plain, digits] = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5})$/.exec(text) ?? []
  const host = inBrackets ?? plain
  const port = Number(digits)
  if (digits === undefined || port > 65_535)
    throw new InvalidArgument('--health must be a port, or host:port, as in --health 0.0.0.0:8080')
  return { port, ...(host === undefined ? {} : { host }) }
}
