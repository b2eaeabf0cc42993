/** The state of a board as bars and tables. */

import { formatAge, formatDuration, type InfoView, type QueueView, type RunningView } from '../../../views/index.ts'
import { PRIORITY_CHOICES } from '../../input/choices.ts'
import { renderBar } from './columns.ts'
import { conductorsTable } from './lists.ts'
import { type Screen, stateTone, type Tone } from './paint.ts'
import { type Column, renderTable } from './table.ts'
import { escapeUnprintable } from './text.ts'

export interface InfoLayout {
  /** The number of lines of the terminal; less important lines are omitted if they do not fit. */
  readonly rows?: number | undefined
  /** Whether the screen is redrawn repeatedly: then it has a clock, and a note how to stop it. */
  readonly watched?: boolean | undefined
}

export function infoLines(info: InfoView, screen: Screen, { rows, watched = false }: InfoLayout = {}): string[] {
  const lines = (counts: string[]) => [
    headline(info, screen, { watched }),
    '',
    ...counts,
    ...queueLines(info, screen),
    '',
    ...conductorLines(info, screen),
    ...limitLines(info, screen),
    ...runningLines(info, screen),
  ]
  const { states, priorities } = countLines(info, screen)
  const whole = lines([...states, '', ...priorities])
  // A low terminal would cut off the bottom, and conductors are more important than the bars of five priorities.
  return rows === undefined || whole.length < rows ? whole : lines(states)
}

function headline(
  { board, state, paused, pause }: InfoView,
  screen: Screen,
  { watched }: { watched: boolean },
): string {
  const { paint, now } = screen
  const word = state !== 'connected' ? state : paused ? 'paused' : 'open'
  const clock = watched ? `  ${now.toTimeString().slice(0, 8)}, Ctrl-C ends` : ''
  const origin = word === 'paused' && pause ? ` ${pauseText(pause, now)}` : ''
  return `${escapeUnprintable(board)}  ${paint(word, stateTone(word) ?? 'good')}${origin}${clock}`
}

/** Returns who has paused the board, when and why: `by ada (host:4711), 5m ago: the database moves`. */
function pauseText({ by, since, reason }: NonNullable<InfoView['pause']>, now: Date): string {
  const why = reason === undefined ? '' : `: ${reason}`
  return escapeUnprintable(`by ${by}, ${formatAge(since, now)} ago${why}`)
}

/** Returns who has paused a queue, with the pattern by which it is paused: `tenant-*: by ada, 5m ago`. */
function queuePauseText({ pattern, ...pause }: NonNullable<QueueView['pause']>, now: Date): string {
  const text = pauseText(pause, now)
  return pattern === undefined ? text : `${escapeUnprintable(pattern)}: ${text}`
}

interface BarRow {
  readonly title: string
  readonly parts: readonly (readonly [count: number, tone: Tone])[]
}

/** The maximum width of a bar: wide enough to compare, and narrow enough for a terminal of 80 columns. */
const MAX_BAR_COLUMNS = 50
const MIN_BAR_COLUMNS = 10
const TITLE_COLUMNS = 11
const NUMBER_COLUMNS = 8

function countLines({ jobs, trashed }: InfoView, screen: Screen): { states: string[]; priorities: string[] } {
  const rows: readonly BarRow[] = [
    { title: 'UNCLAIMED', parts: [[jobs.unclaimed, 'odd']] },
    { title: 'CLAIMED', parts: [[jobs.claimed, 'busy']] },
  ]
  const priorities = PRIORITY_CHOICES.map((title): BarRow => {
    const { claimed, unclaimed } = jobs.byPriority[title]
    return {
      title,
      parts: [
        [claimed, 'busy'],
        [unclaimed, 'odd'],
      ],
    }
  })
  // The trash has no bar: its size says nothing about the remaining work.
  const most = Math.max(...[...rows, ...priorities].map(rowTotal))
  const width = Math.max(
    MIN_BAR_COLUMNS,
    Math.min(MAX_BAR_COLUMNS, (screen.width ?? 80) - TITLE_COLUMNS - NUMBER_COLUMNS - 2),
  )
  const line = (row: BarRow) => barLine(row, { most, width, screen })
  return {
    states: [...rows.map(line), `${'TRASHED'.padEnd(TITLE_COLUMNS)}${String(trashed).padStart(NUMBER_COLUMNS)}`],
    priorities: priorities.map(line),
  }
}

