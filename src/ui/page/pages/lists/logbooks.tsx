/** Logbooks: what flows have done, also those whose jobs have left the board. */
import type { JSX } from 'preact'
import type { WireLogbookRow } from '../../../wire/board.ts'
import type { WireScan } from '../../../wire/common.ts'
import type { WireLogbook } from '../../../wire/jobs.ts'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Loading, Problem, Unsupported } from '../../parts/notices.tsx'
import { ScanProgress } from '../../parts/search.tsx'
import { type Column, Facts, Table } from '../../parts/table.tsx'
import { JobLink, Name, State, Time } from '../../parts/text.tsx'
import { useList } from '../../state/list.ts'
import { useReading } from '../../state/reading.ts'
import { href, place } from '../../state/router.ts'
import { board, onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'
import { Atoms } from '../job/flow-of-job.tsx'

const t = texts.logbooks

export function LogbooksPage(): JSX.Element {
  const { id } = place.value
  if (board.value?.supports.logbooks === false)
    return (
      <>
        <Heading title={t.title} />
        <Unsupported what={t.title} />
      </>
    )
  return id === undefined ? <LogbookList /> : <Logbook uuid={id} />
}

interface Page {
  readonly logbooks: readonly WireLogbookRow[]
  readonly scan: WireScan
}

const COLUMNS: readonly Column<WireLogbookRow>[] = [
  {
    head: t.name,
    kind: 'main',
    cell: ({ uuid, name }) => (
      <Link to={href('logbooks', { id: uuid })} row>
        <Name text={name} />
      </Link>
    ),
  },
  {
    head: t.flows,
    cell: ({ flows }) => (
      <ul class="inline">
        {flows.map(({ uuid, name, state }) => (
          <li key={uuid}>
            <Name text={name} max={60} /> <State state={state} />
          </li>
        ))}
      </ul>
    ),
  },
  { head: t.changed, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
]

function LogbookList(): JSX.Element {
  const listing = useList<Page, WireLogbookRow>(onBoard('logbooks'), ({ logbooks }) => logbooks, ['jobs'])
  return (
    <>
      <Heading title={t.title} />
      {listing.error && <Problem error={listing.error} retry={listing.reload} />}
      {listing.scan === undefined && !listing.error && <Loading />}
      {listing.scan !== undefined && listing.items.length === 0 && <Empty>{t.empty}</Empty>}
      {listing.items.length > 0 && (
        <Table label={t.title} columns={COLUMNS} rows={listing.items} keyOf={({ uuid }) => uuid} />
      )}
      <ScanProgress listing={listing} />
    </>
  )
}

interface Book {
  readonly uuid: string
  readonly name: string
  readonly flows: readonly WireLogbook[]
}

function Logbook({ uuid }: { uuid: string }): JSX.Element {
  const reading = useReading<Book>(onBoard(`logbooks/${encodeURIComponent(uuid)}`), ['jobs'])
  return (
    <>
      <Heading title={reading.data?.name ?? t.title} />
      <p class="under-heading">
        <Link to={href('logbooks')}>{t.all}</Link>
      </p>
      <Loaded reading={reading}>{({ flows }) => flows.map((flow) => <Flow key={flow.uuid} logbook={flow} />)}</Loaded>
    </>
  )
}

function Flow({ logbook }: { logbook: WireLogbook }): JSX.Element {
  const { uuid, name, flow, version, state, run, createdAt, updatedAt } = logbook
  return (
    <section>
      <h2>
        <Name text={name} /> <State state={state} />
      </h2>
      <Facts
        facts={[
          [t.flow, <Name key="flow" text={`${flow} ${version}`} />],
          [t.run, run],
          [t.created, <Time key="created" at={createdAt} />],
          [t.changed, <Time key="changed" at={updatedAt} />],
          [t.job, <JobLink key="job" uuid={uuid} />],
        ]}
      />
      <Atoms logbook={logbook} />
    </section>
  )
}
