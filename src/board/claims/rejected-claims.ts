/**
 * Handles rejected claims. The view already knows the reason of most rejections: another owner was faster, and the job is not
 * chosen again. A job that would be chosen again at once, for ever, is paused; a job that this process cannot claim at all is hidden.
 *
 * Any other refusal may pass: a quota, an ACL, a revoked grant, a trigger that fails, a full memory. Its job is tried again after a pause
 * that grows. If several claims in a row are refused in this way, the board is taken for the cause. Then no job is claimed during a pause,
 * which grows. After each pause this process tries 2, 4, 8, and at last {@link MAX_TRIES} jobs, and first the jobs that were not refused
 * before. So jobs that are refused each time do not keep the other jobs from being tried. A granted claim ends these pauses.
 */
import { keepNewest } from '../../core/collections/keep-newest.ts'
import {
  ClaimLost,
  Duplicate,
  InvalidArgument,
  InvalidPosting,
  LimitReached,
  LimitsChanged,
  NotConnected,
  NotFound,
  OutcomeUnknown,
  PayloadTooLarge,
  ResourceLocked,
  Unclaimable,
  UnsupportedCapability,
} from '../../core/errors.ts'
import { backoffDelay, startTimer } from '../../core/time.ts'
import type { JobEntry, QueuePlace } from '../model/entry.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { LiveView } from '../view/live-view.ts'

/** The first pause of a job that is rejected repeatedly. */
const RETRY_PAUSE_MS = 500
/** The longest pause of a job that is rejected repeatedly. */
const MAX_RETRY_PAUSE_MS = 10_000
/** The pauses of a job and of the board after refusals that may pass. */
const REFUSAL_PAUSES = { first: 250, max: 30_000 } as const
/** The maximum number of jobs that are tried between two pauses of the board. */
const MAX_TRIES = 64
/** The number of such refusals in a row after which the board is taken for the cause. */
const MIN_REFUSALS_OF_BOARD = 3
/** The first and the longest pause of a job whose resource another program has locked: nobody reports when it is unlocked. */
const UNLOCK_PAUSES = { first: 50, max: 5_000, jitter: 'none' } as const
/** The number of unexplained rejections before the job is paused: the change that explains one may not have arrived yet. */
const MAX_UNEXPLAINED_REJECTIONS = 3

/** The number of refused jobs that are remembered. */
const MAX_REFUSED = 10_000

export interface RejectedClaimsOptions {
  readonly view: LiveView
  /** Returns whether the board can claim jobs; if not, that explains a rejection. */
  readonly canClaim: () => boolean
  readonly onError: (error: Error) => void
}

export class RejectedClaims {
  readonly #options: RejectedClaimsOptions
  /** The number of unexplained rejections of each entry; a change of the job creates a new entry. */
  readonly #unexplained = new WeakMap<QueuePlace, number>()
  readonly #paused = new WeakSet<QueuePlace>()
  /** The error of each job that was refused, until it is tried again with success, or changes. */
  readonly #refusals = new WeakMap<QueuePlace, Error>()
  /** The same jobs by their uuids, the newest ones. */
  readonly #refusedUuids = new Set<string>()
  /** The refusals since the last granted claim. */
  #refused: { readonly error: Error; readonly times: number } | undefined
  /** Whether no job is claimed, because the board has refused several claims. */
  #isResting = false
  /** The number of such pauses since the last granted claim. */
  #rests = 0
  /** The number of jobs that are tried before the next pause. */
  #triesLeft = 0

  constructor(options: RejectedClaimsOptions) {
    this.#options = options
  }

  /** Handles the rejection of the claim of `place` with `error`. */
  rejected(place: QueuePlace, error: Error): void {
    // The queue knows by now when the limit permits a claim.
    if (error instanceof LimitReached || error instanceof LimitsChanged) return
    if (error instanceof ResourceLocked && error.holder) this.#pauseUntilUnlocked(place)
    else if (isExpectedRejection(error)) this.#pauseIfUnexplained(place)
    else if (isPermanent(error)) this.#hide(place.entry, error)
    else if (isOfJobAlone(error)) this.#refuseJob(place, error)
    else this.#refuse(place, error)
  }

  /** Notes that the claim of a job was granted: the board grants claims. */
  granted({ stored }: QueuePlace): void {
    this.#refused = undefined
    this.#rests = 0
    this.#triesLeft = 0
    this.#refusedUuids.delete(stored.posting.uuid)
  }

  /** Returns whether the last claim of this job was refused for a reason that may pass. */
  wasRefused({ uuid }: Pick<Posting, 'uuid'>): boolean {
    return this.#refusedUuids.has(uuid)
  }

  /** The error with which the board has refused several claims in a row; undefined if there is none. */
  get fault(): Error | undefined {
    const { error, times } = this.#refused ?? { times: 0 }
    return times >= MIN_REFUSALS_OF_BOARD ? error : undefined
  }

