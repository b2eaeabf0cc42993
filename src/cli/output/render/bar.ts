/** Numbers as bars. */

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
