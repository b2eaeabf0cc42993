/** Reads the metadata of participants. Other programs may have written it. */
import type { Entity } from '../backend.ts'

/** Returns the metadata, or an empty object if the value is not an object of fields. */
export function parseMetadata(value: unknown): Entity['metadata'] {
  const isFields = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  return isFields ? (value as Entity['metadata']) : {}
}
