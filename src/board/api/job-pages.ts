/**
 * Reads the jobs of a board, and those of its trash, page by page, for callers that show a part of a board that may not fit into memory. A filter is applied before a page is cut. One read looks at a bounded number of jobs for a bounded time: it returns what it has found,
 * and the cursor with which the next read goes on.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sortLazily } from '../../core/collections/lazy-sort.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { monotonic, toDate } from '../../core/time.ts'
import type { Backend, BackendSections, JobSummary } from '../contract/index.ts'
import { Job } from '../jobs/job.ts'
import { readJobs } from '../jobs/read-jobs.ts'
import { TrashedJob } from '../jobs/trashed-job.ts'
import { localReason, type WaitingFor } from '../jobs/waiting-for.ts'
import { type ClaimOrderKey, compareClaimOrder, PRIORITIES, type Priority } from '../model/claim-order.ts'
import type { JobEntry } from '../model/entry.ts'
import type { Posting } from '../model/posting/posting.ts'
import { hasDroppedDetails } from '../model/posting/posting-codec.ts'
import type { LiveView, ViewReading } from '../view/live-view.ts'

/** The limits and the filter of one page. */
export interface PageOptions<T> {
  /** The cursor of the previous page. */
  readonly after?: string | undefined
  /** The number of accepted items after which the page ends. */
  readonly limit: number
  /** The most items to look at, and the milliseconds after which the read ends. The first chunk is always read. */
  readonly most: number
  readonly timeMs: number
  readonly accept: (item: T) => boolean
}

export interface JobPageOptions extends PageOptions<ListedJob> {
  /** Whether `accept` reads the owners of running jobs: they are read for all jobs, and not only for accepted ones. */
  readonly owners?: boolean
  /**
   * The milliseconds to wait while the view of the board is being opened, which reads a long board for seconds. After that, the page is cut from
   * the jobs that are read so far. By default the page waits for all of them.
   */
  readonly waitMs?: number | undefined
}

export interface Page<T> {
  readonly items: readonly T[]
  /** The number of items that were looked at. */
  readonly looked: number
  /** The number of all items, where it is known. */
  readonly total: number | undefined
  /** The cursor of the next page; undefined at the end of the list. */
  readonly next: string | undefined
  /** How far the board is read, if the page was cut before all of it was: jobs may be missing. */
  readonly reading?: ViewReading
}

/** A job as a list shows it. Reading it does not make the board follow the job. */
export interface ListedJob {
  readonly job: Job
  readonly posting: Posting
  readonly claimed: boolean
  readonly cancelRequested: boolean
  /** Whether it waits for other jobs. */
  readonly waits: boolean
  /** The due time in milliseconds since 1970; 0 for a job without a delay. */
  readonly dueAt: number
  /** Returns why it is not run, as far as that is known without a request. */
  reason(): WaitingFor | undefined
}

export interface JobPageContext {
  readonly backend: Pick<Backend, 'jobs' | 'sections' | 'clock'>
  readonly view: LiveView
  readonly paused: () => boolean
}

/** The number of jobs that are read from the backend at once. */
const CHUNK = 500
/** The number of jobs of a view after which the clock is read. A filter may take a tenth of a millisecond for each. */
const VIEW_CHUNK = 100
/** The number of jobs of a view that are grouped by their priority before the clock is read: some milliseconds. */
const SCAN_CHUNK = 10_000
/** The time after which a read lets other work of the process run: a search of a long board takes seconds, and heartbeats must not wait. */
const TURN_MS = 20

/** Reads jobs in claim order. The caller holds the view. @throws InvalidArgument for a cursor that is none; NotConnected */
export async function readJobPage(options: JobPageOptions, context: JobPageContext): Promise<Page<ListedJob>> {
  const { view, backend } = context
  const after = options.after === undefined ? undefined : parseCursor(options.after)
  const { sections } = backend
  const isWindow = sections !== undefined && !view.extent.showsWholeBoard
  const chunks = isWindow ? readSections(after, sections, context) : readView(after, context)
  // Sections come from the backend, so the page is complete while the view is being opened, too.
  const reading = isWindow ? undefined : view.reading
  const total = view.jobCount ?? reading?.all
  const reader = new PageReader(options, { total, cursorOf: ({ key }: Candidate) => toCursor(key) })
  let turnStart = monotonic()
  for await (const chunk of chunks) {
    if (chunk.length > 0 && options.owners && !reader.isComplete)
      await view.claimedPostings.read(chunk.map(({ entry }) => entry))
    if (reader.add(chunk, ({ listed }) => listed)) break
    // Also after an empty chunk: grouping and sorting a long board takes longer than a turn.
    if (monotonic() - turnStart < TURN_MS) continue
    await nextTurn()
    turnStart = monotonic()
  }
  const page = reader.page()
  if (!options.owners) await view.claimedPostings.read(page.items.map(({ job }) => Job.entryFor(job)))
  return reading ? { ...page, reading } : page
}

