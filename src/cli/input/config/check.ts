/** Checks all of `jobboard.yaml` without opening a board, so that mistakes are found before jobs are claimed. */
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import type { DeclaredSchedule } from '../../../board/index.ts'
import { InvalidArgument, JobboardError } from '../../../core/errors.ts'
import { parseUri } from '../../../core/uri.ts'
import type { CliContext, KnownModules } from '../../context.ts'
import { AUTO, autoIn, findAutoModules } from '../auto-modules.ts'
import { findModule } from '../import-module.ts'
import { type ConfigFile, type ExaminedConfig, sortPlaces } from './config-file.ts'
import { limitsOf, schedulesOf } from './declarations.ts'
import { type Declaration, InvalidConfig, noEntryMessage, type Path } from './faults.ts'
import { flowDefaultsAsSchedules, flowSettingsOf } from './flow-sections.ts'
import { isModulePath, isUri } from './kinds.ts'
import { CONFIG, type Config } from './schema.ts'
import { tenantSchedulesOf } from './tenant-schedules.ts'
import { type TypedOptions, toList } from './typed-options.ts'
import { ConfigValues } from './values.ts'
import { type Leaf, mapLeaves, withoutEntries } from './walk.ts'

/** The boards and logbooks that are used; where none are given, the defaults of the file. `all` stands for all that the file has. */
export type Selected = 'all' | { readonly boards: readonly string[]; readonly persistence: string | undefined }

/** Returns the boards and logbooks that the options and the environment choose. */
export function toSelected({ board, persistence }: TypedOptions, env: CliContext['env']): Selected {
  return {
    boards: toList(board || env['JOBBOARD_BOARD']),
    persistence: persistence || env['JOBBOARD_PERSISTENCE'] || undefined,
  }
}

export interface CheckOptions extends Pick<CliContext, 'cwd' | 'env'> {
  readonly selected: Selected
  /** Loads the flows of modules, to check what the file says of them; absent where the caller loads them itself. */
  readonly loadFlows?: (modules: readonly string[]) => Promise<KnownModules>
}

/** Checks a whole file. @throws InvalidConfig with all mistakes */
export async function assertValid(examined: ExaminedConfig, options: CheckOptions): Promise<void> {
  const faults = await findFaults(examined, options)
  if (faults.length > 0) throw new InvalidConfig(faults)
}

/** Returns all mistakes of a file, as `FILE:LINE:COLUMN: what`, in the order of their places. */
export async function findFaults(examined: ExaminedConfig, options: CheckOptions): Promise<readonly string[]> {
  const { file, paths } = examined
  if (!file) return examined.faults
  const faults = new FaultList(file, paths)
  const values = new ConfigValues(file, options.env)
  const isUsedAt = toUsedFilter(file, options)
  const checks: Promise<void>[] = []
  const modules: string[] = []
  for (const leaf of leavesOf(file)) {
    // Variables of values that are not used may be missing: a developer's machine has no passwords of production.
    const isUsed = isUsedAt(leaf.path)
    const reader = isUsed ? values : new ConfigValues(file, withAnyVariable(options.env))
    const read = faults.attempt(leaf.path, () => reader.read(leaf))
    if (read === undefined || !isUsed) continue
    if (leaf.kind === 'uri' && faults.isEmptyFor(['boards', 'persistences']))
      faults.attempt(leaf.path, () => assertReference(leaf.path, String(read), file))
    if (leaf.kind === 'uri') checks.push(checkUri(leaf.path, String(read), { faults, ...options }))
    if (leaf.kind === 'module' && leaf.path[0] === 'flows' && options.loadFlows)
      modules.push(read === AUTO ? autoIn(dirname(file.file)) : toModule(String(read), file))
    if (leaf.kind === 'module' && read === AUTO && isOfFlows(leaf.path)) checks.push(checkAuto(leaf.path, file, faults))
    else if (leaf.kind === 'module') checks.push(checkModule(leaf.path, String(read), { file, faults, ...options }))
  }
  await Promise.all(checks)
  // Declarations are made from values. An invalid value would be reported a second time, so its declaration is left out.
  const rest = { ...file, config: withoutEntries(file.config, faults.paths) as Config }
  const right = new ConfigValues(rest, options.env)
  await checkConductor({ values: right, faults }, rest)
  await checkLimits({ values: right, faults })
  await checkFlowDefaults({ values: right, faults })
  await checkFlowSettings({ values: right, faults })
  if (faults.isEmptyFor(['tenants', 'flow-defaults'])) await checkSchedules({ values: right, faults })
  if (modules.length > 0 && faults.isEmptyFor(['flows', 'schedules', 'flow-defaults', 'flow-settings']))
    await checkFlows({ values: right, faults }, async () => (await options.loadFlows?.(modules)) ?? { flows: [] })
  return sortPlaces([...new Set([...examined.faults, ...faults.all])])
}

