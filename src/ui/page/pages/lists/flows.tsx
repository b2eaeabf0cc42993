/** The page of the flows that conductors have published, and of one of them with its picture. */
import type { JSX } from 'preact'
import type { WireFlow } from '../../../wire/board.ts'
import type { WirePicture } from '../../../wire/picture.ts'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Warning } from '../../parts/notices.tsx'
import { Picture } from '../../parts/picture.tsx'
import { type Column, Facts, Table } from '../../parts/table.tsx'
import { Name, Time } from '../../parts/text.tsx'
import { formatDuration, formatNumber, term } from '../../state/format.ts'
import { useReading } from '../../state/reading.ts'
import { href, place } from '../../state/router.ts'
import { onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'
import { FlowSettings } from './flow-settings.tsx'

const t = texts.flows

export function FlowsPage(): JSX.Element {
  const reading = useReading<{ readonly flows: readonly WireFlow[] }>(onBoard('flows'), ['conductors', 'jobs', 'flows'])
  const { query } = place.value
  const name = query.get('name')
  return (
    <>
      <Heading title={name ?? t.title} />
      {name !== null && (
        <p class="under-heading">
          <Link to={href('flows')}>{t.all}</Link>
        </p>
      )}
      <Loaded reading={reading}>
        {({ flows }) =>
          name === null ? (
            <FlowTable flows={flows} />
          ) : (
            <Flow flows={flows} name={name} version={query.get('version')} />
          )
        }
      </Loaded>
      <FlowSettings flow={name} />
    </>
  )
}

const COLUMNS: readonly Column<WireFlow>[] = [
  {
    head: t.name,
    kind: 'main',
    cell: ({ name, version, disabled }) => (
      <>
        <Link to={href('flows', { name, version })} row>
          <Name text={name} />
        </Link>{' '}
        {disabled !== undefined && <span class="tag">{t.notEnabled}</span>}
      </>
    ),
  },
  { head: t.version, cell: ({ version }) => <Name text={version} max={40} /> },
  { head: t.atoms, kind: 'number', cell: ({ atoms }) => formatNumber(atoms) },
  {
    head: texts.states['WAITING'] ?? '',
    kind: 'number',
    cell: ({ name, waiting }) => (
      <Link to={href('jobs', { q: `${term('flow', name)} state:waiting` })}>{formatNumber(waiting)}</Link>
    ),
  },
  {
    head: texts.states['RUNNING'] ?? '',
    kind: 'number',
    cell: ({ name, running }) => (
      <Link to={href('jobs', { q: `${term('flow', name)} state:running` })}>{formatNumber(running)}</Link>
    ),
  },
  { head: t.done, kind: 'number', cell: ({ done }) => done !== undefined && formatNumber(done) },
  { head: t.failed, kind: 'number', cell: ({ failed }) => failed !== undefined && formatNumber(failed) },
  {
    head: t.median,
    kind: 'wide',
    cell: ({ medianMs }) => medianMs !== undefined && formatDuration(medianMs, { exact: true }),
  },
  {
    head: t.conductors,
    kind: 'widest',
    cell: ({ conductors }) => (conductors.length === 0 ? t.noConductors : conductors.length),
  },
]

function FlowTable({ flows }: { flows: readonly WireFlow[] }): JSX.Element {
  if (flows.length === 0) return <Empty>{t.empty}</Empty>
  return <Table label={t.title} columns={COLUMNS} rows={flows} keyOf={({ name, digest }) => `${name} ${digest}`} />
}

function Flow({
  flows,
  name,
  version,
}: {
  flows: readonly WireFlow[]
  name: string
  version: string | null
}): JSX.Element {
  const versions = flows.filter((flow) => flow.name === name)
  const flow = versions.find((each) => each.version === version) ?? versions.at(-1)
  const parameters = new URLSearchParams({ name, version: flow?.version ?? '' })
  const picture = useReading<WirePicture>(flow && onBoard(`flows/picture?${parameters}`), [])
  if (flow === undefined) return <Empty>{t.unknown}</Empty>
  return (
    <>
      {flow.disabled !== undefined && <Disabled {...flow.disabled} />}
      <Facts
        facts={[
          [
            t.versions,
            <ul class="inline" key="versions">
              {versions.map((each) => (
                <li key={each.digest}>
                  <Link to={href('flows', { name, version: each.version })} current={each === flow} class="chip">
                    <Name text={each.version} max={40} />
                  </Link>
                </li>
              ))}
            </ul>,
          ],
          [t.since, <Time key="since" at={flow.since} />],
          [
            t.conductors,
            flow.conductors.length === 0 ? (
              t.noConductors
            ) : (
              <ul class="inline" key="conductors">
                {flow.conductors.map((conductor) => (
                  <li key={conductor}>
                    <Link to={href('conductors')}>
                      <Name text={conductor} max={60} />
                    </Link>
                  </li>
                ))}
              </ul>
            ),
          ],
          [
            t.jobs,
            <Link key="jobs" to={href('jobs', { q: term('flow', name) })}>
              {t.jobsText(formatNumber(flow.waiting), formatNumber(flow.delayed), formatNumber(flow.running))}
            </Link>,
          ],
          [t.digest, <code key="digest">{flow.digest}</code>],
        ]}
      />
      <Loaded reading={picture}>{(drawn) => <Picture picture={drawn} />}</Loaded>
      {picture.data && (
        <>
          <h2>{t.atomList}</h2>
          <ol class="columns">
            {picture.data.nodes
              .filter(({ kind }) => kind !== 'point')
              .map(({ id, name: atom = '', kind, flow: inner }) => (
                <li key={id}>
                  <Name text={atom} /> {kind === 'retry' && <span class="tag">{texts.job.retry}</span>}{' '}
                  {inner !== undefined && (
                    <span class="quiet">
                      <Name text={inner} max={60} />
                    </span>
                  )}
                </li>
              ))}
          </ol>
        </>
      )}
    </>
  )
}

function Disabled({ flow, by, since, reason }: NonNullable<WireFlow['disabled']>): JSX.Element {
  return (
    <Warning>
      {t.disabled} <Name text={by} max={80} /> {t.disabledFor} <Name text={flow} max={80} />, <Time at={since} />
      {reason !== undefined && (
        <>
          : <Name text={reason} max={400} />
        </>
      )}
    </Warning>
  )
}
