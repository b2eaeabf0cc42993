/** What was probably meant by a word that is not known. */

/** From so many letters on a word may be misspelt twice. */
const LONG_WORD_LENGTH = 8

/**
 * The end of an error message: `; did you mean flows?` where one of the known words is so close that it can hardly be
 * anything else, else all of them.
 *
 * @example `there is no option flow${meant('flow', ['board', 'flows'])}`
 */
export function suggestion(word: string, known: readonly string[]): string {
  const found = known.find((candidate) => isMisspelt(word, candidate))
  if (found !== undefined) return `; did you mean ${found}?`
  return known.length === 0 ? '' : `; there are ${known.join(', ')}`
}

/** Whether `word` is `known` with a letter too many, too few or another, or two swapped; in long words two of that. */
export function isMisspelt(word: string, known: string): boolean {
  return (
    word !== known && editDistance(word.toLowerCase(), known.toLowerCase()) <= (known.length < LONG_WORD_LENGTH ? 1 : 2)
  )
}

/** How many letters have to be put in, taken out, changed, or swapped with their neighbour. */
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
