/** Where a job stands, for people. */
import { describeFailure } from '../../core/failure.ts'
import type { TrackedView } from '../tracked-view.ts'
import { cancelledBy, lined } from './facts.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'
import { printable } from './text.ts'

export function trackedLines(tracked: TrackedView, screen: Screen): string[] {
  const { uuid, status, owner, run, runs, since, at, by, reason, waitingFor, cancellation, failures = [] } = tracked
  const facts = lined([
    ['waits for', status === 'waiting' && !waitingFor ? 'its turn' : undefined],
    ['because', waitingFor?.text],
    ['owner', owner],
    ['since', since?.toISOString()],
    ['run', run?.toString()],
    ['runs', runs?.toString()],
    ['cancelled', cancelledBy(cancellation)],
    ['at', at?.toISOString()],
    ['by', by],
    ['reason', reason],
    ...failures.map((failure) => ['failure', describeFailure(failure)] as const),
  ])
  return [printable(`job ${uuid}  ${status}`), ...facts, ...taskLines(tracked, screen)]
}

interface TaskRow {
  readonly name: string
  readonly state: string
  readonly result: string | undefined
}

function taskLines({ tasks = {}, results }: TrackedView, screen: Screen): string[] {
  const rows = Object.entries(tasks).map(([name, state]): TaskRow => {
    const result = results && Object.hasOwn(results, name) ? JSON.stringify(results[name]) : undefined
    return { name, state, result }
  })
  if (rows.length === 0) return []
  const columns: readonly Column<TaskRow>[] = [
    { title: 'TASK', of: ({ name }) => name, min: 8 },
    { title: 'STATE', of: ({ state }) => state, tone: ({ state }) => toneOf(state) },
    ...(results ? [{ title: 'RESULT', of: ({ result }: TaskRow) => result, min: 16 }] : []),
  ]
  return ['', ...table(columns, rows, screen)]
}
