/**
 * A claim: the right of one owner to one job, until it is settled or lost.
 *
 *     held → settling → settled      consume, abandon or trash was done
 *       │       └→ held              it was not: the connection is away, say; try again
 *       └──────────→ lost            the session ended, or somebody took the claim away
 *
 * When a claim is lost its `lost` signal fires, before the backend could give the job to somebody else: stop, write
 * nothing. A settle that is under way when that happens tells in its own error what became of it.
 *
 * When the job is asked back its `cancelled` signal fires: undo what was done, then settle, into the trash as a rule. Work
 * that is done all the same may be consumed.
 */

import type { AlarmClock } from '../../core/alarm-clock.ts'
import { abortAfter, followSignals } from '../../core/async/abort.ts'
import { settleWithRetries } from '../../core/async/settling.ts'
import { AbortFlag } from '../../core/async/stop.ts'
import { Cancelled, ClaimLost, InvalidArgument, JobboardError, NotFound, Timeout } from '../../core/errors.ts'
import { describeError, describeFailure, type Failure, failureOf } from '../../core/failure.ts'
import { toMilliseconds } from '../../core/time.ts'
import type { Job } from '../api/job.ts'
import type { OrphanedClaim, Settlement } from '../backend.ts'
import { canRetry, endAttempt, pauseAfterFailure } from '../model/attempts.ts'
import type { Posting } from '../model/posting.ts'
import { type AbandonOptions, assertAbandonOptions, assertTrashOptions, type TrashOptions } from './settle-options.ts'

/** What {@link Claim.perform} hands to the work. */
export interface PerformContext {
  /** Fires when the claim is lost, when the job is cancelled, and when its deadline has passed. */
  readonly signal: AbortSignal
  readonly run: number
  /** Grows over the whole board: pass it to systems outside, so that they can refuse a former owner. */
  readonly fence: bigint
}

/**
 * How a performed job ended here. `lost`: it is another's, or will be. `unknown`: the session ended while the job was being
 * settled, and nobody can tell whether it was; if not, another runs it.
 */
export type Performed = 'consumed' | 'abandoned' | 'trashed' | 'lost' | 'unknown'

/** @internal What a board gives to a claim. */
export interface ClaimBackend {
  readonly job: Job
  readonly id: string
  readonly who: string
  readonly session: string
  readonly revision: number
  readonly fence: bigint
  readonly mark?: bigint
  readonly posting: Posting
  readonly settle: (claim: Claim, settlement: DistributiveOmit<Settlement, 'cancelRequested'>) => Promise<void>
  /** What the deadline goes by. */
  readonly clock: AlarmClock
  /** Whether the session is certain to be alive at this instant. */
  readonly isSessionAlive: () => boolean
}

/**
 * The right to one job, until it is settled or lost. Boards grant claims (`claimNext`, `claims`, `claim`), each in one
 * transaction; left unsettled at the end of an `await using`, the job goes back uncharged.
 *
 * @example await claim.perform(async (job, { signal }) => resize(job.details.store, signal))
 */
export class Claim implements AsyncDisposable {
  readonly job: Job
  readonly who: string
  /** Of this claim: one more than that of the claim before. */
  readonly run: number
  /** For systems outside: grows over the whole board with every claim. */
  readonly fence: bigint
  readonly #backend: ClaimBackend
  readonly #claimedAt: number
  /** @internal What fires, for who works inside this library. */
  readonly stops: { readonly lost: AbortFlag; readonly cancelled: AbortFlag } = {
    lost: new AbortFlag(),
    cancelled: new AbortFlag(),
  }
  #phase: 'held' | 'settling' | 'settled' | 'lost' = 'held'

  /** @internal Boards grant claims. */
  constructor(granting: ClaimBackend) {
    this.job = granting.job
    this.who = granting.who
    this.run = granting.posting.runs
    this.fence = granting.fence
    this.#backend = granting
    this.#claimedAt = granting.clock.monotonic()
  }

  /** Fires, with a ClaimLost as reason, when the job may go to somebody else. */
  get lost(): AbortSignal {
    return this.stops.lost.signal
  }

  /** Fires, with a Cancelled as reason, when the job is asked back. */
  get cancelled(): AbortSignal {
    return this.stops.cancelled.signal
  }

  /**
   * Makes sure that the job is certainly this claim's at this very instant; asks nobody. Signals fire on timers, and timers
   * are late in a process that was stopped: call this before what must not be done by a former owner.
   *
   * @throws ClaimLost when it is not; `lost` has fired then
   */
  assertHeld(): void {
    this.assertLease()
    this.stops.lost.throwIfAborted()
  }

