/** Which work the living conductors know, as their entities say: kind `conductor`, metadata `flows` and `versions`. */
import type { Entity, StoredJob } from '../backend.ts'

/** The kind of the entities that conductors are registered as. */
export const CONDUCTOR_KIND = 'conductor'

/** The flow that a posting names, in the version that it asks for; undefined for any version. */
export interface FlowReference {
  readonly flow: string
  readonly version: string | undefined
}

/** Returns what the posting names; undefined for one that names no flow. Anybody may have written it: it is checked. */
export function toFlowReference(stored: StoredJob): FlowReference | undefined {
  const { flow, version } = stored.posting.details
  if (typeof flow !== 'string') return undefined
  return { flow, version: typeof version === 'string' ? version : undefined }
}

/** Returns a text that is equal for equal work. */
export function flowKey({ flow, version }: FlowReference): string {
  return version === undefined ? flow : `${flow}\u0000${version}`
}

/** Returns the work as people write it: `import in version 2`. */
export function formatFlowReference({ flow, version }: FlowReference): string {
  return version === undefined ? flow : `${flow} in version ${version}`
}

/**
 * Returns whether one of the conductors may know the work. Where there are none, nothing is known to be missing: whoever
 * works without conductors, in loops of their own, names no flows.
 */
export function isKnownToAny(work: FlowReference, conductors: readonly Entity[]): boolean {
  return conductors.length === 0 || conductors.some((conductor) => mayKnowFlow(conductor, work))
}

/** One that does not say which flows it knows, or which versions of them, may know this one. */
function mayKnowFlow({ metadata }: Entity, { flow, version }: FlowReference): boolean {
  const { flows, versions } = metadata
  if (Array.isArray(flows) && !flows.some((known) => known === flow || Object(known).name === flow)) return false
  const known: unknown = Object.hasOwn(Object(versions), flow) ? Object(versions)[flow] : undefined
  return version === undefined || !Array.isArray(known) || known.includes(version)
}
