/** Tables that fit the width of the screen. */

import type { CancellationView } from '../../../views/index.ts'
import { displayWidth, truncate } from './columns.ts'
import { plainPaint, type Screen, type Tone } from './paint.ts'
import { escapeUnprintable } from './text.ts'

export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string | undefined
  /** The minimum width to which the column may be truncated. Without it, the column is never truncated. */
  readonly min?: number
  /** Whether the column is omitted if the table does not fit; the last such column is omitted first. */
  readonly optional?: boolean
  readonly tone?: (row: Row) => Tone | undefined
}

interface FittedColumn<Row> {
  readonly column: Column<Row>
  readonly cells: readonly string[]
  width: number
}

const COLUMN_GAP = '  '
const EMPTY_CELL = '-'

/**
 * Returns the lines of a table with its titles on top.
 *
 * @param screen.width in columns of a terminal; undefined shows everything without truncation
 */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], screen: TableScreen): string[] {
  const { width, paint = plainPaint } = screen
  const fitted = columns.map((column): FittedColumn<Row> => {
    const cells = [column.title, ...rows.map((row) => escapeUnprintable(column.value(row) || EMPTY_CELL))]
    return { column, cells, width: cells.reduce((widest, cell) => Math.max(widest, displayWidth(cell)), 0) }
  })
  const shown = width === undefined ? fitted : fitColumns(fitted, width)
  return [undefined, ...rows].map((row, line) => {
    const cells = shown.map(({ column, cells, width }) => {
      const tone = row === undefined ? 'loud' : column.tone?.(row)
      return { cell: cells[line] ?? '', width, tone }
    })
    return joinCells(cells, paint)
  })
}

type TableScreen = Pick<Screen, 'width'> & Partial<Pick<Screen, 'paint'>>

function fitColumns<Row>(columns: readonly FittedColumn<Row>[], width: number): readonly FittedColumn<Row>[] {
  const shown = [...columns]
  while (totalWidth(shown.map(minWidth)) > width) {
    const dropped = shown.findLastIndex(({ column }) => column.optional)
    if (dropped < 0) break
    shown.splice(dropped, 1)
  }
  for (let excess = totalWidth(shown.map((each) => each.width)) - width; excess > 0; excess -= 1) {
    const [widest] = shown.filter((each) => each.width > minWidth(each)).sort((a, b) => b.width - a.width)
    if (!widest) break
    widest.width -= 1
  }
  return shown
}

function minWidth<Row>({ column, width }: FittedColumn<Row>): number {
  return Math.min(width, column.min ?? width)
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, COLUMN_GAP.length * Math.max(0, widths.length - 1))
}

interface Cell {
  readonly cell: string
  readonly width: number
  readonly tone: Tone | undefined
}

/** Joins the cells of a line without blanks at its end. */
function joinCells(cells: readonly Cell[], paint: Screen['paint']): string {
  const padded = cells.map(({ cell, width, tone }, index) => {
    const shown = truncate(cell, width)
    const blanks = index === cells.length - 1 ? '' : ' '.repeat(width - displayWidth(shown))
    return paint(shown, tone) + blanks
  })
  return padded.join(COLUMN_GAP)
}

export type Facts = readonly (readonly [label: string, value: string | undefined])[]

const LABEL_COLUMNS = 10

export function factLines(facts: Facts): string[] {
  return facts.flatMap(([label, value]) =>
    value === undefined ? [] : [escapeUnprintable(`  ${label.padEnd(LABEL_COLUMNS)}${value}`)],
  )
}

export function formatCancellation(cancellation: CancellationView | undefined): string | undefined {
  if (!cancellation) return undefined
  const { who, reason } = cancellation
  // This is the default reason of a cancellation.
  return reason === 'cancelled' ? `asked by ${who}` : `asked by ${who}: ${reason}`
}
