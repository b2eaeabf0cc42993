/**
 * The modules that `flows: auto` stands for: those that the nearest `package.json` and the packages it depends on name in their field `jobboard`.
 */
import { realpath } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { InvalidConfig } from './config/faults.ts'
import { findModule, type ModuleOptions } from './import-module.ts'
import { declaredFiles, type FoundPackage, findPackage, readPackage, toMap } from './package-flows.ts'

export const AUTO = 'auto'

/** Returns `auto` of a config file as `auto:FOLDER`: packages are looked up from the folder of the file, and not from the working directory. */
export function autoIn(folder: string): string {
  return `${AUTO}:${folder}`
}

/** Returns the name of a module for people. */
export function shownModule(module: string): string {
  return module.startsWith(`${AUTO}:`) ? AUTO : module
}

/** Returns the folder from which `auto` is looked up; undefined for every other module. */
function autoFolder(module: string, cwd: string): string | undefined {
  if (module === AUTO) return cwd
  return module.startsWith(`${AUTO}:`) ? resolve(cwd, module.slice(AUTO.length + 1)) : undefined
}

/** A module that a package names. */
export interface AutoModule {
  /** The name of the package. */
  readonly package: string
  /** The name of the module for people: `PACKAGE/flows.js`. */
  readonly module: string
  readonly file: string
}

export interface AutoModules {
  readonly modules: readonly AutoModule[]
  /** What is wrong, each a line. */
  readonly faults: readonly string[]
}

/**
 * Finds the modules of the packages on which the nearest `package.json` depends, in the order of its dependencies; its own modules come last. Packages for development only are left
 * out: they are not installed where conductors run.
 *
 * @param assertFile throws for a file that must not decide what is run
 */
export async function findAutoModules(
  folder: string,
  assertFile: (file: string) => Promise<void> | undefined = () => undefined,
): Promise<AutoModules> {
  const project = await nearestPackage(folder)
  if (!project)
    return fault(`flows: auto needs a package.json in ${folder} or above it: add one, or name the modules of flows`)
  const { manifest, file } = project
  await assertFile(file)
  if (!manifest) return fault(`${file} is not a JSON object: correct it, or name the modules of flows`)
  const optional = Object.keys(toMap(manifest['optionalDependencies']) ?? {})
  const names = [...new Set([...Object.keys(toMap(manifest['dependencies']) ?? {}), ...optional])]
  const found = await Promise.all(names.map((name) => findPackage(name, project.root)))
  const modules: AutoModule[] = []
  const faults: string[] = []
  for (const [index, name] of names.entries()) {
    const dependency = found[index]
    // npm leaves out what is optional where it cannot be installed.
    if (!dependency && optional.includes(name)) continue
    if (dependency) await addModules(dependency, { modules, faults, assertFile })
    else faults.push(`package ${name} is a dependency in ${file} and is not installed: run npm install`)
  }
  await addModules(project, { modules, faults, assertFile })
  if (modules.length > 0 || faults.length > 0) return { modules, faults }
  return fault(
    `flows: auto finds no modules: neither ${file} nor one of its dependencies has a field jobboard; add it, as in "jobboard": "./flows.js", or name the modules of flows`,
  )
}

function fault(line: string): AutoModules {
  return { modules: [], faults: [line] }
}

async function nearestPackage(folder: string): Promise<FoundPackage | undefined> {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const found = await readPackage(at)
    if (found || dirname(at) === at) return found
  }
}

/** Adds the modules of a package, or what is wrong with it. */
async function addModules(
  found: FoundPackage,
  {
    modules,
    faults,
    assertFile,
  }: {
    readonly modules: AutoModule[]
    readonly faults: string[]
    readonly assertFile: (file: string) => Promise<void> | undefined
  },
): Promise<void> {
  const { name, root, file, manifest } = found
  if (!manifest) {
    faults.push(`package ${name}: ${file} is not a JSON object: install the package again`)
    return
  }
  if (manifest['jobboard'] === undefined) return
  await assertFile(file)
  try {
    const files = await declaredFiles(found)
    if (!files)
      throw new InvalidArgument(
        `package ${name}: jobboard in its package.json has no flows: write the path of a module, as in "jobboard": "./flows.js"`,
      )
    modules.push(...files.map((each) => ({ package: name, module: join(name, relative(root, each)), file: each })))
  } catch (error) {
    if (!(error instanceof JobboardError)) throw error
    faults.push(error.message)
  }
}

/** A module, its file, and the options with which it is imported. */
export interface LocatedModule {
  /** The name for people. */
  readonly module: string
  readonly file: string
  readonly options: ModuleOptions
}

/**
 * Returns the files of modules, each once: two names may lead to one file, whose services must not be merged with themselves.
 *
 * @throws InvalidArgument for a module that does not exist; InvalidConfig with all that is wrong with the packages of `auto`
 */
export async function locateModules(modules: readonly string[], options: ModuleOptions): Promise<LocatedModule[]> {
  const located = new Map<string, LocatedModule>()
  for (const module of new Set(modules))
    for (const each of await locate(module, options)) {
      const real = await realpath(each.file)
      if (!located.has(real)) located.set(real, each)
    }
  return [...located.values()]
}

async function locate(module: string, options: ModuleOptions): Promise<readonly LocatedModule[]> {
  const folder = autoFolder(module, options.cwd)
  if (folder !== undefined) {
    // With a config file that was found, and not named, each file passes the check of owners, as the modules that it names do.
    const assertFile = async (file: string) => options.assertModule?.(module, file)
    const { modules, faults } = await findAutoModules(folder, assertFile)
    if (faults.length > 0) throw new InvalidConfig(faults)
    const own = { ...options, assertModule: (_: string, file: string) => assertFile(file) }
    return modules.map((each) => ({ module: each.module, file: each.file, options: own }))
  }
  const files = await findModule(module, options)
  return files.map((file) => ({ module, file, options }))
}
