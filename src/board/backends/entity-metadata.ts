/** Reads what participants tell of themselves: others may have written it. */
import type { Entity } from '../backend.ts'

/** Returns the metadata; empty where it is not an object of fields. */
export function parseMetadata(value: unknown): Entity['metadata'] {
  const isFields = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  return isFields ? (value as Entity['metadata']) : {}
}
