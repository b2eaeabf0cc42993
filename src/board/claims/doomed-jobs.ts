/**
 * Moves doomed jobs to the trash: jobs that never ran, and were cancelled because a job on which they depend went to the trash. There is
 * nothing to revert, and their flows may have no conductor. So no claim of such a job is granted. Each of them ends in its own transaction,
 * which frees its key, counts it in its batch, and dooms the jobs that depend on it.
 *
 * | doomed by | ended by |
 * |---|---|
 * | the end of a job through this board object | this object, before the caller receives the answer |
 * | another process, which may have died since | each process that claims, also if it does not know the flow: a moment after its view shows the cancel request, when it chooses the job, and when it looks for jobs without a view |
 * | either, before a post with the key of the job | that post |
 */
import { asError, NotConnected, NotFound, OutcomeUnknown, Unclaimable } from '../../core/errors.ts'
import { startTimer } from '../../core/time.ts'
import type { Backend, DiscardRequest, StoredJob } from '../contract/index.ts'
import { isDoomed } from '../model/dependencies.ts'
import type { JobEntry } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'
import { cancellationReason } from './claim-options.ts'

/** The number of jobs that are ended at once. */
const MAX_BATCH = 100
/**
 * The pause before this process ends doomed jobs that its view shows, and the maximum of a random time in addition. The process that has
 * doomed the jobs usually ends them in this time. Without the random time, all other processes would try to end the rest at the same
 * instant.
 */
const SHOWN_PAUSE_MS = { least: 500, spread: 1_000 } as const
/** The pause after a failed attempt to end jobs. */
const RETRY_MS = 5_000

export interface DoomedJobsOptions {
  readonly backend: Pick<Backend, 'jobs' | 'signals' | 'clock'>
  readonly view: Pick<LiveView, 'byId' | 'applyOwnChange'>
  /** Trashes an unclaimed job in one transaction. Rejects as `Backend.trash.discard`. */
  readonly discard: (job: StoredJob, request: Pick<DiscardRequest, 'cancelRequested' | 'reason'>) => Promise<void>
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** The doomed jobs of one board that this process ends. */
export class DoomedJobs {
  readonly #options: DoomedJobsOptions
  readonly #waiting = new Set<string>()
  readonly #shown = new Set<string>()
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isStarted = false

  constructor(options: DoomedJobsOptions) {
    this.#options = options
  }

  /** Starts to end jobs that other processes have doomed: called once this board claims jobs. */
  start(): void {
    this.#isStarted = true
    if (this.#shown.size > 0) this.#arm(SHOWN_PAUSE_MS.least)
  }

  /** Ends the doomed jobs among these jobs, and all jobs that their ends doom. Does not end jobs that ran before: their flows revert them. */
  add(ids: readonly string[]): void {
    for (const id of ids) this.#waiting.add(id)
    if (ids.length > 0) this.#running ??= this.#endAll().finally(() => (this.#running = undefined))
  }

  /** Ends a job if it is doomed. Resolves when it has ended, or could not be ended now; never rejects. */
  async end(id: string): Promise<void> {
    this.add([id])
    await this.ended
  }

  /** Resolves when all jobs that are known to be doomed have ended, or could not be ended now. Undefined if there are none. Never rejects. */
  get ended(): Promise<void> | undefined {
    return this.#running
  }

  /** Notes an unclaimed job for which the view shows a cancel request. */
  noteShown({ id, stored, claimed }: Pick<JobEntry, 'id' | 'stored' | 'claimed'>): void {
    if (id === undefined || claimed || (stored && !isDoomed(stored.posting))) return
    this.#shown.add(id)
    if (this.#isStarted) this.#arm(SHOWN_PAUSE_MS.least)
  }

  #arm(leastMs: number): void {
    const { signal, backend } = this.#options
    if (this.#timer || signal.aborted) return
    // A board with a clock in this process has no other processes, which would have to take turns.
    const pauseMs = backend.clock.alarms ? 0 : leastMs + Math.random() * SHOWN_PAUSE_MS.spread
    this.#timer = startTimer(() => {
      this.#timer = undefined
      const ids = [...this.#shown]
      this.#shown.clear()
      if (!signal.aborted) this.add(ids)
    }, pauseMs).unref()
  }

  async #endAll(): Promise<void> {
    while (this.#waiting.size > 0 && !this.#options.signal.aborted) {
      const ids = [...this.#waiting].slice(0, MAX_BATCH)
      for (const id of ids) this.#waiting.delete(id)
      const failed = await this.#endSome(ids).catch((error: unknown) => {
        this.#report(error)
        return ids
      })
      if (failed.length > 0) this.#tryLater(failed)
    }
  }

  /** Ends the doomed jobs among these jobs. Returns the ids of the jobs that could not be ended. */
  async #endSome(ids: readonly string[]): Promise<readonly string[]> {
    const read = await this.#options.backend.jobs.read(ids)
    const jobs = read.flatMap((job) => (job && 'posting' in job && isDoomed(job.posting) ? [job] : []))
    const outcomes = await Promise.all(jobs.map((job) => this.#end(job)))
    return jobs.flatMap(({ id }, index) => (outcomes[index] === 'failed' ? [id] : []))
  }

  async #end(job: StoredJob): Promise<'ended' | 'failed'> {
    const { backend, view, discard } = this.#options
    try {
      const request = await backend.signals.cancellation(job.id)
      if (!request) return 'ended'
      await discard(job, { cancelRequested: true, reason: cancellationReason(request) })
      view.applyOwnChange(view.byId(job.id), 'trashed')
      return 'ended'
    } catch (error) {
      if (error instanceof NotFound) return 'ended'
      this.#report(error)
      return 'failed'
    }
  }

  #tryLater(ids: readonly string[]): void {
    const { signal } = this.#options
    if (signal.aborted) return
    setTimeout(() => this.#options.signal.aborted || this.add(ids), RETRY_MS).unref()
  }

  /** Reports an error. A changed job is read again; without a connection, the board reports that itself. */
  #report(thrown: unknown): void {
    const error = asError(thrown)
    if (
      this.#options.signal.aborted ||
      [Unclaimable, NotConnected, OutcomeUnknown].some((type) => error instanceof type)
    )
      return
    this.#options.onError(error)
  }
}
