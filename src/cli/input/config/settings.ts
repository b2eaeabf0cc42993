/**
 * Resolution of settings. The command line overrides the environment, and the environment overrides the config file; a
 * name on the command line or in the environment is looked up in the file.
 */
import { dirname, isAbsolute, resolve } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'
import { type MemorySize, toBytes } from '../../../core/memory-size.ts'
import { suggestion } from '../../../core/texts.ts'
import type { CliContext } from '../../context.ts'
import type { ChosenBoard } from '../board-flags.ts'
import { definedOnly, parseDuration, type SharedOptions } from '../shared-options.ts'
import type { ConfigFile } from './config-file.ts'
import { FILE_NAME, findNearestConfig } from './nearest.ts'
import { findModuleDistrust } from './trust.ts'

/** The options of every command, as they were typed: `--board` may be repeated. */
export interface TypedOptions extends Omit<SharedOptions, 'board'> {
  readonly board?: string | readonly string[]
}

export interface ResolvedSettings {
  /** The options of every command, as a user would type them. */
  readonly options: Readonly<Record<string, unknown>>
  /** The options of one command, by its name; resolved on request, because those of other commands may be invalid. */
  readonly own: (command: string) => Readonly<Record<string, unknown>>
  /** The boards of a conductor, if they are several. */
  readonly boards?: readonly ChosenBoard[]
  /** The boards of the file, if it names several and the user named none. */
  readonly boardChoices?: readonly string[]
  /** The environment with the settings of the file: secrets are not put on a command line. */
  readonly env: CliContext['env']
  /** Throws for untrusted modules of a file that no user named: they are run only if this user or root owns them. */
  readonly assertModule?: CliContext['assertModule']
  /** The choices of a file that no user named, for which credentials of the environment would be used. */
  readonly chosenByFile?: CliContext['chosenByFile']
}

/** The keys of a conductor's durations. */
const DURATION_KEYS: readonly string[] = [
  'takeoverDelay',
  'defaultDeadline',
  'unacceptedAfter',
  'drainTimeout',
  'abortTimeout',
  'removeLogbooksAfter',
  'removeTrashAfter',
]

/** In bytes: that of any size in the file. */
const SMALLEST_SIZE = 1_024

/** The pattern of a URI: a scheme and a colon. Every other text is a name. */
const URI_PATTERN = /^[a-z][a-z0-9+.-]*:/i

/** Resolves the settings of a command. @throws InvalidArgument for an invalid file, and for a name that is not in it */
export async function resolveSettings(
  options: TypedOptions & { readonly config?: string },
  context: CliContext,
): Promise<ResolvedSettings> {
  const { cwd, env } = context
  const asked = options.config || env['JOBBOARD_CONFIG']
  const found = asked ? undefined : await findNearestConfig(cwd)
  if (!asked && !found) return settingsWithoutFile(options, env)
  // The parser is loaded only if there is a file: loading it takes longer than many commands.
  const { parseFoundConfig: foundConfig, readConfig } = await import('./config-file.ts')
  if (!found) {
    const named = await readConfig(resolve(cwd, asked ?? ''), { cwd })
    return new SettingsResolver(named, { env, wasFound: false }).resolve(options)
  }
  const settling = new SettingsResolver(foundConfig(found, { cwd }), { env, wasFound: true })
  const settled = settling.resolve(options)
  return { ...settled, assertModule: (module, file) => assertTrusted(module, { file, named: settling.modules }) }
}

/** Resolves settings without a file. @throws InvalidArgument for a name, which only a file could define */
function settingsWithoutFile(options: TypedOptions, env: CliContext['env']): ResolvedSettings {
  const boards = toList(options.board || env['JOBBOARD_BOARD'])
  const persistence = options.persistence || env['JOBBOARD_PERSISTENCE']
  const named = [...boards.map((board) => ['board', board] as const), ['persistence', persistence] as const]
  for (const [what, value] of named) {
    // A malformed URI is reported by the function that opens it.
    if (value === undefined || !/^[\w.-]+$/.test(value)) continue
    throw new InvalidArgument(
      `${what} ${value}: there is no ${FILE_NAME} here or above that defines this name; give a URI, or --config FILE`,
    )
  }
  const settled = { own: () => ({}), env }
  if (boards.length < 2) return { ...settled, options: {} }
  return { ...settled, options: { board: boards[0] }, boards: boards.map((uri) => ({ uri })) }
}

