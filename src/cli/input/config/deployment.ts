/** Applies a deployment, a named set of changes, to the data of the file. */
import { InvalidArgument } from '../../../core/errors.ts'
import { suggestion } from '../../../core/texts.ts'
import type { Path } from './faults.ts'
import { isPlainMap } from './walk.ts'

/** The data of the file with a deployment, and the paths of its values in the file. */
export interface Deployed {
  readonly data: unknown
  /** Returns the path in the file of a value of the data: inside or outside of the deployment. */
  toFilePath(path: Path): Path
}

/** Returns the names of the deployments of the file. */
export function deploymentNames(data: unknown): readonly string[] {
  const deployments = isPlainMap(data) ? data['deployments'] : undefined
  return isPlainMap(deployments) ? Object.keys(deployments) : []
}

/**
 * Returns the data with the changes of a deployment. Maps are merged; every other value, also a list, is replaced.
 *
 * @throws InvalidArgument for a deployment that does not exist
 */
export function deploy(
  data: unknown,
  { name, shown }: { readonly name: string | undefined; readonly shown: string },
): Deployed {
  if (!isPlainMap(data)) return { data, toFilePath: (path) => path }
  const { deployments, ...base } = data
  if (name === undefined) return { data: base, toFilePath: (path) => path }
  const changes = isPlainMap(deployments) && Object.hasOwn(deployments, name) ? deployments[name] : undefined
  if (changes === undefined) {
    const names = deploymentNames(data)
    const there = names.length === 0 ? '; it has no deployments' : suggestion(name, names)
    throw new InvalidArgument(`there is no deployment ${JSON.stringify(name)} in ${shown}${there}`)
  }
  return {
    // A deployment without changes is an empty value in YAML.
    data: merge(base, changes ?? {}),
    toFilePath: (path) => {
      const inChanges = depthOf(changes, path)
      const isChanged = inChanges > 0 && inChanges >= depthOf(base, path)
      return isChanged ? ['deployments', name, ...path] : path
    },
  }
}

function merge(base: unknown, changes: unknown): unknown {
  if (!isPlainMap(base) || !isPlainMap(changes)) return changes
  const changed = Object.entries(changes).map(([key, value]) => [
    key,
    Object.hasOwn(base, key) ? merge(base[key], value) : value,
  ])
  return { ...base, ...Object.fromEntries(changed) }
}

/** Returns how many keys of the path the data has. */
function depthOf(data: unknown, path: Path): number {
  let at: unknown = data
  for (const [depth, key] of path.entries()) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return depth
    at = (at as Record<PropertyKey, unknown>)[key]
  }
  return path.length
}
