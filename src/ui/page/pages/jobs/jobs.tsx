/** The list of jobs: searched on the server, selected, and acted on together. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { WireJob, WireJobPage } from '../../../wire/jobs.ts'
import { Action } from '../../parts/action.tsx'
import { BulkBar } from '../../parts/bulk-bar.tsx'
import { Heading } from '../../parts/heading.tsx'
import { JobTable } from '../../parts/job-table.tsx'
import { Empty, Loading, Problem } from '../../parts/notices.tsx'
import { ScanProgress, Search } from '../../parts/search.tsx'
import { act } from '../../state/acting.ts'
import type { Answer } from '../../state/asking.ts'
import { mayHaveMore, useList } from '../../state/list.ts'
import { href, place } from '../../state/router.ts'
import { onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.jobs
const LIMIT = 100

const STATES = ['waiting', 'delayed', 'running', 'trashed'] as const
const CHOICES = STATES.map((state) => [texts.states[state.toUpperCase()] ?? state, `state:${state}`] as const)

export function JobsPage(): JSX.Element {
  const query = place.value.query.get('q') ?? ''
  const path = onBoard(`jobs?${new URLSearchParams({ ...(query === '' ? {} : { q: query }), limit: String(LIMIT) })}`)
  const listing = useList<WireJobPage, WireJob>(path, ({ jobs }) => jobs, ['jobs', 'trash'])
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  // What is no longer in the list is not acted on.
  const uuids = new Set(listing.items.map(({ uuid }) => uuid).filter((uuid) => selected.has(uuid)))
  const choices = [['', t.all] as const, ...CHOICES.map(([text, q]) => [q, text] as const)]
  return (
    <>
      <Heading
        title={t.title}
        actions={
          <Action needs="post" onClick={postJob}>
            {t.post.button}
          </Action>
        }
      />
      <Search label={t.search} query={query} choices={choices.map(([q, text]) => [text, q, href('jobs', { q })])} />
      <BulkBar
        actions={['cancel', 'restore', 'purge']}
        selected={uuids}
        query={query}
        clear={() => setSelected(new Set())}
        canAll={listing.items.length > 0}
      />
      {listing.error && <Problem error={listing.error} retry={listing.reload} />}
      {listing.items.length > 0 && (
        <JobTable label={t.title} jobs={listing.items} selection={{ uuids, set: setSelected }} />
      )}
      {listing.scan === undefined && listing.error === undefined && <Loading />}
      {listing.scan !== undefined && listing.items.length === 0 && !mayHaveMore(listing.scan) && (
        <Empty>{query === '' ? t.empty : t.nothing}</Empty>
      )}
      <ScanProgress listing={listing} />
    </>
  )
}

/** Asks for a flow and its store, and posts a job. */
function postJob(): Promise<boolean> {
  const { button, text, fields, done } = t.post
  const question = {
    ...{ title: button, text, yes: button },
    fields: [
      { name: 'flow', label: fields.flow, type: 'text' as const },
      { name: 'store', label: fields.store, type: 'text' as const, hint: fields.storeHint },
      { name: 'key', label: fields.key, type: 'text' as const },
    ],
  }
  return act('jobs', question, toPostBody, done)
}

/** @throws Error for a store that is not JSON */
function toPostBody({ flow = '', store = '', key = '' }: Answer): object {
  let parsed: unknown
  try {
    parsed = store === '' ? undefined : JSON.parse(store)
  } catch {
    throw new Error(t.post.notJson)
  }
  return { flow, ...(parsed === undefined ? {} : { store: parsed }), ...(key === '' ? {} : { key }) }
}
