/** Finds jobs on the board: in the live view, which costs nothing, and behind it, once the view has caught up. */
import { NotFound } from '../core/errors.ts'
import type { Backend } from './backend.ts'
import type { Entry } from './entry.ts'
import { Job } from './job.ts'
import { type JobsOptions, listed } from './listed.ts'
import type { LiveView } from './live-view.ts'
import { assertUuid, jobsFilter } from './options.ts'
import { type WaitingFor, waitingFor } from './waiting-for.ts'
import { wholeJobs, wholeOf } from './whole-jobs.ts'

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
    await this.#view.settled({ signal: this.#signal })
  }

  /** In claim order. */
  async *jobs(options: JobsOptions): AsyncGenerator<Job, void, undefined> {
    const filter = jobsFilter(options)
    if (filter.ensureFresh) await this.refresh()
    yield* wholeJobs(listed(this.#view.entries(), filter), this.#backend)
  }

  /** With its posting. @throws NotFound */
  async find(uuid: string): Promise<Job> {
    assertUuid(uuid)
    const entry = await this.#entryOf(uuid)
    const whole = entry && (await wholeOf(entry, this.#backend))
    if (whole) return new Job(entry, whole.posting)
    throw this.#notFound(uuid)
  }

  /** The same job in this view: it may have been seen through another board object. @throws NotFound */
  async own(job: Job): Promise<Job> {
    const known = Job.entryOf(job)
    if (known.ended || this.#view.owns(known)) return job
    const entry = await this.#entryOf(job.uuid)
    if (entry) return new Job(entry)
    throw this.#notFound(job.uuid)
  }

  /** Whether the view knows the job as it is now, as far as it has heard. */
  isCurrent(own: Job): boolean {
    const { ended, content } = Job.entryOf(own)
    return ended !== undefined || content === 'fresh'
  }

  async owner(job: Job): Promise<string | undefined> {
    const { id, ended } = Job.entryOf(job)
    return id === undefined || ended ? undefined : this.#backend.owner(id)
  }

  /** @param options.paused whether the board is, asked when the view has caught up */
  async waitingFor(job: Job, options: { readonly paused: () => boolean }): Promise<WaitingFor | undefined> {
    const own = await this.own(job)
    if (!this.isCurrent(own)) await this.refresh()
    return waitingFor(Job.entryOf(own), { queue: this.#view.queue, paused: options.paused(), backend: this.#backend })
  }

  async #entryOf(uuid: string): Promise<Entry | undefined> {
    if (!this.#view.byUuid(uuid)) await this.refresh()
    return this.#view.byUuid(uuid)
  }

  #notFound(uuid: string): NotFound {
    const { uri } = this.#backend
    return new NotFound(`job ${uuid} is not on ${uri}: it was never posted here, or it is done, or it is in the trash`)
  }
}
