/** Options of a conductor on the command line, except board, logbooks and flows. */
import type { OpenBoardOptions, ServedQueues } from '../../board/index.ts'
import type { MetricsOptions } from '../../conductor/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import type { Duration } from '../../core/time.ts'
import type { OpenTelemetryOptions, Telemetry } from '../../telemetry/index.ts'
import { SIZE_CHOICES } from './choices.ts'
import { count, type FlagTable, type FlagValues, oneOf, someOf } from './flags.ts'
import { POOL_FLAGS, type PoolFlags } from './pool-flags.ts'
import { definedOnly, parseDuration } from './shared-options.ts'

const DEFAULT_DRAIN_TIMEOUT = '25s'

/** The flags of a conductor, except those for board, logbooks and flows. */
export const CONDUCTOR_FLAGS = {
  '--concurrency <n>': ['how many jobs run at once (default: one for each processor)', count()],
  '--flow-concurrency <n>': ['how many tasks of one flow run at once (default: 16)', count()],
  '--name <name>': 'name on the board, unique among living conductors (default: host:pid)',
  '--queue <names>': [
    'claims jobs of these queues only, NAME or NAME*, those of the first before those of the next; NAME=N gives weights in place of the order; may be repeated',
    queueNames,
  ],
  '-Q <names>': [
    'claims jobs of these queues in turn, like -Q of a Celery worker; the same as --queue NAME=1 for each',
    queueNames,
  ],
  '--size <size>': [`deprecated: --queue with one of ${SIZE_CHOICES.join(', ')}`, someOf(SIZE_CHOICES)],
  '--burst': 'stop when nothing is left to claim',
  '--max-jobs <n>': ['stop after n jobs', count()],
  '--max-idle-time <duration>': 'stop after this time without a running job',
  '--takeover-delay <duration>': 'how long not to claim half-done jobs of dead owners (default: 0s)',
  '--default-deadline <duration>': 'how long a job without a deadline may run (default: for ever)',
  '--unaccepted-after <duration>':
    'how long a job whose flow no conductor knows blocks other jobs that want its resources (default: 1h)',
  '--drain-timeout <duration>': `how long a stop waits for running jobs (default: ${DEFAULT_DRAIN_TIMEOUT})`,
  '--abort-timeout <duration>': 'how long an abort waits for tasks that ignore it (default: 5s)',
  '--on-failure <what>': [
    'retry, then trash, or consume jobs that were reverted (default: retry)',
    oneOf(['retry', 'consume']),
  ],
  '--remove-logbooks-after <duration>': 'remove logbooks this long after their flows have ended (default: never)',
  '--remove-trash-after <duration>': 'remove jobs that have been in the trash for this time (default: never)',
  '--failures-on-board <what>': [
    'whole, or named: only classes and codes of errors (default: named where logbooks encrypt)',
    oneOf(['whole', 'named']),
  ],
  '--health <[host:]port>': 'answer /healthz and /readyz there over HTTP (default host: 127.0.0.1)',
  '--metrics': 'with --health, answer /metrics, too, for Prometheus',
  '--otel': 'send metrics and spans to the OpenTelemetry SDK that node --import has set up',
  ...POOL_FLAGS,
} satisfies FlagTable

/** The options as they are on the command line, with what the config file may have in their place. */
export interface ConductorFlags extends Omit<FlagValues<typeof CONDUCTOR_FLAGS>, 'metrics' | 'otel'>, PoolFlags {
  readonly metrics?: boolean | MetricsOptions
  readonly otel?: boolean | Pick<OpenTelemetryOptions, 'propagation'>
}

/** The options as a conductor takes them. */
export type ConductorFlagSettings = ReturnType<typeof toConductorSettings>

