/** Where a job stands, for people. */
import { describeFailure } from '../../core/failure.ts'
import type { TrackedView } from '../tracked-view.ts'
import { cancelledBy, lined } from './facts.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'
import { printable } from './text.ts'

export interface TrackedScene {
  readonly screen: Screen
  /** Nobody lives on the board who runs jobs by their flows. */
  readonly deserted: boolean
}

export function trackedLines(tracked: TrackedView, { screen, deserted }: TrackedScene): string[] {
  const { uuid, status, owner, run, runs, since, at, by, reason, waitingFor, cancellation, failures = [] } = tracked
  const facts = lined([
    ['waits for', status === 'waiting' && !waitingFor ? turn({ deserted }) : undefined],
    ['because', waitingFor?.text],
    ['owner', owner],
    ['since', since?.toISOString()],
    ['run', run?.toString()],
    ['runs', runs?.toString()],
    ['cancel', cancelledBy(cancellation)],
    ['at', at?.toISOString()],
    ['by', by],
    ['reason', reason],
    ...failures.map((failure) => ['failure', describeFailure(failure)] as const),
  ])
  return [printable(`job ${uuid}  ${status}`), ...facts, ...taskLines(tracked, screen), ...restLines(tracked)]
}

function turn({ deserted }: { readonly deserted: boolean }): string {
  return deserted ? 'its turn; no conductor lives on this board' : 'its turn'
}

/** What looks like work under way, and is none. */
function restLines({ status, tasks = {} }: TrackedView): string[] {
  if (status !== 'waiting') return []
  const halfDone = Object.keys(tasks).filter((name) => tasks[name] === 'RUNNING' || tasks[name] === 'REVERTING')
  return halfDone.map((name) => printable(`${name} was stopped in the middle, and begins again in the next run`))
}

function standing({ state, progress }: TaskRow): string {
  return progress === undefined ? state : `${state} ${Math.round(progress * 100)}%`
}

interface TaskRow {
  readonly name: string
  readonly state: string
  /** From 0 to 1. */
  readonly progress: number | undefined
  readonly result: string | undefined
}

function taskLines({ tasks = {}, progress = {}, results }: TrackedView, screen: Screen): string[] {
  const rows = Object.entries(tasks).map(([name, state]): TaskRow => {
    const result = results && Object.hasOwn(results, name) ? JSON.stringify(results[name]) : undefined
    return { name, state, result, progress: Object.hasOwn(progress, name) ? progress[name] : undefined }
  })
  if (rows.length === 0) return []
  const columns: readonly Column<TaskRow>[] = [
    { title: 'TASK', of: ({ name }) => name, min: 8 },
    { title: 'STATE', of: standing, tone: ({ state }) => toneOf(state) },
    ...(results ? [{ title: 'RESULT', of: ({ result }: TaskRow) => result, min: 16 }] : []),
  ]
  return ['', ...table(columns, rows, screen)]
}
