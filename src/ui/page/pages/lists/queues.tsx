/** The page of the queues: their jobs, the conductors that serve them, and their pauses. */
import type { JSX } from 'preact'
import type { WireQueue } from '../../../wire/board.ts'
import { Action } from '../../parts/action.tsx'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Warning } from '../../parts/notices.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Elapsed, JobLink, Name, Time } from '../../parts/text.tsx'
import { act } from '../../state/acting.ts'
import { formatNumber, term } from '../../state/format.ts'
import { useReading } from '../../state/reading.ts'
import { href } from '../../state/router.ts'
import { onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.queues

interface Queues {
  readonly queues: readonly WireQueue[]
  readonly more: boolean
}

export function QueuesPage(): JSX.Element {
  const reading = useReading<Queues>(onBoard('queues'), ['conductors', 'jobs', 'limits'])
  return (
    <>
      <Heading title={t.title} />
      <Loaded reading={reading}>
        {({ queues, more }) => (
          <>
            {more && <Warning>{t.more}</Warning>}
            {queues.length === 0 ? (
              <Empty>{t.empty}</Empty>
            ) : (
              <Table label={t.title} columns={COLUMNS} rows={queues} keyOf={({ queue }) => queue} />
            )}
          </>
        )}
      </Loaded>
    </>
  )
}

const COLUMNS: readonly Column<WireQueue>[] = [
  {
    head: t.queue,
    kind: 'main',
    cell: ({ queue }) => (
      <Link to={href('jobs', { q: term('queue', queue) })} row>
        <Name text={queue} max={80} />
      </Link>
    ),
  },
  ...(['waiting', 'delayed', 'running'] as const).map(
    (state): Column<WireQueue> => ({
      head: texts.states[state.toUpperCase()] ?? '',
      kind: 'number',
      cell: (row) => (
        <Link to={href('jobs', { q: `${term('queue', row.queue)} state:${state}` })}>{formatNumber(row[state])}</Link>
      ),
    }),
  ),
  {
    head: t.oldest,
    kind: 'wide',
    cell: ({ oldestWaiting }) =>
      oldestWaiting && (
        <>
          <Elapsed from={oldestWaiting.postedAt} />: <JobLink uuid={oldestWaiting.uuid} name={oldestWaiting.name} />
        </>
      ),
  },
  {
    head: t.conductors,
    kind: 'number',
    cell: ({ conductors }) =>
      conductors.length === 0 ? t.noConductors : <Link to={href('conductors')}>{formatNumber(conductors.length)}</Link>,
  },
  { head: t.paused, kind: 'wide', cell: (row) => <Pause row={row} /> },
]

function Pause({ row: { queue, paused } }: { row: WireQueue }): JSX.Element {
  if (!paused) {
    const question = { title: t.pauseTitle(queue), text: t.pauseText, yes: t.pause, danger: true, reason: true }
    const toBody = ({ reason }: Readonly<Record<string, string>>) => ({
      ...{ queue, action: 'pause' },
      ...(reason ? { reason } : {}),
    })
    return (
      <Action needs="queue.pause" danger onClick={() => act('queues', question, toBody, t.isPaused)}>
        {t.pause}
      </Action>
    )
  }
  const { by, since, reason, pattern } = paused
  return (
    <>
      <Name text={by} max={80} />, <Time at={since} />
      {reason !== undefined && (
        <>
          : <Name text={reason} max={400} />
        </>
      )}{' '}
      {pattern === undefined ? (
        <Action
          needs="queue.resume"
          onClick={() => act('queues', undefined, () => ({ queue, action: 'resume' }), t.resumed)}
        >
          {t.resume}
        </Action>
      ) : (
        <Link to={href('limits', { key: `queue/${pattern}` })}>
          {t.byPattern} <Name text={pattern} />
        </Link>
      )}
    </>
  )
}
