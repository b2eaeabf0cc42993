/** Suggests a known word for a misspelt one. */

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
  return known.length === 0 ? '' : `; there are ${known.join(', ')}`
}

/** Whether `word` is `known` with one letter added, missing, changed or swapped; in a long word, with two. */
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
