/** Parsers of options: the options of all commands, and the common types of values. */
import type { Command } from 'commander'
import type { Resources } from '../../board/index.ts'
import { InvalidArgument, MissingDependencies, messageOf } from '../../core/errors.ts'
import { parseJson } from '../../core/json.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { BoardContext, CliContext } from '../context.ts'

/** The options that may precede or follow the command's name. */
export interface SharedOptions {
  readonly board?: string
  readonly persistence?: string
  readonly timeout?: string
  readonly redact?: string
  readonly codec?: string
  readonly verbose?: boolean
}

export const DEFAULT_TIMEOUT = '10s'

/**
 * Returns the URI of the board.
 *
 * @throws InvalidArgument if neither option nor variable is set: a board is never guessed
 */
export function boardUri(options: SharedOptions, context: BoardContext): string {
  const uri = options.board || context.env['JOBBOARD_BOARD']
  if (uri) return context.chosenByFile?.board ? withoutEnvironmentPassword(uri, context) : uri
  if (context.boardChoices)
    throw new InvalidArgument(
      `the config file names ${context.boardChoices.length} boards, and only jobboard conductor, exporter and ui take several: choose one with --board, ` +
        `as in --board ${context.boardChoices[0]}`,
    )
  throw new InvalidArgument(
    'no board was named: give --board URI or set JOBBOARD_BOARD, as in --board sqlite:./jobs.db; or name one in jobboard.yaml, as jobboard init does',
  )
}

export function persistenceUri(options: SharedOptions, context: CliContext): string | undefined {
  const uri = options.persistence || context.env['JOBBOARD_PERSISTENCE'] || undefined
  return uri && context.chosenByFile?.persistence ? withoutEnvironmentPassword(uri, context) : uri
}

/**
 * Returns a URI of Postgres with an empty password if it has none, so that the driver does not send PGPASSWORD to a server
 * that only a found config file chose.
 */
export function withoutEnvironmentPassword(uri: string, { env }: Pick<BoardContext, 'env'>): string {
  const [, scheme = '', authority = '', rest = ''] = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/is.exec(uri) ?? []
  // Credentials end at the last @, as for the parser of URIs.
  const at = authority.lastIndexOf('@')
  const host = authority.slice(at + 1)
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(authority.slice(0, Math.max(at, 0))) ?? []
  // Without a host, the user's own PGHOST chooses the server.
  const isChosenByUser = host === '' || host.startsWith(':')
  return !env['PGPASSWORD'] || password !== '' || isChosenByUser ? uri : `${scheme}${user}:@${host}${rest}`
}

/** Returns the names of the keys that `--redact` or JOBBOARD_REDACT hide. */
export function redactedKeys(options: SharedOptions, context: CliContext): readonly string[] {
  const named = options.redact || context.env['JOBBOARD_REDACT'] || ''
  return named.split(',').flatMap((key) => (key.trim() === '' ? [] : [key.trim()]))
}

/** Parses a duration: `10s`, `1.5m`, or milliseconds: `250`. @throws InvalidArgument */
export function parseDuration(text: string, what: string): Duration {
  if (/^\d+$/.test(text)) return Number(text)
  toMilliseconds(text, what)
  return text as Duration
}

const RATE_PATTERN = /^(\d+(?:\.\d+)?)\/((?:\d+(?:\.\d+)?)?(?:ms|s|m|h|d))$/

/** Parses a rate: `100/1m`, also `5/s`. @throws InvalidArgument */
export function parseRate(text: string, what: string): { readonly limit: number; readonly per: Duration } {
  const [, limit, per = ''] = RATE_PATTERN.exec(text) ?? []
  if (limit === undefined)
    throw new InvalidArgument(`${what} must be a number and a time, such as 100/1m, got '${text}'`)
  return { limit: Number(limit), per: (/^\d/.test(per) ? per : `1${per}`) as Duration }
}

/** Returns the instant a duration ago. @throws InvalidArgument */
export function ageLimit(text: string, what: string): Date {
  return new Date(Date.now() - toMilliseconds(parseDuration(text, what), what))
}

/** Returns what filters jobs by `--queue`, a name or a pattern; undefined without the flag. @throws InvalidArgument */
export async function toQueueFilter(queue: string | undefined): Promise<((queue: string) => boolean) | undefined> {
  if (queue === undefined) return undefined
  const { QueueChoice } = await import('../../board/internal.ts')
  const choice = QueueChoice.parse([queue], '--queue')
  return (name) => choice.includes(name)
}

/**
 * Parses a JSON object. Its content is never repeated in an error: it may hold secrets.
 *
 * @throws InvalidArgument
 */
export function jsonObject(text: string, what: string, { fromStdin = false } = {}): Record<string, unknown> {
  const value = parseGiven(text, what, { fromStdin })
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new InvalidArgument(`${what} must be a JSON object with the flow's inputs, such as '{"name":"Ada"}'`)
}

function parseGiven(text: string, what: string, { fromStdin }: { fromStdin: boolean }): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    const why = messageOf(error)
    if (why !== 'is not JSON') throw new InvalidArgument(`${what}${fromStdin ? ' -: standard input' : ''} ${why}`)
    if (fromStdin) {
      const found = text.trim() === '' ? 'is empty' : 'is not JSON'
      throw new InvalidArgument(`${what} -: standard input ${found}; write a JSON object to it, such as {"name":"Ada"}`)
    }
    throw new InvalidArgument(`${what} is not JSON; quote it for the shell, as in ${what} '{"name":"Ada"}'`)
  }
}

export interface ResourceFlags {
  readonly exclusive?: readonly string[]
  readonly shared?: readonly string[]
}

/** Returns the properties to spread into the options of a post. */
export function toResourceOptions({ exclusive, shared }: ResourceFlags): { readonly resources?: Resources } {
  if (!exclusive && !shared) return {}
  return {
    resources: { ...(exclusive ? { exclusive: [...exclusive] } : {}), ...(shared ? { shared: [...shared] } : {}) },
  }
}

/** Returns the text of `--store`, or standard input for a dash. */
export async function readStoreText({ store }: { readonly store?: string }, context: CliContext): Promise<string> {
  return store === '-' ? context.readStdin() : (store ?? '{}')
}

/** Checks the inputs before anything is opened; board and engine check them again. @throws MissingDependencies */
export async function checkStore(flow: AnyFlow, store: object): Promise<void> {
  const { missingInputs } = await import('../../flow/index.ts')
  const missing = missingInputs(flow, store)
  if (missing.length === 0) return
  throw new MissingDependencies(`flow ${flow.name} requires ${missing.join(', ')}: add it to --store`)
}

export interface UnlimitedWait {
  /** Whether `--timeout` was given without `--within`. */
  readonly endless?: boolean
}

export const UNLIMITED_WAIT_NOTICE =
  'waiting without a limit: --timeout limits the opening of the board, --within limits the wait\n'

/** Returns the properties to spread into the options of a command that waits. */
export function toUnlimitedWait(command: Command): UnlimitedWait {
  const { within } = command.opts<{ within?: string }>()
  return { endless: within === undefined && command.getOptionValueSourceWithGlobals('timeout') === 'cli' }
}

type Present<T> = { readonly [K in keyof T]?: NonNullable<T[K]> }

/** Returns the properties that are not undefined, to spread into options. */
export function definedOnly<T extends object>(values: T): Present<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Present<T>
}

/** Returns the user of this shell, with the process: the process alone says little later, because it has ended by then. */
export function toPerson({ USER, LOGNAME }: CliContext['env'], { who }: { readonly who: string }): string {
  const user = USER || LOGNAME
  return user ? `${user} (${who})` : who
}