/** Parses the options before anything is opened. @throws InvalidArgument */
export function toConductorSettings(flags: ConductorFlags) {
  const {
    concurrency,
    flowConcurrency,
    name,
    queue,
    size,
    burst,
    maxJobs,
    onFailure,
    failuresOnBoard,
    health,
    metrics,
  } = flags
  if (metrics && health === undefined)
    throw new InvalidArgument('--metrics needs --health [HOST:]PORT, where /metrics is answered')
  const settings = definedOnly({
    ...{
      concurrency,
      flowConcurrency,
      name,
      queues: toServed(queue),
      sizes: size,
      burst,
      maxJobs,
      onFailure,
      failuresOnBoard,
      metrics,
    },
    health: health === undefined ? undefined : parseAddress(health),
    maxIdleTime: parseDurationFlag(flags.maxIdleTime, '--max-idle-time'),
    takeoverDelay: parseDurationFlag(flags.takeoverDelay, '--takeover-delay'),
    defaultDeadline: parseDurationFlag(flags.defaultDeadline, '--default-deadline'),
    abortTimeout: parseDurationFlag(flags.abortTimeout, '--abort-timeout'),
    removeLogbooksAfter: parseDurationFlag(flags.removeLogbooksAfter, '--remove-logbooks-after'),
    removeTrashAfter: parseDurationFlag(flags.removeTrashAfter, '--remove-trash-after'),
  })
  return { ...settings, drainTimeout: parseDuration(flags.drainTimeout ?? DEFAULT_DRAIN_TIMEOUT, '--drain-timeout') }
}

/** Parses the queues of a flag that may be repeated, and have several separated by commas. */
function queueNames() {
  return (text: string, before: readonly string[] = []): readonly string[] => [
    ...before,
    ...text.split(',').map((name) => name.trim()),
  ]
}

interface NamedQueues {
  /** The words behind the command's name. */
  readonly words: readonly string[]
  /** Whether `--queue` was typed, and does not come from the config file. */
  readonly isQueueTyped: boolean
}

/**
 * Returns the options with the queues that the command line names as words, as a worker of RQ has them, or with `-Q`. They replace those of the
 * config file.
 *
 * @throws InvalidArgument for more than one of words, `--queue` and `-Q`
 */
export function withNamedQueues<T extends ConductorFlags>(options: T, { words, isQueueTyped }: NamedQueues): T {
  const { Q: inTurn } = options
  const given = [
    ...(words.length > 0 ? [`as words (${words.join(' ')})`] : []),
    ...(isQueueTyped ? ['with --queue'] : []),
    ...(inTurn ? ['with -Q'] : []),
  ]
  if (given.length > 1)
    throw new InvalidArgument(`the queues are named ${given.join(' and ')}: name them all in one of these ways`)
  // Without this, a second module behind --flows would be a queue in which no job ever is.
  const module = words.find((word) => /\.[cm]?[jt]sx?$/.test(word))
  if (module !== undefined)
    throw new InvalidArgument(
      `${module} is the name of a queue here: give a module with --flows, which may be repeated`,
    )
  if (inTurn) return { ...options, queue: inTurn.map((name) => (name.includes('=') ? name : `${name}=1`)) }
  return words.length > 0 ? { ...options, queue: words.flatMap((word) => queueNames()(word)) } : options
}

/** Returns queues in their order, or with weights where names have some, as in `urgent=3`. @throws InvalidArgument for names with and without one */
export function toServed(names: readonly string[] | undefined): ServedQueues | undefined {
  if (names === undefined || names.length === 0) return undefined
  const weighted = names.map((name) => /^(.*)=(.*)$/s.exec(name) ?? undefined)
  if (weighted.every((match) => match === undefined)) return names
  const plain = names.find((_, index) => weighted[index] === undefined)
  if (plain !== undefined)
    throw new InvalidArgument(
      `--queue ${plain} needs a weight, as in --queue ${plain}=1, because other queues have one`,
    )
  const entries = weighted.map((match) => [match?.[1] ?? '', toWeight(match?.[2] ?? '')] as const)
  const twice = entries.find(([name], index) => entries.findIndex(([other]) => other === name) !== index)
  if (twice) throw new InvalidArgument(`--queue contains ${twice[0]} twice`)
  return Object.fromEntries(entries)
}

/** Returns the queues of the config file as the flag has them: `urgent`, or `urgent=3`. */
export function toQueueTexts(queues: readonly string[] | Readonly<Record<string, number | string>>): readonly string[] {
  return Array.isArray(queues) ? queues : Object.entries(queues).map(([name, weight]) => `${name}=${weight}`)
}

function toWeight(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.NaN
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
