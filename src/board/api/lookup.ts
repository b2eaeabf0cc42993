/**
 * Finds jobs on the board: in the live view, which costs nothing, and behind it, once the view has caught up. Of a board of
 * which the view holds a part, the backend is asked for the rest.
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

/** How many jobs are asked for at once of a board that is not in the view. */
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

  /** Everything that was committed before the call is in the view when it resolves; one round trip. */
  async refresh(): Promise<void> {
    await this.#backend.barrier()
    await this.#view.whenSettled({ signal: this.#signal })
  }

  /** In claim order. */
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

  /** One round trip for a page's places, and what it takes to read its postings. */
  async *#listByPages(filter: JobsOptions, sections: BoardSections): AsyncGenerator<Job, void, undefined> {
    let after: JobSummary | undefined
    for (let end = false; !end; ) {
      const page = await sections.range({ after, limit: PAGE_SIZE, due: false })
      const there = page.spots.filter(({ priority, claimed }) => {
        return !(filter.onlyUnclaimed && claimed) && (filter.priority === undefined || filter.priority === priority)
      })
      const entries = there.map(({ id }) => this.#view.byId(id))
      if (filter.ensureFresh) await this.#view.followed.read(entries)
      const jobs = readJobs(entries, this.#backend)
      for await (const job of jobs) if (matchesFilter(Job.entryFor(job), filter)) yield job
      after = page.spots.at(-1)
      end = page.end
    }
  }

  /** With its posting. @throws NotFound */
  async find(uuid: string): Promise<Job> {
    assertUuid(uuid)
    const entry = await this.#findEntry(uuid)
    if (entry) await this.#view.followed.read([entry])
    const whole = entry && (await readJob(entry, this.#backend))
    if (whole) return new Job(entry, whole.posting).isFollowed()
    throw this.#notFoundError(uuid)
  }

  /** Its entry, which need not have been read, or ended. */
  async locate(uuid: string): Promise<JobEntry | undefined> {
    return this.#findEntry(uuid)
  }

  /** The same job in this view: it may have been seen through another board object. @throws NotFound */
  async toOwnEntry(job: Job): Promise<Job> {
    const known = Job.entryFor(job)
    if (known.ended || this.#view.owns(known)) return job
    const entry = await this.#findEntry(job.uuid)
    if (entry) return new Job(entry)
    throw this.#notFoundError(job.uuid)
  }

  /** Whether the view knows the job as it is now, as far as it has heard. */
  isCurrent(own: Job): boolean {
    const { ended, content } = Job.entryFor(own)
    return ended !== undefined || (this.#view.isCurrent && content === 'fresh')
  }

  async owner(job: Job): Promise<string | undefined> {
    const { id, ended } = Job.entryFor(job)
    return id === undefined || ended ? undefined : this.#backend.owner(id)
  }

  async cancellation(job: Job): Promise<Cancellation | undefined> {
    const { id, ended } = Job.entryFor(job)
    return id === undefined || ended ? undefined : this.#backend.cancellation(id)
  }

  /** @param options.paused whether the board is, asked when the view has caught up */
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
    return new NotFound(`job ${uuid} is not on ${uri}: it was never posted here, or it is done, or it is in the trash`)
  }
}
