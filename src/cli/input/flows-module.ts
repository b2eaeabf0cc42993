/** The flows and services of the modules that the command line names. */
import { pathToFileURL } from 'node:url'
import type { DeclaredFlowSettings, DeclaredLimits, DeclaredSchedule, PostOptions } from '../../board/index.ts'
import type { ConductorHooks, ErrorHandler } from '../../conductor/index.ts'
import { Duplicate, InvalidArgument } from '../../core/errors.ts'
import { collectExports, exportNamed } from '../../core/module-exports.ts'
import { isMisspelt } from '../../core/texts.ts'
import type { AnyFlow, FlowDefaults } from '../../flow/index.ts'
import { type LocatedModule, locateModules, shownModule } from './auto-modules.ts'
import { type HookExports, hookExports } from './hooks-modules.ts'
import { importFile, type ModuleOptions } from './import-module.ts'
import { definedOnly } from './shared-options.ts'

/** The names of modules: paths or packages, both resolved against the working directory, or `auto`. */
export type ModuleNames = readonly string[]

/**
 * Returns every flow that the modules export: by a name, as default, or in a list.
 *
 * @param options.assertModule throws for a file that must not be run
 * @throws InvalidArgument if a module does not exist, has no flows, or is TypeScript without tsx
 * @throws Duplicate if two modules export different flows of one name and version
 * @throws JobboardError if a module itself throws, or never finishes loading
 */
export async function loadFlows(modules: ModuleNames, options: ModuleOptions): Promise<AnyFlow[]> {
  return (await loadFlowsAndServices(modules, options)).flows
}

/** The exports of flow modules that their runner needs. */
export interface FlowModules {
  readonly flows: AnyFlow[]
  /** The URLs of the files, which child processes import. */
  readonly urls: readonly URL[]
  /** The options with which another process of Node can import them; undefined if it needs none. */
  readonly execArgv?: readonly string[]
  /** The exports `services`, as conductors take them. */
  readonly services?: unknown
  /** The exports `hooks` and `onError`, which conductors check. */
  readonly hooks?: ConductorHooks
  readonly onError?: readonly ErrorHandler[]
  /** The exports `schedules`, `limits` and `settings`, which conductors put on their board. */
  readonly schedules?: readonly DeclaredSchedule[]
  readonly limits?: DeclaredLimits['declare']
  readonly flowSettings?: DeclaredFlowSettings['declare']
}

/**
 * Loads the flows of modules, and the `ctx.services` of their tasks.
 *
 * @throws as {@link loadFlows}; InvalidArgument for `services` of a wrong type, or of one name in two modules
 */
export async function loadFlowsAndServices(modules: ModuleNames, options: ModuleOptions): Promise<FlowModules> {
  const loaded: LoadedModule[] = []
  const changed = new Map<AnyFlow, AnyFlow>()
  // One after the other: what modules print, and which of them fails first, stays the same.
  for (const located of await locateModules(modules, options)) loaded.push(await loadOne(located, changed))
  assertDistinct(loaded)
  const tsx = loaded.find((each) => each.tsx !== undefined)?.tsx
  const { services, hooks } = await mergeExports(loaded)
  // A module may export again what another one exports.
  const onError = [...new Set(loaded.flatMap((each) => each.onError))]
  return {
    flows: [...new Set(loaded.flatMap(({ flows }) => flows))],
    urls: loaded.map(({ url }) => url),
    ...(tsx === undefined ? {} : { execArgv: ['--import', tsx.href] }),
    ...definedOnly({ services, hooks, onError }),
    ...mergeDeclarations(loaded, changed),
  }
}

/**
 * Returns what the modules declare. The flows of schedules have the defaults of the config file, too.
 *
 * @throws Duplicate for a schedule or a limit that is declared twice, unless a module exports again the object of another
 */