function toList(given: string | readonly string[] | undefined): readonly string[] {
  return typeof given === 'string' ? (given === '' ? [] : [given]) : (given ?? [])
}

/** Checks a module of the file. @throws InvalidArgument if other users could change it */
async function assertTrusted(
  module: string,
  { file, named }: { file: string; named: ReadonlySet<string> },
): Promise<void> {
  if (!named.has(module)) return
  const why = await findModuleDistrust(file)
  if (why === undefined) return
  throw new InvalidArgument(
    `${why}: the module that ${FILE_NAME} names is not run; name it on the command line if you trust it`,
  )
}

const AUTH = 'JOBBOARD_ZOOKEEPER_AUTH'

type ResourceKind = 'board' | 'persistence'

/** A value of the file with its place. */
interface ConfigEntry {
  readonly uri: string
  readonly path: readonly string[]
}

class SettingsResolver {
  readonly #file: ConfigFile
  readonly #env: CliContext['env']
  readonly #folder: string
  /** Whether the file was found in the working directory or above, and no user named it. */
  readonly #wasFound: boolean
  /** The modules of the file that were looked up so far. */
  readonly modules = new Set<string>()

  constructor(file: ConfigFile, { env, wasFound }: { readonly env: CliContext['env']; readonly wasFound: boolean }) {
    this.#file = file
    this.#env = env
    this.#wasFound = wasFound
    this.#folder = dirname(file.file)
  }

