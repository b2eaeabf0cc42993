/**
 * Encodes arrays as parameters of a statement. The driver encodes each element on its own and checks its type, which took more memory for a group
 * of claims than all other work of the process.
 */

/** An element; null where it is undefined, too. */
type Element = string | number | bigint | boolean | Uint8Array | null | undefined

/** Returns the text form of an array that Postgres parses, such as `{1,2,NULL}`. */
export function arrayLiteral(elements: readonly Element[]): string {
  if (elements.length === 0) return '{}'
  // Joined in one step: an addition for each element would make a string for each.
  return elements.every(isPlainText) ? `{"${elements.join('","')}"}` : `{${elements.map(toElement).join(',')}}`
}

/** Returns the text form of an array of texts in which quotation marks and backslashes are escaped already. */
export function escapedArrayLiteral(elements: readonly (string | undefined)[]): string {
  return `{${elements.map((element) => (element === undefined ? 'NULL' : `"${element}"`)).join(',')}}`
}

/** Returns whether an element is a text in which nothing has to be escaped. */
function isPlainText(element: Element): boolean {
  return typeof element === 'string' && !/["\\]/.test(element)
}

function toElement(element: Element): string {
  if (element === null || element === undefined) return 'NULL'
  if (typeof element === 'string') return `"${isPlainText(element) ? element : element.replace(/["\\]/g, '\\$&')}"`
  // Bytes in hex; the backslash is escaped inside the quotes.
  if (element instanceof Uint8Array) return `"\\\\x${toBuffer(element).toString('hex')}"`
  return String(element)
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
