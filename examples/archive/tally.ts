/** Counts the results of this run's files. */
import type { Job, JobBoard } from 'jobboard'
import { count } from './printable.ts'

/** A file or folder with a problem, and the reason. */
export interface Named {
  readonly name: string
  readonly reason: string
}

export class Tally {
  /** The file name of each job of this run. The board may have jobs of other runs, too. */
  readonly names = new Map<string, string>()
  /** The jobs that were trashed. */
  readonly failed = new Set<string>()
  /** The links and special files. */
  readonly leftOut: Named[] = []
  /** The folders that cannot be listed: their files are not known. */
  readonly unlisted: Named[] = []
  #archived = 0
  /** Whether every file has its job. */
  complete = false
  #startedAt: number | undefined
  readonly #ends: Promise<void>[] = []

  start(): void {
    this.#startedAt = performance.now()
  }

  get seconds(): number {
    return this.#startedAt === undefined ? 0 : (performance.now() - this.#startedAt) / 1000
  }

  /** Counts the job when it has ended. The board reports how, also after an outage. */
  follow(job: Job): void {
    const end = this.#countEnd(job)
    this.#ends.push(end)
    // A run that ends early closes the board; its jobs are then no longer followed.
    end.catch(() => undefined)
  }

  /** Resolves when all followed jobs have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#ends)
  }

  /** The number of this run's jobs on the board. */
  async onBoard(board: JobBoard, options: { ensureFresh: boolean }): Promise<Job[]> {
    const jobs: Job[] = []
    for await (const job of board.jobs(options)) if (this.names.has(job.uuid)) jobs.push(job)
    return jobs
  }

  /** The progress in one line. */
  toString(): string {
    if (this.#startedAt === undefined) return 'getting ready'
    const archived = `${count(this.#archived, 'file')} archived of ${this.names.size.toLocaleString('en')}`
    const failed = this.failed.size > 0 ? `, ${this.failed.size} failed` : ''
    const perSecond = `${Math.round(this.#archived / this.seconds)} per second`
    return `${archived}${this.complete ? '' : ' found so far'}${failed}, ${perSecond}`
  }

  async #countEnd(job: Job): Promise<void> {
    if ((await job.wait()) === 'COMPLETE') this.#archived += 1
    else this.failed.add(job.uuid)
  }
}
