/** Chooses the jobs of the view that this board object tries to claim: the next jobs in claim order, or a job that the caller names. */
import { LimitReached, LimitsChanged, Unclaimable } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import type { Backend } from '../contract/index.ts'
import type { JobEntry, QueuePlace } from '../model/entry.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { TakeOptions } from '../queue/queue.ts'
import type { LiveView } from '../view/live-view.ts'
import type { AcceptGuard } from './accept-guard.ts'
import type { Claim } from './claim.ts'
import type { ClaimSession } from './claim-session.ts'
import type { HeldClaims } from './held-claims.ts'
import { ContentionEstimator, type RejectedClaims } from './rejected-claims.ts'

export interface JobChooserOptions {
  readonly backend: Pick<Backend, 'clock'>
  readonly view: LiveView
  readonly session: Pick<ClaimSession, 'canClaim'>
  readonly held: Pick<HeldClaims, 'suspects' | 'takeSuspectPlace'>
  readonly rejected: RejectedClaims
  readonly acceptGuard: AcceptGuard
}

/** Chooses jobs for one board object. */
export class JobChooser {
  readonly #options: JobChooserOptions
  /** The jobs whose claim requests are not answered yet. */
  readonly #pending = new Set<QueuePlace>()
  readonly #contention = new ContentionEstimator()

  constructor(options: JobChooserOptions) {
    this.#options = options
  }

  /** Whether the board can claim jobs now. */
  get canClaim(): boolean {
    return this.#options.session.canClaim
  }

  /** Whether the board claims none of its next jobs for a while, because it has refused several claims. */
  get isResting(): boolean {
    return this.#options.rejected.limitTo(1) === 0
  }

  /** Returns whether `accept` accepts the job. */
  accepts(accept: (posting: Posting) => boolean, posting: Posting): boolean {
    return this.#options.acceptGuard.accepts(accept, posting)
  }

  /**
   * Reserves up to `max` claimable jobs for a claim. Synchronous, so that no change is missed
   * between an empty result and the wait for the next change.
   */
  reserveNext(request: Pick<TakeOptions, 'max' | 'accept' | 'queues'>): QueuePlace[] {
    if (!this.canClaim) return []
    const { view, rejected, held } = this.#options
    this.#advanceQueue()
    // A caller that waits looks again after each change of the board.
    if (view.queue.hasNoneReady) {
      view.afterSearch()
      return []
    }
    const accept = (posting: Posting) => this.accepts(request.accept, posting)
    const max = rejected.limitTo(request.max)
    if (max === 0) return []
    const wanted = {
      ...{ ...request, max, accept, suspects: held.suspects, spread: this.#currentSpread(max) },
      ...(request.queues ? { continued: view.extent.continuedQueues } : {}),
    }
    const places = rejected.fault ? this.#reserveUnrefused(wanted) : view.queue.reserveNext(wanted)
    for (const place of places) held.takeSuspectPlace(place.entry, place.stored.posting)
    // The search may have found when a limit permits the next job.
    view.afterSearch()
    return places
  }

  /** Reserves the given job for a claim; returns undefined if its turn has not come. */
  reserve(entry: JobEntry): QueuePlace | undefined {
    if (!this.canClaim) return undefined
    const { view } = this.#options
    this.#advanceQueue()
    const place = view.queue.reserveFree(entry)
    view.afterSearch()
    return place
  }

  /** Returns whether {@link reserveNext} would reserve a job, by what was due at the last look: a timer wakes callers when more is due. */
  hasClaimable({ accept, queues }: Pick<TakeOptions, 'accept' | 'queues'>): boolean {
    const { view, held } = this.#options
    const wanted = {
      ...{ queues, accept: (posting: Posting) => this.accepts(accept, posting), suspects: held.suspects },
      ...(queues ? { continued: view.extent.continuedQueues } : {}),
    }
    const isFound = this.canClaim && !this.isResting && view.queue.hasClaimable(wanted)
    view.afterSearch()
    return isFound
  }

  /** Notes that the claims of these jobs are requested. */
  requested(places: readonly QueuePlace[]): void {
    for (const place of places) this.#pending.add(place)
  }

  /** Notes that the requests are answered, or have failed. */
  answered(places: readonly QueuePlace[]): void {
    for (const place of places) this.#pending.delete(place)
  }

  /** Takes in how many of the requested claims were granted, and how many jobs other owners have claimed before. */
  recordResults(results: readonly Result<Claim>[]): void {
    const lost = results.filter((result) => 'error' in result && isLostRace(result.error)).length
    this.#contention.recordClaims({ won: results.filter((result) => 'value' in result).length, lost })
  }

  /** Reserves jobs that were not refused before; if there are none, others. */
  #reserveUnrefused(wanted: TakeOptions): QueuePlace[] {
    const { view, rejected } = this.#options
    const accept = (posting: Posting) => !rejected.wasRefused(posting) && wanted.accept(posting)
    const places = view.queue.reserveNext({ ...wanted, accept })
    return places.length > 0 ? places : view.queue.reserveNext(wanted)
  }

  /** Takes in what is due by now. Other callers that wait look again: the alarm for them is not needed any more. */
  #advanceQueue(): void {
    const { backend, view } = this.#options
    if (view.queue.advance(backend.clock.now())) view.changed.notify()
  }

  /** Returns the spread for `max` jobs. It includes the pending claims, which also occupy the head of the queue. */
  #currentSpread(max: number): number {
    const { spread } = this.#contention
    return spread === 1 ? 1 : (spread * (max + this.#pending.size)) / max
  }
}

/** Returns whether another owner was faster. */
function isLostRace(error: Error): boolean {
  return error instanceof Unclaimable && !(error instanceof LimitReached || error instanceof LimitsChanged)
}
