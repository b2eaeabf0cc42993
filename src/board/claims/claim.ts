/**
 * A claim: the right of one owner to one job, until it is settled or lost.
 *
 *     held → settling → settled      consume, abandon or trash is done
 *       │       └→ held              it failed, for example without a connection; try again
 *       └──────────→ lost            the session ended, or the claim was released (`release-claim.ts`) or removed by hand
 *
 * When a claim is lost its `lost` signal fires, before the backend could grant the job to another owner: stop the work and
 * write nothing. The error of a settlement that is under way then reports its outcome.
 *
 * When the job is cancelled its `cancelled` signal fires: revert the work, then settle, normally by trash. A job whose work is
 * done nevertheless may be consumed.
 */

import { abortAfter, followSignals } from '../../core/async/abort.ts'
import { AbortFlag } from '../../core/async/abort-flag.ts'
import type { HeldBackWrite } from '../../core/async/held-back-write.ts'
import { settleWithRetries } from '../../core/async/retry.ts'
import { Cancelled, ClaimLost, InvalidArgument, JobboardError, NotFound, Timeout } from '../../core/errors.ts'
import { describeError, describeFailure, type Failure, failureOf } from '../../core/failure.ts'
import { defined } from '../../core/options.ts'
import { attempt } from '../../core/result.ts'
import { type AlarmClock, toMilliseconds } from '../../core/time.ts'
import type { OrphanedClaim, Settlement } from '../contract/index.ts'
import type { Job } from '../jobs/job.ts'
import { canRetry, endAttempt, pauseAfterFailure } from '../model/attempts.ts'
import type { AddedDeclarations } from '../model/declared.ts'
import type { JobEntry } from '../model/entry.ts'
import { moveTo, type Posting } from '../model/posting/posting.ts'
import { queueOf } from '../model/queues.ts'
import {
  type AbandonOptions,
  assertAbandonOptions,
  assertTrashOptions,
  type ConsumeOptions,
  type TrashOptions,
  toKeptBytes,
  toNextQueue,
} from './settle-options.ts'

/** The context that {@link Claim.perform} passes to the work. */
export interface PerformContext {
  /** Fires when the claim is lost, when the job is cancelled, and when its deadline has passed. */
  readonly signal: AbortSignal
  readonly run: number
  /** The fence, which grows with every claim of the board: pass it to other systems, so that they can refuse a former owner. */
  readonly fence: bigint
}

/**
 * The end of a performed job here. `lost`: another owner has the job, or will have it. `unknown`: the session ended during the
 * settlement, whose outcome is unknown; if it was not done, another owner runs the job.
 */
export type Performed = 'consumed' | 'abandoned' | 'trashed' | 'lost' | 'unknown'

/** The board object that holds a claim, as far as the claim needs it. */
export interface ClaimKeeper {
  /** The clock of the deadline. */
  readonly clock: AlarmClock
  /** Whether the board keeps a record of the jobs that have ended. */
  readonly keepsHistory: boolean
  isSessionAlive(session: string): boolean
  /** Returns for how many milliseconds the present session is certain to be alive; undefined without a session. */
  sessionLeftMs(): number | undefined
  settle(claim: Claim, granted: GrantedClaim, end: ClaimEnd): Promise<void>
  /** Returns the posting with the settings of its flow. */
  withSettings(posting: Posting): Posting
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

/** How a claim ends: a settlement without what belongs to the claim and to the board. */
export type ClaimEnd = DistributiveOmit<
  Settlement,
  'id' | 'who' | 'session' | 'revision' | 'cancelRequested' | 'history'
>

/** The abort flags behind the signals of a claim. */
interface ClaimStops {
  readonly lost: AbortFlag
  readonly cancelled: AbortFlag
}

/** A claim that was granted, with what its owner needs to settle it. */
export interface GrantedClaim {
  readonly job: Job
  readonly entry: JobEntry
  readonly keeper: ClaimKeeper
  readonly id: string
  readonly who: string
  readonly session: string
  readonly revision: number
  readonly fence: bigint
  readonly mark: bigint | undefined
  readonly posting: Posting
}

/**
 * The right to one job, until it is settled or lost. Boards grant claims (`claimNext`, `claims`, `claim`), each in one
 * transaction. A claim that is unsettled at the end of an `await using` is abandoned, and the attempt does not count.
 *
 * @example await claim.perform(async (job, { signal }) => resize(job.details.store, signal))
 */
export class Claim implements AsyncDisposable {
  readonly job: Job
  readonly who: string
  /** The number of the run: the number of the previous one plus 1. */
  readonly run: number
  /** The fence for other systems, which grows with every claim of the board. */
  readonly fence: bigint
  readonly #granted: GrantedClaim
  readonly #claimedAt: number
  /** The abort flags, once somebody asked for them: a claim that is settled at once needs none. */
  #stops: ClaimStops | undefined
  /** The reason why the job was cancelled before it was claimed. */
  #cancelledBefore: Cancelled | undefined
  #phase: 'held' | 'settling' | 'settled' | 'lost' = 'held'

