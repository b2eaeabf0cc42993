/**
 * Encodes arrays as parameters of a statement. The driver encodes each element on its own and checks its type, which took more memory for a group
 * of claims than all other work of the process.
 */

/** An element; null where it is undefined, too. */
type Element = string | number | bigint | boolean | Uint8Array | null | undefined

/** Returns the text form of an array that Postgres parses, such as `{1,2,NULL}`. */
export function arrayLiteral(elements: readonly Element[]): string {
  // Without this, an empty array would become {""}, which has one empty text.
  if (elements.length === 0) return '{}'
  // Joined in one step: a concatenation for each element would make a string for each.
  return elements.every(isPlainText) ? `{"${elements.join('","')}"}` : `{${elements.map(toElement).join(',')}}`
}

/**
 * Returns the text form of an array of texts that {@link escapeElement} has escaped already; undefined becomes NULL. A quotation mark that is not
 * escaped would end its element.
 */
export function escapedArrayLiteral(elements: readonly (string | undefined)[]): string {
  return `{${elements.map((element) => (element === undefined ? 'NULL' : `"${element}"`)).join(',')}}`
}

/** Escapes a text for an element of an array. */
export function escapeElement(text: string): string {
  return text.replace(/["\\]/g, '\\$&')
}

/** Returns whether an element is a text in which nothing has to be escaped. */
function isPlainText(element: Element): boolean {
  return typeof element === 'string' && !/["\\]/.test(element)
}

function toElement(element: Element): string {
  if (element === null || element === undefined) return 'NULL'
  if (typeof element === 'string') return `"${isPlainText(element) ? element : escapeElement(element)}"`
  // Bytes in hex; the backslash is escaped inside the quotes.
  if (element instanceof Uint8Array) return `"\\\\x${toBuffer(element).toString('hex')}"`
  return String(element)
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
