/** The demo for people: a line for each important event, and a summary. */

import { formatDuration } from '../../../views/index.ts'
import type { DemoEvent } from '../../dev/demo/play.ts'
import type { TaskName } from '../../dev/demo/script.ts'
import type { DemoSummary, Takeover } from '../../dev/demo/summary.ts'
import { truncate, wrap } from './columns.ts'
import type { Screen, Tone } from './paint.ts'
import { escapeUnprintable, shellWord } from './text.ts'

const TIME_COLUMNS = 6
const WHO_COLUMNS = 4
const JOB_COLUMNS = 8
const COLUMN_GAP = '  '
const INDENT = '  '

interface EventCells {
  readonly who?: string
  readonly job?: string
  readonly text: string
  readonly tone?: Tone
}

/** Returns the line of an event; undefined for an event that only reports that something continues. */
export function eventLine(event: DemoEvent, { width, paint }: Screen): string | undefined {
  const cells = toCells(event)
  if (!cells) return undefined
  const { who = '', job = '', text, tone } = cells
  const time = `${(event.at / 1_000).toFixed(2)}s`.padStart(TIME_COLUMNS)
  // Conductor and job are in columns; an event without them needs none.
  const about = [
    ...(who || job ? [escapeUnprintable(who).padEnd(WHO_COLUMNS)] : []),
    ...(job ? [escapeUnprintable(job).padEnd(JOB_COLUMNS)] : []),
  ]
  const head = `${[time, ...about].join(COLUMN_GAP)}${COLUMN_GAP}`
  const room = width === undefined ? undefined : Math.max(1, width - head.length)
  const shown = escapeUnprintable(text)
  return head + paint(room === undefined ? shown : truncate(shown, room), tone)
}

const PAST_TENSE: Readonly<Record<TaskName, string>> = { fetch: 'fetched', resize: 'resized', pack: 'packed' }

function toCells(event: DemoEvent): EventCells | undefined {
  switch (event.event) {
    case 'board':
      return { text: `the board is on ${event.place ?? event.board}` }
    case 'ready':
      return { who: event.conductor, text: 'claims jobs' }
    case 'posted':
      return { text: `posted ${event.jobs.length} jobs: ${event.jobs.map(({ job }) => job).join(', ')}` }
    case 'begun':
      return undefined
    case 'finished':
      return { who: event.conductor, job: event.job, text: PAST_TENSE[event.task] }
    case 'killed':
      return {
        ...{ who: event.conductor, job: event.job, tone: 'bad' },
        text: `killed by SIGKILL in the middle of ${event.task}`,
      }
    case 'takenOver':
      return {
        ...{ who: event.conductor, job: event.job, tone: 'odd' },
        text: `taken over from ${event.from} after ${formatDuration(event.after)}: ${event.task} begins again`,
      }
    case 'complete':
      return { job: event.job, text: 'COMPLETE', tone: 'good' }
    case 'trashed':
      return { job: event.job, text: 'TRASHED', tone: 'bad' }
  }
}

export interface CleanUpState {
  /** The printable URIs of a board and logbooks that still exist. */
  readonly kept: { readonly board: string; readonly persistence: string } | undefined
  /** What was made for the demo and deleted; undefined for a board that outlives it. */
  readonly deleted: 'file' | 'server' | undefined
}

export function demoSummaryLines(summary: DemoSummary, afterwards: CleanUpState, { width, paint }: Screen): string[] {
  const { jobs, complete, took, takenOver } = summary
  const verdict = `${complete} of ${jobs} jobs are COMPLETE, after ${formatDuration(took)}.`
  return [
    '',
    paint(verdict, complete === jobs ? 'good' : 'bad'),
    ...(takenOver ? takeoverLines(takenOver, width) : []),
    '',
    ...cleanUpLines(takenOver, afterwards, width),
  ]
}

function takeoverLines({ job, from, by, after, kept, again }: Takeover, width: number | undefined): string[] {
  const room = width === undefined ? undefined : Math.max(1, width - INDENT.length)
  const indented = (text: string) => wrap(text, room).map((line) => INDENT + line)
  const said = [
    `done before, and not run again: ${kept.join(', ') || 'nothing'}`,
    `stopped in the middle, and begun again: ${again.join(', ') || 'nothing'}`,
  ]
  return [
    ...wrap(
      `Conductor ${from} died during ${job}; ${by} continued after ${formatDuration(after)}. Its logbook says:`,
      width,
    ),
    ...said.flatMap(indented),
  ]
}

const CLEAN_UP_LINES = {
  file: 'Its file was deleted. For a board that stays, with a dashboard: jobboard dev. On a ZooKeeper: jobboard demo --zookeeper',
  server: 'Its ZooKeeper and all data in it were deleted. For one that stays: jobboard dev --zookeeper',
} as const

function cleanUpLines(takenOver: Takeover | undefined, { kept, deleted }: CleanUpState, width?: number): string[] {
  if (deleted) return wrap(CLEAN_UP_LINES[deleted], width)
  if (!kept) return wrap('Its logbooks were deleted. To keep them: --persistence directory:./logbooks', width)
  if (!takenOver) return []
  // This line is copied to a shell: it is never wrapped.
  const logbooks = `--persistence ${shellWord(kept.persistence)}`
  return [
    'To look at it further:',
    `${INDENT}jobboard show ${takenOver.uuid} --board ${shellWord(kept.board)} ${logbooks}`,
    `${INDENT}jobboard logbook list ${logbooks}`,
  ]
}
