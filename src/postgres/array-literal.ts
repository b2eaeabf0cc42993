/**
 * Encodes arrays as parameters of a statement. The driver encodes each element on its own and checks its type, which took more memory for a group
 * of claims than all other work of the process.
 */

/** An element; null where it is undefined, too. */
type Element = string | number | bigint | boolean | Uint8Array | null | undefined

/** Returns the text form of an array that Postgres parses, such as `{1,2,NULL}`. */
export function arrayLiteral(elements: readonly Element[]): string {
  let literal = '{'
  let separator = ''
  for (const element of elements) {
    literal += separator + toElement(element)
    separator = ','
  }
  return `${literal}}`
}

function toElement(element: Element): string {
  if (element === null || element === undefined) return 'NULL'
  if (typeof element === 'string') return `"${/["\\]/.test(element) ? element.replace(/["\\]/g, '\\$&') : element}"`
  // Bytes in hex; the backslash is escaped inside the quotes.
  if (element instanceof Uint8Array)
    return `"\\\\x${Buffer.from(element.buffer, element.byteOffset, element.byteLength).toString('hex')}"`
  return String(element)
}
