/** The list of jobs: searched on the server, selected, and acted on together. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { WireFlow } from '../../../wire/board.ts'
import type { WireJob, WireJobPage } from '../../../wire/jobs.ts'
import { Action } from '../../parts/action.tsx'
import { BulkBar } from '../../parts/bulk-bar.tsx'
import { Heading } from '../../parts/heading.tsx'
import { JobTable } from '../../parts/job-table.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loading, Problem } from '../../parts/notices.tsx'
import { ScanProgress, Search } from '../../parts/search.tsx'
import { act } from '../../state/acting.ts'
import { read } from '../../state/api.ts'
import type { Answer } from '../../state/asking.ts'
import { mayHaveMore, useList } from '../../state/list.ts'
import { href, place } from '../../state/router.ts'
import { board, onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.jobs
const LIMIT = 100

const STATES = ['waiting', 'delayed', 'running', 'trashed', 'done'] as const

/** A term of a search: a word or a field, either of them in quotes. */
const TERM = /(?:[a-z][\w.-]*[:=])?(?:"(?:[^"\\]|\\.)*"|\S+)/gi

/** Returns the searches of the chips: the present search with each state instead of its own. */
function choicesOf(query: string): (readonly [text: string, query: string, to: string])[] {
  const terms = query.match(TERM) ?? []
  const words = terms.filter((term) => !/^state:/i.test(term)).join(' ')
  const states = board.value?.supports.history === false ? STATES.filter((state) => state !== 'done') : STATES
  const searches = [
    [t.all, words] as const,
    ...states.map((state) => [texts.states[state.toUpperCase()] ?? state, `state:${state} ${words}`.trim()] as const),
  ]
  return searches.map(([text, q]) => [text, q, href('jobs', { q })])
}

export function JobsPage(): JSX.Element {
  const query = place.value.query.get('q') ?? ''
  const path = onBoard(`jobs?${new URLSearchParams({ ...(query === '' ? {} : { q: query }), limit: String(LIMIT) })}`)
  const listing = useList<WireJobPage, WireJob>(path, ({ jobs }) => jobs, ['jobs', 'trash'])
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  // Jobs that have left the list are not changed.
  const uuids = new Set(listing.items.map(({ uuid }) => uuid).filter((uuid) => selected.has(uuid)))
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
      <Search label={t.search} query={query} choices={choicesOf(query)} />
      <BulkBar
        key={query}
        actions={['cancel', 'restore', 'purge']}
        selected={uuids}
        query={query}
        clear={() => setSelected(new Set())}
        jobs={listing.items}
        hasMore={listing.scan !== undefined && mayHaveMore(listing.scan)}
      />
      {listing.error && <Problem error={listing.error} retry={listing.reload} />}
      {listing.items.length > 0 && (
        <JobTable label={t.title} jobs={listing.items} selection={{ uuids, set: setSelected }} />
      )}
      {listing.scan === undefined && listing.error === undefined && <Loading />}
      {listing.scan !== undefined && listing.items.length === 0 && !mayHaveMore(listing.scan) && (
        <Nothing query={query} />
      )}
      <ScanProgress listing={listing} />
    </>
  )
}

/** Shows that no job matches, with links to the trash and the history. */
function Nothing({ query }: { query: string }): JSX.Element {
  if (query === '') return <Empty>{t.empty}</Empty>
  if (/(^|\s)state:/.test(query)) return <Empty>{t.nothing}</Empty>
  return (
    <Empty>
      {t.nothingOpen} <Link to={href('trash', { view: 'list', q: query })}>{t.searchTrash}</Link>
      {board.value?.supports.history !== false && (
        <>
          {' · '}
          <Link to={href('history', { q: query })}>{t.searchHistory}</Link>
        </>
      )}
    </Empty>
  )
}

/** Asks for a flow and its store, and posts a job. */
async function postJob(): Promise<boolean> {
  const known = await read<{ readonly flows: readonly WireFlow[] }>(onBoard('flows')).catch(() => ({ flows: [] }))
  const options = [...new Set(known.flows.map(({ name }) => name))]

  const { button, text, fields, done } = t.post
  const question = {
    ...{ title: button, text, yes: button },
    fields: [
      { name: 'flow', label: fields.flow, type: 'text' as const, required: true, options },
      { name: 'store', label: fields.store, type: 'lines' as const, hint: fields.storeHint },
      { name: 'key', label: fields.key, type: 'text' as const },
    ],
  }
  return act('jobs', question, toPostBody, done)
}

/** Returns the body of the post. @throws Error if the store is not a JSON object */
function toPostBody({ flow = '', store = '', key = '' }: Answer): object {
  let parsed: unknown
  try {
    parsed = store === '' ? undefined : JSON.parse(store)
  } catch {
    throw new Error(t.post.notJson)
  }
  if (parsed !== undefined && (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)))
    throw new Error(t.post.notJson)
  return { flow, ...(parsed === undefined ? {} : { store: parsed }), ...(key === '' ? {} : { key }) }
}
