/** Numbers as bars. */

const FULL = '█'
/** From an eighth to seven. */
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/**
 * A bar of so many columns for `most`, and in proportion for less; what is there at all is seen.
 *
 * @param options.rest fills up what the bar leaves free
 */
export function bar(value: number, options: { most: number; width: number; rest?: string }): string {
  const { most, width, rest = '' } = options
  const share = most > 0 ? Math.min(1, value / most) * width : 0
  const eighths = value > 0 ? Math.max(1, Math.round(share * 8)) : 0
  const drawn = FULL.repeat(Math.floor(eighths / 8)) + (PARTS[eighths % 8] ?? '')
  return drawn + rest.repeat(Math.max(0, width - [...drawn].length))
}