  /** Returns how many of `max` jobs may be claimed now: all of them, or fewer after several refusals in a row. */
  limitTo(max: number): number {
    if (!this.fault) return max
    return this.#isResting ? 0 : Math.min(max, this.#triesLeft)
  }

  /** Returns the error with which the last claim of the job was refused. */
  refusalOf({ queuePlace }: JobEntry): Error | undefined {
    return queuePlace && this.#refusals.get(queuePlace)
  }

  /** Pauses the job, and the board after several refusals. Each kind of error is reported once. */
  #refuse(place: QueuePlace, error: Error): void {
    const { times = 0, error: last } = this.#refused ?? {}
    if (!last || toKind(last) !== toKind(error)) this.#options.onError(error)
    this.#refused = { error, times: times + 1 }
    this.#pauseAfterRefusal(place, error)
    if (this.#isResting || !this.fault) return
    this.#triesLeft -= 1
    if (this.#triesLeft <= 0) this.#rest()
  }

  /** Begins a pause in which no job is claimed. Each pause is longer than the last one, and more jobs are tried after it. */
  #rest(): void {
    this.#isResting = true
    this.#rests += 1
    startTimer(
      () => {
        this.#isResting = false
        this.#triesLeft = Math.min(2 ** this.#rests, MAX_TRIES)
        this.#options.view.changed.notify()
      },
      backoffDelay(this.#rests, REFUSAL_PAUSES),
    ).unref()
  }

  /**
   * Pauses a job that is refused because of the job itself. This says nothing about other jobs, so the board does not rest. The job is not
   * hidden: another server may accept a larger one, and somebody may remove what is in its way. The error is reported once.
   */
  #refuseJob(place: QueuePlace, error: Error): void {
    if (!this.#refusals.has(place)) this.#options.onError(error)
    this.#pauseAfterRefusal(place, error)
  }

  #pauseAfterRefusal(place: QueuePlace, error: Error): void {
    this.#refusals.set(place, error)
    this.#refusedUuids.add(place.stored.posting.uuid)
    keepNewest(this.#refusedUuids, MAX_REFUSED)
    const tries = (this.#unexplained.get(place) ?? 0) + 1
    this.#unexplained.set(place, tries)
    this.#pauseJob(place, backoffDelay(tries, REFUSAL_PAUSES))
  }

  /** Makes the entries available again, except the paused ones. */
  unreserve(places: readonly QueuePlace[]): void {
    this.#options.view.queue.unreserve(places.filter((place) => !this.#paused.has(place)))
    // Callers that found no job while these were being tried look again.
    this.#options.view.changed.notify()
  }

  /**
   * Pauses a job after unexplained rejections. Usually a reported change explains a rejection: another owner has the job, or its
   * resource. An unexplained one, such as by a permit that was created by hand, would repeat at once, for ever, and each costs the
   * servers a transaction.
   */
  #pauseIfUnexplained(place: QueuePlace): void {
    const { entry, blockerCount } = place
    if (entry.queuePlace !== place || blockerCount > 0 || entry.content !== 'fresh' || !this.#options.canClaim()) return
    const times = (this.#unexplained.get(place) ?? 0) + 1
    this.#unexplained.set(place, times)
    if (times >= MAX_UNEXPLAINED_REJECTIONS)
      this.#pauseJob(place, Math.min(MAX_RETRY_PAUSE_MS, RETRY_PAUSE_MS * 2 ** (times - MAX_UNEXPLAINED_REJECTIONS)))
  }

  #pauseUntilUnlocked(place: QueuePlace): void {
    const times = (this.#unexplained.get(place) ?? 0) + 1
    this.#unexplained.set(place, times)
    this.#pauseJob(place, backoffDelay(times, UNLOCK_PAUSES))
  }

  #pauseJob(place: QueuePlace, milliseconds: number): void {
    this.#paused.add(place)
    startTimer(() => this.resume(place), milliseconds).unref()
  }

  /** Ends the pause of a job, if it is paused: its time is over, or a caller asks for this very job. */
  resume(place: QueuePlace): void {
    if (this.#paused.delete(place)) this.unreserve([place])
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

/** Returns whether this process cannot claim the job before its posting changes, whatever state the servers are in. */
function isPermanent(error: Error): boolean {
  return [InvalidPosting, InvalidArgument, UnsupportedCapability].some((known) => error instanceof known)
}

/** Returns whether the cause is the job, not the board: it is too large for the server, or the trash has a job with its id already. */
function isOfJobAlone(error: Error): boolean {
  return error instanceof PayloadTooLarge || error instanceof Duplicate
}

/** Returns the class and the code of an error. Messages name the job, so they differ from job to job for the same cause. */
function toKind(error: Error): string {
  return `${error.name} ${Object(error).code}`
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
