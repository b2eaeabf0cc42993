/** Limits and resources: who has them, who waits, and what an operator can change. */
import type { JSX } from 'preact'
import type { WireLimit, WireResource } from '../../../wire/board.ts'
import type { WireScan } from '../../../wire/common.ts'
import { Action } from '../../parts/action.tsx'
import { Meter } from '../../parts/charts.tsx'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Loading, Problem, Unsupported, Warning } from '../../parts/notices.tsx'
import { ScanProgress } from '../../parts/search.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { JobLink, Name, Time } from '../../parts/text.tsx'
import { formatCount, formatDuration, formatNumber, term } from '../../state/format.ts'
import { mayHaveMore, useList } from '../../state/list.ts'
import { useReading } from '../../state/reading.ts'
import { href, place } from '../../state/router.ts'
import { board, onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'
import { LimitActions, setLimit } from './limit-actions.tsx'

const t = texts.limits

export function LimitsPage(): JSX.Element {
  const wanted = place.value.query.get('key')
  const isSupported = board.value?.supports.limits ?? true
  const reading = useReading<{ readonly limits: readonly WireLimit[] }>(isSupported ? onBoard('limits') : undefined, [
    'limits',
    'jobs',
  ])
  return (
    <>
      <Heading
        title={t.title}
        actions={
          isSupported && (
            <Action needs="limit.set" onClick={() => setLimit(undefined)}>
              {t.add}
            </Action>
          )
        }
      />
      {wanted !== null && (
        <p class="under-heading">
          <Link to={href('limits')}>{t.all}</Link>
        </p>
      )}
      <h2>{t.limits}</h2>
      {!isSupported ? (
        <Unsupported what={t.limits} />
      ) : (
        <Loaded reading={reading}>
          {({ limits }) => {
            const shown = limits.filter(({ key, keys }) => {
              return wanted === null || key === wanted || keys.some((each) => each.key === wanted)
            })
            if (shown.length === 0) return <Empty>{wanted === null ? t.empty : t.unknown}</Empty>
            return shown.map((limit) => <Limit key={limit.key} limit={limit} />)
          }}
        </Loaded>
      )}
      {wanted === null && <Resources />}
    </>
  )
}

type Key = WireLimit['keys'][number]

function Limit({ limit }: { limit: WireLimit }): JSX.Element {
  const { key, concurrency, rate, keys, waiting, held, set, declared, error, fair } = limit
  const running = keys.reduce((sum, each) => sum + each.running, 0)
  const isPattern = keys.length > 1 || (keys[0] !== undefined && keys[0].key !== key)
  return (
    <article class="card" data-row>
      <div class="heading">
        <h3>
          <Link to={href('limits', { key })} row>
            <Name text={key} />
          </Link>
        </h3>
        <LimitActions limit={limit} />
      </div>
      {error !== undefined && (
        <Warning>
          <Name text={error} max={500} />
        </Warning>
      )}
      {held !== undefined && (
        <Warning>
          {held.until === undefined ? (
            t.stopped
          ) : (
            <>
              {t.heldUntil} <Time at={held.until} in />
            </>
          )}{' '}
          ({t.by} <Name text={held.by} max={80} />
          {held.reason !== undefined && (
            <>
              : <Name text={held.reason} />
            </>
          )}
          )
        </Warning>
      )}
      <ul class="inline">
        <li>
          {concurrency !== undefined && !isPattern ? (
            <Meter value={running} max={concurrency} label={t.running} />
          ) : (
            t.runningText(formatNumber(running))
          )}
        </li>
        {concurrency !== undefined && <li>{t.concurrency(formatNumber(concurrency), isPattern)}</li>}
        {rate !== undefined && (
          <li>
            {t.rate(formatNumber(rate.limit), formatDuration(rate.perMs, { exact: true }), formatNumber(rate.burst))}
          </li>
        )}
        {fair && <li>{t.fair}</li>}
        {waiting !== undefined && (
          <li>
            <Link to={href('jobs', { q: `state:waiting ${term('limit', key)}` })}>
              {t.waiting(formatCount(waiting))}
            </Link>
          </li>
        )}
        {set !== undefined && (
          <li class="quiet">
            {t.setBy} <Name text={set.by} max={60} />, <Time at={set.at} />
          </li>
        )}
        {declared !== undefined && (
          <li class="quiet">
            {t.declared} <Name text={declared} max={80} />
          </li>
        )}
      </ul>
      {isPattern && (
        <Table
          label={t.keysOf(key.slice(0, 80))}
          columns={keyColumns(concurrency)}
          rows={keys}
          keyOf={(each) => each.key}
        />
      )}
    </article>
  )
}

function keyColumns(concurrency: number | undefined): readonly Column<Key>[] {
  return [
    { head: t.key, kind: 'main', cell: ({ key }) => <Name text={key} /> },
    {
      head: t.running,
      cell: ({ running }) =>
        concurrency === undefined ? (
          formatNumber(running)
        ) : (
          <Meter value={running} max={concurrency} label={t.running} />
        ),
    },
    {
      head: t.waitingHead,
      kind: 'number',
      cell: ({ key, waiting }) =>
        waiting !== undefined && (
          <Link to={href('jobs', { q: `state:waiting ${term('limit', key)}` })}>{formatNumber(waiting)}</Link>
        ),
    },
    { head: t.nextStart, kind: 'wide', cell: ({ nextStart }) => <Time at={nextStart} in /> },
  ]
}

const RESOURCE_COLUMNS: readonly Column<WireResource>[] = [
  {
    head: t.resource,
    kind: 'main',
    cell: ({ resource }) => (
      <Link to={href('jobs', { q: term('resource', resource) })} row>
        <Name text={resource} />
      </Link>
    ),
  },
  { head: t.mode, cell: ({ mode }) => t.modes[mode] },
  { head: t.holders, cell: ({ holders }) => <Jobs jobs={holders} /> },
  { head: t.waitingHead, kind: 'number', cell: ({ waiting }) => formatCount(waiting) },
  { head: t.first, kind: 'wide', cell: ({ firstWaiting }) => <Jobs jobs={firstWaiting} /> },
]

function Jobs({ jobs }: { jobs: readonly { readonly uuid: string; readonly name: string }[] }): JSX.Element {
  return (
    <ul class="inline">
      {jobs.map(({ uuid, name }) => (
        <li key={uuid}>
          <JobLink uuid={uuid} name={name} />
        </li>
      ))}
    </ul>
  )
}

interface ResourcePage {
  readonly resources: readonly WireResource[]
  readonly scan: WireScan
}

function Resources(): JSX.Element {
  const listing = useList<ResourcePage, WireResource>(onBoard('resources'), ({ resources }) => resources, ['jobs'])
  return (
    <section>
      <h2>{t.resources}</h2>
      {listing.error && <Problem error={listing.error} retry={listing.reload} />}
      {listing.scan === undefined && !listing.error && <Loading />}
      {listing.scan !== undefined && listing.items.length === 0 && <Empty>{t.noResources}</Empty>}
      {listing.items.length > 0 && (
        <Table
          label={t.resources}
          columns={RESOURCE_COLUMNS}
          rows={listing.items}
          keyOf={({ resource, mode }) => `${mode} ${resource}`}
        />
      )}
      {listing.scan && mayHaveMore(listing.scan) && <ScanProgress listing={listing} />}
    </section>
  )
}
