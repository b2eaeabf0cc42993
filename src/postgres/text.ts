/**
 * Texts as Postgres can keep them: it has no NUL. A backslash stands before what is not meant as it is, so that no two
 * texts become one.
 */
export function encodeText(text: string): string {
  return /[\0\\]/.test(text) ? text.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') : text
}

export function decodeText(stored: string): string {
  return stored.includes('\\') ? stored.replace(/\\([\\0])/g, (_, sign) => (sign === '0' ? '\0' : '\\')) : stored
}
