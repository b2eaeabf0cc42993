/** A job on a board, as its users hold it. */
import { type InspectOptions, inspect } from 'node:util'
import { abortAfter, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { keepAlive } from '../../core/async/keep-alive.ts'
import type { Stoppable } from '../../core/async/stop.ts'
import { InvalidArgument, NotFound, Timeout } from '../../core/errors.ts'
import type { JobState } from '../../core/states.ts'
import { type Attempt, toAttempts } from '../model/attempts.ts'
import { type JobEntry, keepEntry, toJobState, waitForEnd } from '../model/entry.ts'
import type { Details, Posting, Size } from '../model/posting.ts'
import type { Priority } from '../model/priority.ts'
import type { Resources } from '../model/resources.ts'
import { assertWaitOptions, type WaitOptions } from './options.ts'

/**
 * A job as this board sees it: what was posted, its state, and a way to wait for its end. Reading it asks nobody; it is as
 * new as the board's live view.
 *
 * @example if ((await job.wait({ timeout: '1m' })) === 'TRASHED') console.log(job.attempts.at(-1)?.reason)
 */
export class Job {
  readonly #entry: JobEntry
  readonly #posting: Posting
  /** Held, never read: see {@link keepEntry}. */
  #holder: object | undefined
  #details: Details | undefined

  /** @internal Boards make jobs. */
  constructor(entry: JobEntry, posting: Posting | undefined = entry.stored?.posting) {
    if (!posting) throw new NotFound(`job ${entry.id} has not been read`)
    this.#entry = entry
    this.#posting = posting
  }

  get uuid(): string {
    return this.#posting.uuid
  }

  get name(): string {
    return this.#posting.name
  }

  /**
   * The flow to run, its inputs, and whatever else was posted; a copy, so that work which changes it changes nothing on the
   * board. May hold secrets: never print it whole.
   */
  get details(): Details {
    this.#details ??= structuredClone(this.#posting.details)
    return this.#details
  }

  /** What it must own while it runs; without names where it wants nothing. */
  get resources(): Resources {
    return this.#posting.resources ?? {}
  }

  /** The logbook of the job. */
  get book(): { readonly uuid: string; readonly name: string } {
    return this.#posting.book ?? { uuid: this.uuid, name: this.name }
  }

  get priority(): Priority {
    return this.#posting.priority
  }

  get size(): Size {
    return this.#posting.size
  }

  get postedAt(): Date | undefined {
    const { stored } = this.#entry
    return stored && new Date(stored.postedAt)
  }

  /** The number of the newest run; of a job that another process runs, as of a moment ago. */
  get runs(): number {
    return this.#current.runs
  }

  /**
   * The newest attempts, oldest first. Of a job that another process runs they are as of a moment ago, and they are complete
   * once {@link wait} has said TRASHED. The last attempt of a job that is COMPLETE left the board with it.
   */
  get attempts(): readonly Attempt[] {
    return toAttempts(this.#current)
  }

  /** How long one run may take, in milliseconds from its claim; undefined for as long as it takes. */
  get deadline(): number | undefined {
    return this.#posting.deadline
  }

  get maxAttempts(): number {
    return this.#posting.maxAttempts
  }

  /** As this process knows it, without asking the backend. */
  get state(): JobState {
    return toJobState(this.#entry)
  }

  /** Whether somebody has asked for it to be given up, as this process knows; `board.cancellation` tells who, and why. */
  get cancelRequested(): boolean {
    return this.#entry.cancelRequested
  }

  /**
   * Resolves with how the job left the board: COMPLETE or TRASHED. Woken by the board's events, it asks nothing. It keeps
   * the process alive; where nobody works on the board it waits for ever, unless there is a `timeout`.
   *
   * @throws Timeout when the time is over first
   * @throws NotFound when the job was posted with `client`, and the transaction was rolled back
   * @example await job.wait({ timeout: '30s' })
   */
  async wait(options: WaitOptions = {}): Promise<'COMPLETE' | 'TRASHED'> {
    assertWaitOptions(options)
    // Of a job outside the window nobody else knows, and who waits for its own promise alone is collected with it.
    using _alive = keepAlive(this.#entry)
    using stop = followSignals([options.signal])
    using _timer = abortAfter(
      stop,
      options.timeout,
      (time) => new Timeout(`${this}: still ${this.state} after ${time}`),
    )
    return await rejectOnAbort(this.waitForEnd(this.#entry, stop), stop.signal)
  }

  /** @internal Resolves when the job has left the board. The signal ends whatever is done for that meanwhile. */
  protected waitForEnd(entry: JobEntry, _signal: Stoppable): Promise<'COMPLETE' | 'TRASHED'> {
    return waitForEnd(entry)
  }

  /** For people: uuid and name, nothing of the details. */
  toString(): string {
    return `job ${this.uuid} (${this.name})`
  }

  /** What `console.log` shows: nothing of the details here either. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    const { uuid, name, state, priority, runs } = this
    return `Job ${inspect({ uuid, name, state, priority, runs }, options)}`
  }

  /** @internal @throws InvalidArgument for what is no job: a uuid, say */
  static entryFor(job: Job): JobEntry {
    if (!(#entry in Object(job)))
      throw new InvalidArgument('a job is needed, as boards hand them out; of a uuid, await board.find(uuid)')
    return job.#entry
  }

  /** @internal From now on, for as long as this lives, the view reads what claims elsewhere change of the job. */
  isFollowed(): this {
    this.#holder ??= keepEntry(this.#entry)
    return this
  }

  get #current(): Posting {
    const { ended, settledPosting, stored } = this.#entry
    return (ended && settledPosting) ?? stored?.posting ?? this.#posting
  }
}
