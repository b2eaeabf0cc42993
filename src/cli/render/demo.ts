/** A demo for people: a line for each event that is worth one, and what it has shown. */
import type { DemoEvent } from '../demo/events.ts'
import type { TaskName } from '../demo/script.ts'
import type { DemoSummary, Takeover } from '../demo/summary.ts'
import { span } from './age.ts'
import type { Tone } from './paint.ts'
import type { Screen } from './screen.ts'
import { printable, truncated, wrapped } from './text.ts'

const TIME = 6
const WHO = 4
const JOB = 8
const GAP = '  '
const INDENT = '  '

interface Told {
  readonly who?: string
  readonly job?: string
  readonly text: string
  readonly tone?: Tone
}

/** Undefined for what would only say that something goes on. */
export function eventLine(event: DemoEvent, { width, paint }: Screen): string | undefined {
  const told = toldOf(event)
  if (!told) return undefined
  const { who = '', job = '', text, tone } = told
  const time = `${(event.at / 1_000).toFixed(2)}s`.padStart(TIME)
  // Who and what it is about stand in columns; what is about nothing in particular needs none.
  const about = [...(who || job ? [printable(who).padEnd(WHO)] : []), ...(job ? [printable(job).padEnd(JOB)] : [])]
  const head = `${[time, ...about].join(GAP)}${GAP}`
  const room = width === undefined ? undefined : Math.max(1, width - head.length)
  const shown = printable(text)
  return head + paint(room === undefined ? shown : truncated(shown, room), tone)
}

const PAST: Readonly<Record<TaskName, string>> = { fetch: 'fetched', resize: 'resized', pack: 'packed' }

function toldOf(event: DemoEvent): Told | undefined {
  switch (event.event) {
    case 'board':
      return { text: event.from ? `ZooKeeper runs, ${event.from}` : `on ${event.board}` }
    case 'ready':
      return { who: event.conductor, text: 'claims jobs' }
    case 'posted':
      return { text: `posted ${event.jobs.length} jobs: ${event.jobs.map(({ job }) => job).join(', ')}` }
    case 'begun':
      return undefined
    case 'finished':
      return { who: event.conductor, job: event.job, text: PAST[event.task] }
    case 'killed':
      return {
        ...{ who: event.conductor, job: event.job, tone: 'bad' },
        text: `killed by SIGKILL in the middle of ${event.task}`,
      }
    case 'takenOver':
      return {
        ...{ who: event.conductor, job: event.job, tone: 'odd' },
        text: `taken over from ${event.from} after ${span(event.after)}: ${event.task} begins again`,
      }
    case 'complete':
      return { job: event.job, text: 'COMPLETE', tone: 'good' }
    case 'trashed':
      return { job: event.job, text: 'TRASHED', tone: 'bad' }
  }
}

export interface Afterwards {
  /** URIs as they may be shown, of a board and logbooks that are still there. */
  readonly kept: { readonly board: string; readonly persistence: string } | undefined
  /** Whether the server is gone. */
  readonly thrownAway: boolean
}

export function demoSummaryLines(summary: DemoSummary, afterwards: Afterwards, { width, paint }: Screen): string[] {
  const { jobs, complete, took, takenOver } = summary
  const verdict = `${complete} of ${jobs} jobs are COMPLETE, after ${span(took)}.`
  return [
    '',
    paint(verdict, complete === jobs ? 'good' : 'bad'),
    ...(takenOver ? takeoverLines(takenOver, width) : []),
    '',
    ...afterwardsLines(takenOver, afterwards, width),
  ]
}

function takeoverLines({ job, from, by, after, kept, again }: Takeover, width: number | undefined): string[] {
  const room = width === undefined ? undefined : Math.max(1, width - INDENT.length)
  const indented = (text: string) => wrapped(text, room).map((line) => INDENT + line)
  const said = [
    `done before, and not run again: ${kept.join(', ') || 'nothing'}`,
    `stopped in the middle, and begun again: ${again.join(', ') || 'nothing'}`,
  ]
  return [
    ...wrapped(`Conductor ${from} died over ${job}; ${by} went on after ${span(after)}. Its logbook says:`, width),
    ...said.flatMap(indented),
  ]
}

function afterwardsLines(takenOver: Takeover | undefined, { kept, thrownAway }: Afterwards, width?: number): string[] {
  if (thrownAway) return wrapped('Its ZooKeeper is gone, and all in it. For one that stays: jobboard dev', width)
  if (!kept) return wrapped('Its logbooks are gone. To keep them: --persistence directory:./logbooks', width)
  if (!takenOver) return []
  // To be pasted: never broken.
  const logbooks = `--persistence ${shellWord(kept.persistence)}`
  return [
    'To look at it further:',
    `${INDENT}jobboard show ${takenOver.uuid} --board ${shellWord(kept.board)} ${logbooks}`,
    `${INDENT}jobboard logbook list ${logbooks}`,
  ]
}

function shellWord(text: string): string {
  const shown = printable(text)
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`
}
