/** Values of users as JSON can encode them. */

/** Returns a value that JSON can encode: large integers as text, bytes as base64. */
export function jsonable(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (Array.isArray(value)) return value.map(jsonable)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonable(item)]))
}
