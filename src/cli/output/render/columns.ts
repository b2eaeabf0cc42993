/** Text and bars in columns of a terminal. This file loads the packages for it: commands load it when they print. */
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

const GRAPHEMES = new Intl.Segmenter()

/** Returns the number of columns that a text takes on a terminal. */
export function displayWidth(text: string): number {
  return stringWidth(text)
}

/**
 * Truncates a text to a number of columns, with an ellipsis for the missing part. The package `cli-truncate` is not used:
 * it exceeds the columns by one where it would have to cut a wide character, and takes longer than the rest of a table.
 */
export function truncate(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text
  let kept = ''
  let width = 1
  for (const { segment } of GRAPHEMES.segment(text)) {
    width += displayWidth(segment)
    if (width > columns) break
    kept += segment
  }
  return `${kept}…`
}

/** Wraps a text between words; a word that is longer than the width is not broken. */
export function wrap(text: string, columns: number | undefined): string[] {
  return columns === undefined ? [text] : wrapAnsi(text, columns).split('\n')
}

const FULL_BLOCK = '█'
/** The characters of a cell that is filled from one eighth to seven eighths. */
const PARTIAL_BLOCKS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/**
 * Draws a bar whose full width stands for `most`, in proportion to `value`; a value above zero is always visible.
 *
 * @param options.rest fills the width after the bar
 */
export function renderBar(value: number, options: { most: number; width: number; rest?: string }): string {
  const { most, width, rest = '' } = options
  const share = most > 0 ? Math.min(1, value / most) * width : 0
  const eighths = value > 0 ? Math.max(1, Math.round(share * 8)) : 0
  const drawn = FULL_BLOCK.repeat(Math.floor(eighths / 8)) + (PARTIAL_BLOCKS[eighths % 8] ?? '')
  return drawn + rest.repeat(Math.max(0, width - [...drawn].length))
}
