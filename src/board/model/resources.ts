/** What a job must own beside itself while it runs: Pulp's model of exclusive and shared names. */
import { InvalidPosting } from '../../core/errors.ts'
import { isTooLong, MAX_NAME_BYTES, shortenText } from '../../core/texts.ts'

/** Names of what a job owns while it runs, alone (`exclusive`) or together with others who share it. */
export interface Resources {
  /** Owned by this job alone. */
  readonly exclusive?: readonly string[]
  /** Owned together with whoever shares it, and with nobody who wants it alone. */
  readonly shared?: readonly string[]
}

/** Each name once, in the one way in which it is wanted. */
export interface ResourceWants {
  readonly exclusive: readonly string[]
  readonly shared: readonly string[]
}

/** Each is a step of the transaction that claims the job, and a server takes only so much in one. */
const MAX_RESOURCE_NAMES = 256

const NO_RESOURCES: ResourceWants = { exclusive: [], shared: [] }

const NO_NAMES: readonly string[] = []

/** Of a posting that was checked: each name is in one list, once. */
export function toResourceWants({ resources }: { readonly resources?: Resources }): ResourceWants {
  if (!resources) return NO_RESOURCES
  return { exclusive: resources.exclusive ?? NO_NAMES, shared: resources.shared ?? NO_NAMES }
}

/** A name in both lists is wanted exclusively. Undefined where nothing is wanted. @throws InvalidPosting for what is no `{ exclusive, shared }` of names */
export function parseResources(value: unknown): Resources | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'object' || Array.isArray(value))
    throw new InvalidPosting('resources has to be { exclusive, shared }')
  const { exclusive, shared, ...others } = value as Record<string, unknown>
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw new InvalidPosting(`resources has no ${shortenText(unknown)}; it has exclusive and shared`)
  const count = parseNames('exclusive', exclusive).length + parseNames('shared', shared).length
  if (count > MAX_RESOURCE_NAMES)
    throw new InvalidPosting(`resources has ${count} names, ${MAX_RESOURCE_NAMES} are allowed`)
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
  if (!fine) throw new InvalidPosting(`resources.${field} has to be a list of names`)
  const long = (value as string[]).find(isTooLong)
  if (long === undefined) return value as string[]
  throw new InvalidPosting(
    `resources.${field} has a name of more than ${MAX_NAME_BYTES} bytes, ${shortenText(long)}; use a shorter one`,
  )
}
