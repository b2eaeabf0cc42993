/** The modules of flows that a package names in its `package.json`: `"jobboard": "./flows.js"`, a list of paths, or `{ "flows": … }`. */
import { readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { InvalidArgument } from '../../core/errors.ts'

type Manifest = Readonly<Record<string, unknown>>

/** A package, and its `package.json`. */
export interface FoundPackage {
  readonly name: string
  readonly root: string
  /** The file `package.json`. */
  readonly file: string
  /** Its content; undefined if that is not a JSON object. */
  readonly manifest: Manifest | undefined
}

/**
 * Returns the package of this name that Node would find from a folder. The folders `node_modules` are looked up here: a `require` does not resolve the
 * `package.json` of a package with `exports`.
 */
export async function findPackage(name: string, from: string): Promise<FoundPackage | undefined> {
  if (!/^(@[^/]+\/)?[^./][^/]*$/.test(name)) return undefined
  // The paths of a name alone are missing for packages that have the name of a module of Node.
  const folders = createRequire(join(from, 'noop.js')).resolve.paths(`${name}/package.json`) ?? []
  for (const folder of folders) {
    const found = await readPackage(join(folder, name), name)
    if (found) return found
  }
  return undefined
}

/** Returns the package in a folder; undefined if the folder has no `package.json`. */
export async function readPackage(root: string, name?: string): Promise<FoundPackage | undefined> {
  const file = join(root, 'package.json')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const manifest = parseManifest(text)
  const own = manifest?.['name']
  return { name: name ?? (typeof own === 'string' && own !== '' ? own : root), root, file, manifest }
}

function parseManifest(text: string): Manifest | undefined {
  try {
    return toMap(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Returns a value that is a map; undefined for every other one. */
export function toMap(value: unknown): Manifest | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
}

/**
 * Returns the files of the modules that a package names; undefined if it names none.
 *
 * @throws InvalidArgument for a field of a wrong type, and for a file that does not exist or is outside of the package
 */
export async function declaredFiles({ name, root, manifest }: FoundPackage): Promise<readonly string[] | undefined> {
  const field = manifest?.['jobboard']
  const map = toMap(field)
  const flows = map ? map['flows'] : field
  if (flows === undefined) return undefined
  const what = map ? 'jobboard.flows' : 'jobboard'
  const fault = (why = '') =>
    new InvalidArgument(
      `package ${name}: ${what} in its package.json must be the path of a module in the package, as in "./dist/flows.js", or a list of paths${why}`,
    )
  const paths: readonly unknown[] = Array.isArray(flows) ? flows : [flows]
  if (paths.length === 0) throw fault()
  return Promise.all(
    paths.map(async (path) => {
      if (typeof path !== 'string') throw fault()
      const file = resolve(root, path)
      if (!file.startsWith(join(root, '/'))) throw fault(`; ${path} is outside of the package`)
      const found = await stat(file).catch(() => undefined)
      if (!found?.isFile()) throw fault(`; there is no file ${path}: build the package, or correct the path`)
      return file
    }),
  )
}
