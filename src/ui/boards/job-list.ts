/**
 * Reads the list of jobs: those on the board in claim order, then those in the trash and in the history, newest first, as far as the search asks
 * for them. Filters are applied before a page is cut.
 */
import type { EndedJob, TrashedJob } from '../../board/index.ts'
import type { ListedJob } from '../../board/internal.ts'
import { boardInternals } from '../../board/internal.ts'
import { InvalidArgument, UnsupportedCapability } from '../../core/errors.ts'
import type { Redactor } from '../../core/redaction.ts'
import { type ListContext, nextStartsOf, stateOf } from '../../views/internal.ts'
import { matches, namesUuid } from '../search/match.ts'
import type { Search, SearchState } from '../search/parse.ts'
import type { WireScan } from '../wire/common.ts'
import { type JobRow, searchedEnded, searchedJob, searchedTrash, toEndedRow, toJobRow, toTrashRow } from './rows.ts'
import type { ViewedBoard } from './viewed-board.ts'

/** The most jobs that one request looks at, and for how long. The cursor of its answer continues the search. */
export const SCAN_JOBS = 20_000
export const SCAN_MS = 200

export interface ListOptions {
  readonly search: Search
  readonly after?: string | undefined
  readonly limit: number
  readonly redaction: Redactor
  /** The milliseconds to wait while the board is read for the first time; undefined to wait until it is. */
  readonly waitMs?: number | undefined
}

const PLACES = ['board', 'trash', 'history'] as const
type Place = (typeof PLACES)[number]

interface Found {
  readonly jobs: readonly JobRow[]
  readonly scan: WireScan
}

/** Reads a page of the jobs that match a search. @throws InvalidArgument if `after` is not a cursor; NotConnected */
export async function listJobs(viewed: ViewedBoard, options: ListOptions): Promise<Found> {
  await viewed.touch()
  const places = placesOf(options.search, viewed)
  let { place, cursor } = parseCursor(options.after, places)
  const jobs: JobRow[] = []
  let looked = 0
  let reading: WireScan['reading']
  const total = options.search.terms.length === 0 ? undefined : viewed.board.jobCount
  for (;;) {
    const found = await readPlace(place, viewed, { ...options, after: cursor, limit: options.limit - jobs.length })
    jobs.push(...found.jobs)
    looked += found.scan.looked
    const following = places[places.indexOf(place) + 1]
    const all = found.scan.total ?? total
    reading ??= found.scan.reading
    const ends = { looked, total: places.length === 1 ? all : undefined, reading }
    if (found.scan.next !== undefined) return { jobs, scan: { ...ends, next: `${place}:${found.scan.next}` } }
    if (following === undefined) return { jobs, scan: ends }
    if (jobs.length >= options.limit) return { jobs, scan: { ...ends, next: `${following}:` } }
    place = following
    cursor = undefined
  }
}

/** Returns where to search: a uuid is searched everywhere, and what else is searched on the board, unless states are named. */
function placesOf({ states, ...search }: Search, { board, supports }: ViewedBoard): readonly Place[] {
  if (states === undefined) {
    if (!namesUuid({ states, ...search })) return ['board']
    return supports.history ? PLACES : ['board', 'trash']
  }
  const on: readonly SearchState[] = ['waiting', 'delayed', 'running']
  const places = PLACES.filter((place) => {
    if (place === 'board') return on.some((state) => states.has(state))
    return place === 'trash' ? states.has('trashed') : states.has('done')
  })
  if (places.includes('history') && !supports.history)
    throw new UnsupportedCapability(`board ${board.uri} keeps no history: it does not know the jobs that are done`, {
      capability: 'history',
    })
  return places.length > 0 ? places : ['board']
}

function parseCursor(
  after: string | undefined,
  places: readonly Place[],
): { place: Place; cursor: string | undefined } {
  const [first = 'board'] = places
  if (after === undefined) return { place: first, cursor: undefined }
  const colon = after.indexOf(':')
  const place = places.find((one) => one === after.slice(0, colon))
  if (!place) throw new InvalidArgument('after must be the cursor of an earlier page of the same search')
  const cursor = after.slice(colon + 1)
  return { place, cursor: cursor === '' ? undefined : cursor }
}