interface Candidate {
  readonly key: ClaimOrderKey
  readonly entry: JobEntry
  readonly listed: ListedJob
}

/**
 * Yields the jobs of a view that holds the whole board. One priority is sorted at a time, and no more of it than is read: most reads end in the
 * first hundred jobs of the first priority. While it groups and sorts jobs, it yields empty chunks, so that the caller can look at the clock.
 */
async function* readView(after: ClaimOrderKey | undefined, context: JobPageContext): AsyncGenerator<Candidate[]> {
  const byPriority = new Map<Priority, (ClaimOrderKey & { readonly entry: JobEntry })[]>()
  // A copy, because the view goes on while other work runs: a job that enters it again would be listed twice, and a view that is being opened grows.
  for (const [index, entry] of [...context.view.entries()].entries()) {
    if (index % SCAN_CHUNK === SCAN_CHUNK - 1) yield []
    const { stored } = entry
    if (!stored || entry.ended || entry.content === 'unreadable') continue
    const { id, order, posting } = stored
    const key = { id, order, priority: posting.priority, entry }
    if (after && compareClaimOrder(key, after) <= 0) continue
    const same = byPriority.get(posting.priority)
    if (same) same.push(key)
    else byPriority.set(posting.priority, [key])
  }
  for (const priority of PRIORITIES) {
    const keys = byPriority.get(priority) ?? []
    for (const chunk of sortLazily(keys, { compare: compareClaimOrder, batch: VIEW_CHUNK })) {
      const whole = await readDropped(chunk, context.backend)
      // A job that could not be read again has left the board.
      const there = chunk.filter(({ entry }) => whole.has(entry) || !(entry.stored && hasDroppedDetails(entry.stored)))
      yield there.flatMap((key) => toCandidate(key, key.entry, context, { job: whole.get(key.entry) }) ?? [])
    }
  }
}

/** Reads the jobs whose details the view has not kept. Sends no request if there are none. */
async function readDropped(
  chunk: readonly { readonly entry: JobEntry }[],
  backend: JobPageContext['backend'],
): Promise<ReadonlyMap<JobEntry, Job>> {
  const dropped = chunk.flatMap(({ entry }) => (entry.stored && hasDroppedDetails(entry.stored) ? [entry] : []))
  const jobs = new Map<JobEntry, Job>()
  for await (const job of readJobs(dropped, backend)) jobs.set(Job.entryFor(job), job)
  return jobs
}

/**
 * Yields the jobs of a board that the view holds only in part. A chunk takes one round trip for its places, and further ones to read its
 * postings.
 */
async function* readSections(
  start: ClaimOrderKey | undefined,
  sections: BackendSections,
  context: JobPageContext,
): AsyncGenerator<Candidate[]> {
  let after = start
  for (let end = false; !end; ) {
    const section = await sections.range({ after, limit: CHUNK, due: false })
    const found = new Map(section.jobs.map((summary) => [summary.id, summary]))
    const chunk: Candidate[] = []
    const entries = section.jobs.map(({ id }) => context.view.byId(id))
    for await (const job of readJobs(entries, context.backend)) {
      const entry = Job.entryFor(job)
      const summary = found.get(entry.id ?? '')
      const candidate = summary && toCandidate(summary, entry, context, { summary, job })
      if (candidate) chunk.push(candidate)
    }
    yield chunk
    after = section.jobs.at(-1)
    end = section.end || after === undefined
  }
}

/**
 * @param read.summary what the backend says about a job that may be outside of the view
 * @param read.job the job, if it was read for the page
 */
function toCandidate(
  key: ClaimOrderKey,
  entry: JobEntry,
  { view, backend, paused }: JobPageContext,
  { summary, job = new Job(entry) }: { readonly summary?: JobSummary; readonly job?: Job | undefined },
): Candidate | undefined {
  const { stored } = entry
  if (!stored || entry.ended) return undefined
  const isOutside = entry.windowStatus === 'outside' && summary !== undefined
  const waits = isOutside ? summary.dueAt === Number.POSITIVE_INFINITY : stored.waits === true
  const dueAt = stored.posting.delay === undefined ? 0 : stored.writtenAt + stored.posting.delay
  const claimed = isOutside ? summary.claimed : entry.claimed
  const listed: ListedJob = {
    job,
    get posting() {
      return Job.postingOf(job)
    },
    claimed,
    cancelRequested: isOutside ? summary.cancelled : entry.cancelRequested,
    ...{ waits, dueAt },
    reason: () => {
      if (!isOutside) return localReason(entry, { queue: view.queue, paused: paused() })
      if (claimed) return undefined
      if (paused()) return { kind: 'pause', text: 'the board is paused' }
      if (waits) return { kind: 'job', jobs: [], text: 'it waits for other jobs' }
      if (dueAt <= backend.clock.now()) return undefined
      const until = toDate(dueAt)
      return { kind: 'delay', until, text: `it rests until ${until.toISOString()}` }
    },
  }
  return { key, entry, listed }
}