  /** @internal Boards grant claims. */
  constructor(granted: GrantedClaim) {
    this.job = granted.job
    this.who = granted.who
    this.run = granted.posting.runs
    this.fence = granted.fence
    this.#granted = granted
    this.#claimedAt = granted.keeper.clock.monotonic()
  }

  /** @internal The abort flags behind the signals, for the code of this library. */
  get stops(): ClaimStops {
    this.#stops ??= { lost: new AbortFlag(), cancelled: new AbortFlag() }
    return this.#stops
  }

  /** The signal that fires, with a ClaimLost as reason, before the job may be granted to another owner. */
  get lost(): AbortSignal {
    return this.stops.lost.signal
  }

  /** The signal that fires, with a Cancelled as reason, when the job is cancelled. */
  get cancelled(): AbortSignal {
    return this.stops.cancelled.signal
  }

  /**
   * Checks that the claim is certainly held at this instant, without a request. Signals fire on timers, and timers are late in a
   * process that was suspended: call this before actions that a former owner must not take.
   *
   * @throws ClaimLost when it is not; `lost` has fired then
   */
  assertHeld(): void {
    this.assertLease()
    this.#stops?.lost.throwIfAborted()
  }

  /**
   * The time until which the claim is held even if the servers do not answer again. Each answer moves it on. Undefined on a board in the memory of
   * this process, whose claims last as long as the process; the present time when the claim is settled or lost. TaskFlow's `expires_in()`.
   *
   * @example if (claim.leaseUntil && claim.leaseUntil.getTime() - Date.now() < 2_000) return
   */
  get leaseUntil(): Date | undefined {
    const { keeper } = this.#granted
    const isHeld = this.#phase !== 'lost' && this.#phase !== 'settled' && this.#isSessionAlive
    const leftMs = isHeld ? (keeper.sessionLeftMs() ?? 0) : 0
    return leftMs === Number.POSITIVE_INFINITY ? undefined : new Date(keeper.clock.now() + leftMs)
  }

