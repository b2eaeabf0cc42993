/**
 * Counts the runs that fail. The event of a release comes before the posting is read again, so how the run ended is not known yet: the attempts of
 * the job are examined a moment later. Attempts have no numbers; the start of an attempt tells whether it was counted already.
 */
import type { Job } from '../../board/index.ts'

const EXAMINE_MS = 1_000
/** How often a job is examined until its posting has been read. */
const MAX_EXAMINATIONS = 10

interface Released {
  readonly job: Job
  examinations: number
  /** Whether the job was trashed meanwhile, and its last run counted. */
  isLastCounted: boolean
}

export class FailedRuns {
  readonly #onFailed: () => void
  /** The jobs that are running. If one of them is moved to the trash, its run has failed. */
  readonly #running = new Set<string>()
  readonly #released = new Map<string, Released>()
  /** The start of the newest attempt that had ended before the run, for running and released jobs. */
  readonly #knownUntil = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  /** @param onFailed called for each run that has failed, about a second after it */
  constructor(onFailed: () => void) {
    this.#onFailed = onFailed
  }

  onClaimed(job: Job): void {
    this.#running.add(job.uuid)
    if (!this.#released.has(job.uuid)) this.#knownUntil.set(job.uuid, newestEnded(job))
  }

  onReleased(job: Job): void {
    const { uuid } = job
    this.#running.delete(uuid)
    if (!this.#knownUntil.has(uuid)) return
    this.#released.set(uuid, { job, examinations: 0, isLastCounted: false })
    this.#timer ??= setTimeout(() => this.#examineAll(), EXAMINE_MS).unref()
  }

  onTrashed(job: Job): void {
    // The owner of a cancelled job was asked to end the run.
    if (this.#running.has(job.uuid) && !job.cancelRequested) {
      this.#onFailed()
      const released = this.#released.get(job.uuid)
      if (released) released.isLastCounted = true
    }
    this.onDone(job)
  }

  onDone({ uuid }: Job): void {
    this.#running.delete(uuid)
    if (!this.#released.has(uuid)) this.#knownUntil.delete(uuid)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#running.clear()
    this.#released.clear()
    this.#knownUntil.clear()
  }

  #examineAll(): void {
    this.#timer = undefined
    for (const [uuid, released] of this.#released) {
      released.examinations += 1
      if (this.#countFailed(released) || released.examinations >= MAX_EXAMINATIONS) this.#forget(uuid)
    }
    if (this.#released.size > 0) this.#timer = setTimeout(() => this.#examineAll(), EXAMINE_MS).unref()
  }

  /** Counts the failed runs that were not known before. Returns whether the posting was read since the release. */
  #countFailed({ job, isLastCounted }: Released): boolean {
    const known = this.#knownUntil.get(job.uuid) ?? 0
    const attempts = isLastCounted ? job.attempts.slice(0, -1) : job.attempts
    const ended = attempts.filter((attempt) => attempt.ended !== undefined && attempt.at.getTime() > known)
    for (const attempt of ended) if (attempt.ended === 'failed') this.#onFailed()
    this.#knownUntil.set(job.uuid, newestEnded(job))
    return ended.length > 0
  }

  #forget(uuid: string): void {
    this.#released.delete(uuid)
    if (!this.#running.has(uuid)) this.#knownUntil.delete(uuid)
  }
}

/** Returns the start of the newest attempt that has ended, in milliseconds; 0 if there is none. */
function newestEnded({ attempts }: Job): number {
  return attempts.reduce((newest, { at, ended }) => (ended === undefined ? newest : Math.max(newest, at.getTime())), 0)
}
