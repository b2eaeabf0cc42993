/** What a job must own beside itself while it runs: Pulp's model of exclusive and shared names. */
import { InvalidPosting } from '../core/errors.ts'

export interface Resources {
  /** Owned by this job alone. */
  readonly exclusive?: readonly string[]
  /** Owned together with whoever shares it, and with nobody who wants it alone. */
  readonly shared?: readonly string[]
}

/** Each name once, in the one way in which it is wanted. */
export interface Wants {
  readonly exclusive: readonly string[]
  readonly shared: readonly string[]
}

const NOTHING: Wants = { exclusive: [], shared: [] }

/** A name in both lists is wanted exclusively. */
export function resourcesOf(posting: { readonly resources?: Resources }): Wants {
  if (!posting.resources) return NOTHING
  const exclusive = new Set(posting.resources.exclusive)
  const shared = new Set(posting.resources.shared)
  return { exclusive: [...exclusive], shared: [...shared].filter((name) => !exclusive.has(name)) }
}

/** Undefined where nothing is wanted. @throws InvalidPosting for what is no `{ exclusive, shared }` of names */
export function readResources(value: unknown): Resources | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'object' || Array.isArray(value)) throw new InvalidPosting('resources has to be { exclusive, shared }')
  const { exclusive, shared, ...others } = value as Record<string, unknown>
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new InvalidPosting(`resources has no ${unknown}; it has exclusive and shared`)
  const wants = resourcesOf({
    resources: { exclusive: names('exclusive', exclusive), shared: names('shared', shared) },
  })
  const some = (list: readonly string[]) => list.length > 0
  if (!some(wants.exclusive) && !some(wants.shared)) return undefined
  return {
    ...(some(wants.exclusive) ? { exclusive: wants.exclusive } : {}),
    ...(some(wants.shared) ? { shared: wants.shared } : {}),
  }
}

function names(field: string, value: unknown): readonly string[] {
  if (value === undefined) return []
  const fine = Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '')
  if (!fine) throw new InvalidPosting(`resources.${field} has to be a list of names`)
  return value as string[]
}
