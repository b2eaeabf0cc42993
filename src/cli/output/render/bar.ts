/** Numbers as bars. */

const FULL_BLOCK = '█'
/** From an eighth to seven. */
const PARTIAL_BLOCKS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/**
 * A bar of so many columns for `most`, and in proportion for less; what is there at all is seen.
 *
 * @param options.rest fills up what the bar leaves free
 */
export function renderBar(value: number, options: { most: number; width: number; rest?: string }): string {
  const { most, width, rest = '' } = options
  const share = most > 0 ? Math.min(1, value / most) * width : 0
  const eighths = value > 0 ? Math.max(1, Math.round(share * 8)) : 0
  const drawn = FULL_BLOCK.repeat(Math.floor(eighths / 8)) + (PARTIAL_BLOCKS[eighths % 8] ?? '')
  return drawn + rest.repeat(Math.max(0, width - [...drawn].length))
}