  /** @internal Fires `lost` unless the session is certain to be alive. */
  assertLease(): void {
    if (this.#phase === 'lost' || this.#phase === 'settled' || this.#isSessionAlive) return
    this.markLost(
      new ClaimLost(
        `${this.job}: the session is over; stop the work and write nothing, another owner may have the job`,
      ),
    )
  }

  get settled(): boolean {
    return this.#phase === 'settled'
  }

  /**
   * Settles the job as done: it leaves the board. With `results`, a board that has a history keeps them, up to 64 KiB: `board.result` returns them.
   *
   * Refuses a job that was cancelled before it was claimed: a loop that does not check `cancelled` would otherwise consume it, and the jobs
   * that depend on it would run.
   *
   * @throws Cancelled for such a job: trash it; InvalidArgument for results that are not plain data or too large; ClaimLost, NotFound (settled before), NotConnected, OutcomeUnknown
   * @example await claim.consume({ results: { pages: 12 } })
   */
  consume(options?: ConsumeOptions): Promise<void> {
    return attempt(() => {
      if (this.#cancelledBefore) throw this.#cancelledBefore
      if (options === undefined) return this.consumeWith(undefined)
      const { keepsHistory } = this.#granted.keeper
      return this.consumeWith(toKeptBytes(options, { what: String(this.job), keepsHistory }))
    })
  }

  /**
   * @internal Settles the job as done, with encoded results (`model/ended-job.ts`), and with the end of its flow, which the board must be able
   * to record (`recordedPlace`).
   *
   * @throws as {@link consume}; other errors if the record was refused: then nothing was done
   */
  consumeWith(results: Uint8Array | undefined, record?: HeldBackWrite): Promise<void> {
    return this.#settle({ kind: 'consume', posting: this.#granted.posting, results, record })
  }

  /** Gives the job back, so that any owner can claim it. @throws as {@link consume} */
  async abandon(options: AbandonOptions = {}): Promise<void> {
    assertAbandonOptions(options)
    const ended = this.#toEndedPosting(options.failed ? 'failed' : 'returned', options.reason)
    const runs = Math.max(ended.runs, options.newestRun ?? 0)
    const delay = options.delay === undefined ? {} : { delay: toMilliseconds(options.delay, 'delay') }
    const queue = toNextQueue(options)
    const posting = { ...ended, runs, ...delay }
    if (queue === undefined || queue === queueOf(ended)) return this.#settle({ kind: 'abandon', posting })
    await this.#settle({ kind: 'abandon', posting: moveTo(posting, queue), movedTo: queue })
  }

  /**
   * @internal Gives the job back with other resources and limits, which the next claim takes. The attempt does not count.
   *
   * @throws as {@link consume}; UnsupportedCapability where the board has no resources or limits; PayloadTooLarge
   */
  async amend(added: AddedDeclarations, reason: string): Promise<void> {
    const held = this.#granted.posting
    const amended = (held.amended ?? 0) + 1
    const posting = { ...this.#toEndedPosting('returned', reason), ...added, amended }
    await this.#settle({ kind: 'abandon', posting, held })
  }

  /** Moves the job to the trash; it is not run again unless it is restored. @throws as {@link consume} */
  async trash(options: TrashOptions = {}): Promise<void> {
    assertTrashOptions(options)
    const text = options.reason ?? (options.failure ? describeFailure(options.failure) : 'trashed by its owner')
    const reason = text.toWellFormed()
    const failure = options.failure ? { failure: options.failure } : {}
    await this.#settle({ kind: 'trash', posting: this.#toEndedPosting('failed', reason), reason, ...failure })
  }

  /**
   * Settles a job whose run failed: it is abandoned while attempts are left, else trashed. An abandoned job is delayed by the
   * error's `retryAfter`, or by the posting's `backOff`. After an OutOfMemory it may be moved to another queue, and is trashed if it is in
   * that queue already.
   */
  async fail(failure: Failure): Promise<'abandoned' | 'trashed'> {
    const posting = this.postingWithSettings
    const { nonRetryable, retryAfter, nextQueue } = failure
    if (!nonRetryable && nextQueue !== queueOf(posting) && canRetry(posting)) {
      const delay = retryAfter ?? pauseAfterFailure(posting)
      await this.abandon({ failed: true, reason: describeFailure(failure), delay, ...defined({ queue: nextQueue }) })
      return 'abandoned'
    }
    await this.trash({ failure })
    return 'trashed'
  }

  /**
   * Does the work and settles the job. It is consumed when `work` returns; abandoned with a delay or trashed when `work` throws (a
   * NonRetryable trashes it at once); trashed when it is cancelled and `work` throws. If the claim is lost, nothing is settled.
   * The settlement is retried until it is done or the claim is lost, so that a loop survives an outage of its servers.
   *
   * `work` is not called for a job that is already cancelled, which is trashed at once: without a logbook there is nothing to
   * revert. It is not called either for a job whose deadline has passed before `perform`: that run has failed.
   *
   * @throws InvalidArgument unless `work` is a function; NotFound when the claim was settled before, for example by `work`; errors
   * of the board that are not retryable, such as AccessDenied. Errors of `work` are not thrown
   * @example await claim.perform(async (job, { signal }) => resize(job.details, signal))
   */
  async perform(work: (job: Job, context: PerformContext) => unknown): Promise<Performed> {
    if (typeof work !== 'function') {
      const example = 'as in claim.perform(async (job, { signal }) => …)'
      throw new InvalidArgument(`${this.job}: perform: work must be a function, ${example}`)
    }
    if (this.isSettling) throw this.#alreadySettledError()
    const failure = await this.#runWork(work)
    if (this.#phase === 'lost') return 'lost'
    return settleWithRetries<Performed>(
      this.stops,
      () => this.#settleFailure(failure),
      (error) => {
        throw error
      },
    )
  }

  /** Abandons the job unless it was settled or lost before; the attempt does not count. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#phase !== 'held') return
    await this.abandon({ reason: 'given back by its owner' }).catch((error: unknown) => {
      if (!(error instanceof JobboardError)) throw error
    })
  }

  /** @internal Marks the claim as lost and fires `lost`. */
  markLost(reason: ClaimLost): void {
    if (this.#phase === 'settled' || this.#phase === 'lost') return
    if (this.#phase === 'held') this.#phase = 'lost'
    this.stops.lost.abort(reason)
  }

  /** @internal Fires `cancelled`. */
  requestCancel(reason: Cancelled): void {
    this.stops.cancelled.abort(reason)
  }

  /** @internal Notes that the job was cancelled before this claim was granted. */
  noteCancelledBefore(): void {
    const { reason } = this.stops.cancelled
    if (reason instanceof Cancelled) this.#cancelledBefore = reason
  }

  /** @internal The resources that may still be held after the claim was removed by hand. */
  get orphanedClaim(): OrphanedClaim {
    const { id, posting, mark } = this.#granted
    return { id, posting, fence: this.fence, ...(mark === undefined ? {} : { mark }) }
  }

  /** @internal The posting that this claim wrote. */
  get posting(): Posting {
    return this.#granted.posting
  }

  /** @internal The posting with the settings that its flow has now, by which the job is run and settled. */
  get postingWithSettings(): Posting {
    return this.#granted.keeper.withSettings(this.#granted.posting)
  }

  /** @internal The revision of the posting that this claim wrote. */
  get revision(): number {
    return this.#granted.revision
  }

  /** @internal Whether a release that the board reports may be this claim's own settlement. */
  get isSettling(): boolean {
    return this.#phase === 'settling' || this.#phase === 'settled'
  }

  async #runWork(work: (job: Job, context: PerformContext) => unknown): Promise<Failure | undefined> {
    const { clock } = this.#granted.keeper
    const { deadline } = this.postingWithSettings
    using stop = followSignals([this.stops.lost, this.stops.cancelled])
    const late = () => new Timeout(`${this.job}: not done within ${deadline} ms`)
    const left = deadline === undefined ? undefined : this.#claimedAt + deadline - clock.monotonic()
    if (left !== undefined && left <= 0) stop.abort(late())
    using _timer = abortAfter(stop, left === undefined ? undefined : Math.max(left, 0), late, clock)
    try {
      stop.throwIfAborted()
      await work(this.job, { signal: stop.signal, run: this.run, fence: this.fence })
      return undefined
    } catch (error) {
      return failureOf(error)
    }
  }

  get #isSessionAlive(): boolean {
    const { keeper, session } = this.#granted
    return keeper.isSessionAlive(session)
  }

  async #settleFailure(failure: Failure | undefined): Promise<Performed> {
    if (!failure) {
      await this.consume()
      return 'consumed'
    }
    const { aborted, reason } = this.stops.cancelled
    if (!aborted) return this.fail(failure)
    await this.trash({ reason: reason instanceof Cancelled ? reason.trashReason : describeError(reason), failure })
    return 'trashed'
  }

  #settle(end: ClaimEnd): Promise<void> {
    return attempt(() => {
      this.assertLease()
      if (this.#phase === 'lost') throw this.stops.lost.reason
      if (this.#phase !== 'held') throw this.#alreadySettledError()
      this.#phase = 'settling'
      return this.#granted.keeper.settle(this, this.#granted, end).then(
        () => {
          this.#phase = 'settled'
        },
        (error: unknown) => {
          this.#phase = this.#stops?.lost.aborted ? 'lost' : 'held'
          if (error instanceof ClaimLost) this.markLost(error)
          throw error
        },
      )
    })
  }

  #alreadySettledError(): NotFound {
    return new NotFound(`${this.job} has already been settled`)
  }

  #toEndedPosting(ended: 'failed' | 'returned', reason: string | undefined): Posting {
    return endAttempt(this.#granted.posting, { ended, ...(reason === undefined ? {} : { reason }) })
  }
}