  /** @internal Fires `lost` unless the session is certain to be alive. */
  assertLease(): void {
    if (this.#phase === 'lost' || this.#phase === 'settled' || this.#backend.isSessionAlive()) return
    this.markLost(new ClaimLost(`${this.job}: the session is over; stop and write nothing, another may own it`))
  }

  get settled(): boolean {
    return this.#phase === 'settled'
  }

  /** The work is done: the job leaves the board. @throws ClaimLost, NotFound (settled before), NotConnected, OutcomeUnknown */
  consume(): Promise<void> {
    return this.#settle({ kind: 'consume', posting: this.#backend.posting })
  }

  /** Back on the board, for anybody. @throws as {@link consume} */
  async abandon(options: AbandonOptions = {}): Promise<void> {
    assertAbandonOptions(options)
    const ended = this.#toEndedPosting(options.failed ? 'failed' : 'returned', options.reason)
    const runs = Math.max(ended.runs, options.newestRun ?? 0)
    const delay = options.delay === undefined ? {} : { delay: toMilliseconds(options.delay, 'delay') }
    await this.#settle({ kind: 'abandon', posting: { ...ended, runs, ...delay } })
  }

  /** Into the trash, never run again by itself. @throws as {@link consume} */
  async trash(options: TrashOptions = {}): Promise<void> {
    assertTrashOptions(options)
    const reason = options.reason ?? (options.failure ? describeFailure(options.failure) : 'trashed by its owner')
    const failure = options.failure ? { failure: options.failure } : {}
    await this.#settle({ kind: 'trash', posting: this.#toEndedPosting('failed', reason), reason, ...failure })
  }

  /**
   * What becomes of a job whose run failed: tried again while attempts are left, else trashed. It rests before it is tried
   * again: for as long as the error's `retryAfter` says, or by the posting's `backOff`.
   */
  async fail(failure: Failure): Promise<'abandoned' | 'trashed'> {
    const { posting } = this.#backend
    if (!failure.nonRetryable && canRetry(posting)) {
      const delay = failure.retryAfter ?? pauseAfterFailure(posting)
      await this.abandon({ failed: true, reason: describeFailure(failure), delay })
      return 'abandoned'
    }
    await this.trash({ failure })
    return 'trashed'
  }

  /**
   * Does the work and settles the job: consumed when `work` returns; tried again later or trashed when it throws (a
   * NonRetryable goes to the trash at once); trashed when it was cancelled and throws; nothing when the claim was lost
   * meanwhile. Settling is tried until it is done or the claim is lost, so that a loop outlives its servers.
   *
   * `work` is not called for a job that is cancelled already, which is trashed at once: there is nothing to undo in a loop
   * that keeps no record. Nor for one whose deadline passed while it waited to be performed: that run has failed.
   *
   * @throws InvalidArgument for what is no function; NotFound when it was settled before, by `work` for one; what the board
   * refuses for good, such as AccessDenied. Never what `work` throws
   * @example await claim.perform(async (job, { signal }) => resize(job.details, signal))
   */
  async perform(work: (job: Job, context: PerformContext) => unknown): Promise<Performed> {
    if (typeof work !== 'function') {
      const example = 'as in claim.perform(async (job, { signal }) => …)'
      throw new InvalidArgument(`${this.job}: perform takes the function that does the work, ${example}`)
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

  /** Abandons, uncharged, unless it was settled or lost before. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#phase !== 'held') return
    await this.abandon({ reason: 'given back by its owner' }).catch((error: unknown) => {
      if (!(error instanceof JobboardError)) throw error
    })
  }

  /** @internal */
  markLost(reason: ClaimLost): void {
    if (this.#phase === 'settled' || this.#phase === 'lost') return
    if (this.#phase === 'held') this.#phase = 'lost'
    this.stops.lost.abort(reason)
  }

  /** @internal */
  requestCancel(reason: Cancelled): void {
    this.stops.cancelled.abort(reason)
  }

  /** @internal What may be left of it once it is taken away. */
  get orphanedClaim(): OrphanedClaim {
    const { id, posting, mark } = this.#backend
    return { id, posting, fence: this.fence, ...(mark === undefined ? {} : { mark }) }
  }

  /** @internal Whether a release seen on the board is this claim's own doing. */
  get isSettling(): boolean {
    return this.#phase === 'settling' || this.#phase === 'settled'
  }

  async #runWork(work: (job: Job, context: PerformContext) => unknown): Promise<Failure | undefined> {
    const { posting, clock } = this.#backend
    const { deadline } = posting
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

  async #settle(
    how: DistributiveOmit<Settlement, 'id' | 'who' | 'session' | 'revision' | 'cancelRequested'>,
  ): Promise<void> {
    this.assertLease()
    if (this.#phase === 'lost') throw this.stops.lost.reason
    if (this.#phase !== 'held') throw this.#alreadySettledError()
    this.#phase = 'settling'
    const { id, who, session, revision } = this.#backend
    try {
      await this.#backend.settle(this, { id, who, session, revision, ...how })
      this.#phase = 'settled'
    } catch (error) {
      this.#phase = this.stops.lost.aborted ? 'lost' : 'held'
      if (error instanceof ClaimLost) this.markLost(error)
      throw error
    }
  }

  #alreadySettledError(): NotFound {
    return new NotFound(`${this.job} was settled before`)
  }

  #toEndedPosting(ended: 'failed' | 'returned', reason: string | undefined): Posting {
    return endAttempt(this.#backend.posting, { ended, ...(reason === undefined ? {} : { reason }) })
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never
