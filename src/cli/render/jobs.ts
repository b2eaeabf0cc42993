/** Lists of jobs as tables. */
import type { JobView, TrashView } from '../views.ts'
import { age } from './age.ts'
import { type Column, table } from './table.ts'

export interface Screen {
  /** Undefined shows everything whole. */
  readonly width: number | undefined
  readonly now: Date
}

export function jobsTable(jobs: readonly JobView[], { width, now }: Screen): string[] {
  const columns: readonly Column<JobView>[] = [
    { title: 'UUID', of: (job) => job.uuid },
    { title: 'NAME', of: (job) => job.name, min: 16 },
    { title: 'STATE', of: (job) => job.state },
    { title: 'PRIORITY', of: (job) => job.priority, optional: true },
    { title: 'RUNS', of: (job) => String(job.runs), optional: true },
    { title: 'AGE', of: (job) => job.postedAt && age(job.postedAt, now) },
    { title: 'OWNER', of: (job) => job.owner, min: 8 },
  ]
  return table(columns, jobs, width)
}

export function trashTable(jobs: readonly TrashView[], { width, now }: Screen): string[] {
  const columns: readonly Column<TrashView>[] = [
    { title: 'UUID', of: (job) => job.uuid },
    { title: 'NAME', of: (job) => job.name, min: 16 },
    { title: 'AGE', of: (job) => age(job.at, now) },
    { title: 'BY', of: (job) => job.by, min: 8, optional: true },
    { title: 'REASON', of: (job) => job.reason, min: 16 },
  ]
  return table(columns, jobs, width)
}
