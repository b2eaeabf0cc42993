/** The trash: by reason, which is what operators need first, and as a list. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { WireTrashGroup } from '../../../wire/board.ts'
import type { WireScan } from '../../../wire/common.ts'
import type { WireJob, WireJobPage } from '../../../wire/jobs.ts'
import { Action } from '../../parts/action.tsx'
import { BulkBar } from '../../parts/bulk-bar.tsx'
import { Heading } from '../../parts/heading.tsx'
import { JobTable } from '../../parts/job-table.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loading, Problem } from '../../parts/notices.tsx'
import { ScanProgress, Search } from '../../parts/search.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { JobLink, Name, Time } from '../../parts/text.tsx'
import { actOnMany } from '../../state/acting.ts'
import { formatNumber } from '../../state/format.ts'
import { mayHaveMore, useList } from '../../state/list.ts'
import { href, place } from '../../state/router.ts'
import { onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'
import { FlowTag } from '../overview/parts.tsx'

const t = texts.trash

export function TrashPage(): JSX.Element {
  const { query } = place.value
  const isList = query.get('view') === 'list'
  return (
    <>
      <Heading title={t.title} />
      <nav class="tabs" aria-label={t.views}>
        <Link to={href('trash')} current={!isList} class="chip">
          {t.byReason}
        </Link>
        <Link to={href('trash', { view: 'list' })} current={isList} class="chip">
          {t.asList}
        </Link>
      </nav>
      {isList ? <TrashList query={query.get('q') ?? ''} /> : <TrashGroups />}
    </>
  )
}

interface Groups {
  readonly groups: readonly WireTrashGroup[]
  readonly scan: WireScan
}

function groupColumns(): readonly Column<WireTrashGroup>[] {
  return [
    {
      head: t.jobs,
      kind: 'number',
      cell: ({ jobs, query }) => <Link to={href('trash', { view: 'list', q: query })}>{formatNumber(jobs)}</Link>,
    },
    {
      head: t.reason,
      kind: 'main',
      cell: ({ reason, query, flow }) => (
        <>
          {flow !== undefined && <FlowTag flow={flow} />}{' '}
          <Link to={href('trash', { view: 'list', q: query })} row>
            <Name text={reason === '' ? t.noReason : reason} max={300} />
          </Link>
        </>
      ),
    },
    { head: t.last, cell: ({ last }) => <Time at={last} /> },
    { head: t.first, kind: 'wide', cell: ({ first }) => <Time at={first} /> },
    { head: t.example, kind: 'wide', cell: ({ example }) => <JobLink uuid={example} /> },
    { head: t.actions, cell: (group) => <GroupActions group={group} /> },
  ]
}

function GroupActions({ group: { query, reason } }: { group: WireTrashGroup }): JSX.Element {
  return (
    <div class="buttons nowrap">
      <Action
        needs="restore"
        label={t.restoreLabel(reason.slice(0, 100))}
        onClick={() => actOnMany('restore', { query })}
      >
        {texts.bulk.buttons.restore}
      </Action>
      <Action
        needs="purge"
        danger
        label={t.purgeLabel(reason.slice(0, 100))}
        onClick={() => actOnMany('purge', { query })}
      >
        {texts.bulk.buttons.purge}
      </Action>
    </div>
  )
}

function TrashGroups(): JSX.Element {
  const listing = useList<Groups, WireTrashGroup>(onBoard('trash/groups'), ({ groups }) => groups, ['trash'])
  return (
    <>
      {listing.error && <Problem error={listing.error} retry={listing.reload} />}
      {listing.scan === undefined && !listing.error && <Loading />}
      {listing.scan !== undefined && listing.items.length === 0 && <Empty>{t.empty}</Empty>}
      {listing.items.length > 0 && (
        <Table
          label={t.byReason}
          columns={groupColumns()}
          rows={listing.items}
          keyOf={({ query, example }) => `${query} ${example}`}
        />
      )}
      {listing.scan?.next !== undefined && <ScanProgress listing={listing} />}
    </>
  )
}

function TrashList({ query }: { query: string }): JSX.Element {
  const path = onBoard(query === '' ? 'trash' : `trash?${new URLSearchParams({ q: query })}`)
  const listing = useList<WireJobPage, WireJob>(path, ({ jobs }) => jobs, ['trash'])
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const uuids = new Set(listing.items.map(({ uuid }) => uuid).filter((uuid) => selected.has(uuid)))
  return (
    <>
      <Search label={t.search} query={query} />
      <BulkBar
        key={query}
        actions={['restore', 'purge']}
        selected={uuids}
        // In the list of all jobs, this search must find those of the trash only.
        query={/(^|\s)state:/.test(query) ? query : `state:trashed ${query}`.trim()}
        clear={() => setSelected(new Set())}
        jobs={listing.items}
        hasMore={listing.scan !== undefined && mayHaveMore(listing.scan)}
      />
      {listing.error && <Problem error={listing.error} retry={listing.reload} />}
      {listing.scan === undefined && !listing.error && <Loading />}
      {listing.scan !== undefined && listing.items.length === 0 && (
        <Empty>{query === '' ? t.empty : texts.jobs.nothing}</Empty>
      )}
      {listing.items.length > 0 && (
        <JobTable label={t.title} jobs={listing.items} selection={{ uuids, set: setSelected }} />
      )}
      <ScanProgress listing={listing} />
    </>
  )
}
