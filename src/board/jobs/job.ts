/** A job on a board, as its users hold it. */
import { type InspectOptions, inspect } from 'node:util'
import { abortAfter, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { keepAlive } from '../../core/async/lifecycle.ts'
import { copyPlain } from '../../core/codec.ts'
import { InvalidArgument, NotFound, Timeout } from '../../core/errors.ts'
import { toReference } from '../../core/job-names.ts'
import { assertOptions } from '../../core/options.ts'
import type { JobState } from '../../core/states.ts'
import { type Duration, toDate } from '../../core/time.ts'
import { type Attempt, countFailures, type OmittedAttempts, toAttempts, toOmittedAttempts } from '../model/attempts.ts'
import type { Priority } from '../model/claim-order.ts'
import type { DependencyEnd } from '../model/dependencies.ts'
import { type JobEntry, keepEntry, toJobState, waitForEnd } from '../model/entry.ts'
import { expiryTime } from '../model/expiry.ts'
import { toLimitCosts } from '../model/limits.ts'
import type { Details, Posting } from '../model/posting/posting.ts'
import { queueOf } from '../model/queues.ts'
import type { Resources } from '../model/resources.ts'
import { isDropped, isSealed, unseal } from '../model/sealed.ts'
import type { ExpectedPost } from './expected-post.ts'

/** Options of a wait. */
export interface WaitOptions {
  /** The longest wait; unlimited by default. */
  readonly timeout?: Duration
  /** The signal that ends the wait; its reason is thrown. */
  readonly signal?: AbortSignal
}

/** @throws InvalidArgument */
export function assertWaitOptions(options: WaitOptions): void {
  assertOptions(options, { timeout: true, signal: true }, 'wait')
}

/**
 * A job as this board knows it: its posting, its state, and a method to wait for its end. Its properties are read from memory. Reading
 * `state`, `runs`, `attempts` or `cancelRequested` makes this process follow the job for some time: the first value may be old, later
 * ones are current.
 *
 * @example if ((await job.wait({ timeout: '1m' })) === 'TRASHED') console.log(job.attempts.at(-1)?.reason)
 */
export class Job {
  readonly #entry: JobEntry
  readonly #posting: Posting
  /** An object that is referenced and never read: see {@link keepEntry}. */
  #holder: object | undefined
  #details: Details | undefined

  /** @internal Boards create jobs. */
  constructor(entry: JobEntry, posting: Posting | undefined = entry.stored?.posting) {
    if (!posting) throw new NotFound(`job ${entry.id} has not been read`)
    this.#entry = entry
    this.#posting = posting
  }

  get uuid(): string {
    return this.#posting.uuid
  }

  /**
   * The reference of the job: pass it to other processes, which find the job with `board.find(ref)` in one round trip, however long
   * the board is. A job that is restored from the trash has another one.
   */
  get ref(): string {
    return toReference({ uuid: this.uuid, id: this.#entry.id })
  }

  get name(): string {
    return this.#posting.name
  }

  /**
   * A copy of the details: the flow to run, its inputs, and other fields of the application. Changing it changes nothing on the board. The
   * details may contain secrets: never print them whole. A job that comes with an event or a reason to wait may lack `store` and other
   * fields, if the board object had no memory to keep them: `board.find(job.ref)` reads the whole job.
   */
  get details(): Details {
    this.#details ??= copyDetails(this.#posting.details)
    return this.#details
  }

  /**
   * The resources that the job owns while it runs; an empty object where it needs none. A claim can add the resources that the flow declares, where
   * the job was posted without the flow's code.
   */
  get resources(): Resources {
    return this.#current.resources ?? {}
  }

  /** The key of the job, which no other job on the board has; undefined where it has none. */
  get key(): string | undefined {
    return this.#posting.key
  }

  /** The time until which the key stays taken although the job has left the board; undefined for a key without a window. May be in the past. */
  get keyTakenUntil(): Date | undefined {
    const { stored } = this.#entry
    const { keyFor } = this.#current
    return stored && keyFor !== undefined ? toDate(stored.postedAt + keyFor) : undefined
  }

  /** The `who` of the board object that posted the job; undefined for jobs of schedules, of other programs and of older releases. */
  get postedBy(): string | undefined {
    return this.#posting.postedBy
  }

  /** The jobs after which the job is run; empty for most jobs. `board.waitingFor` says which of them it still waits for. */
  get after(): readonly { readonly uuid: string; readonly on: DependencyEnd }[] {
    return (this.#posting.after ?? []).map(({ uuid, on }) => ({ uuid, on: on ?? 'done' }))
  }

  /** The uuid of the batch that counts the job; undefined where it is in none. */
  get batch(): string | undefined {
    return this.#posting.batch
  }

  /** The keys of the limits that the job keeps, with the tokens that a start takes; the key of its flow first. Empty for `limits: 'none'`. */
  get limits(): readonly { readonly key: string; readonly cost: number }[] {
    return toLimitCosts(this.#current)
  }

  /** The time until which the job is not claimed, by the board's clock; undefined where it is not delayed. May be in the past. */
  get delayedUntil(): Date | undefined {
    const { stored } = this.#entry
    const { delay } = this.#current
    return stored && delay !== undefined ? toDate(stored.writtenAt + delay) : undefined
  }

  /** The time at which the job goes to the trash if nobody starts it, by the board's clock; undefined where it does not expire. */
  get expiresAt(): Date | undefined {
    const { stored } = this.#entry
    const time = stored && expiryTime({ posting: this.#current, postedAt: stored.postedAt })
    return time === undefined ? undefined : toDate(time)
  }

  /** The pauses after failed runs, in milliseconds; undefined where the job has the default. */
  get backOff(): Posting['backOff'] {
    return this.#posting.backOff
  }

  /** The policy for a job whose owner is lost. */
  get onOwnerLost(): 'retry' | 'fail' {
    return this.#posting.onOwnerLost ?? 'retry'
  }

  /** The logbook of the job. */
  get book(): { readonly uuid: string; readonly name: string } {
    return this.#posting.book ?? { uuid: this.uuid, name: this.name }
  }

  get priority(): Priority {
    return this.#posting.priority
  }

  /** The queue of the job. It can change when a run of the job was out of memory. */
  get queue(): string {
    this.touch()
    return queueOf(this.#current)
  }

  /** The time of the post by the board's clock; its poster estimates that clock until the posting is read. */
  get postedAt(): Date | undefined {
    const { stored } = this.#entry
    return stored && toDate(stored.postedAt)
  }

  /** The number of the newest run; for a job that another process runs it may be a moment old. */
  get runs(): number {
    this.touch()
    return this.#current.runs
  }

  /**
   * The attempts, oldest first. Of a job with more than ten, only the first two and the last eight are listed, and all deaths in a row at the end; {@link omittedAttempts}
   * counts the others. For a job that another process runs they may be a moment old; they are complete once
   * {@link wait} has resolved with TRASHED. The last attempt of a COMPLETE job is not available: it left the board with the job.
   */
  get attempts(): readonly Attempt[] {
    this.touch()
    return toAttempts(this.#current)
  }

  /** The numbers of attempts that {@link attempts} does not list, by how they ended; undefined if it lists all. */
  get omittedAttempts(): OmittedAttempts | undefined {
    this.touch()
    return toOmittedAttempts(this.#current)
  }

  /** The number of attempts that have failed, listed or not. At {@link maxAttempts} the job is trashed. */
  get failedAttempts(): number {
    this.touch()
    return countFailures(this.#current.attempts)
  }

  /** The maximum duration of one run, in milliseconds from its claim; undefined for no limit. */
  get deadline(): number | undefined {
    return this.#posting.deadline
  }

  /** The milliseconds after its end for which its results can be read; undefined for as long as they are kept. */
  get resultTtl(): number | undefined {
    return this.#posting.resultTtl
  }

  get maxAttempts(): number {
    return this.#posting.maxAttempts
  }

  /**
   * The state of the job as this process knows it, without a wait. From the first look on the job is followed for some time: the
   * first look at a job that was posted here long ago may show an earlier state.
   */
  get state(): JobState {
    this.touch()
    return toJobState(this.#entry)
  }

  /** Whether this process knows of a cancel request for the job; `board.cancellation` returns the request. */
  get cancelRequested(): boolean {
    this.touch()
    return this.#entry.cancelRequested
  }

  /**
   * Resolves with how the job left the board: COMPLETE or TRASHED. Meanwhile this process receives the changes of this job. The wait
   * keeps the process alive; if no process claims jobs it never ends, unless there is a `timeout`.
   *
   * @throws Timeout when the timeout is over first
   * @throws NotFound when the job was posted with `client`, and the transaction was rolled back
   * @example await job.wait({ timeout: '30s' })
   */
  async wait(options: WaitOptions = {}): Promise<'COMPLETE' | 'TRASHED'> {
    assertWaitOptions(options)
    // The view references a job outside the window weakly: without this, the waiting promise would be collected with the entry.
    using _alive = keepAlive(this.#entry)
    using stop = followSignals([options.signal])
    using _timer = abortAfter(
      stop,
      options.timeout,
      (time) => new Timeout(`${this} is still ${this.state} after ${time}`),
    )
    if (this.expectedPost?.isKnown === false) await rejectOnAbort(this.expectedPost.whenPosted(stop), stop.signal)
    using _followed = this.#entry.ended ? undefined : this.#entry.follower?.follow(this.#entry)
    return await rejectOnAbort(waitForEnd(this.#entry), stop.signal)
  }

  /** @internal Of a job that was posted in a transaction of the caller: whether the job is known to be on the board. */
  protected get expectedPost(): ExpectedPost | undefined {
    return undefined
  }

  /** Returns uuid and name for messages, without details. */
  toString(): string {
    return `job ${this.uuid} (${this.name})`
  }

  /** Returns what identifies the job and its state, without details, as `JSON.stringify` writes it. */
  toJSON(): Readonly<Record<string, unknown>> {
    // The getter `state` is not used: it would begin to follow the job.
    const { uuid, ref, name, priority } = this
    return { uuid, ref, name, state: toJobState(this.#entry), priority, runs: this.#current.runs }
  }

  /** Returns the text for `console.log`, without details. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `Job ${inspect(this.toJSON(), options)}`
  }

  /** @internal Returns the entry of a job. @throws InvalidArgument for anything else, such as a uuid */
  static entryFor(job: Job): JobEntry {
    if (!(#entry in Object(job)))
      throw new InvalidArgument('the argument must be a Job of a board; for a uuid, pass await board.find(uuid)')
    return job.#entry
  }

  /** @internal Returns the newest known posting, with the details that this object had at first if the view has dropped them. */
  static postingOf(job: Job): Posting {
    const posting = job.#current
    return isDropped(posting.details) ? { ...posting, details: job.#posting.details } : posting
  }

  /** @internal Makes the view read the changes that claims of other processes make, for as long as this object lives. */
  isFollowed(): this {
    this.#holder ??= keepEntry(this.#entry)
    return this
  }

  /** @internal Keeps the job current for some time, because a caller has looked at it. */
  protected touch(): void {
    if (!this.#entry.ended) this.#entry.follower?.touch(this.#entry)
  }

  get #current(): Posting {
    const { ended, settledPosting, stored } = this.#entry
    return (ended && settledPosting) ?? stored?.posting ?? this.#posting
  }
}

function copyDetails(details: Details): Details {
  return isSealed(details) ? unseal(details) : copyPlain(details)
}
