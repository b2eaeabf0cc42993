/**
 * Counts the runs that fail. When a release is reported, the posting has not been read again, so the end of the run is not known: the attempts of
 * the job are examined a moment later. Attempts have no numbers, so their start identifies them.
 */
import type { Job } from '../../board/index.ts'

const EXAMINE_MS = 1_000
/** The most examinations of a job, one per second; then it is forgotten. */
const MAX_EXAMINATIONS = 10

interface Released {
  readonly job: Job
  examinations: number
  /** Whether the job was trashed after the release, so that its last run is counted. */
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

  /** @param onFailed called for each run that has failed, at most some seconds after it */
  constructor(onFailed: () => void) {
    this.#onFailed = onFailed
  }

  onClaimed(job: Job): void {
    const released = this.#released.get(job.uuid)
    // A retry without a pause: the posting was read at the release, and is not read again while the job runs.
    if (released && this.#countFailed(released)) this.#released.delete(job.uuid)
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
    // A cancelled run is no failure: its owner was asked to end it.
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
