/**
 * Keeps the state of single jobs current while the view is closed: jobs that callers wait for, whose state they read, or that are claimed here.
 * The process receives hints about these jobs only, and reads the status after a hint. Once the view was listed, the process receives
 * every change, and nothing is followed.
 *
 * - **For a job whose posting was never read** (its transaction may still be open) the view is opened instead.
 * - **One request of the loop at a time**, and {@link readStatus} waits for an `unfollow` that is under way: otherwise `unfollow` could
 *   arrive after the `follow` that was sent later, and the job would not be followed any more.
 * - **A gap**, as after a change of the connection, makes it follow all jobs again, which returns their present status.
 * - **A round every 10 s** finds changes whose hint did not arrive.
 */
import { RecurringError } from '../../core/async/recurring-error.ts'
import { retryUntilAborted } from '../../core/async/retry.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { monotonic } from '../../core/time.ts'
import type { Backend, BoardChange, JobStatus } from '../contract/index.ts'
import type { EntryFollower, JobEntry } from '../model/entry.ts'
import { MAX_BATCH } from './content-reader.ts'

/** The time for which a job is followed at least after a caller has read its state. */
const TOUCH_MS = 10_000
/** The time between two rounds. A round reads the status of all followed jobs. */
const ROUND_PERIOD_MS = 10_000

/** A job that is followed. All callers that follow it share this object, because there is one for each claim: each of them disposes it once. */
class FollowedJob implements Disposable {
  readonly id: string
  readonly entry: JobEntry
  /** The number of callers that have not disposed it yet. */
  holds = 0
  /** The monotonic time at which a caller last read the state of the job. */
  touchedAt = Number.NEGATIVE_INFINITY
  readonly #onReleased: (job: FollowedJob) => void

  constructor(id: string, entry: JobEntry, onReleased: (job: FollowedJob) => void) {
    this.id = id
    this.entry = entry
    this.#onReleased = onReleased
  }

  [Symbol.dispose](): void {
    this.holds -= 1
    this.#onReleased(this)
  }
}

export interface JobFollowerOptions {
  readonly backend: Pick<Backend, 'changes'>
  /** Returns whether the view was listed since it was opened, so that every change is received. */
  readonly isViewing: () => boolean
  /** Opens the view and keeps it open until the result is disposed. */
  readonly hold: () => Disposable
  /** Keeps the view open for some time. */
  readonly touch: () => void
  /** Called with the status of a followed job. */
  readonly onStatus: (entry: JobEntry, status: JobStatus) => void
  readonly onError: (error: unknown) => void
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
}

const NOTHING: Disposable = { [Symbol.dispose]: () => undefined }

export class JobFollower implements EntryFollower {
  readonly #options: JobFollowerOptions
  readonly #followed = new Map<string, FollowedJob>()
  readonly #onReleased = (followed: FollowedJob) => this.#forgetIfUnused(followed)
  /** The jobs whose status the next requests ask for. */
  readonly #wanted = new Set<string>()
  /** The jobs that the backend still follows without need: `unfollow` is due. */
  readonly #unwanted = new Set<string>()
  #sending: Promise<void> | undefined
  /** The request that ends the reports of some jobs, while it is under way. */
  #unfollowing: Promise<void> | undefined
  readonly #recurring = new RecurringError()
  #roundTimer: NodeJS.Timeout | undefined

  constructor(options: JobFollowerOptions) {
    this.#options = options
  }

