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

export interface InfoLayout {
  /** How many lines there are; what matters less is left out where they do not suffice. */
  readonly rows?: number | undefined
  /** Drawn again and again: with a clock, and how it ends. */
  readonly watched?: boolean | undefined
}

export function infoLines(info: InfoView, screen: Screen, { rows, watched = false }: InfoLayout = {}): string[] {
  const lines = (counts: string[]) => [
    headline(info, screen, { watched }),
    '',
    ...counts,
    '',
    ...conductorLines(info, screen),
    ...runningLines(info, screen),
  ]
  const { states, priorities } = countLines(info, screen)
  const whole = lines([...states, '', ...priorities])
  // On a low terminal the bottom would be cut off, and conductors say more than the bars of five priorities.
  return rows === undefined || whole.length < rows ? whole : lines(states)
}

function headline({ board, state, paused }: InfoView, screen: Screen, { watched }: { watched: boolean }): string {
  const { paint, now } = screen
  const word = state !== 'connected' ? state : paused ? 'paused' : 'open'
  const clock = watched ? `  ${now.toTimeString().slice(0, 8)}, Ctrl-C ends` : ''
  return `${printable(board)}  ${paint(word, toneOf(word) ?? 'good')}${clock}`
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

function countLines({ jobs, trashed }: InfoView, screen: Screen): { states: string[]; priorities: string[] } {
  const rows: readonly Row[] = [
    { title: 'UNCLAIMED', parts: [[jobs.unclaimed, 'odd']] },
    { title: 'CLAIMED', parts: [[jobs.claimed, 'busy']] },
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
  // The trash has no bar: how much is in it says nothing of how much is to do.
  const most = Math.max(...[...rows, ...priorities].map(totalOf))
  const width = Math.max(LEAST_COLUMNS, Math.min(MOST_COLUMNS, (screen.width ?? 80) - TITLE - NUMBER - 2))
  const line = (row: Row) => lineOf(row, { most, width, screen })
  return {
    states: [...rows.map(line), `${'TRASHED'.padEnd(TITLE)}${String(trashed).padStart(NUMBER)}`],
    priorities: priorities.map(line),
  }
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
  return [
    `${title}, ${slots.busy} of ${slots.all} slots taken (as they reported, every 2 s at most)`,
    ...conductorsTable(conductors, screen),
  ]
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