  resolve(options: TypedOptions): ResolvedSettings {
    const { config } = this.#file
    const { board: typed, ...rest } = options
    const asked = toList(typed || this.#env['JOBBOARD_BOARD'])
    const choices = asked.length === 0 && Array.isArray(config.board) ? config.board : []
    if (asked.length < 2 && choices.length < 2)
      return this.#resolveOne({ ...rest, ...definedOnly({ board: asked[0] }) })
    const named = asked.length > 0 ? asked : choices.map((text, index) => this.#text(text, ['board', String(index)]))
    const boards = named.map((name) => this.#resolveChosen(name, { isFromFile: asked.length === 0 }))
    const { options: found, env, ...settled } = this.#resolveOne({ ...rest, ...definedOnly({ board: named[0] }) })
    const common = options.persistence || this.#env['JOBBOARD_PERSISTENCE']
    return {
      ...settled,
      options: definedOnly({ ...found, board: asked.length > 0 ? found['board'] : undefined }),
      // The credentials of the first board are not for the servers of the others.
      env: { ...env, [AUTH]: this.#env[AUTH] },
      boards: common ? boards.map(({ persistence: _, ...rest }) => rest) : boards,
      ...(asked.length === 0 && { boardChoices: named }),
      ...(this.#wasFound && asked.length === 0 && { chosenByFile: { board: true, persistence: !common, auth: false } }),
    }
  }

  /** Resolves one of several boards. */
  #resolveChosen(name: string, { isFromFile }: { readonly isFromFile: boolean }): ChosenBoard {
    const board = this.#resolveNamed('board', name)
    const { uri, auth, persistence } = (board && this.#boardEntry(board)) ?? {
      uri: isFromFile ? this.#uri(name) : name,
    }
    const logbooks = persistence === undefined ? undefined : this.#resolveNamed('persistence', persistence)
    const opened = logbooks && (this.#persistenceEntry(logbooks) ?? { uri: logbooks.uri })
    if (opened?.key !== undefined || opened?.codec !== undefined)
      throw new InvalidArgument(
        `board ${name} has logbooks with a key or a codec of their own, as one of several boards of a conductor: name logbooks for all boards ` +
          'with --persistence, or run a conductor for it alone',
      )
    return { uri: uri ?? name, ...definedOnly({ auth, persistence: opened?.uri }) }
  }

  #resolveOne(options: SharedOptions): ResolvedSettings {
    const { config } = this.#file
    const askedBoard = options.board || this.#env['JOBBOARD_BOARD'] || undefined
    const board = this.#resolveNamed('board', askedBoard)
    const entry = board === undefined ? undefined : this.#boardEntry(board)
    const asked = options.persistence || this.#env['JOBBOARD_PERSISTENCE'] || undefined
    const persistence = this.#resolveNamed('persistence', asked ?? entry?.persistence)
    const logbooks = persistence === undefined ? undefined : this.#logbooks(persistence, options)
    const flows = entry?.flows ?? (config.flows === undefined ? undefined : this.#module(config.flows, ['flows']))
    const { timeout, redact } = config
    const found = {
      board: entry?.uri ?? board?.uri,
      persistence: logbooks?.uri ?? persistence?.uri,
      codec: logbooks?.codec,
      flows: flows === undefined ? undefined : [flows],
      timeout: timeout === undefined ? undefined : this.#duration(timeout, ['timeout']),
      redact: this.#env['JOBBOARD_REDACT'] ? undefined : redact?.join(','),
    }
    const own = (command: string) => this.#own(command)
    const env = this.#environment(entry, logbooks)
    const settled = { options: definedOnly(found), own, env }
    if (!this.#wasFound) return settled
    const withBoard = askedBoard !== undefined && entry?.persistence !== undefined
    const given = Boolean(this.#env[AUTH])
    const auth = askedBoard !== undefined && given ? undefined : entry?.auth
    const chosenByFile = { board: !askedBoard, persistence: !asked && !withBoard, auth: auth !== undefined }
    // The credentials of the file's own board override the environment's, which are not meant for that board.
    return { ...settled, chosenByFile, env: auth !== undefined && given ? { ...env, [AUTH]: auth } : env }
  }

  /** Resolves a URI, or the name of one in the file; resolves the file's default if nothing is given. */
  #resolveNamed(kind: ResourceKind, given: string | undefined): ConfigEntry | undefined {
    const { config, problem } = this.#file
    if (given !== undefined && URI_PATTERN.test(given)) return { uri: given, path: [] }
    const [named] = toList(config[kind])
    const name = given ?? (named === undefined ? undefined : this.#text(named, [kind]))
    if (name === undefined) return undefined
    if (URI_PATTERN.test(name)) return { uri: this.#uri(name), path: [] }
    const names = Object.keys(config[`${kind}s`] ?? {})
    if (names.includes(name)) return { uri: '', path: [`${kind}s`, name] }
    const message = `there is no ${kind} ${JSON.stringify(name)} in ${this.#file.shown}${suggestion(name, names)}`
    throw given === undefined ? problem([kind], message) : new InvalidArgument(message)
  }

  #boardEntry({ path }: ConfigEntry) {
    const [, name] = path
    const found = name === undefined ? undefined : this.#file.config.boards?.[name]
    if (found === undefined) return undefined
    if (typeof found === 'string') return { uri: this.#uri(this.#text(found, path)) }
    const { uri, auth, persistence, flows } = found
    return definedOnly({
      uri: this.#uri(this.#text(uri, [...path, 'uri'])),
      auth: auth === undefined ? undefined : this.#text(auth, [...path, 'auth']),
      persistence: persistence === undefined ? undefined : this.#text(persistence, [...path, 'persistence']),
      flows: flows === undefined ? undefined : this.#module(flows, [...path, 'flows']),
    })
  }

  #persistenceEntry({ path }: ConfigEntry) {
    const [, name] = path
    const found = name === undefined ? undefined : this.#file.config.persistences?.[name]
    if (found === undefined) return undefined
    if (typeof found === 'string') return { uri: this.#uri(this.#text(found, path)) }
    const { uri, key, codec, require } = found
    return definedOnly({
      uri: this.#uri(this.#text(uri, [...path, 'uri'])),
      key: key === undefined ? undefined : this.#text(key, [...path, 'key']),
      codec: codec === undefined ? undefined : this.#module(codec, [...path, 'codec']),
      require,
    })
  }

  /**
   * Resolves the sealing of logbooks. It has two forms, key and codec: either of them in an override replaces both of
   * the file.
   */
  #logbooks(persistence: ConfigEntry, { codec }: SharedOptions) {
    const { uri, key, codec: module, require } = this.#persistenceEntry(persistence) ?? {}
    if (uri === undefined) return undefined
    const overridden = codec || this.#env['JOBBOARD_CODEC'] || this.#env['JOBBOARD_LOGBOOK_KEY']
    return definedOnly(overridden ? { uri, require } : { uri, key, codec: module, require })
  }

  #environment(
    board: { auth?: string } | undefined,
    logbooks: { key?: string; require?: boolean } | undefined,
  ): CliContext['env'] {
    const { auth } = board ?? {}
    const { key, require } = logbooks ?? {}
    return {
      ...(auth === undefined ? {} : { [AUTH]: auth }),
      ...(key === undefined ? {} : { JOBBOARD_LOGBOOK_KEY: key }),
      ...(require === undefined ? {} : { JOBBOARD_LOGBOOK_REQUIRE: String(require) }),
      ...definedOnly(this.#env),
    }
  }

  /** Resolves folders in a URI against the file's folder. */
  #uri(uri: string): string {
    const [, folder] = /^directory:(.+)$/.exec(uri) ?? []
    return folder === undefined || isAbsolute(folder) ? uri : `directory:${resolve(this.#folder, folder)}`
  }

  /**
   * Resolves a path against the file's folder; a text without a leading dot that is no JavaScript file is a package.
   */
  #module(module: string, path: readonly string[]): string {
    const name = this.#text(module, path)
    const found = /^\.{1,2}\/|\.[cm]?[jt]sx?$/.test(name) ? resolve(this.#folder, name) : name
    this.modules.add(found)
    return found
  }

  #text(text: string, path: readonly string[]): string {
    return substituteVariables(text, this.#env, (message) => this.#file.problem(path, message))
  }

  #own(command: string): Readonly<Record<string, unknown>> {
    if (command === 'run') return this.#pool()
    return command === 'conductor' ? { ...this.#conductor(), ...this.#pool() } : {}
  }

  /** Returns the option `pool`, which no flag sets as a whole. */
  #pool(): Readonly<Record<string, unknown>> {
    const { pool } = this.#file.config
    if (!pool) return {}
    const { maxAge, startTimeout, grace, memory, maxMessage, ...others } = pool
    const durations = Object.entries(definedOnly({ maxAge, startTimeout, grace }))
    const sizes = Object.entries(definedOnly({ memory, maxMessage }))
    return {
      pool: {
        ...others,
        ...Object.fromEntries(durations.map(([name, value]) => [name, this.#duration(value, ['pool', name])])),
        ...Object.fromEntries(sizes.map(([name, value]) => [name, this.#memorySize(value, ['pool', name])])),
      },
    }
  }

  #conductor(): Readonly<Record<string, unknown>> {
    const { conductor = {} } = this.#file.config
    return Object.fromEntries(Object.entries(conductor).map(([name, value]) => [name, this.#flag(name, value)]))
  }

  /** Returns a duration as a user would type it. */
  #duration(value: string | number, path: readonly string[]): string {
    const text = typeof value === 'string' ? this.#text(value, path) : String(value)
    try {
      parseDuration(text, path.join('.'))
      return text
    } catch (error) {
      throw error instanceof InvalidArgument ? this.#file.problem(path, error.message) : error
    }
  }

  #memorySize(value: string | number, path: readonly string[]): MemorySize {
    const size = (typeof value === 'string' ? this.#text(value, path) : value) as MemorySize
    try {
      // The pool checks the smallest size of each.
      toBytes(size, { what: path.join('.'), least: SMALLEST_SIZE })
      return size
    } catch (error) {
      throw error instanceof InvalidArgument ? this.#file.problem(path, error.message) : error
    }
  }

  /** Returns a value as a user would type it, if it is a text on the command line. */
  #flag(name: string, value: unknown): unknown {
    const path = ['conductor', name]
    const isText = typeof value === 'string'
    if (DURATION_KEYS.includes(name) && (isText || typeof value === 'number')) return this.#duration(value, path)
    if (isText) return this.#text(value, path)
    const isNumber = name === 'concurrency' || name === 'flowConcurrency'
    return typeof value === 'number' && !isNumber ? String(value) : value
  }
}

const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{[^}]*\}?/g

/**
 * Replaces variables by their values in the environment; `$${` stands for a literal `${`.
 *
 * @param problem makes the error to throw from a message
 */
export function substituteVariables(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  problem: (message: string) => Error,
): string {
  return text.replaceAll(REFERENCE, (found: string, name: string | undefined, otherwise: string | undefined) => {
    if (found === '$${') return '${'
    if (name === undefined)
      throw problem(`write \${NAME}, the name of a variable in braces, or $\${ for the characters`)
    const value = env[name] || otherwise
    if (value !== undefined) return value
    throw problem(`the variable ${name} is not set; set it, or write \${${name}:-…} with a default`)
  })
}
