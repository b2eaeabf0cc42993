/**
 * Jobs of a board that is watched. A board does not read postings again after others' claims: it knows at once that a
 * job is claimed; the owner is read once for each claim, and the claim's start is the time when it was first seen.
 */
import type { Job, JobBoard, JobsOptions } from '../board/index.ts'
import { type JobView, jobView } from './job-view.ts'
import { currentRun } from './open-job.ts'

export interface LiveJob {
  readonly job: Job
  readonly view: JobView
  /** The start of a claim. */
  readonly since?: Date
}

interface LiveJobsOptions {
  readonly limit?: number
  readonly fits?: (job: LiveJob) => boolean
}

interface ClaimRecord {
  readonly owner: string
  readonly since: Date
}

export class LiveJobs {
  readonly #board: JobBoard
  #claimed = new Map<string, ClaimRecord>()

  constructor(board: JobBoard) {
    this.#board = board
  }

  /** Reads the jobs that are on the board now and fit, the first `limit` of them in claim order. */
  async read(
    filter: JobsOptions = {},
    { limit = Number.POSITIVE_INFINITY, fits = () => true }: LiveJobsOptions = {},
  ): Promise<LiveJob[]> {
    const jobs: LiveJob[] = []
    const before = this.#claimed
    this.#claimed = new Map()
    for await (const job of this.#board.jobs(filter)) {
      const live = await this.#live(job, before.get(job.uuid))
      if (live && fits(live)) jobs.push(live)
      if (jobs.length >= limit) break
    }
    return jobs
  }

  async #live(job: Job, before: ClaimRecord | undefined): Promise<LiveJob | undefined> {
    const view = jobView(job)
    if (!view) return undefined
    if (view.state === 'CLAIMED') {
      const since = currentRun(job)?.at
      return { job, view, ...(since ? { since } : {}) }
    }
    if (job.state !== 'CLAIMED') return { job, view }
    const claimed = before ?? (await this.#readClaim(job))
    if (!claimed) return { job, view }
    this.#claimed.set(job.uuid, claimed)
    const { owner, since } = claimed
    return { job, view: { ...view, state: 'CLAIMED', owner, runs: view.runs + 1 }, since }
  }

  /** Reads the owner of a job. Returns undefined if the claim has ended meanwhile. */
  async #readClaim(job: Job): Promise<ClaimRecord | undefined> {
    const owner = await this.#board.findOwner(job)
    return owner === undefined ? undefined : { owner, since: new Date() }
  }
}
