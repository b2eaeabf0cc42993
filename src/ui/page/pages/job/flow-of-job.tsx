/** The flow of a job: its picture, coloured by what the logbook says, and the same as a table. */
import type { JSX } from 'preact'
import type { WireAtom, WireJobDetail, WireLogbook } from '../../../wire/jobs.ts'
import type { WirePicture } from '../../../wire/picture.ts'
import { Progress } from '../../parts/charts.tsx'
import { FailureTree } from '../../parts/failure.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Problem } from '../../parts/notices.tsx'
import { Picture } from '../../parts/picture.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Lines, Name, State, Time } from '../../parts/text.tsx'
import { formatDuration } from '../../state/format.ts'
import { useReading } from '../../state/reading.ts'
import { href } from '../../state/router.ts'
import { texts } from '../../texts.ts'

const t = texts.job

export function FlowOfJob({ job, path }: { job: WireJobDetail; path: string }): JSX.Element | null {
  const { flow, logbook } = job
  // The picture does not change while the job runs; only its colours do.
  const picture = useReading<WirePicture>(flow === undefined ? undefined : `${path}/picture`, [])
  if (flow === undefined && logbook === undefined) return null
  const states = new Map(logbook?.atoms.map(({ name, state }) => [name, state]))
  const isInterrupted = logbook?.state === 'RUNNING' && job.state !== 'RUNNING'
  const isUnknown = picture.error?.status === 404
  return (
    <section>
      <h2>{t.flowOfJob}</h2>
      {picture.data && <Picture picture={picture.data} states={states} />}
      {isUnknown && <Empty>{t.noPicture}</Empty>}
      {picture.error && !isUnknown && <Problem error={picture.error} retry={picture.reload} />}
      {logbook === undefined && <Empty>{t.noLogbooks}</Empty>}
      {logbook === null && <Empty>{t.noRun}</Empty>}
      {logbook && (
        <>
          <p>
            <Link to={href('logbooks', { id: logbook.uuid })}>{t.logbook}</Link>:{' '}
            {isInterrupted ? t.interrupted : <State state={logbook.state} />}{' '}
            <span class="quiet">
              {t.changed} <Time at={logbook.updatedAt} />
            </span>
          </p>
          <Atoms logbook={logbook} />
        </>
      )}
    </section>
  )
}

const ATOM_COLUMNS: readonly Column<WireAtom>[] = [
  { head: t.state, cell: (atom) => <AtomState atom={atom} /> },
  {
    head: t.atom,
    kind: 'main',
    cell: (atom) => (
      <>
        <Name text={atom.name} />
        <AtomText atom={atom} />
      </>
    ),
  },
  { head: t.begin, kind: 'wide', cell: ({ startedAt }) => <Time at={startedAt} /> },
  {
    head: t.took,
    kind: 'number',
    cell: ({ tookMs }) => tookMs !== undefined && formatDuration(tookMs, { exact: true }),
  },
]

export function Atoms({ logbook }: { logbook: WireLogbook }): JSX.Element {
  return <Table label={t.atoms} columns={ATOM_COLUMNS} rows={logbook.atoms} keyOf={({ name }) => name} />
}

function AtomState({ atom: { state, kind, progress } }: { atom: WireAtom }): JSX.Element {
  return (
    <>
      <State state={state} />
      {kind === 'retry' && <span class="tag">{t.retry}</span>}
      {progress !== undefined && state === 'RUNNING' && <Progress value={progress} label={texts.jobs.progress} />}
    </>
  )
}

function AtomText({ atom: { message, failure, revertFailure } }: { atom: WireAtom }): JSX.Element {
  return (
    <>
      {message !== undefined && (
        <p class="quiet">
          <Lines text={message} max={500} />
        </p>
      )}
      {failure && <FailureTree failure={failure} />}
      {revertFailure && (
        <>
          <p class="quiet">{t.revertFailed}</p>
          <FailureTree failure={revertFailure} />
        </>
      )}
    </>
  )
}
