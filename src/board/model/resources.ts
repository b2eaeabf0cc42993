/** The resources that a job owns while it runs: Pulp's model of exclusive and shared names. */
import { InvalidPosting } from '../../core/errors.ts'
import { nameFault, shortenText } from '../../core/texts.ts'

/** The names of the resources that a job owns while it runs, `exclusive` or `shared`. */
export interface Resources {
  /** The resources that this job owns alone. */
  readonly exclusive?: readonly string[]
  /** The resources that this job owns together with other jobs that share them, and not with a job that wants them exclusively. */
  readonly shared?: readonly string[]
}

/** The resources of a job: each name is in one list, once. */
export interface ResourceWants {
  readonly exclusive: readonly string[]
  readonly shared: readonly string[]
}

export type ResourceMode = keyof ResourceWants

/** The maximum number of resources of a job. Each is a step of the claim's transaction, and servers limit the size of one. */
const MAX_RESOURCE_NAMES = 256

const NO_RESOURCES: ResourceWants = { exclusive: [], shared: [] }

const NO_NAMES: readonly string[] = []

/** Returns the resources of a posting that was checked. */
export function toResourceWants({ resources }: { readonly resources?: Resources }): ResourceWants {
  if (!resources) return NO_RESOURCES
  return { exclusive: resources.exclusive ?? NO_NAMES, shared: resources.shared ?? NO_NAMES }
}

/**
 * Parses `{ exclusive, shared }`; a name in both lists is exclusive. Returns undefined where no resource is named.
 *
 * @throws InvalidPosting for anything else
 */
export function parseResources(value: unknown): Resources | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'object' || Array.isArray(value))
    throw new InvalidPosting('resources must be { exclusive, shared }')
  const { exclusive, shared, ...others } = value as Record<string, unknown>
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw new InvalidPosting(
      `resources has an unknown field ${shortenText(unknown)}; only exclusive and shared are allowed`,
    )
  const count = parseNames('exclusive', exclusive).length + parseNames('shared', shared).length
  if (count > MAX_RESOURCE_NAMES)
    throw new InvalidPosting(`resources has ${count} names, at most ${MAX_RESOURCE_NAMES} are allowed`)
  const alone = new Set(parseNames('exclusive', exclusive))
  const together = parseNames('shared', shared).filter(
    (name, index, all) => !alone.has(name) && all.indexOf(name) === index,
  )
  if (alone.size + together.length === 0) return undefined
  return {
    ...(alone.size > 0 ? { exclusive: [...alone] } : {}),
    ...(together.length > 0 ? { shared: together } : {}),
  }
}

function parseNames(field: string, value: unknown): readonly string[] {
  if (value === undefined) return []
  const fine = Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '')
  if (!fine) throw new InvalidPosting(`resources.${field} must be an array of non-empty strings`)
  for (const name of value as string[]) {
    const fault = nameFault(name)
    if (fault !== undefined) throw new InvalidPosting(`resources.${field}: the name ${shortenText(name)} ${fault}`)
  }
  return value as string[]
}