function mergeDeclarations(
  loaded: readonly LoadedModule[],
  changed: ReadonlyMap<AnyFlow, AnyFlow>,
): Pick<FlowModules, 'schedules' | 'limits' | 'flowSettings'> {
  const schedules = uniteByName('schedule', loaded, ({ schedules }) => schedules?.map((each) => [each.id, each]))
  const withDefaults = (declared: DeclaredSchedule): DeclaredSchedule => {
    const { flow } = declared
    return { ...declared, flow: typeof flow === 'string' ? flow : (changed.get(flow) ?? flow) }
  }
  const limits = uniteByName('limit', loaded, (each) => each.limits && Object.entries(each.limits))
  const settings = uniteByName('settings of flow', loaded, (each) => each.settings && Object.entries(each.settings))
  return {
    ...(settings.size > 0 ? { flowSettings: Object.fromEntries(settings) } : {}),
    ...(schedules.size > 0 ? { schedules: [...schedules.values()].map(withDefaults) } : {}),
    ...(limits.size > 0 ? { limits: Object.fromEntries(limits) } : {}),
  }
}

function uniteByName<T>(
  what: string,
  loaded: readonly LoadedModule[],
  declaredBy: (module: LoadedModule) => readonly (readonly [name: string, declared: T])[] | undefined,
): Map<string, T> {
  const known = new Map<string, { readonly declared: T; readonly module: string }>()
  for (const each of loaded)
    for (const [name, declared] of declaredBy(each) ?? []) {
      const other = known.get(name)
      // A module may export again what another one exports.
      if (other && other.declared !== declared) {
        const who =
          other.module === each.module
            ? `module ${each.module} declares`
            : `modules ${other.module} and ${each.module} both declare`
        throw new Duplicate(`${who} ${what} ${name}${other.module === each.module ? ' twice' : ''}; keep one of them`)
      }
      known.set(name, { declared, module: each.module })
    }
  return new Map([...known].map(([name, { declared }]) => [name, declared]))
}

interface LoadedModule extends HookExports {
  readonly schedules: readonly DeclaredSchedule[] | undefined
  readonly limits: DeclaredLimits['declare'] | undefined
  readonly settings: DeclaredFlowSettings['declare'] | undefined
  readonly module: string
  readonly url: URL
  readonly tsx: URL | undefined
  readonly flows: readonly AnyFlow[]
  readonly services: unknown
}

/** @param changed the flows with the defaults of the config file: a flow that two modules export stays one flow */
async function loadOne(
  { module, file, options }: LocatedModule,
  changed: Map<AnyFlow, AnyFlow>,
): Promise<LoadedModule> {
  // Imported before the user's module: Node 20 fails if a CommonJS module requires a module that is just being imported.
  const { isFlow, withFlowDefaults } = await import('../../flow/index.ts')
  const { exported, tsx } = await importFile({ module, file }, options)
  const { configFile } = options
  const flows = collectExports(exported, isFlow).map((flow) => {
    const defaults = configFile?.flowDefaults(flow.name)
    if (!defaults) return flow
    const found = changed.get(flow) ?? withFlowDefaults(flow, defaults)
    changed.set(flow, found)
    return found
  })
  if (flows.length === 0) {
    throw new InvalidArgument(
      `module ${module} has no flows; export what linear() makes, as in: export const hello = linear('hello', …)`,
    )
  }
  const services = exportNamed(exported, 'services')
  if (services !== undefined && typeof services !== 'function' && (typeof services !== 'object' || services === null)) {
    throw new InvalidArgument(
      `module ${module}: services is ${JSON.stringify(services)}; export an object, or a function that makes one`,
    )
  }
  const url = pathToFileURL(file)
  // Conductors check the content of hooks and onError.
  return {
    module,
    url,
    tsx,
    flows,
    services,
    ...hookExports(module, exported),
    ...declarationExports(module, exported),
  }
}

