/** The table of jobs of the pages for jobs, trash and history. */
import type { ComponentChildren, JSX } from 'preact'
import type { WireJob } from '../../wire/jobs.ts'
import { formatDuration, term } from '../state/format.ts'
import { href } from '../state/router.ts'
import { texts } from '../texts.ts'
import { Progress } from './charts.tsx'
import { Link } from './link.tsx'
import { type Column, Table } from './table.tsx'
import { Elapsed, JobLink, Name, State, Time } from './text.tsx'
import { WhyText } from './waiting.tsx'

export interface JobTableProps {
  readonly label: string
  readonly jobs: readonly WireJob[]
  /** The uuids that are selected, and what changes them; absent where nothing can be selected. */
  readonly selection?: { readonly uuids: ReadonlySet<string>; readonly set: (uuids: ReadonlySet<string>) => void }
}

const PRIORITY: Column<WireJob> = {
  head: texts.jobs.priority,
  kind: 'widest',
  cell: ({ priority = '' }) => texts.priorities[priority] ?? priority,
}
/** In place of the priority, which the history does not keep. */
const DURATION: Column<WireJob> = {
  head: texts.jobs.took,
  kind: 'widest',
  cell: ({ runningSince, endedAt }) =>
    runningSince !== undefined &&
    endedAt !== undefined &&
    formatDuration(Math.max(0, Date.parse(endedAt) - Date.parse(runningSince)), { exact: true }),
}

const COLUMNS: readonly Column<WireJob>[] = [
  { head: texts.jobs.state, cell: (job) => <JobState job={job} /> },
  {
    head: texts.jobs.name,
    kind: 'main',
    cell: (job) => (
      <>
        <JobLink uuid={job.uuid} name={job.name} row />
        {/* Narrow screens have no column for it, and it is what people look for. */}
        <div class="narrow quiet">
          <Reason job={job} />
        </div>
      </>
    ),
  },
  { head: texts.jobs.reason, kind: 'wide', cell: (job) => <Reason job={job} /> },
  { head: texts.jobs.owner, kind: 'widest', cell: ({ owner }) => owner !== undefined && <OwnerLink owner={owner} /> },
  PRIORITY,
  {
    head: texts.jobs.runs,
    kind: 'wide number',
    cell: ({ runs }) => runs,
  },
  { head: texts.jobs.since, kind: 'wide', cell: (job) => <Since job={job} /> },
]

/** Shows jobs that have ended, as the history has them. */
export function EndedJobTable({ label, jobs }: Pick<JobTableProps, 'label' | 'jobs'>): JSX.Element {
  const columns = COLUMNS.map((column) => (column === PRIORITY ? DURATION : column))
  return <Table label={label} columns={columns} rows={jobs} keyOf={({ uuid }) => uuid} />
}

export function JobTable({ label, jobs, selection }: JobTableProps): JSX.Element {
  if (selection === undefined) return <Table label={label} columns={COLUMNS} rows={jobs} keyOf={({ uuid }) => uuid} />
  const { uuids, set } = selection
  const areAll = jobs.length > 0 && jobs.every(({ uuid }) => uuids.has(uuid))
  const toggle = (uuid: string): void => {
    const next = new Set(uuids)
    if (!next.delete(uuid)) next.add(uuid)
    set(next)
  }
  return (
    <Table
      label={label}
      columns={COLUMNS}
      rows={jobs}
      keyOf={({ uuid }) => uuid}
      leadHead={
        <input
          type="checkbox"
          aria-label={texts.bulk.selectAll}
          checked={areAll}
          onChange={() => set(areAll ? new Set() : new Set(jobs.map(({ uuid }) => uuid)))}
        />
      }
      lead={({ uuid, name }) => (
        <input
          type="checkbox"
          data-select
          aria-label={texts.bulk.select(name.slice(0, 80))}
          checked={uuids.has(uuid)}
          onChange={() => toggle(uuid)}
        />
      )}
    />
  )
}

function JobState({ job: { state, cancelRequested, progress } }: { job: WireJob }): JSX.Element {
  return (
    <>
      <State state={state} />
      {cancelRequested && state === 'RUNNING' && <span class="tag">{texts.jobs.cancelling}</span>}
      {progress !== undefined && state === 'RUNNING' && <Progress value={progress} label={texts.jobs.progress} />}
    </>
  )
}

function Reason({ job: { state, reason, waitingFor } }: { job: WireJob }): ComponentChildren {
  if (waitingFor !== undefined) return <WhyText reason={waitingFor} max={140} />
  if (state === 'WAITING' && reason === undefined) return <span class="quiet">{texts.jobs.freeSlot}</span>
  return reason === undefined ? null : <Name text={reason} max={140} />
}

export function OwnerLink({ owner }: { owner: string }): JSX.Element {
  return (
    <Link to={href('jobs', { q: term('owner', owner) })}>
      <Name text={owner} max={60} />
    </Link>
  )
}

/** Shows the time that matters most in the state of the job. */
function Since({ job: { state, postedAt, runningSince, endedAt, delayedUntil } }: { job: WireJob }): ComponentChildren {
  if (state === 'RUNNING' && runningSince !== undefined)
    return (
      <>
        {texts.jobs.runningFor} <Elapsed from={runningSince} />
      </>
    )
  if (state === 'DELAYED' && delayedUntil !== undefined) return <Time at={delayedUntil} in />
  return <Time at={endedAt ?? postedAt} />
}
