/** Limits and display of texts that come from users and other programs, and known words for misspelt ones. */

/** The longest name of anything, in bytes of UTF-8: names appear in every log line, and in paths on servers. */
export const MAX_NAME_BYTES = 1_024

const MAX_QUOTE_LENGTH = 100

/** The fault of half of a surrogate pair, for messages: it has no UTF-8 form, and two such names would become one when they are stored. */
export const ILL_FORMED = 'has half of a surrogate pair, which is no character'

/**
 * Returns what is wrong with a name, as the end of a sentence: the caller puts the subject before it. Returns undefined for a valid name. All
 * names that boards and logbooks store are checked by this function.
 *
 * @param maxBytes the longest name in UTF-8, {@link MAX_NAME_BYTES} by default
 */
export function nameFault(name: string, maxBytes = MAX_NAME_BYTES): string | undefined {
  // A UTF-16 unit takes at most three bytes: the length alone is enough for most names.
  if (name.length > maxBytes / 3 && Buffer.byteLength(name) > maxBytes) return `must have at most ${maxBytes} bytes`
  return name.isWellFormed() ? undefined : ILL_FORMED
}

/** Returns the text, cut to a length in UTF-16 units. Half of a surrogate pair, which the cut may leave, becomes U+FFFD. */
export function cutText(text: string, length: number): string {
  return (text.length > length ? text.slice(0, length) : text).toWellFormed()
}

/** Returns the beginning of a text, for a message. */
export function shortenText(text: string): string {
  return text.length > MAX_QUOTE_LENGTH ? `${cutText(text, MAX_QUOTE_LENGTH)}…` : text.toWellFormed()
}

/** Returns the text as one line: each line break, with the blanks around it, becomes one blank. Takes linear time. */
export function oneLine(text: string): string {
  if (!text.includes('\n')) return text
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
}

/** The length from which a word may have two misspellings. */
const LONG_WORD_LENGTH = 8

/**
 * Returns the end of an error message: `; did you mean flows?` if the word is a misspelling of a known one, else the list of
 * all known words.
 *
 * @example `there is no option flow${meant('flow', ['board', 'flows'])}`
 */
export function suggestion(word: string, known: readonly string[]): string {
  const found = known.find((candidate) => isMisspelt(word, candidate))
  if (found !== undefined) return `; did you mean ${found}?`
  if (known.length === 0) return ''
  return known.length === 1 ? `; there is only ${known[0]}` : `; there are ${known.join(', ')}`
}

/** Returns whether `word` is `known` with one letter added, missing, changed or swapped; in a long word, with two. */
export function isMisspelt(word: string, known: string): boolean {
  return (
    word !== known && editDistance(word.toLowerCase(), known.toLowerCase()) <= (known.length < LONG_WORD_LENGTH ? 1 : 2)
  )
}

/** Returns the number of letters to insert, delete, change, or swap with their neighbour. */
function editDistance(from: string, to: string): number {
  let before: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const next = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1]
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      next[column] = Math.min(
        (next[column - 1] ?? 0) + 1,
        (last[column] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = last
    last = next
  }
  return last[to.length] ?? 0
}

/** Encodes a text for databases that store no NUL character. Escapes it and backslashes, so that different texts stay different. */
export function encodeText(text: string): string {
  return /[\0\\]/.test(text) ? text.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') : text
}

/** Undoes {@link encodeText}. */
export function decodeText(stored: string): string {
  return stored.includes('\\') ? stored.replace(/\\([\\0])/g, (_, sign) => (sign === '0' ? '\0' : '\\')) : stored
}
