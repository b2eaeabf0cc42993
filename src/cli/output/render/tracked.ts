/** The status of a job for people. */
import { describeFailure } from '../../../core/failure.ts'
import { toJson } from '../../../core/json.ts'
import { formatCheckpoint, type TrackedView } from '../../../views/index.ts'
import { formatAtomState } from './logbook.ts'
import { type Screen, stateTone } from './paint.ts'
import { type Column, factLines, formatCancellation, renderTable } from './table.ts'
import { escapeUnprintable } from './text.ts'

export interface TrackedScreen {
  readonly screen: Screen
  /** Whether no conductor lives on the board. */
  readonly hasNoConductors: boolean
}

export function trackedLines(tracked: TrackedView, { screen, hasNoConductors }: TrackedScreen): string[] {
  const {
    uuid,
    status,
    owner,
    run,
    runs,
    since,
    at,
    by,
    reason,
    waitingFor,
    lastRun,
    cancellation,
    failures = [],
  } = tracked
  const facts = factLines([
    ['waits for', status === 'waiting' && !waitingFor ? turnText({ hasNoConductors }) : undefined],
    ['because', waitingFor?.text],
    ['owner', owner],
    ['since', since?.toISOString()],
    ['run', run?.toString()],
    ['runs', runs?.toString()],
    ['last run', lastRun && `${lastRun.ended ?? 'its owner was lost'}${lastRun.reason ? `: ${lastRun.reason}` : ''}`],
    ['cancel', formatCancellation(cancellation)],
    ['at', at?.toISOString()],
    ['by', by],
    ['reason', reason],
    ...failures.map((failure) => ['failure', describeFailure(failure)] as const),
  ])
  return [
    escapeUnprintable(`job ${uuid}  ${status}`),
    ...facts,
    ...taskLines(tracked, screen),
    ...unfinishedLines(tracked),
  ]
}

function turnText({ hasNoConductors }: { readonly hasNoConductors: boolean }): string {
  return hasNoConductors ? 'its turn; no conductor is connected to this board' : 'its turn'
}

/** Returns the lines about tasks that look as if they were running, and are not. */
function unfinishedLines({ status, tasks = {}, checkpoints = {} }: TrackedView): string[] {
  if (status !== 'waiting') return []
  const halfDone = Object.keys(tasks).filter((name) => tasks[name] === 'RUNNING' || tasks[name] === 'REVERTING')
  return halfDone.map((name) => {
    const how = Object.hasOwn(checkpoints, name) ? 'gets its checkpoint' : 'begins again'
    return escapeUnprintable(`${name} was stopped in the middle, and ${how} in the next run`)
  })
}

interface TaskRow {
  readonly name: string
  readonly state: string
  /** The progress from 0 to 1. */
  readonly progress: number | undefined
  readonly message: string | undefined
  readonly checkpoint: string | undefined
  readonly result: string | undefined
}

function taskLines(tracked: TrackedView, screen: Screen): string[] {
  const { tasks = {}, progress = {}, messages, checkpoints, results } = tracked
  const rows = Object.entries(tasks).map(([name, state]): TaskRow => {
    const result = results && Object.hasOwn(results, name) ? toJson(results[name]) : undefined
    const saved = ownValue(checkpoints, name)
    const checkpoint = saved && formatCheckpoint(saved)
    return { name, state, result, checkpoint, message: ownValue(messages, name), progress: ownValue(progress, name) }
  })
  if (rows.length === 0) return []
  const columns: readonly Column<TaskRow>[] = [
    { title: 'TASK', value: ({ name }) => name, min: 8 },
    { title: 'STATE', value: formatAtomState, tone: ({ state }) => stateTone(state) },
    ...(messages ? [{ title: 'MESSAGE', value: ({ message }: TaskRow) => message, min: 12 }] : []),
    ...(checkpoints ? [{ title: 'CHECKPOINT', value: ({ checkpoint }: TaskRow) => checkpoint, min: 12 }] : []),
    ...(results ? [{ title: 'RESULT', value: ({ result }: TaskRow) => result, min: 16 }] : []),
  ]
  return ['', ...renderTable(columns, rows, screen)]
}

/** Returns the value of a task: its name may be the name of a property of every object. */
function ownValue<T>(values: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return values && Object.hasOwn(values, name) ? values[name] : undefined
}
