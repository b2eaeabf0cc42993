/** The history: jobs that have left the board, as far as it keeps them. */
import type { JSX } from 'preact'
import type { WireJob, WireJobPage } from '../../../wire/jobs.ts'
import { Heading } from '../../parts/heading.tsx'
import { EndedJobTable } from '../../parts/job-table.tsx'
import { Empty, Loading, Problem, Unsupported } from '../../parts/notices.tsx'
import { ScanProgress, Search } from '../../parts/search.tsx'
import { useList } from '../../state/list.ts'
import { place } from '../../state/router.ts'
import { board, onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.history

export function HistoryPage(): JSX.Element {
  return (
    <>
      <Heading title={t.title} />
      {board.value?.supports.history === false ? <Unsupported what={t.title} /> : <History />}
    </>
  )
}

function History(): JSX.Element {
  const query = place.value.query.get('q') ?? ''
  const path = onBoard(query === '' ? 'history' : `history?${new URLSearchParams({ q: query })}`)
  const listing = useList<WireJobPage, WireJob>(path, ({ jobs }) => jobs, ['jobs'])
  return (
    <>
      <Search label={t.search} query={query} />
      {listing.error && <Problem error={listing.error} retry={listing.reload} />}
      {listing.scan === undefined && !listing.error && <Loading />}
      {listing.scan !== undefined && listing.items.length === 0 && listing.scan.next === undefined && (
        <Empty>{query === '' ? t.empty : texts.jobs.nothing}</Empty>
      )}
      {listing.items.length > 0 && <EndedJobTable label={t.title} jobs={listing.items} />}
      <ScanProgress listing={listing} />
    </>
  )
}
