/** How a board is doing, as bars and tables. */
import type { InfoView, RunningView } from '../info-view.ts'
import { PRIORITY_WORDS } from '../words.ts'
import { age } from './age.ts'
import { bar } from './bar.ts'
import { conductorsTable } from './conductors.ts'
import { type Tone, toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'
import { printable } from './text.ts'

export function infoLines(info: InfoView, screen: Screen): string[] {
  return [
    headline(info, screen),
    '',
    ...countLines(info, screen),
    '',
    ...conductorLines(info, screen),
    ...runningLines(info, screen),
  ]
}

function headline({ board, state, paused }: InfoView, { paint }: Screen): string {
  const word = state !== 'connected' ? state : paused ? 'paused' : 'open'
  return `${printable(board)}  ${paint(word, toneOf(word) ?? 'good')}`
}

interface Row {
  readonly title: string
  readonly parts: readonly (readonly [count: number, tone: Tone])[]
}

/** Wide enough to compare, and narrow enough for a terminal of 80 columns. */
const MOST_COLUMNS = 50
const LEAST_COLUMNS = 10
const TITLE = 11
const NUMBER = 8

function countLines({ jobs, trashed }: InfoView, screen: Screen): string[] {
  const rows: readonly Row[] = [
    { title: 'UNCLAIMED', parts: [[jobs.unclaimed, 'odd']] },
    { title: 'CLAIMED', parts: [[jobs.claimed, 'busy']] },
    { title: 'TRASHED', parts: [[trashed, 'bad']] },
  ]
  const priorities = PRIORITY_WORDS.map((title): Row => {
    const { claimed, unclaimed } = jobs.byPriority[title]
    return {
      title,
      parts: [
        [claimed, 'busy'],
        [unclaimed, 'odd'],
      ],
    }
  })
  const most = Math.max(...[...rows, ...priorities].map(totalOf))
  const width = Math.max(LEAST_COLUMNS, Math.min(MOST_COLUMNS, (screen.width ?? 80) - TITLE - NUMBER - 2))
  const line = (row: Row) => lineOf(row, { most, width, screen })
  return [...rows.map(line), '', ...priorities.map(line)]
}

function lineOf(row: Row, { most, width, screen }: { most: number; width: number; screen: Screen }): string {
  const bars = row.parts.map(([count, tone]) => screen.paint(bar(count, { most, width }), tone))
  return `${row.title.padEnd(TITLE)}${String(totalOf(row)).padStart(NUMBER)}  ${bars.join('')}`.trimEnd()
}

function totalOf({ parts }: Row): number {
  return parts.reduce((total, [count]) => total + count, 0)
}

function conductorLines({ conductors, slots }: InfoView, screen: Screen): string[] {
  if (conductors.length === 0) return [screen.paint('no conductors', 'odd')]
  const title = conductors.length === 1 ? '1 conductor' : `${conductors.length} conductors`
  return [`${title}, ${slots.busy} of ${slots.all} slots taken`, ...conductorsTable(conductors, screen)]
}

function runningLines({ running, jobs }: InfoView, screen: Screen): string[] {
  if (running.length === 0) return []
  const columns: readonly Column<RunningView>[] = [
    { title: 'RUNNING', of: ({ uuid }) => uuid },
    { title: 'NAME', of: ({ name }) => name, min: 12 },
    { title: 'FOR', of: ({ since }) => since && age(since, screen.now) },
    { title: 'OWNER', of: ({ owner }) => owner, min: 8 },
  ]
  const rest = jobs.claimed - running.length
  return ['', ...table(columns, running, screen), ...(rest > 0 ? [`… and ${rest} more`] : [])]
}