/** The mistakes that were found so far, with their places. */
class FaultList {
  readonly #file: ConfigFile
  readonly #paths: Path[]
  readonly #faults: string[] = []

  /** @param paths the paths of mistakes that are known already */
  constructor(file: ConfigFile, paths: readonly Path[]) {
    this.#file = file
    this.#paths = [...paths]
  }

  /** Notes the error of a value. */
  add(path: Path, error: unknown): void {
    if (!(error instanceof JobboardError)) throw error
    const { message } = error
    this.#paths.push(path)
    const isPlaced = message.startsWith(`${this.#file.shown}:`)
    this.#faults.push(isPlaced ? message : `${this.#file.place(path)}: ${message}`)
  }

  /** Returns what the work returns. If it throws, notes the error at the path, and returns undefined. */
  attempt<T>(path: Path, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      this.add(path, error)
      return undefined
    }
  }

  /** Returns whether no mistake was found in these sections. */
  isEmptyFor(sections: readonly string[]): boolean {
    return !this.#paths.some(([section]) => sections.includes(String(section)))
  }

  get paths(): readonly Path[] {
    return this.#paths
  }

  get all(): readonly string[] {
    return this.#faults
  }
}

function leavesOf({ config }: ConfigFile): Leaf[] {
  const leaves: Leaf[] = []
  mapLeaves({ schema: CONFIG as z.ZodType, value: config, path: [] }, (leaf) => {
    leaves.push(leaf)
    return leaf.value
  })
  return leaves
}

/** Returns a predicate: whether the value at a path is used. Of boards and logbooks, only the selected ones are. */
function toUsedFilter({ config }: ConfigFile, { selected }: CheckOptions): (path: Path) => boolean {
  if (selected === 'all') return () => true
  const boards = selected.boards.length > 0 ? selected.boards : toList(config.board)
  const persistences = boards.map((board) => {
    const entry = config.boards?.[board]
    return selected.persistence ?? (typeof entry === 'object' ? entry.persistence : undefined) ?? config.persistence
  })
  return ([section, name]) => {
    if (section === 'boards') return boards.includes(String(name))
    if (section === 'persistences')
      return (persistences.length > 0 ? persistences : [config.persistence]).includes(String(name))
    if (section === 'board') return selected.boards.length === 0
    return section !== 'persistence' || selected.persistence === undefined
  }
}

/** Returns an environment in which each variable is set. */
function withAnyVariable(env: CliContext['env']): CliContext['env'] {
  return new Proxy(env, { get: (target, name) => target[String(name)] || 'unset' })
}

/** Returns `board` or `persistence` if the value at the path may be a name in the file; undefined if it must be a URI. */
function referenceKey(path: Path): 'board' | 'persistence' | undefined {
  const key = path.findLast((each) => typeof each === 'string')
  return key === 'board' || key === 'persistence' ? key : undefined
}

/** Checks that the file has the board or the logbooks that a value names. @throws InvalidArgument */
function assertReference(path: Path, value: string, { config, shown }: ConfigFile): void {
  const key = referenceKey(path)
  if (key === undefined || isUri(value)) return
  const names = Object.keys(config[`${key}s`] ?? {})
  if (names.includes(value)) return
  throw new InvalidArgument(noEntryMessage(key, { name: value, names, shown }))
}

/** The parameters of URIs that name files. */
const FILE_PARAMETERS = ['ca', 'cert', 'key', 'sslrootcert', 'sslcert', 'sslkey']

async function checkUri(
  path: Path,
  value: string,
  { faults, cwd }: { readonly faults: FaultList; readonly cwd: string },
): Promise<void> {
  if (referenceKey(path) !== undefined && !isUri(value)) return
  const isBoard = path[0] === 'boards' ? path.at(-1) !== 'persistence' : path[0] === 'board'
  try {
    const { parameters } = parseUri(value, isBoard ? 'board' : 'persistence')
    if (isBoard) (await import('../../../board/internal.ts')).assertBoardUri(value)
    for (const name of FILE_PARAMETERS) {
      const file = parameters.get(name)
      if (file !== undefined && !(await isFile(resolve(cwd, file))))
        throw new InvalidArgument(`${name}: file ${file} does not exist`)
    }
  } catch (error) {
    faults.add(path, error)
  }
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
}