function readPlace(place: Place, viewed: ViewedBoard, options: ListOptions): Promise<Found> {
  switch (place) {
    case 'board':
      return readBoard(viewed, options)
    case 'trash':
      return readTrash(viewed, options)
    case 'history':
      return readHistory(viewed, options)
  }
}

async function readBoard(viewed: ViewedBoard, options: ListOptions): Promise<Found> {
  const { search, after, limit, waitMs } = options
  const context = await readContext(viewed)
  const states = search.states
  const accept = (listed: ListedJob) => {
    const isOf = !states || states.has(stateOf(listed, context.now).toLowerCase() as SearchState)
    return isOf && matches(search, searchedJob(listed, options.redaction))
  }
  const asked = { after, limit, most: SCAN_JOBS, timeMs: SCAN_MS, accept, owners: search.readsOwners, waitMs }
  const { items, looked, total, next, reading } = await boardInternals(viewed.board).jobPage(asked)
  const jobs = items.map((listed) => toJobRow(listed, context))
  return { jobs, scan: { looked, total, next, reading } }
}

/** Reads the trash, newest first. @throws InvalidArgument, NotConnected */
export async function readTrash(viewed: ViewedBoard, options: ListOptions): Promise<Found> {
  const { search, after, limit } = options
  const accept = (trashed: TrashedJob) => matches(search, searchedTrash(trashed, options.redaction))
  const asked = { after, limit, most: SCAN_JOBS, timeMs: SCAN_MS, accept, newestFirst: true }
  const { items, looked, total, next } = await boardInternals(viewed.board).trashPage(asked)
  return { jobs: items.map(toTrashRow), scan: { looked, total, next } }
}

/** Reads the jobs that are done. The cursor has the uuid of the last job, and its time in case the history no longer has it. */
async function readHistory(viewed: ViewedBoard, options: ListOptions): Promise<Found> {
  const isWanted = ({ outcome }: EndedJob) => outcome === 'COMPLETE'
  return pageOfHistory(viewed, { ...options, isWanted })
}

/** Reads a page of those jobs of the history that `isWanted` accepts, newest first. @throws UnsupportedCapability, InvalidArgument, NotConnected */
export async function pageOfHistory(
  viewed: ViewedBoard,
  options: ListOptions & { readonly isWanted: (ended: EndedJob) => boolean },
): Promise<Found> {
  const { search, after, limit, redaction, isWanted } = options
  if (!viewed.supports.history)
    throw new UnsupportedCapability(`board ${viewed.board.uri} keeps no history`, { capability: 'history' })
  const history = await viewed.history()
  const from = after === undefined ? 0 : history.findIndex(isAfterCursor(after))
  const jobs: JobRow[] = []
  let looked = 0
  for (const ended of from < 0 ? [] : history.slice(from)) {
    if (jobs.length >= limit) {
      const last = history[from + looked - 1]
      const next = last && `${last.endedAt.getTime()}.${last.uuid}`
      return { jobs, scan: { looked, total: history.length, next } }
    }
    looked += 1
    if (isWanted(ended) && matches(search, searchedEnded(ended, redaction))) jobs.push(toEndedRow(ended))
  }
  return { jobs, scan: { looked, total: history.length } }
}

/** Returns the condition that the first job after the cursor meets. @throws InvalidArgument */
function isAfterCursor(after: string): (ended: EndedJob, index: number, history: readonly EndedJob[]) => boolean {
  const [, time = '', uuid = ''] = /^(\d{1,16})\.([\w-]{1,64})$/.exec(after) ?? []
  if (uuid === '') throw new InvalidArgument('after must be the cursor of an earlier page')
  return (ended, index, history) => {
    if (ended.endedAt.getTime() < Number(time)) return true
    return history[index - 1]?.uuid === uuid && history[index - 1]?.endedAt.getTime() === Number(time)
  }
}

async function readContext(viewed: ViewedBoard): Promise<ListContext> {
  const [conductors, limits, now] = await Promise.all([
    viewed.conductors(),
    viewed.limits(),
    boardInternals(viewed.board).readClock(),
  ])
  return { now, conductors, nextStarts: nextStartsOf(limits, now) }
}
