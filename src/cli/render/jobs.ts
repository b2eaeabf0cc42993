/** Lists of jobs as tables. */
import type { JobView, TrashView } from '../views.ts'
import { age } from './age.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'

export function jobsTable(jobs: readonly JobView[], screen: Screen): string[] {
  const columns: readonly Column<JobView>[] = [
    { title: 'UUID', of: (job) => job.uuid },
    { title: 'NAME', of: (job) => job.name, min: 16 },
    { title: 'STATE', of: standing, tone: (job) => toneOf(job.state) },
    { title: 'PRIORITY', of: (job) => job.priority, optional: true },
    { title: 'RUNS', of: (job) => String(job.runs), optional: true },
    { title: 'AGE', of: (job) => job.postedAt && age(job.postedAt, screen.now) },
    { title: 'OWNER', of: (job) => job.owner, min: 8 },
  ]
  return table(columns, jobs, screen)
}

/** What a table shows of a job in the trash: its failure and attempts need not stay in memory. */
export type TrashRow = Pick<TrashView, 'uuid' | 'name' | 'at' | 'by' | 'reason'>

export function trashRow({ uuid, name, at, by, reason }: TrashView): TrashRow {
  return { uuid, name, at, by, reason }
}

export function trashTable(jobs: readonly TrashRow[], screen: Screen): string[] {
  const columns: readonly Column<TrashRow>[] = [
    { title: 'UUID', of: (job) => job.uuid },
    { title: 'NAME', of: (job) => job.name, min: 16 },
    { title: 'AGE', of: (job) => age(job.at, screen.now) },
    { title: 'BY', of: (job) => job.by, min: 8, optional: true },
    { title: 'REASON', of: (job) => job.reason, min: 16 },
  ]
  return table(columns, jobs, screen)
}

/** Its state, and whether it is to be given up. */
export function standing({ state, cancelRequested }: Pick<JobView, 'state' | 'cancelRequested'>): string {
  return cancelRequested ? `${state}, cancelling` : state
}
