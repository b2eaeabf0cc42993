/** Tables that fit where they are shown. */
import { printable, truncated, widthOf } from './text.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string | undefined
  /** May be cut to this many columns, no further. Without it, it is shown whole. */
  readonly min?: number
  /** Left out where there is no room for all; the last such column goes first. */
  readonly optional?: boolean
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
 * @param width in columns of a terminal; undefined shows everything whole
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number | undefined): string[] {
  const fitted = columns.map((column): Fitted<Row> => {
    const cells = [column.title, ...rows.map((row) => printable(column.of(row) || NOTHING))]
    return { column, cells, width: cells.reduce((widest, cell) => Math.max(widest, widthOf(cell)), 0) }
  })
  const shown = width === undefined ? fitted : fitting(fitted, width)
  return [undefined, ...rows].map((_, line) => joined(shown.map(({ cells, width }) => ({ cell: cells[line], width }))))
}

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

/** Without blanks at the end of a line. */
function joined(cells: readonly { cell: string | undefined; width: number }[]): string {
  const padded = cells.map(({ cell = '', width }) => {
    const shown = truncated(cell, width)
    return shown + ' '.repeat(width - widthOf(shown))
  })
  return padded.join(GAP).trimEnd()
}
