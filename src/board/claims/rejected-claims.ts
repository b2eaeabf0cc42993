/**
 * Handles rejected claims. The view already knows the reason of most rejections: another owner was faster, and the job is not
 * chosen again. A job that would be chosen again at once, for ever, is paused or hidden.
 */
import {
  ClaimLost,
  InvalidState,
  JobboardError,
  LimitReached,
  LimitsChanged,
  NotConnected,
  NotFound,
  OutcomeUnknown,
  ResourceLocked,
  Unclaimable,
} from '../../core/errors.ts'
import { backoffDelay } from '../../core/time.ts'
import type { JobEntry, QueueEntry } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'

/** The pause of a job whose claim failed with a retryable error of the server. */
const RETRY_PAUSE_MS = 500
/** The longest pause of a job that is rejected repeatedly. */
const MAX_RETRY_PAUSE_MS = 10_000
/** The first and the longest pause of a job whose resource another program has locked: nobody reports when it is unlocked. */
const UNLOCK_PAUSES = { first: 50, max: 5_000, jitter: 'none' } as const
/** The number of unexplained rejections before the job is paused: the change that explains one may not have arrived yet. */
const MAX_UNEXPLAINED_REJECTIONS = 3

export interface RejectedClaimsOptions {
  readonly view: LiveView
  /** Returns whether the board can claim jobs; if not, that explains a rejection. */
  readonly canClaim: () => boolean
  readonly onError: (error: Error) => void
}

export class RejectedClaims {
  readonly #options: RejectedClaimsOptions
  /** The number of unexplained rejections of each entry; a change of the job creates a new entry. */
  readonly #unexplained = new WeakMap<QueueEntry, number>()
  readonly #paused = new WeakSet<QueueEntry>()
  /** The message of the board's error that was reported last. */
  #boardFault: string | undefined

  constructor(options: RejectedClaimsOptions) {
    this.#options = options
  }

  /** Handles the rejection of the claim of `place` with `error`. */
  rejected(place: QueueEntry, error: Error): void {
    // The queue knows by now when the limit permits a claim.
    if (error instanceof LimitReached || error instanceof LimitsChanged) return
    if (error instanceof ResourceLocked && error.holder) this.#pauseUntilUnlocked(place)
    else if (isExpectedRejection(error)) this.#pauseIfUnexplained(place)
    else if (error instanceof InvalidState) this.#restForBoard(place, error)
    else if (error instanceof JobboardError && error.retryable) this.#pauseJob(place, RETRY_PAUSE_MS)
    else this.#hide(place.entry, error)
  }

  /** Pauses the job, and reports the error once: the board grants no claims until it is repaired, and the job is not the cause. */
  #restForBoard(place: QueueEntry, error: InvalidState): void {
    if (this.#boardFault !== error.message) this.#options.onError(error)
    this.#boardFault = error.message
    this.#pauseJob(place, MAX_RETRY_PAUSE_MS / 10)
  }

  /** Makes the entries available again, except the paused ones. */
  release(places: readonly QueueEntry[]): void {
    this.#options.view.queue.release(places.filter((place) => !this.#paused.has(place)))
    // Callers that found no job while these were being tried look again.
    this.#options.view.changed.notify()
  }

  /**
   * Pauses a job after unexplained rejections. Usually a reported change explains a rejection: another owner has the job, or its
   * resource. An unexplained one, such as by a permit that was created by hand, would repeat at once, for ever, and each costs the
   * servers a transaction.
   */
  #pauseIfUnexplained(place: QueueEntry): void {
    const { entry, blockerCount } = place
    if (entry.queueEntry !== place || blockerCount > 0 || entry.content !== 'fresh' || !this.#options.canClaim()) return
    const times = (this.#unexplained.get(place) ?? 0) + 1
    this.#unexplained.set(place, times)
    if (times >= MAX_UNEXPLAINED_REJECTIONS)
      this.#pauseJob(place, Math.min(MAX_RETRY_PAUSE_MS, RETRY_PAUSE_MS * 2 ** (times - MAX_UNEXPLAINED_REJECTIONS)))
  }

  #pauseUntilUnlocked(place: QueueEntry): void {
    const times = (this.#unexplained.get(place) ?? 0) + 1
    this.#unexplained.set(place, times)
    this.#pauseJob(place, backoffDelay(times, UNLOCK_PAUSES))
  }

  #pauseJob(place: QueueEntry, milliseconds: number): void {
    this.#paused.add(place)
    setTimeout(() => this.resume(place), milliseconds).unref()
  }

  /** Ends the pause of a job, if it is paused: its time is over, or a caller asks for this very job. */
  resume(place: QueueEntry): void {
    if (this.#paused.delete(place)) this.release([place])
  }

  /** Hides the job: it cannot be claimed here, and it would be chosen again at once, for ever. */
  #hide(entry: JobEntry, error: Error): void {
    entry.content = 'unreadable'
    this.#options.view.queue.update(entry)
    this.#options.onError(error)
  }
}

/** Returns whether the view receives the reason of the error, or a reconnect resolves it, so that the job may be chosen again. */
function isExpectedRejection(error: Error): boolean {
  return [Unclaimable, NotFound, NotConnected, OutcomeUnknown, ClaimLost].some((known) => error instanceof known)
}

/**
 * Estimates the contention for jobs, and so how far from the head of the queue this process looks for jobs to claim.
 *
 * A single process claims strictly in order. If several processes look at the same head, all of them try the same jobs, and all but
 * one are refused. So a process that is refused too often chooses at random from a longer head, up to a limit; with successful
 * claims it returns step by step. Jobs still start nearly in order, and few claims are refused.
 */
const MAX_SPREAD = 64
/** The fraction of refused claims above which the spread grows. */
const TOLERATED_LOSS_RATE = 0.1
const NARROWING_FACTOR = 0.98
/** The weight of a new sample in the moving average. */
const SAMPLE_WEIGHT = 0.2

export class ContentionEstimator {
  #spread = 1
  #lossRate = 0

  /** The ratio of the jobs to choose from to the jobs that are wanted. */
  get spread(): number {
    return this.#spread
  }

  /** Records the results of claims that were tried together. */
  recordClaims({ won, lost }: { readonly won: number; readonly lost: number }): void {
    if (won + lost === 0) return
    this.#lossRate += SAMPLE_WEIGHT * (lost / (won + lost) - this.#lossRate)
    if (lost > 0 && this.#lossRate > TOLERATED_LOSS_RATE) {
      this.#spread = Math.min(MAX_SPREAD, Math.max(2, this.#spread * 2))
      this.#lossRate = TOLERATED_LOSS_RATE / 2
    } else if (this.#lossRate < TOLERATED_LOSS_RATE / 2) {
      this.#spread = Math.max(1, this.#spread * NARROWING_FACTOR)
    }
  }
}
