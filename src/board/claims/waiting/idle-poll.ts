/**
 * Looks for jobs that nobody else claims, while this process receives no changes of the board.
 *
 * Most jobs of a busy board are claimed soon after their post. So a posting is read only when two looks in a row have found its job
 * unclaimed, and a posting that is not accepted is not read again. The longer a look takes, the rarer looks are: on a long board each lists
 * many jobs, and on a board with a backlog each reads many postings.
 */
import { monotonic, sleep } from '../../../core/time.ts'
import type { Backend, UnclaimedJobs } from '../../contract/index.ts'
import type { ClaimOrderKey } from '../../model/claim-order.ts'
import { isDoomed } from '../../model/dependencies.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { dueTime } from '../../queue/queue.ts'
import type { QueueChoice } from '../../queue/served-queues.ts'
import { ReadSize } from '../../view/content-reader.ts'
import { ALL_QUEUES, ViewScope } from '../../view/view-scope.ts'

/** The number of jobs in one read of a board that is read in parts. */
const JOBS_PER_PART = 1_000
/** The pause between two looks: a random time between half and all of `perLook` times what the last look took, within limits. */
const PAUSE_MS = { least: 500, most: 10_000, perLook: 50 } as const

export interface IdlePollOptions {
  readonly backend: Pick<Backend, 'jobs' | 'sections' | 'clock'>
  readonly accepts: (posting: Posting) => boolean
  /** The queues of each caller; undefined for a caller that claims from all queues. */
  readonly choices: readonly (QueueChoice | undefined)[]
  /** The ids of jobs that are known not to be accepted. */
  readonly rejected: Iterable<string>
  /** Receives a job that was cancelled and never ran. */
  readonly onDoomed: (id: string) => void
}

export class IdlePoll {
  readonly #options: IdlePollOptions
  readonly #readSize = new ReadSize()
  readonly #scope = new ViewScope()
  /** The unclaimed jobs that the last look has found. */
  #found: ReadonlySet<string> = new Set()
  #rejected: Set<string>
  /** The due times of accepted jobs that are delayed, in milliseconds on the backend's clock. */
  readonly #delayed = new Map<string, number>()

  constructor(options: IdlePollOptions) {
    this.#options = options
    for (const choice of options.choices) this.#scope.add(choice, { isOpen: false })
    this.#rejected = new Set(options.rejected)
  }

  /** Returns whether jobs of this board can be found in this way. */
  static isPossible({ jobs, sections }: Pick<Backend, 'jobs' | 'sections'>): boolean {
    return jobs.listUnclaimed !== undefined || sections !== undefined
  }

  /**
   * Repeats looks until a job is found or the time is over. Resolves with true when two looks in a row have found an accepted job that is due, with false when the time is
   * over.
   *
   * @param options.end in milliseconds on the monotonic clock
   * @throws NotConnected and others; the signal's reason
   */
  async findJob({ end, signal }: { readonly end: number; readonly signal: AbortSignal }): Promise<boolean> {
    for (let pauseMs: number = PAUSE_MS.least; ; ) {
      const leftMs = end - monotonic()
      if (leftMs <= 0) return false
      await sleep(Math.min(leftMs, pauseMs * (0.5 + Math.random() / 2)), { signal })
      const begin = monotonic()
      if (await this.#look(signal)) return true
      pauseMs = Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, (monotonic() - begin) * PAUSE_MS.perLook))
    }
  }

  async #look(signal: AbortSignal): Promise<boolean> {
    const { backend } = this.#options
    const { jobs, cancelled, waiting } = await this.#listUnclaimed(signal)
    const before = this.#found
    const found = new Set(jobs)
    this.#found = found
    for (const ids of [this.#rejected, this.#delayed]) for (const id of ids.keys()) if (!found.has(id)) ids.delete(id)
    const toRead: string[] = []
    for (const id of found) {
      const dueAt = cancelled.has(id) ? 0 : this.#delayed.get(id)
      if (this.#delayed.has(id) && dueAt !== undefined && dueAt <= backend.clock.now()) return true
      // Its due time is read again once the jobs have ended for which it waited.
      if (dueAt === Number.POSITIVE_INFINITY && !waiting?.has(id)) this.#delayed.delete(id)
      if (before.has(id) && !this.#rejected.has(id) && !this.#delayed.has(id)) toRead.push(id)
    }
    return this.#readUntilAccepted(toRead, { cancelled, signal })
  }

  async #listUnclaimed(signal: AbortSignal): Promise<UnclaimedJobs> {
    const { backend } = this.#options
    const { sections } = backend
    const jobs: string[] = []
    const cancelled = new Set<string>()
    if (!sections) return (await backend.jobs.listUnclaimed?.()) ?? { jobs, cancelled }
    for (const section of await this.#scope.sections(sections)) {
      const queue = section === ALL_QUEUES ? undefined : section
      for (let after: ClaimOrderKey | undefined, isEnd = false; !isEnd; ) {
        const part = await sections.range({ queue, after, limit: JOBS_PER_PART, due: true })
        signal.throwIfAborted()
        for (const summary of part.jobs) {
          jobs.push(summary.id)
          if (summary.cancelled) cancelled.add(summary.id)
        }
        after = part.jobs.at(-1)
        isEnd = part.end || !after
      }
    }
    return { jobs, cancelled }
  }

  async #readUntilAccepted(
    ids: readonly string[],
    { cancelled, signal }: Pick<UnclaimedJobs, 'cancelled'> & { readonly signal: AbortSignal },
  ): Promise<boolean> {
    const { backend, accepts, onDoomed } = this.#options
    for (let from = 0; from < ids.length; ) {
      const part = ids.slice(from, from + this.#readSize.postings)
      const read = await backend.jobs.read(part)
      signal.throwIfAborted()
      this.#readSize.adapt(read)
      for (const [index, id] of part.entries()) {
        const job = read[index]
        if (job && 'posting' in job && cancelled.has(id) && isDoomed(job.posting)) onDoomed(id)
        else if (!job || 'error' in job || !accepts(job.posting)) this.#rejected.add(id)
        else if (!cancelled.has(id) && dueTime(job) > backend.clock.now()) this.#delayed.set(id, dueTime(job))
        else return true
      }
      from += part.length
    }
    return false
  }
}
