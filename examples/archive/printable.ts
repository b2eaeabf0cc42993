/** Formats names, numbers and commands for a terminal. */
import { isUtf8 } from 'node:buffer'
import { relative } from 'node:path'

/** Characters that move the cursor, end the line or reverse the text, and the backslash that escapes. */
const UNPRINTABLE = /[\p{Control}\p{Line_Separator}\p{Paragraph_Separator}\p{Bidi_Control}\\]/gu
const NOT_PLAIN_ASCII = /[^ -~]|\\/g
const SHORT: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Returns a path on one line: `caf\xe9` for bytes that are not UTF-8, `two\nlines` for a newline. */
export function printablePath(path: Buffer): string {
  if (isUtf8(path)) return printableText(path.toString())
  return path.toString('latin1').replace(NOT_PLAIN_ASCII, (byte) => SHORT[byte] ?? `\\x${hexadecimal(byte)}`)
}

export function printableText(text: string): string {
  return text.replace(UNPRINTABLE, (character) => SHORT[character] ?? `\\u{${hexadecimal(character)}}`)
}

/** Returns the path relative to the working directory, if that is shorter. */
export function pathFromHere(path: string): string {
  const fromHere = relative(process.cwd(), path) || '.'
  return printableText(fromHere.length < path.length ? fromHere : path)
}

function hexadecimal(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).padStart(2, '0')
}

/** Returns `1 file`, `1,234 files`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB']

export function printableBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${UNITS[power]}`
}

/** Returns a word of a command, quoted for a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** Returns the URI with `***` for the password. */
export function printableUri(uri: string): string {
  return printableText(uri.replace(/^([a-z+]+:\/\/[^/?#:@]*:).*@/i, '$1***@'))
}
