/** Lists of jobs as tables. */
import type { JobView, TrashView } from '../../views/views.ts'
import { formatAge } from './age.ts'
import { stateTone } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, renderTable } from './table.ts'

export function jobsTable(jobs: readonly JobView[], screen: Screen): string[] {
  const columns: readonly Column<JobView>[] = [
    { title: 'UUID', value: (job) => job.uuid },
    { title: 'NAME', value: (job) => job.name, min: 16 },
    { title: 'STATE', value: formatState, tone: (job) => stateTone(job.state) },
    { title: 'PRIORITY', value: (job) => job.priority, optional: true },
    { title: 'RUNS', value: (job) => String(job.runs), optional: true },
    { title: 'AGE', value: (job) => job.postedAt && formatAge(job.postedAt, screen.now) },
    { title: 'OWNER', value: (job) => job.owner, min: 8 },
  ]
  return renderTable(columns, jobs, screen)
}

/** The part of a trashed job that a table shows: its failure and attempts need not stay in memory. */
export type TrashRow = Pick<TrashView, 'uuid' | 'name' | 'at' | 'by' | 'reason'>

export function trashRow({ uuid, name, at, by, reason }: TrashView): TrashRow {
  return { uuid, name, at, by, reason }
}

export function trashTable(jobs: readonly TrashRow[], screen: Screen): string[] {
  const columns: readonly Column<TrashRow>[] = [
    { title: 'UUID', value: (job) => job.uuid },
    { title: 'NAME', value: (job) => job.name, min: 16 },
    { title: 'AGE', value: (job) => formatAge(job.at, screen.now) },
    { title: 'BY', value: (job) => job.by, min: 8, optional: true },
    { title: 'REASON', value: (job) => job.reason, min: 16 },
  ]
  return renderTable(columns, jobs, screen)
}

/** Formats the state, and whether a cancellation is requested. */
export function formatState({ state, cancelRequested }: Pick<JobView, 'state' | 'cancelRequested'>): string {
  return cancelRequested ? `${state}, cancelling` : state
}