/** @throws InvalidArgument for an export of a wrong type; conductors check the rest */
function declarationExports(module: string, exported: object): Pick<LoadedModule, 'schedules' | 'limits' | 'settings'> {
  const schedules = exportNamed(exported, 'schedules')
  const isList = Array.isArray(schedules) && schedules.every((each) => typeof Object(each).id === 'string')
  if (schedules !== undefined && !isList)
    throw new InvalidArgument(
      `module ${module}: the export schedules must be a list of schedules, as in [schedule('nightly', …)]`,
    )
  const limits = exportNamed(exported, 'limits')
  if (limits !== undefined && !isObject(limits))
    throw new InvalidArgument(
      `module ${module}: the export limits must be an object, as in { 'flow/report': { concurrency: 2 } }`,
    )
  const settings = exportNamed(exported, 'settings')
  if (settings !== undefined && !isObject(settings))
    throw new InvalidArgument(
      `module ${module}: the export settings must be an object, as in { 'report*': { maxAttempts: 7 } }`,
    )
  return {
    schedules: schedules as readonly DeclaredSchedule[] | undefined,
    limits: limits as DeclaredLimits['declare'] | undefined,
    settings: settings as DeclaredFlowSettings['declare'] | undefined,
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @throws Duplicate naming the two modules that define the same version of a flow differently */
function assertDistinct(loaded: readonly LoadedModule[]): void {
  const known = new Map<string, { readonly flow: AnyFlow; readonly module: string }>()
  for (const { module, flows } of loaded) {
    for (const flow of flows) {
      const name = `${flow.name} in version ${flow.version}`
      const other = known.get(name)
      // A module may export again what another one exports. Two of one module are reported where conductors start.
      if (other && other.flow !== flow && other.module !== module) {
        throw new Duplicate(
          `modules ${other.module} and ${module} both define flow ${name}; rename one, or give it another version`,
        )
      }
      known.set(name, { flow, module })
    }
  }
}

async function mergeExports(loaded: readonly LoadedModule[]): Promise<Pick<FlowModules, 'services' | 'hooks'>> {
  const [only] = loaded
  if (only && loaded.length === 1) return definedOnly({ services: only.services, hooks: only.hooks })
  // A command that runs one module, or only posts, does not load the conductor to merge.
  const { mergeHooks, mergeServices } = await import('../../conductor/internal.ts')
  const services = loaded.filter((each) => each.services !== undefined)
  const hooks = loaded.flatMap((each) => each.hooks ?? [])
  return definedOnly({
    services: mergeServices(services.map((each) => ({ name: `module ${each.module}`, services: each.services }))),
    hooks: hooks.length === 0 ? undefined : mergeHooks(hooks),
  })
}

/** Returns the flow of a name in modules. @throws as {@link loadFlows} and {@link chooseFlow} */
export async function flowNamed(name: string, modules: ModuleNames, options: ModuleOptions): Promise<AnyFlow> {
  return chooseFlow(name, await loadFlows(modules, options), modules)
}

/**
 * Returns the modules of `--flows`.
 *
 * @throws InvalidArgument if neither the command line nor the config file names one
 */
export function flowsOption({ flows }: { readonly flows?: ModuleNames }, command: string): ModuleNames {
  if (flows && flows.length > 0) return flows
  throw new InvalidArgument(
    `${command} needs the code of its flows: add --flows MODULE, or flows: MODULE to jobboard.yaml`,
  )
}

/**
 * Returns the newest flow of a name, which is the last, as conductors choose it.
 *
 * @throws InvalidArgument naming the existing flows
 */
export function chooseFlow(name: string, flows: readonly AnyFlow[], modules: ModuleNames): AnyFlow {
  const found = flows.findLast((flow) => flow.name === name)
  if (found) return found
  const names = [...new Set(flows.map((flow) => flow.name))]
  const similar = names.find((known) => isMisspelt(name, known))
  const hint = similar === undefined ? `; it has ${names.join(', ')}` : `; did you mean ${similar}?`
  const shown = modules.map(shownModule)
  const where = shown.length === 1 ? `module ${shown[0]} has` : `modules ${shown.join(', ')} have`
  throw new InvalidArgument(`${where} no flow ${JSON.stringify(name)}${hint}`)
}

/**
 * Returns the options of a post with the defaults that the config file has for a flow whose code is not known here: a post replaces them, but resources and
 * limits, which are added.
 */
export function withPostDefaults<T extends PostOptions>(given: T, defaults: FlowDefaults | undefined): T {
  if (!defaults) return given
  const { keepLogbooks: _, keepResults: __, resources, limits, ...posting } = defaults
  const own = given.resources
  return {
    ...posting,
    ...given,
    ...(limits && given.limits !== 'none' ? { limits: [...limits, ...(given.limits ?? [])] } : {}),
    ...(resources
      ? {
          resources: {
            exclusive: [...(resources.exclusive ?? []), ...(own?.exclusive ?? [])],
            shared: [...(resources.shared ?? []), ...(own?.shared ?? [])],
          },
        }
      : {}),
  }
}
