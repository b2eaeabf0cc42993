/** Finds out whether living conductors know a flow, by their entities: kind `conductor`, metadata `flows` and `versions`. */
import type { Entity } from '../contract/index.ts'
import type { Posting } from './posting/posting.ts'

/** The kind of the entities that conductors are registered as. */
export const CONDUCTOR_KIND = 'conductor'

/** The flow that a posting names, in the version that it asks for; undefined for any version. */
export interface FlowReference {
  readonly flow: string
  readonly version: string | undefined
}

/** Returns the flow and version of a posting or a job; undefined if it names no flow. Any program may have written it, so it is checked. */
export function toFlowReference({ details }: Pick<Posting, 'details'>): FlowReference | undefined {
  const { flow, version } = details
  if (typeof flow !== 'string') return undefined
  return { flow, version: typeof version === 'string' ? version : undefined }
}

/** Returns a key that is equal for equal references. */
export function flowKey({ flow, version }: FlowReference): string {
  return version === undefined ? flow : `${flow}\u0000${version}`
}

/** Returns the reference for messages: `import in version 2`. */
export function formatFlowReference({ flow, version }: FlowReference): string {
  return version === undefined ? flow : `${flow} in version ${version}`
}

/**
 * Returns whether one of the conductors may know the flow. Without conductors the answer is true: a program that claims jobs in
 * a loop of its own registers no flows.
 */
export function isKnownToAny(work: FlowReference, conductors: readonly Entity[]): boolean {
  return conductors.length === 0 || conductors.some((conductor) => mayKnowFlow(conductor, work))
}

/** Returns whether the conductor may know the flow: a conductor that does not list its flows, or their versions, may. */
function mayKnowFlow({ metadata }: Entity, { flow, version }: FlowReference): boolean {
  const { flows, versions } = metadata
  if (Array.isArray(flows) && !flows.some((known) => known === flow || Object(known).name === flow)) return false
  const known: unknown = Object.hasOwn(Object(versions), flow) ? Object(versions)[flow] : undefined
  return version === undefined || !Array.isArray(known) || known.includes(version)
}
