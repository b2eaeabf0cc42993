/** The page of the batches with their progress, and of one of them. */
import type { JSX } from 'preact'
import type { WireBatch } from '../../../wire/board.ts'
import { Action } from '../../parts/action.tsx'
import { Progress } from '../../parts/charts.tsx'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Unsupported } from '../../parts/notices.tsx'
import { type Column, Facts, Table } from '../../parts/table.tsx'
import { Name, State, Time } from '../../parts/text.tsx'
import { act } from '../../state/acting.ts'
import { formatNumber, KEPT_STATES, term } from '../../state/format.ts'
import { useReading } from '../../state/reading.ts'
import { href, place } from '../../state/router.ts'
import { board, onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.batches

export function BatchesPage(): JSX.Element {
  const { id } = place.value
  if (board.value?.supports.batches === false)
    return (
      <>
        <Heading title={t.title} />
        <Unsupported what={t.title} />
      </>
    )
  return id === undefined ? <BatchList /> : <Batch uuid={id} />
}

const COLUMNS: readonly Column<WireBatch>[] = [
  { head: t.state, cell: (batch) => <BatchState batch={batch} /> },
  {
    head: t.name,
    kind: 'main',
    cell: ({ uuid, name }) => (
      <Link to={href('batches', { id: uuid })} row>
        <Name text={name} />
      </Link>
    ),
  },
  { head: t.progress, cell: (batch) => <BatchProgress batch={batch} /> },
  { head: t.open, kind: 'number', cell: ({ open }) => formatNumber(open) },
  { head: t.failed, kind: 'number', cell: ({ failed }) => formatNumber(failed) },
  { head: t.total, kind: 'wide', cell: ({ total }) => formatNumber(total) },
  { head: t.created, kind: 'wide', cell: ({ createdAt }) => <Time at={createdAt} /> },
]

function BatchList(): JSX.Element {
  const reading = useReading<{ readonly batches: readonly WireBatch[] }>(onBoard('batches'), ['batches'])
  return (
    <>
      <Heading title={t.title} />
      <Loaded reading={reading}>
        {({ batches }) =>
          batches.length === 0 ? (
            <Empty>{t.empty}</Empty>
          ) : (
            <Table label={t.title} columns={COLUMNS} rows={batches} keyOf={({ uuid }) => uuid} />
          )
        }
      </Loaded>
    </>
  )
}

function BatchState({ batch: { state, sealed } }: { batch: WireBatch }): JSX.Element {
  return (
    <>
      <State state={state} /> {!sealed && <span class="tag">{t.unsealed}</span>}
    </>
  )
}

function BatchProgress({ batch: { total, open } }: { batch: WireBatch }): JSX.Element {
  return <Progress value={total === 0 ? 1 : (total - open) / total} label={t.progress} />
}

function Batch({ uuid }: { uuid: string }): JSX.Element {
  const reading = useReading<WireBatch>(onBoard(`batches/${encodeURIComponent(uuid)}`), ['batches', 'jobs', 'trash'])
  const { data } = reading
  return (
    <>
      <Heading title={data?.name ?? t.title} actions={data && <BatchActions batch={data} />} />
      <p class="under-heading">
        <Link to={href('batches')}>{t.all}</Link>
      </p>
      <Loaded reading={reading}>
        {(batch) => (
          <section class="summary">
            <p class="big">
              <BatchState batch={batch} /> <BatchProgress batch={batch} />
            </p>
            {batch.reason !== undefined && <Name text={batch.reason} max={500} />}
            <Facts
              facts={[
                [t.total, formatNumber(batch.total)],
                [t.open, formatNumber(batch.open)],
                [t.done, formatNumber(batch.done)],
                [t.failed, formatNumber(batch.failed)],
                [t.created, <Time key="created" at={batch.createdAt} />],
                [t.ended, batch.endedAt !== undefined && <Time at={batch.endedAt} />],
                [t.who, <Name key="who" text={batch.who} max={80} />],
                [
                  t.jobs,
                  <Link key="jobs" to={href('jobs', { q: `${term('batch', uuid)} ${KEPT_STATES}` })}>
                    {t.jobsText}
                  </Link>,
                ],
              ]}
            />
          </section>
        )}
      </Loaded>
    </>
  )
}

function BatchActions({ batch: { uuid, name, open, failed } }: { batch: WireBatch }): JSX.Element {
  const path = `batches/${encodeURIComponent(uuid)}`
  const toBody =
    (action: string) =>
    ({ reason }: Readonly<Record<string, string>>): object => ({ action, ...(reason ? { reason } : {}) })
  const cancel = { title: `${t.cancel}: ${name}`, text: t.cancelText, yes: t.cancel, reason: true, danger: true }
  const retry = { title: `${t.retry}: ${name}`, text: t.retryText, yes: t.retry }
  return (
    <>
      <Action
        needs="batch.retry"
        unless={failed === 0 ? t.noneFailed : undefined}
        onClick={() => act(path, retry, toBody('retry'), t.retryDone)}
      >
        {t.retry}
      </Action>
      <Action
        needs="batch.cancel"
        danger
        unless={open === 0 ? t.noneOpen : undefined}
        onClick={() => act(path, cancel, toBody('cancel'), t.cancelDone)}
      >
        {t.cancel}
      </Action>
    </>
  )
}