export type TrashPageOptions = PageOptions<TrashedJob> & { readonly newestFirst?: boolean }

/** Reads jobs in the trash, oldest first unless it is asked otherwise. @throws InvalidArgument for a cursor that is none; NotConnected */
export async function readTrashPage(
  options: TrashPageOptions,
  backend: Pick<Backend, 'trash'>,
): Promise<Page<TrashedJob>> {
  const after = options.after === undefined ? undefined : parseTrashCursor(options.after)
  let total = 0
  let position = after?.position ?? 0
  const onCount = (entries: number) => {
    total = entries
  }
  const entries = backend.trash.list({ after, onCount, newestFirst: options.newestFirst ?? false })
  const cursorOf = (job: TrashedJob) => `${TrashedJob.entryFor(job).id}.${position}`
  const reader = new PageReader(options, { cursorOf, total: () => total })
  let turnStart = monotonic()
  for await (const entry of entries) {
    position += 1
    if (reader.add([new TrashedJob(entry)], (job) => job)) break
    if (monotonic() - turnStart < TURN_MS) continue
    await nextTurn()
    turnStart = monotonic()
  }
  return reader.page()
}

/** Counts the jobs in the trash, without reading them. @throws NotConnected */
export async function countTrash(backend: Pick<Backend, 'trash'>): Promise<number> {
  let total = 0
  const onCount = (entries: number) => {
    total = entries
  }
  for await (const _ of backend.trash.list({ onCount })) break
  return total
}

interface PageParts<C> {
  readonly total: number | undefined | (() => number)
  readonly cursorOf: (candidate: C) => string
}

/** Collects the accepted items of a page, until there are enough or the bounds are reached. */
class PageReader<C, T> {
  readonly #options: PageOptions<T>
  readonly #parts: PageParts<C>
  /** The time at which the read ends, from the first items on: before them, the view may have been opened and sorted. */
  #until: number | undefined
  readonly #items: T[] = []
  #looked = 0
  /** The last item of a complete page. */
  #last: { readonly cursor: string } | undefined
  #next: string | undefined

  constructor(options: PageOptions<T>, parts: PageParts<C>) {
    this.#options = options
    this.#parts = parts
  }

  /** Whether the page has all that it may have. */
  get isComplete(): boolean {
    return this.#last !== undefined
  }

  /** Adds the accepted candidates. Returns whether to stop: the page is complete, and another item follows. */
  add(candidates: readonly C[], toItem: (candidate: C) => T): boolean {
    const { limit, most, timeMs, accept } = this.#options
    if (candidates.length === 0) return false
    this.#until ??= monotonic() + timeMs
    for (const candidate of candidates) {
      if (this.#last) {
        this.#next = this.#last.cursor
        return true
      }
      this.#looked += 1
      const item = toItem(candidate)
      if (accept(item)) this.#items.push(item)
      if (this.#items.length >= limit || this.#looked >= most) this.#end(candidate)
    }
    const last = candidates.at(-1)
    if (last !== undefined && !this.#last && monotonic() >= this.#until) this.#end(last)
    return false
  }

  page(): Page<T> {
    const { total } = this.#parts
    const all = typeof total === 'function' ? total() : total
    return { items: this.#items, looked: this.#looked, total: all, next: this.#next }
  }

  #end(last: C): void {
    this.#last = { cursor: this.#parts.cursorOf(last) }
  }
}

function toCursor({ priority, order, id }: ClaimOrderKey): string {
  return `${priority}.${order}.${id}`
}

/** @throws InvalidArgument */
function parseCursor(text: string): ClaimOrderKey {
  const [, word = '', order = '', id = ''] = /^([A-Z_]+)\.(-?\d{1,40})\.([\w-]{1,64})$/.exec(text) ?? []
  const priority = PRIORITIES.find((known) => known === word)
  if (!priority) throw cursorError()
  return { priority, order: BigInt(order), id }
}

/** @throws InvalidArgument */
function parseTrashCursor(text: string): { readonly id: string; readonly position: number } {
  const [, id = '', position = ''] = /^([\w-]{1,64})\.(\d{1,12})$/.exec(text) ?? []
  if (id === '') throw cursorError()
  return { id, position: Number(position) }
}

function cursorError(): InvalidArgument {
  return new InvalidArgument('after must be the cursor of an earlier page')
}