function barLine(row: BarRow, { most, width, screen }: { most: number; width: number; screen: Screen }): string {
  const bars = row.parts.map(([count, tone]) => screen.paint(renderBar(count, { most, width }), tone))
  return `${row.title.padEnd(TITLE_COLUMNS)}${String(rowTotal(row)).padStart(NUMBER_COLUMNS)}  ${bars.join('')}`.trimEnd()
}

function rowTotal({ parts }: BarRow): number {
  return parts.reduce((total, [count]) => total + count, 0)
}

const END_COLUMNS: readonly Column<QueueView>[] = [
  { title: 'ENDED/MIN', value: ({ endedPerMinute }) => endedPerMinute?.toString(), optional: true },
  {
    title: 'WAITED',
    value: ({ waitedMs }) => (waitedMs === undefined ? undefined : formatDuration(waitedMs)),
    optional: true,
  },
]

/** Returns a table of the queues, unless the default one is the only one and not paused. */
function queueLines({ queues }: InfoView, screen: Screen): string[] {
  if (queues.every(({ queue, pause }) => queue === 'default' && !pause)) return []
  const columns: readonly Column<QueueView>[] = [
    { title: 'QUEUE', value: ({ queue }) => queue, min: 12 },
    { title: 'UNCLAIMED', value: ({ unclaimed }) => String(unclaimed) },
    { title: 'CLAIMED', value: ({ claimed }) => String(claimed) },
    { title: 'OLDEST', value: ({ oldest }) => oldest && formatAge(oldest, screen.now) },
    ...(queues.some(({ endedPerMinute }) => endedPerMinute !== undefined) ? END_COLUMNS : []),
    {
      title: 'CONDUCTORS',
      value: ({ conductors }) => String(conductors),
      tone: ({ conductors }) => (conductors === 0 ? 'odd' : undefined),
    },
    { title: 'PAUSED', value: ({ pause }) => pause && queuePauseText(pause, screen.now), optional: true },
  ]
  return ['', ...renderTable(columns, queues, screen)]
}

function conductorLines({ conductors, slots }: InfoView, screen: Screen): string[] {
  if (conductors.length === 0) return [screen.paint('no conductors', 'odd')]
  const title = conductors.length === 1 ? '1 conductor' : `${conductors.length} conductors`
  return [
    `${title}, ${slots.busy} of ${slots.all} slots taken (as they reported, every 2 s at most)`,
    ...conductorsTable(conductors, screen),
  ]
}

/** The number of keys that are named; a pattern can have very many. */
const MAX_KEYS_SHOWN = 5

function limitLines({ limits }: InfoView, screen: Screen): string[] {
  if (!limits) return []
  const { set, stopped, full } = limits
  const parts = [
    set === 1 ? '1 limit' : `${set} limits`,
    ...(stopped.length > 0 ? [screen.paint(`stopped: ${nameKeys(stopped)}`, 'odd')] : []),
    ...(full.length > 0 ? [`without room: ${nameKeys(full)}`] : []),
  ]
  return [parts.join('; ')]
}

function nameKeys(keys: readonly string[]): string {
  const named = keys.slice(0, MAX_KEYS_SHOWN).map(escapeUnprintable).join(', ')
  return keys.length > MAX_KEYS_SHOWN ? `${named} and ${keys.length - MAX_KEYS_SHOWN} more` : named
}

function runningLines({ running, jobs }: InfoView, screen: Screen): string[] {
  if (running.length === 0) return []
  const columns: readonly Column<RunningView>[] = [
    { title: 'RUNNING', value: ({ uuid }) => uuid },
    { title: 'NAME', value: ({ name }) => name, min: 12 },
    { title: 'FOR', value: ({ since }) => since && formatAge(since, screen.now) },
    { title: 'OWNER', value: ({ owner }) => owner, min: 8 },
  ]
  const rest = jobs.claimed - running.length
  return ['', ...renderTable(columns, running, screen), ...(rest > 0 ? [`… and ${rest} more`] : [])]
}
