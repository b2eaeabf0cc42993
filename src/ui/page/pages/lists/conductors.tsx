/** The page of the conductors: the jobs of each, and which of them are slower than others. */
import type { JSX } from 'preact'
import type { WireConductor } from '../../../wire/board.ts'
import { Meter } from '../../parts/charts.tsx'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Warning } from '../../parts/notices.tsx'
import { type Column, Facts, Table } from '../../parts/table.tsx'
import { Elapsed, JobLink, Name, State, Time } from '../../parts/text.tsx'
import { formatDuration, formatMegabytes, formatNumber, term, visible } from '../../state/format.ts'
import { useReading } from '../../state/reading.ts'
import { href } from '../../state/router.ts'
import { onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.conductors
/** The factor from which on a conductor is called slow. */
const SLOW = 2

function describeQueues(queues: NonNullable<WireConductor['queues']>): string {
  const names = Array.isArray(queues) ? queues : Object.entries(queues).map(([name, weight]) => `${name}=${weight}`)
  return names.map((name) => visible(name)).join(', ')
}

export function ConductorsPage(): JSX.Element {
  const reading = useReading<{ readonly conductors: readonly WireConductor[] }>(onBoard('conductors'), [
    'conductors',
    'jobs',
  ])
  return (
    <>
      <Heading title={t.title} />
      <Loaded reading={reading}>
        {({ conductors }) =>
          conductors.length === 0 ? <Empty>{t.empty}</Empty> : <Conductors conductors={conductors} />
        }
      </Loaded>
    </>
  )
}

function Conductors({ conductors }: { conductors: readonly WireConductor[] }): JSX.Element {
  return (
    <>
      <Table label={t.title} columns={COLUMNS} rows={conductors} keyOf={({ name, pid }) => `${name} ${pid}`} />
      {conductors.map((conductor) => (
        <Details key={`${conductor.name} ${conductor.pid}`} conductor={conductor} />
      ))}
    </>
  )
}

const COLUMNS: readonly Column<WireConductor>[] = [
  { head: t.state, cell: ({ state }) => state !== undefined && <State state={state} /> },
  {
    head: t.name,
    kind: 'main',
    cell: ({ name, slowness = 0 }) => (
      <>
        <Link to={href('jobs', { q: `state:running ${term('owner', name)}` })} row>
          <Name text={name} max={80} />
        </Link>{' '}
        {slowness >= SLOW && <span class="tag warning">{t.slow(slowness.toFixed(1))}</span>}
      </>
    ),
  },
  {
    head: t.slots,
    cell: ({ running = 0, concurrency }) =>
      concurrency === undefined ? formatNumber(running) : <Meter value={running} max={concurrency} label={t.slots} />,
  },
  {
    head: t.mean,
    kind: 'number',
    cell: ({ meanMs }) => meanMs !== undefined && formatDuration(meanMs, { exact: true }),
  },
  { head: t.done, kind: 'wide number', cell: ({ counts }) => counts?.done !== undefined && formatNumber(counts.done) },
  {
    head: t.failed,
    kind: 'wide number',
    cell: ({ counts }) => counts?.failed !== undefined && formatNumber(counts.failed),
  },
  { head: t.release, kind: 'wide', cell: ({ release }) => release !== undefined && <Name text={release} max={30} /> },
  { head: t.version, kind: 'wide', cell: ({ version }) => version !== undefined && <Name text={version} max={30} /> },
  { head: t.reported, kind: 'wide', cell: ({ reportedAt }) => <Time at={reportedAt} /> },
]

type Child = NonNullable<WireConductor['children']>[number]

const CHILD_COLUMNS: readonly Column<Child>[] = [
  { head: t.child, kind: 'main', cell: ({ number }) => number },
  { head: t.pid, kind: 'number', cell: ({ pid }) => pid },
  { head: t.state, cell: ({ state }) => state !== undefined && <State state={state} /> },
  { head: t.tasks, kind: 'number', cell: ({ tasks }) => tasks },
  { head: t.memory, kind: 'number', cell: ({ memory }) => memory !== undefined && formatMegabytes(memory) },
]

function Details({ conductor }: { conductor: WireConductor }): JSX.Element {
  const { name, jobs, children = [], noChild, versions = {}, flows = [], drainingSince } = conductor
  return (
    <article class="card">
      <h2>
        <Name text={name} max={80} />
      </h2>
      {noChild !== undefined && (
        <Warning>
          {t.noChild} <Name text={noChild} max={500} />
        </Warning>
      )}
      {drainingSince !== undefined && (
        <Warning>
          {t.draining} <Time at={drainingSince} />
        </Warning>
      )}
      <Facts
        facts={[
          [t.host, conductor.host !== undefined && <Name text={conductor.host} max={80} />],
          [t.pid, conductor.pid],
          [t.started, conductor.startedAt !== undefined && <Time at={conductor.startedAt} />],
          [t.queues, conductor.queues && describeQueues(conductor.queues)],
          [t.zones, conductor.timeZones !== undefined && <Name text={conductor.timeZones} max={60} />],
          [
            t.flows,
            flows.length > 0 && (
              <ul class="inline">
                {flows.map((flow) => (
                  <li key={flow}>
                    <Link to={href('flows', { name: flow })}>
                      <Name text={flow} max={60} />
                    </Link>{' '}
                    <span class="quiet">{versions[flow]?.map((version) => visible(version)).join(', ')}</span>
                  </li>
                ))}
              </ul>
            ),
          ],
          [
            t.jobs,
            jobs.length > 0 && (
              <ul class="inline">
                {jobs.map(({ uuid, name: job, since }) => (
                  <li key={uuid}>
                    <JobLink uuid={uuid} name={job} />{' '}
                    <span class="quiet">{since !== undefined && <Elapsed from={since} />}</span>
                  </li>
                ))}
              </ul>
            ),
          ],
        ]}
      />
      {children.length > 0 && (
        <Table
          label={t.childrenOf(name.slice(0, 80))}
          columns={CHILD_COLUMNS}
          rows={children}
          keyOf={({ number, pid }) => `${number} ${pid}`}
        />
      )}
    </article>
  )
}
