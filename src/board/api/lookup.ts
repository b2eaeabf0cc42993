/**
 * Finds jobs on the board: in the live view, without a request; and, if the job is not in it, again after a refresh of the
 * view. Where the view holds a part of the board, the backend is asked for the rest.
 */
import { NotFound } from '../../core/errors.ts'
import type { Backend, BoardSections, Cancellation, JobSummary } from '../backend.ts'
import type { JobEntry } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'
import { Job } from './job.ts'
import { filterAndSort, type JobsOptions, matchesFilter } from './listed.ts'
import { assertUuid, jobsFilter } from './options.ts'
import { readJob, readJobs } from './read-jobs.ts'
import { type WaitingFor, waitingFor } from './waiting-for.ts'

/** The number of jobs in one page of a board that is not wholly in the view. */
const PAGE_SIZE = 500

export interface LookupOptions {
  readonly backend: Backend
  readonly view: LiveView
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
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

  /** Resolves when everything that was committed before the call is in the view; one round trip. */
  async refresh(): Promise<void> {
    await this.#backend.barrier()
    await this.#view.whenSettled({ signal: this.#signal })
  }

  /** Yields the jobs in claim order. */
  async *jobs(options: JobsOptions): AsyncGenerator<Job, void, undefined> {
    const filter = jobsFilter(options)
    if (filter.ensureFresh) await this.refresh()
    const { sections } = this.#backend
    if (sections && !this.#view.isWholeBoard) {
      yield* this.#listByPages(filter, sections)
      return
    }
    const entries = filterAndSort(this.#view.entries(), filter)
    if (filter.ensureFresh) await this.#view.followed.read(entries)
    yield* readJobs(entries, this.#backend)
  }

  /** Yields the jobs page by page: one round trip for the places of a page, and those that read its postings. */
  async *#listByPages(filter: JobsOptions, sections: BoardSections): AsyncGenerator<Job, void, undefined> {
    let after: JobSummary | undefined
    for (let end = false; !end; ) {
      const page = await sections.range({ after, limit: PAGE_SIZE, due: false })
      const there = page.jobs.filter(({ priority, claimed }) => {
        return !(filter.onlyUnclaimed && claimed) && (filter.priority === undefined || filter.priority === priority)
      })
      const entries = there.map(({ id }) => this.#view.byId(id))
      if (filter.ensureFresh) await this.#view.followed.read(entries)
      const jobs = readJobs(entries, this.#backend)
      for await (const job of jobs) if (matchesFilter(Job.entryFor(job), filter)) yield job
      after = page.jobs.at(-1)
      end = page.end
    }
  }

  /** Finds a job and reads its posting. @throws NotFound */
  async find(uuid: string): Promise<Job> {
    assertUuid(uuid)
    const entry = await this.#findEntry(uuid)
    if (entry) await this.#view.followed.read([entry])
    const whole = entry && (await readJob(entry, this.#backend))
    if (whole) return new Job(entry, whole.posting).isFollowed()
    throw this.#notFoundError(uuid)
  }

  /** Returns the entry of a job, whose posting may be unread. */
  async locate(uuid: string): Promise<JobEntry | undefined> {
    return this.#findEntry(uuid)
  }

  /** Returns the same job in this view: the given one may be of another board object. @throws NotFound */
  async toOwnEntry(job: Job): Promise<Job> {
    const known = Job.entryFor(job)
    if (known.ended || this.#view.owns(known)) return job
    const entry = await this.#findEntry(job.uuid)
    if (entry) return new Job(entry)
    throw this.#notFoundError(job.uuid)
  }

  /** Returns whether the view knows the current state of the job, by all reports so far, of which none may be missing. */
  isCurrent(own: Job): boolean {
    const { ended, content } = Job.entryFor(own)
    const isReported = this.#view.isCurrent && this.#backend.capabilities.completeChangeFeed
    return ended !== undefined || (isReported && content === 'fresh')
  }

  async owner(job: Job): Promise<string | undefined> {
    const { id, ended } = Job.entryFor(job)
    return id === undefined || ended ? undefined : this.#backend.owner(id)
  }

  async cancellation(job: Job): Promise<Cancellation | undefined> {
    const { id, ended } = Job.entryFor(job)
    return id === undefined || ended ? undefined : this.#backend.cancellation(id)
  }

  /** Returns why the job is not run. @param options.paused returns whether the board is paused; called after the refresh */
  async waitingFor(job: Job, options: { readonly paused: () => boolean }): Promise<WaitingFor | undefined> {
    const own = await this.toOwnEntry(job)
    using _held = await this.#view.pin(Job.entryFor(own))
    if (!this.isCurrent(own)) await this.refresh()
    const { queue, unaccepted } = this.#view
    return waitingFor(Job.entryFor(own), { queue, unaccepted, paused: options.paused(), backend: this.#backend })
  }

  async #findEntry(uuid: string): Promise<JobEntry | undefined> {
    if (!this.#view.byUuid(uuid)) await this.refresh()
    const known = this.#view.byUuid(uuid)
    if (known || this.#view.isWholeBoard) return known
    const id = await this.#backend.sections?.find(uuid)
    if (id === undefined) return undefined
    const entry = this.#view.byId(id)
    return (await readJob(entry, this.#backend)) && !entry.ended ? entry : undefined
  }

  #notFoundError(uuid: string): NotFound {
    const { uri } = this.#backend
    return new NotFound(
      `job ${uuid} is not on ${uri}: it was never posted there, or it has been consumed, or it is in the trash`,
    )
  }
}
