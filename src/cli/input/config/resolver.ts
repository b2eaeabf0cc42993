/** Resolves the settings of `jobboard.yaml`: the options of commands, and the declarations of limits, schedules and defaults of flows. */
import { dirname, isAbsolute, resolve } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'
import type { CliContext, FileSettings } from '../../context.ts'
import { AUTO, autoIn } from '../auto-modules.ts'
import type { ChosenBoard } from '../board-flags.ts'
import { toQueueTexts } from '../conductor-flags.ts'
import { definedOnly, type SharedOptions } from '../shared-options.ts'
import type { ConfigFile } from './config-file.ts'
import { limitsOf } from './declarations.ts'
import { makeAll, noEntryMessage } from './faults.ts'
import { flowDefaultsOf, flowSettingsOf } from './flow-sections.ts'
import { isModulePath, isUri } from './kinds.ts'
import { FILE_NAME } from './nearest.ts'
import { allSchedules, ownEntriesOf } from './tenant-schedules.ts'
import { findModuleDistrust } from './trust.ts'
import { type ResolvedSettings, type TypedOptions, toList } from './typed-options.ts'
import { ConfigValues } from './values.ts'

/** Checks a module that the file names. @throws InvalidArgument if other users could change it */
export async function assertTrusted(
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

/** A board or logbooks: a URI, or the path of an entry of the file. */
interface ConfigEntry {
  readonly uri: string
  readonly path: readonly string[]
}

export class SettingsResolver {
  readonly #file: ConfigFile
  readonly #env: CliContext['env']
  readonly #values: ConfigValues
  readonly #folder: string
  /** Whether the file was found in the working directory or above, and no user named it. */
  readonly #wasFound: boolean
  /** The modules of the file that were looked up so far. */
  readonly modules = new Set<string>()

  constructor(file: ConfigFile, { env, wasFound }: Pick<CliContext, 'env'> & { readonly wasFound: boolean }) {
    this.#file = file
    this.#env = env
    this.#values = new ConfigValues(file, env)
    this.#wasFound = wasFound
    this.#folder = dirname(file.file)
  }

  resolve(options: TypedOptions): ResolvedSettings {
    const { config } = this.#file
    const { board: typed, ...rest } = options
    const asked = toList(typed || this.#env['JOBBOARD_BOARD'])
    const choices = asked.length === 0 && Array.isArray(config.board) ? config.board : []
    if (asked.length < 2 && choices.length < 2)
      return this.#resolveOne({ ...rest, ...definedOnly({ board: asked[0] }) }, { asked: asked.length })
    const named = asked.length > 0 ? asked : choices.map((text, index) => this.#text(text, ['board', String(index)]))
    const boards = named.map((name) => this.#resolveChosen(name, { isFromFile: asked.length === 0 }))
    const first = { ...rest, ...definedOnly({ board: named[0] }) }
    const { options: found, env, ...settled } = this.#resolveOne(first, { asked: asked.length })
    const common = options.persistence || this.#env['JOBBOARD_PERSISTENCE']
    return {
      ...settled,
      options: definedOnly({ ...found, board: asked.length > 0 ? found['board'] : undefined }),
      // The credentials of the first board are not for the servers of the others.
      env: { ...env, [AUTH]: this.#env[AUTH] },
      ...definedOnly({ logbookAuth: boards[0]?.auth }),
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

  /** @param asked the number of boards that the command line or the environment names */
  #resolveOne(options: SharedOptions, { asked: askedBoards }: { readonly asked: number }): ResolvedSettings {
    const { config } = this.#file
    const askedBoard = options.board || this.#env['JOBBOARD_BOARD'] || undefined
    const board = this.#resolveNamed('board', askedBoard)
    const entry = board === undefined ? undefined : this.#boardEntry(board)
    const asked = options.persistence || this.#env['JOBBOARD_PERSISTENCE'] || undefined
    const persistence = this.#resolveNamed('persistence', asked ?? entry?.persistence)
    const logbooks = persistence === undefined ? undefined : this.#logbooks(persistence, options)
    const flows = entry?.flows ?? (config.flows === undefined ? undefined : this.#modules(config.flows, ['flows']))
    const { redact } = config
    const found = {
      board: entry?.uri ?? board?.uri,
      persistence: logbooks?.uri ?? persistence?.uri,
      codec: logbooks?.codec,
      flows,
      timeout: this.#values.section('timeout'),
      redact: this.#env['JOBBOARD_REDACT'] ? undefined : redact?.join(','),
    }
    const own = (command: string) => this.#own(command, askedBoards)
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
    if (given !== undefined && isUri(given)) return { uri: given, path: [] }
    const [named] = toList(config[kind])
    const name = given ?? (named === undefined ? undefined : this.#text(named, [kind]))
    if (name === undefined) return undefined
    if (isUri(name)) return { uri: this.#uri(name), path: [] }
    const names = Object.keys(config[`${kind}s`] ?? {})
    if (names.includes(name)) return { uri: '', path: [`${kind}s`, name] }
    const message = noEntryMessage(kind, { name, names, shown: this.#file.shown })
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
      flows: flows === undefined ? undefined : this.#modules(flows, [...path, 'flows']),
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
   * Resolves the encryption of logbooks. It is set by a key or by a codec: if the command line or the environment sets one of them, neither
   * of the file is used.
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
   * Resolves the path of a module against the file's folder. The name of a package is returned as it is.
   */
  #module(module: string, path: readonly string[]): string {
    const name = this.#text(module, path)
    const found =
      name === AUTO && path.at(-1) === 'flows'
        ? autoIn(this.#folder)
        : isModulePath(name)
          ? resolve(this.#folder, name)
          : name
    this.modules.add(found)
    return found
  }

  #modules(modules: string | readonly string[], path: readonly string[]): readonly string[] {
    return (typeof modules === 'string' ? [modules] : modules).map((module) => this.#module(module, path))
  }

  #text(text: string, path: readonly string[]): string {
    return this.#values.text(text, path)
  }

  #own(command: string, askedBoards: number): Readonly<Record<string, unknown>> {
    if (command !== 'run' && command !== 'conductor') return {}
    // No flag sets the pool as a whole.
    const pool = definedOnly({ pool: this.#values.section('pool') })
    return command === 'conductor' ? { ...this.#conductor(askedBoards), ...pool, ...this.#hooks() } : pool
  }

  /** Returns the modules of hooks, which no flag names. */
  #hooks(): Readonly<Record<string, unknown>> {
    const { hooks } = this.#file.config
    return hooks === undefined ? {} : { hooks: this.#modules(hooks, ['hooks']) }
  }

  #conductor(askedBoards: number): Readonly<Record<string, unknown>> {
    const { health, release, queues, weights, ...others } = this.#values.section('conductor') ?? {}
    // The weights are those of the file's boards: they are not for others.
    const isReleaseSet = Boolean(this.#env['JOBBOARD_RELEASE'])
    return definedOnly({
      ...others,
      queue: queues === undefined ? undefined : toQueueTexts(queues),
      weights: askedBoards === 0 ? weights : undefined,
      health: typeof health === 'number' ? String(health) : health,
      release: isReleaseSet ? undefined : release,
    })
  }

  /** Returns the settings of the file that are not options of commands. */
  fileSettings(reread: () => Promise<ResolvedSettings>): FileSettings {
    const file = this.#file
    const values = this.#values
    const { owner } = file.config
    const ownership = definedOnly({ owner, prune: owner === undefined ? undefined : true })
    let defaults: ReturnType<typeof flowDefaultsOf> | undefined
    return {
      config: file.config,
      shown: file.shown,
      limits: (exported) => {
        if (!file.config.limits && !file.config.tenants && owner === undefined && !exported) return undefined
        return { declare: { ...exported, ...Object.fromEntries(makeAll(limitsOf(values), file)) }, ...ownership }
      },
      flowSettings: (exported) => {
        if (!file.config['flow-settings'] && owner === undefined && !exported) return undefined
        return { declare: { ...exported, ...Object.fromEntries(makeAll(flowSettingsOf(values), file)) }, ...ownership }
      },
      schedules: async ({ flows, schedules = [] }) => {
        const isEmpty = !file.config.schedules && schedules.length === 0 && ownEntriesOf(values).length === 0
        if (isEmpty && owner === undefined) return undefined
        return { declare: await allSchedules(values, { known: { flows, schedules }, file }), ...ownership }
      },
      flowDefaults: (flow) => {
        defaults ??= flowDefaultsOf(values)
        return Object.hasOwn(defaults, flow) ? defaults[flow] : undefined
      },
      reread: async () => {
        const { own, configFile } = await reread()
        // If it is gone, one of a folder above may be found, which is meant for others.
        if (configFile?.shown !== file.shown) return undefined
        return { options: own('conductor'), file: configFile }
      },
    }
  }
}
