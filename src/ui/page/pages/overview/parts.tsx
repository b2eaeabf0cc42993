/** The cards of the overview. */
import type { JSX } from 'preact'
import type { WireOverview } from '../../../wire/board.ts'
import { Meter, Sparkline } from '../../parts/charts.tsx'
import { OwnerLink } from '../../parts/job-table.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty } from '../../parts/notices.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Elapsed, JobLink, Name, Time } from '../../parts/text.tsx'
import { formatNumber, term } from '../../state/format.ts'
import { href } from '../../state/router.ts'
import { texts } from '../../texts.ts'

const t = texts.overview

interface CardProps {
  readonly overview: WireOverview
}

export function Failures({ overview: { failures } }: CardProps): JSX.Element {
  return (
    <section class="card">
      <h2>{t.failures}</h2>
      {failures.length > 0 && <p class="quiet">{t.failuresNote}</p>}
      {failures.length === 0 && <Empty>{t.noFailures}</Empty>}
      <ul class="counted">
        {failures.map(({ reason, flow, jobs, last, query }) => (
          <li key={query}>
            <Link
              to={href('trash', { view: 'list', q: query })}
              class="count"
              label={t.failureLabel(formatNumber(jobs), reason)}
            >
              {formatNumber(jobs)}
            </Link>
            <span>
              {flow !== undefined && <FlowTag flow={flow} />}{' '}
              <Link to={href('trash', { view: 'list', q: query })}>
                <Name text={reason === '' ? texts.trash.noReason : reason} max={200} />
              </Link>{' '}
              <span class="quiet">
                <Time at={last} />
              </span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

export function FlowTag({ flow }: { flow: string }): JSX.Element {
  return (
    <span class="tag">
      <Name text={flow} max={60} />
    </span>
  )
}

export function LongestRunning({ overview: { running } }: CardProps): JSX.Element {
  return (
    <section class="card">
      <h2>{t.longest}</h2>
      {running.length === 0 && <Empty>{t.noneRuns}</Empty>}
      <ul class="counted">
        {running.map(({ uuid, name, owner, since }) => (
          <li key={uuid}>
            <span class="count">{since === undefined ? '?' : <Elapsed from={since} />}</span>
            <span>
              <JobLink uuid={uuid} name={name} />{' '}
              {owner !== undefined && (
                <span class="quiet">
                  {t.on} <OwnerLink owner={owner} />
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

export function Slots({ overview: { slots } }: CardProps): JSX.Element {
  return (
    <section class="card">
      <h2>{t.slots}</h2>
      {slots.conductors === 0 ? (
        <Empty>{t.noConductors}</Empty>
      ) : (
        <p>
          <Meter value={slots.busy} max={slots.all} label={t.slots} />{' '}
          <Link to={href('conductors')}>{t.conductors(slots.conductors)}</Link>
        </p>
      )}
    </section>
  )
}

const SERIES = ['posted', 'done', 'failed', 'trashed'] as const

export function LastHour({ overview: { minutes } }: CardProps): JSX.Element {
  return (
    <section class="card">
      <h2>{t.hour}</h2>
      {minutes.length === 0 && <Empty>{t.noMinutes}</Empty>}
      {minutes.length > 0 && (
        <ul class="series">
          {SERIES.map((name) => {
            const values = minutes.map((minute) => minute[name])
            const sum = formatNumber(values.reduce((all, each) => all + each, 0))
            return (
              <li key={name}>
                <span>
                  <strong>{sum}</strong> {t.series[name]}
                </span>
                <Sparkline
                  values={values}
                  kind={name}
                  label={t.seriesLabel(t.series[name], sum, formatNumber(Math.max(...values)), minutes.length)}
                />
              </li>
            )
          })}
        </ul>
      )}
    </section>
  )
}

export function NextSchedules({ overview: { nextSchedules } }: CardProps): JSX.Element {
  return (
    <section class="card">
      <h2>{t.next}</h2>
      {nextSchedules.length === 0 && <Empty>{t.noSchedules}</Empty>}
      <ul class="counted">
        {nextSchedules.map(({ id, next }) => (
          <li key={id}>
            <span class="count">
              <Time at={next} in />
            </span>
            <Link to={href('schedules', { schedule: id })}>
              <Name text={id} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}

type FlowCount = WireOverview['byFlow'][number]

/** Shows a number as a link to the jobs that it counts; zero is no link. */
function Counted({ value, query, label }: { value: number; query: string; label: string }): JSX.Element {
  if (value === 0) return <span class="quiet">0</span>
  return (
    <Link to={href('jobs', { q: query })} label={label}>
      {formatNumber(value)}
    </Link>
  )
}

/** Returns columns of the numbers of jobs in these states; `groupOf` returns the term of a search for the jobs of a row. */
function countColumns<State extends string, Row extends Readonly<Record<State, number>>>(
  states: readonly State[],
  groupOf: (row: Row) => readonly [field: string, value: string],
): Column<Row>[] {
  return states.map((state) => {
    return {
      head: state === 'trashed' ? t.trashed : (texts.states[state.toUpperCase()] ?? state),
      kind: 'number',
      cell: (row) => {
        const [field, value] = groupOf(row)
        const label = t.countLabel(formatNumber(row[state]), state, value)
        return <Counted value={row[state]} query={`${term(field, value)} state:${state}`} label={label} />
      },
    }
  })
}

const FLOW_COLUMNS: readonly Column<FlowCount>[] = [
  {
    head: t.flow,
    kind: 'main',
    cell: ({ flow }) => (
      <Link to={href('flows', { name: flow })}>
        <Name text={flow} max={60} />
      </Link>
    ),
  },
  ...countColumns(['waiting', 'delayed', 'running', 'trashed'], ({ flow }: FlowCount) => ['flow', flow]),
]

export function ByFlow({ overview: { byFlow } }: CardProps): JSX.Element | null {
  if (byFlow.length === 0) return null
  return (
    <section class="card">
      <h2>{t.byFlow}</h2>
      <Table label={t.byFlow} columns={FLOW_COLUMNS} rows={byFlow} keyOf={({ flow }) => flow} />
    </section>
  )
}

type QueueCount = WireOverview['byQueue'][number]

const QUEUE_COLUMNS: readonly Column<QueueCount>[] = [
  { head: texts.queues.queue, kind: 'main', cell: ({ queue }) => <Name text={queue} max={80} /> },
  ...countColumns(['waiting', 'delayed', 'running'], ({ queue }: QueueCount) => ['queue', queue]),
]

/** Shows the jobs by queue, unless the default one has all of them. */
export function ByQueue({ overview: { byQueue } }: CardProps): JSX.Element | null {
  if (byQueue.every(({ queue }) => queue === 'default')) return null
  return (
    <section class="card">
      <h2>
        <Link to={href('queues')}>{t.byQueue}</Link>
      </h2>
      <Table label={t.byQueue} columns={QUEUE_COLUMNS} rows={byQueue} keyOf={({ queue }) => queue} />
    </section>
  )
}

type PriorityCount = WireOverview['byPriority'][number]

const PRIORITY_COLUMNS: readonly Column<PriorityCount>[] = [
  { head: texts.jobs.priority, kind: 'main', cell: ({ priority }) => texts.priorities[priority] ?? priority },
  ...countColumns(['waiting', 'delayed', 'running'], ({ priority }: PriorityCount) => ['priority', priority]),
]

export function ByPriority({ overview: { byPriority } }: CardProps): JSX.Element | null {
  if (byPriority.length === 0) return null
  return (
    <section class="card">
      <h2>{t.byPriority}</h2>
      <Table label={t.byPriority} columns={PRIORITY_COLUMNS} rows={byPriority} keyOf={({ priority }) => priority} />
    </section>
  )
}