  follow(entry: JobEntry): Disposable {
    const { id, ended } = entry
    if (ended || id === undefined) return NOTHING
    if (!this.#canFollow(entry)) return this.#options.hold()
    const followed = this.#add(id, entry)
    followed.holds += 1
    return followed
  }

  touch(entry: JobEntry): void {
    const { id, ended } = entry
    const { isViewing, touch } = this.#options
    if (ended || id === undefined) return
    if (isViewing() || !this.#canFollow(entry)) touch()
    else this.#add(id, entry).touchedAt = monotonic()
  }

  /** Returns the present status of the job, which is followed for some time. @throws NotConnected */
  async readStatus(entry: JobEntry): Promise<JobStatus | undefined> {
    const { backend, onStatus } = this.#options
    const { id } = entry
    if (id === undefined) return undefined
    const known = this.#followed.get(id)
    const followed = known ?? new FollowedJob(id, entry, this.#onReleased)
    followed.touchedAt = monotonic()
    // Added before the request: a hint that comes before the answer is not missed then.
    this.#followed.set(id, followed)
    this.#unwanted.delete(id)
    this.#scheduleRound()
    try {
      await this.#unfollowing
      const [status] = await backend.changes.follow([id])
      if (status !== undefined) onStatus(entry, status)
      return status
    } catch (error) {
      if (!known && followed.holds === 0) this.forget(id)
      throw error
    }
  }

  /** Follows all jobs again, because changes may have been missed, or the view was closed. */
  resume(): void {
    if (this.#options.isViewing()) return
    for (const id of this.#followed.keys()) this.#want(id)
    this.#send()
  }

  /** Asks for the status of followed jobs that have changed. */
  onChanges(changes: readonly BoardChange[]): void {
    if (this.#options.isViewing()) return
    for (const { id, kind } of changes) {
      const followed = this.#followed.get(id)
      if (!followed) continue
      // It may be restored or purged before its status is read.
      if (kind === 'trashed') followed.entry.trashing = true
      this.#want(id)
    }
    this.#send()
  }

  /**
   * Ends the following of all jobs, because the view receives their changes from now on. The status of claimed jobs is read once
   * more: this process may have lost its claim and another one may have claimed the job while nothing was received, and the view shows
   * both only as claimed.
   */
  suspend(): void {
    clearTimeout(this.#roundTimer)
    this.#roundTimer = undefined
    this.#wanted.clear()
    for (const [id, { holds, entry }] of this.#followed) {
      if (holds > 0 && entry.claimed) this.#wanted.add(id)
      this.#unwanted.add(id)
    }
    this.#send()
  }

  /** Ends the following of a job, because it has left the board or nothing needs it. */
  forget(id: string): void {
    this.#wanted.delete(id)
    if (!this.#followed.delete(id) || this.#options.isViewing()) return
    this.#unwanted.add(id)
    this.#send()
  }

  stop(): void {
    clearTimeout(this.#roundTimer)
  }

  /** Returns whether the job can be followed. One that was never read may not be on the board yet: `follow` would report it as gone. */
  #canFollow({ stored }: JobEntry): boolean {
    return stored !== undefined
  }

  #add(id: string, entry: JobEntry): FollowedJob {
    const known = this.#followed.get(id)
    if (known) return known
    const added = new FollowedJob(id, entry, this.#onReleased)
    this.#followed.set(id, added)
    if (this.#options.isViewing()) return added
    this.#want(id)
    this.#send()
    return added
  }

  #forgetIfUnused(followed: FollowedJob): void {
    if (followed.holds > 0 || monotonic() - followed.touchedAt < TOUCH_MS) return
    if (this.#followed.get(followed.id) === followed) this.forget(followed.id)
  }

  #want(id: string): void {
    this.#wanted.add(id)
    this.#unwanted.delete(id)
  }

  /** Sends what is wanted and unwanted, and what has become so meanwhile; one request at a time. */
  #send(): void {
    const { signal } = this.#options
    this.#scheduleRound()
    if (this.#sending || !this.#hasRequests || signal.aborted) return
    const sendAll = async () => {
      // After the current synchronous code, so that all jobs that it follows are in one request.
      await Promise.resolve()
      while (this.#hasRequests) await (this.#wanted.size > 0 ? this.#askBatch() : this.#unfollowBatch())
      this.#recurring.clear()
    }
    const options = { firstPauseMs: 50, maxPauseMs: 5_000, signal, onRetry: (error: unknown) => this.#report(error) }
    this.#sending = retryUntilAborted(sendAll, options)
      .catch(() => undefined)
      .finally(() => {
        this.#sending = undefined
        this.#send()
      })
  }

  get #hasRequests(): boolean {
    return this.#wanted.size > 0 || this.#unwanted.size > 0
  }

  /** Reports each message once in a row. Without a connection there is nothing to report: a gap follows. */
  #report(thrown: unknown): void {
    const error = asError(thrown)
    if (error instanceof NotConnected) return
    if (this.#recurring.isNew(error)) this.#options.onError(error)
  }

  async #askBatch(): Promise<void> {
    const { onStatus, isViewing } = this.#options
    const ids = [...this.#wanted].slice(0, MAX_BATCH)
    // Removed before the request: a hint, or a new `follow`, that comes during the request adds the id again.
    for (const id of ids) this.#wanted.delete(id)
    const statuses = await this.#requestStatuses(ids)
    for (const [index, id] of ids.entries()) {
      const [followed, status] = [this.#followed.get(id), statuses[index]]
      if (followed && status !== undefined) onStatus(followed.entry, status)
      // The backend has forgotten a job that has left the board.
      if (typeof status === 'string') this.#unwanted.delete(id)
      // The job is not followed any more, or the view was opened, since the request was sent.
      else if (!followed || isViewing()) this.#unwanted.add(id)
    }
  }

  async #requestStatuses(ids: readonly string[]): Promise<readonly JobStatus[]> {
    try {
      return await this.#options.backend.changes.follow(ids)
    } catch (error) {
      for (const id of ids) if (this.#followed.has(id)) this.#wanted.add(id)
      throw error
    }
  }

  async #unfollowBatch(): Promise<void> {
    const ids = [...this.#unwanted].slice(0, MAX_BATCH)
    for (const id of ids) this.#unwanted.delete(id)
    const request = this.#options.backend.changes.unfollow(ids)
    this.#unfollowing = request.catch(() => undefined)
    try {
      await request
    } catch (error) {
      for (const id of ids) if (!this.#followed.has(id)) this.#unwanted.add(id)
      throw error
    } finally {
      this.#unfollowing = undefined
    }
  }

  #scheduleRound(): void {
    if (this.#roundTimer || this.#followed.size === 0 || this.#options.isViewing()) return
    this.#roundTimer = setTimeout(() => this.#round(), ROUND_PERIOD_MS).unref()
  }

  #round(): void {
    this.#roundTimer = undefined
    for (const followed of this.#followed.values()) this.#forgetIfUnused(followed)
    this.resume()
  }
}
