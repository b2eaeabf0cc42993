/** What has become of the files of this run so far. */
import type { Job, JobBoard } from 'jobboard'
import { count } from './printable.ts'

/** A file or folder, and why something is not as it should be. */
export interface Named {
  readonly name: string
  readonly reason: string
}

export class Tally {
  /** The name of each job's file. The board may hold other people's jobs, too: what is not in here is not ours. */
  readonly names = new Map<string, string>()
  /** Jobs that were trashed. */
  readonly failed = new Set<string>()
  /** Links and special files. */
  readonly leftOut: Named[] = []
  /** Folders that cannot be listed: nobody knows what is missing. */
  readonly unlisted: Named[] = []
  #archived = 0
  /** Whether every file there is has its job. */
  complete = false
  #startedAt: number | undefined
  readonly #ends: Promise<void>[] = []

  start(): void {
    this.#startedAt = performance.now()
  }

  get seconds(): number {
    return this.#startedAt === undefined ? 0 : (performance.now() - this.#startedAt) / 1000
  }

  /** Counts the job when it has ended. Its board tells how, also when it was away in the meantime. */
  follow(job: Job): void {
    const end = this.#countEnd(job)
    this.#ends.push(end)
    // A run that ends early closes the board, and nobody waits for the ends of its jobs any more.
    end.catch(() => undefined)
  }

  /** Resolves when all jobs that were followed have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#ends)
  }

  /** Our jobs that are on the board. */
  async onBoard(board: JobBoard, options: { ensureFresh: boolean }): Promise<Job[]> {
    const jobs: Job[] = []
    for await (const job of board.jobs(options)) if (this.names.has(job.uuid)) jobs.push(job)
    return jobs
  }

  /** How far it is, in one line. */
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
