/** Shows the page that the address names. */
import type { JSX } from 'preact'
import { JobPage } from '../pages/job/job.tsx'
import { JobsPage } from '../pages/jobs/jobs.tsx'
import { BatchesPage } from '../pages/lists/batches.tsx'
import { ConductorsPage } from '../pages/lists/conductors.tsx'
import { DoctorPage } from '../pages/lists/doctor.tsx'
import { FlowsPage } from '../pages/lists/flows.tsx'
import { HistoryPage } from '../pages/lists/history.tsx'
import { LimitsPage } from '../pages/lists/limits.tsx'
import { LogbooksPage } from '../pages/lists/logbooks.tsx'
import { QueuesPage } from '../pages/lists/queues.tsx'
import { SchedulesPage } from '../pages/lists/schedules.tsx'
import { TrashPage } from '../pages/lists/trash.tsx'
import { OverviewPage } from '../pages/overview/overview.tsx'
import { type Page, place } from '../state/router.ts'

const LISTS: Readonly<Record<Page, () => JSX.Element>> = {
  overview: OverviewPage,
  jobs: JobsPage,
  trash: TrashPage,
  queues: QueuesPage,
  flows: FlowsPage,
  schedules: SchedulesPage,
  limits: LimitsPage,
  batches: BatchesPage,
  conductors: ConductorsPage,
  history: HistoryPage,
  logbooks: LogbooksPage,
  doctor: DoctorPage,
}

export function PageOf({ page }: { page: Page }): JSX.Element {
  const { id } = place.value
  if (page === 'jobs' && id !== undefined) return <JobPage key={id} />
  const List = LISTS[page]
  return <List />
}
