/**
 * Finds jobs on the board: in the view if it is open, without a request; else by a request to the backend, or, where the backend cannot
 * find a single job, in the view, which is opened for that.
 */
import { isSettledWithin } from '../../core/async/abort.ts'
import { NotFound } from '../../core/errors.ts'
import { parseReference } from '../../core/job-names.ts'
import { monotonic } from '../../core/time.ts'
import type { Backend, BackendSections, Cancellation, JobSummary, StoredJob } from '../contract/index.ts'
import { Job } from '../jobs/job.ts'
import { readJob, readJobs } from '../jobs/read-jobs.ts'
import { type FullWaitingContext, type WaitingFor, waitingFor } from '../jobs/waiting-for.ts'
import type { JobEntry } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'
import { type JobPageOptions, type ListedJob, type Page, readJobPage } from './job-pages.ts'
import { filterAndSort, type JobsOptions, matchesFilter } from './listed.ts'
import { assertUuid, jobsFilter } from './options.ts'

/** The number of jobs in one page of a board that is not wholly in the view. */
const PAGE_SIZE = 500
/** How long a reader that takes what is read so far waits for the first jobs. */
const FIRST_JOBS_MS = 1_000

export interface LookupOptions {
  readonly backend: Backend
  readonly view: LiveView
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
}

/** A job that was found, with its posting if it was read for that. */
interface FoundJob {
  readonly entry: JobEntry
  readonly stored?: StoredJob
}

export class Lookup {
  readonly #backend: Backend
  readonly #view: LiveView
  readonly #signal: AbortSignal

  constructor({ backend, view, signal }: LookupOptions) {
    this.#backend = backend
    this.#view = view
    this.#signal = signal
  }

