/** Tables that fit where they are shown. */
import { plain, type Tone } from './paint.ts'
import type { Screen } from './screen.ts'
import { printable, truncated, widthOf } from './text.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string | undefined
  /** May be cut to this many columns, no further. Without it, it is shown whole. */
  readonly min?: number
  /** Left out where there is no room for all; the last such column goes first. */
  readonly optional?: boolean
  readonly tone?: (row: Row) => Tone | undefined
}

interface Fitted<Row> {
  readonly column: Column<Row>
  readonly cells: readonly string[]
  width: number
}

const GAP = '  '
const NOTHING = '-'

/**
 * The lines of a table with its titles on top.
 *
 * @param screen.width in columns of a terminal; undefined shows everything whole
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], screen: TableScreen): string[] {
  const { width, paint = plain } = screen
  const fitted = columns.map((column): Fitted<Row> => {
    const cells = [column.title, ...rows.map((row) => printable(column.of(row) || NOTHING))]
    return { column, cells, width: cells.reduce((widest, cell) => Math.max(widest, widthOf(cell)), 0) }
  })
  const shown = width === undefined ? fitted : fitting(fitted, width)
  return [undefined, ...rows].map((row, line) => {
    const cells = shown.map(({ column, cells, width }) => {
      const tone = row === undefined ? 'loud' : column.tone?.(row)
      return { cell: cells[line] ?? '', width, tone }
    })
    return joined(cells, paint)
  })
}

type TableScreen = Pick<Screen, 'width'> & Partial<Pick<Screen, 'paint'>>

function fitting<Row>(columns: readonly Fitted<Row>[], width: number): readonly Fitted<Row>[] {
  const shown = [...columns]
  while (total(shown.map(narrowest)) > width) {
    const dropped = shown.findLastIndex(({ column }) => column.optional)
    if (dropped < 0) break
    shown.splice(dropped, 1)
  }
  for (let excess = total(shown.map((each) => each.width)) - width; excess > 0; excess -= 1) {
    const [widest] = shown.filter((each) => each.width > narrowest(each)).sort((a, b) => b.width - a.width)
    if (!widest) break
    widest.width -= 1
  }
  return shown
}

function narrowest<Row>({ column, width }: Fitted<Row>): number {
  return Math.min(width, column.min ?? width)
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP.length * Math.max(0, widths.length - 1))
}

interface Cell {
  readonly cell: string
  readonly width: number
  readonly tone: Tone | undefined
}

/** Without blanks at the end of a line. */
function joined(cells: readonly Cell[], paint: Screen['paint']): string {
  const padded = cells.map(({ cell, width, tone }, index) => {
    const shown = truncated(cell, width)
    const blanks = index === cells.length - 1 ? '' : ' '.repeat(width - widthOf(shown))
    return paint(shown, tone) + blanks
  })
  return padded.join(GAP)
}