/** Checks that a module exists. Its exports are checked when it is loaded. */
async function checkModule(
  path: Path,
  module: string,
  { file, faults, cwd }: { readonly file: ConfigFile; readonly faults: FaultList; readonly cwd: string },
): Promise<void> {
  await findModule(toModule(module, file), { cwd }).catch((error: unknown) => faults.add(path, error))
}

/** Returns whether a value is in `flows`, of the file or of a board. */
function isOfFlows([section, , key]: Path): boolean {
  return section === 'flows' || (section === 'boards' && key === 'flows')
}

/** Checks that `auto` finds modules. */
async function checkAuto(path: Path, { file }: ConfigFile, faults: FaultList): Promise<void> {
  const found = await findAutoModules(dirname(file))
  for (const each of found.faults) faults.add(path, new InvalidArgument(each))
}

/** Returns the module as it is imported: a path is relative to the file that names it. */
function toModule(module: string, { file }: ConfigFile): string {
  return isModulePath(module) ? resolve(dirname(file), module) : module
}

async function checkFlows({ values, faults }: DeclarationCheck, loadFlows: () => Promise<KnownModules>): Promise<void> {
  const { flowChecks } = await import('./section-checks.ts')
  const known = await loadFlows().catch((error: unknown) => faults.add(['flows'], error))
  if (!known) return
  for (const { path, assert } of flowChecks(values, known.flows)) faults.attempt(path, assert)
  const sections = values.section('schedules') ?? {}
  for (const { path, make, refine } of await schedulesOf(values, { schedules: [], ...known })) {
    // Those with a flow were checked before.
    const isChange = sections[String(path[1])]?.flow === undefined
    if (isChange) await checkSchedule({ path, make: () => make()[0], ...(refine ? { refine } : {}) }, faults)
  }
  const { schedules = [] } = known
  await checkTenantSchedules({ values, faults }, { flows: [], schedules })
}

interface DeclarationCheck {
  readonly values: ConfigValues
  readonly faults: FaultList
}

async function checkConductor(
  { values, faults }: DeclarationCheck,
  { config }: Pick<ConfigFile, 'config'>,
): Promise<void> {
  if (!config.conductor) return
  const { conductorChecks } = await import('./section-checks.ts')
  for (const { path, assert } of conductorChecks(values, config)) faults.attempt(path, assert)
}

/** Checks each limit on its own, so that each mistake is found. */
async function checkLimits({ values, faults }: DeclarationCheck): Promise<void> {
  const { toDeclaredLimits } = await import('../../../board/internal.ts')
  for (const { path, make } of limitsOf(values))
    faults.attempt(path, () => toDeclaredLimits({ declare: Object.fromEntries([make()]) }))
}

async function checkSchedules({ values, faults }: DeclarationCheck): Promise<void> {
  for (const { path, make, refine } of await schedulesOf(values, { flows: [] })) {
    // The rule is the same for each tenant.
    await checkSchedule({ path, make: () => make()[0], ...(refine ? { refine } : {}) }, faults)
  }
  await checkTenantSchedules({ values, faults }, { flows: [] })
}

async function checkTenantSchedules({ values, faults }: DeclarationCheck, known: KnownModules): Promise<void> {
  for (const { path, make, refine } of await tenantSchedulesOf(values, known))
    await checkSchedule({ path, make: () => make()[0], ...(refine ? { refine } : {}) }, faults)
}

async function checkFlowDefaults({ values, faults }: DeclarationCheck): Promise<void> {
  for (const defaults of await flowDefaultsAsSchedules(values)) await checkSchedule(defaults, faults)
}

async function checkFlowSettings({ values, faults }: DeclarationCheck): Promise<void> {
  const { toDeclaredFlowSettings } = await import('../../../board/internal.ts')
  for (const { path, make, refine } of flowSettingsOf(values))
    try {
      toDeclaredFlowSettings({ declare: Object.fromEntries([make()]) })
    } catch (error) {
      faults.add(error instanceof JobboardError ? (refine?.(error.message) ?? path) : path, error)
    }
}

/** The beginning of errors about the options of a job: here there is no job. */
const JOB_PREFIX = /^job [\da-f-]{36}: /

async function checkSchedule(
  { path, make, refine }: Declaration<DeclaredSchedule | undefined>,
  faults: FaultList,
): Promise<void> {
  const { toDefinitions } = await import('../../../board/internal.ts')
  try {
    const made = make()
    if (made) await toDefinitions(made)
  } catch (error) {
    if (!(error instanceof JobboardError)) throw error
    const message = error.message.replace(JOB_PREFIX, '')
    faults.add(refine?.(message) ?? path, new InvalidArgument(message, { cause: error }))
  }
}