  /**
   * Resolves when everything that was committed before the call is in the view; one round trip. Opens the view: the caller holds it
   * for as long as it needs it, or relies on the time for which it stays open.
   */
  async refresh(): Promise<void> {
    using _view = this.#view.hold()
    if (!this.#view.isCurrent) await this.#view.whenSubscribed({ signal: this.#signal })
    await this.#backend.changes.barrier()
    await this.#view.whenSettled({ signal: this.#signal })
  }

  /** Yields the jobs in claim order. */
  async *jobs(options: JobsOptions): AsyncGenerator<Job, void, undefined> {
    const filter = jobsFilter(options)
    using _view = this.#view.hold()
    await (filter.ensureFresh ? this.refresh() : this.#view.whenEntered({ signal: this.#signal }))
    const { sections } = this.#backend
    if (sections && !this.#view.extent.showsWholeBoard) {
      yield* this.#listByPages(filter, sections)
      return
    }
    const entries = filterAndSort(this.#view.entries(), filter)
    if (filter.ensureFresh) await this.#view.claimedPostings.read(entries)
    yield* readJobs(entries, this.#backend)
  }

  /** Reads a part of the list in claim order. @throws InvalidArgument, NotConnected */
  async page(options: JobPageOptions, paused: () => boolean): Promise<Page<ListedJob>> {
    using _view = this.#view.hold()
    await this.#whenReadable(options.waitMs)
    return readJobPage(options, { backend: this.#backend, view: this.#view, paused })
  }

  /** Resolves when the board was read; if that takes longer than `waitMs`, when there is something to show. @throws NotConnected */
  async #whenReadable(waitMs = Number.POSITIVE_INFINITY): Promise<void> {
    const signal = this.#signal
    const entered = this.#view.whenEntered({ signal })
    if (waitMs === Number.POSITIVE_INFINITY) return entered
    if ((await isSettledWithin(waitMs, entered)) || this.#backend.sections) return
    // Where a board cannot be read in sections, the view has no jobs until it has listed the whole board.
    const end = monotonic() + FIRST_JOBS_MS
    while (this.#view.reading?.read === 0 && monotonic() < end) {
      const isOver = Promise.race([entered, this.#view.changed.wait({ signal })])
      await isSettledWithin(end - monotonic(), isOver)
    }
  }

  async count(): Promise<number> {
    using _view = this.#view.hold()
    await this.refresh()
    return this.#view.jobCount ?? 0
  }

  /** Yields the jobs page by page: one round trip for the places of a page, and further ones to read its postings. */
  async *#listByPages(filter: JobsOptions, sections: BackendSections): AsyncGenerator<Job, void, undefined> {
    let after: JobSummary | undefined
    for (let end = false; !end; ) {
      const page = await sections.range({ after, limit: PAGE_SIZE, due: false })
      const there = page.jobs.filter(({ priority, claimed }) => {
        return !(filter.onlyUnclaimed && claimed) && (filter.priority === undefined || filter.priority === priority)
      })
      const entries = there.map(({ id }) => this.#view.byId(id))
      if (filter.ensureFresh) await this.#view.claimedPostings.read(entries)
      const jobs = readJobs(entries, this.#backend)
      for await (const job of jobs) if (matchesFilter(Job.entryFor(job), filter)) yield job
      after = page.jobs.at(-1)
      end = page.end
    }
  }

  /** Finds a job and reads its posting. @throws NotFound */
  async find(reference: string): Promise<Job> {
    assertUuid(reference)
    const { uuid, id } = parseReference(reference)
    const found = await this.#find(uuid, { id })
    const whole = found && (found.stored ?? (await this.#readShown(found.entry)))
    if (whole) return new Job(found.entry, whole.posting).isFollowed()
    throw this.#notFoundError(uuid)
  }

  /** Returns the entry of a job that was on the board at the time of the call; its posting may be unread. */
  async locate(uuid: string): Promise<JobEntry | undefined> {
    if (!this.#canAskForOne) await this.refresh()
    return (await this.#find(uuid))?.entry
  }

  /** Returns the job with this id, whose posting may be unread. */
  readonly byId = (id: string): JobEntry => this.#view.byId(id)

  /** Returns whether a job is of this board object, on the board or not. */
  owns({ follower }: JobEntry): boolean {
    return follower === this.#view.follower
  }

  /** Returns the entries of those of the jobs that are on the board, as {@link locate} does. */
  async locateAll(uuids: readonly string[]): Promise<(JobEntry | undefined)[]> {
    using _view = this.#canAskForOne ? undefined : this.#view.hold()
    if (!this.#canAskForOne) await this.refresh()
    const found = await Promise.all(uuids.map((uuid) => this.#find(uuid)))
    return found.map((job) => (job?.entry.ended ? undefined : job?.entry))
  }

  /** Returns the uuids of those of the jobs that are on the board, by their ids. One round trip, unless all of them are known here. */
  async uuidsOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const known = ids.map((id) => this.#view.byId(id).stored)
    const unknown = ids.filter((_, index) => !known[index])
    const read = unknown.length === 0 ? [] : await this.#backend.jobs.read(unknown)
    return new Map(
      [...known, ...read].flatMap((stored) => {
        return stored && 'posting' in stored ? [[stored.id, stored.posting.uuid] as const] : []
      }),
    )
  }

  /** Returns the job with this reference or uuid; for a job of another board object, the same job in this view. @throws NotFound */
  async resolve(job: Job | string): Promise<Job> {
    return typeof job === 'string' ? this.find(job) : this.toOwnEntry(job)
  }

  /** Returns the same job in this view: the given one may be of another board object. @throws NotFound */
  async toOwnEntry(job: Job): Promise<Job> {
    const known = Job.entryFor(job)
    if (known.ended || this.#view.owns(known)) return job
    const found = (await this.#find(job.uuid, known)) ?? (await this.#find(job.uuid))
    if (found) return new Job(found.entry)
    throw this.#notFoundError(job.uuid)
  }

  /** Returns whether the view knows the current state of the job, by all reports so far; none may be missing. */
  isCurrent(own: Job): boolean {
    const { ended, content } = Job.entryFor(own)
    return ended !== undefined || (this.#view.isCurrent && content === 'fresh')
  }

  async owner(job: Job): Promise<string | undefined> {
    const { id, ended } = Job.entryFor(job)
    return id === undefined || ended ? undefined : this.#backend.claims.owner(id)
  }

  async cancellation(job: Job): Promise<Cancellation | undefined> {
    const { id, ended } = Job.entryFor(job)
    return id === undefined || ended ? undefined : this.#backend.signals.cancellation(id)
  }

  /**
   * Returns why the job is not run.
   *
   * @param options.paused returns whether the board is paused; called after the refresh
   * @param options.suspects the place for suspects of this process
   */
  async waitingFor(
    job: Job,
    options: { readonly paused: () => boolean } & Pick<FullWaitingContext, 'suspects'>,
  ): Promise<WaitingFor | undefined> {
    using _view = this.#view.hold()
    const own = await this.toOwnEntry(job)
    await this.#view.whenEntered({ signal: this.#signal })
    using _held = await this.#view.extent.pin(Job.entryFor(own))
    if (!this.isCurrent(own)) await this.refresh()
    const { queue, unaccepted } = this.#view
    const { byId } = this
    const situation = { queue, unaccepted, paused: options.paused(), suspects: options.suspects }
    return waitingFor(Job.entryFor(own), { ...situation, backend: this.#backend, byId })
  }

  /** Whether the backend is asked for one job, because the view is closed and one job is not worth opening it. */
  get #canAskForOne(): boolean {
    return !this.#view.isOpen && this.#backend.sections !== undefined
  }

  /**
   * Finds a job. Where it is in the view, its posting may have to be read.
   *
   * @param asked.id the id of the job, if it is known: then one round trip is enough on a board of any length
   */
  async #find(uuid: string, { id }: { readonly id?: string | undefined } = {}): Promise<FoundJob | undefined> {
    const shown = this.#view.byUuid(uuid)
    if (shown) return { entry: shown }
    if (id !== undefined && !this.#view.isOpen) return this.#read(id, uuid)
    if (this.#canAskForOne) return this.#askFor(uuid)
    using _view = this.#view.hold()
    await this.refresh()
    const entry = this.#view.byUuid(uuid)
    if (entry) return { entry }
    if (this.#view.extent.showsWholeBoard) return undefined
    return id === undefined ? this.#askFor(uuid) : this.#read(id, uuid)
  }

  async #askFor(uuid: string): Promise<FoundJob | undefined> {
    const id = await this.#backend.sections?.find(uuid)
    return id === undefined ? undefined : this.#read(id, uuid)
  }

  /** Reads the job with this id and, unless the view shows it, its status; undefined where it is gone, or has another uuid. */
  async #read(id: string, uuid: string): Promise<FoundJob | undefined> {
    const view = this.#view
    const entry = view.byId(id)
    // First, because the answers are as new as this request: a server of an ensemble may be behind.
    const looking = view.isOpen || entry.ended ? undefined : view.follower.readStatus(entry)
    const [read, status] = await Promise.all([readJob(entry, this.#backend), looking])
    const hasChanged = read && typeof status === 'object' && status.revision !== read.revision
    const stored = hasChanged ? await readJob(entry, this.#backend) : read
    return stored?.posting.uuid === uuid && !entry.ended ? { entry, stored } : undefined
  }

  /** Reads the posting of a job in the view, as a claim of another process may have written it. */
  async #readShown(entry: JobEntry): Promise<StoredJob | undefined> {
    await this.#view.claimedPostings.read([entry])
    return readJob(entry, this.#backend)
  }

  #notFoundError(uuid: string): NotFound {
    const { uri } = this.#backend
    return new NotFound(
      `job ${uuid} is not on ${uri}: it was never posted there, has been consumed, is in the trash, or was restored and has another reference: use its uuid`,
    )
  }
}
