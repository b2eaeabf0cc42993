/** Claims chosen jobs, each in one transaction of the backend. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LimitReached, LimitsChanged, type NotConnected, Unclaimable } from '../../core/errors.ts'
import { type Result, toFailed } from '../../core/result.ts'
import type { Backend, ClaimGrant, ClaimRequest } from '../contract/index.ts'
import { Job } from '../jobs/job.ts'
import type { LimitBook } from '../limits/limit-book.ts'
import { beginAttempt, exceededLimit } from '../model/attempts.ts'
import { isDoomed } from '../model/dependencies.ts'
import type { JobEntry, QueuePlace } from '../model/entry.ts'
import { canExpire, expiryReason } from '../model/expiry.ts'
import type { Posting } from '../model/posting/posting.ts'
import { hasDroppedDetails } from '../model/posting/posting-codec.ts'
import type { LiveView } from '../view/live-view.ts'
import type { AcceptGuard } from './accept-guard.ts'
import type { Canceller } from './cancelling.ts'
import { type Candidate, sortCandidates, sortPlain } from './candidates.ts'
import type { JobChooser } from './choosing.ts'
import { Claim } from './claim.ts'
import type { ClaimSession } from './claim-session.ts'
import { noAnswerError } from './given-job.ts'
import type { HeldClaims } from './held-claims.ts'
import type { Incarnation } from './incarnation.ts'
import type { RejectedClaims } from './rejected-claims.ts'
import type { Settler } from './settling.ts'

export interface JobClaimerOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly limits: LimitBook
  readonly who: string
  readonly session: Pick<ClaimSession, 'begin' | 'end' | 'whenAlive'>
  readonly incarnation: Incarnation
  readonly held: HeldClaims
  readonly settler: Settler
  readonly canceller: Pick<Canceller, 'deliverEarlier'>
  readonly chooser: JobChooser
  readonly rejected: RejectedClaims
  readonly acceptGuard: AcceptGuard
}

/** Claims the jobs that were chosen for one board object. */
export class JobClaimer {
  readonly #options: JobClaimerOptions
  readonly #noAnswer: { readonly error: NotConnected }

  constructor(options: JobClaimerOptions) {
    this.#options = options
    this.#noAnswer = { error: noAnswerError(options.backend) }
  }

  /** Claims a reserved job. */
  async claim(place: QueuePlace): Promise<Result<Claim>> {
    return (await this.#claimThenFree([place]))[0] ?? this.#noAnswer
  }

  /** Claims a reserved job; resolves with undefined if the claim was refused. */
  async tryClaim(place: QueuePlace): Promise<Claim | undefined> {
    const [claim] = await this.tryClaims([place])
    return claim
  }

  /** Claims the reserved jobs that `accept` accepts. Jobs whose claims were refused are missing in the result. */
  async tryClaims(places: readonly QueuePlace[], accept?: (posting: Posting) => boolean): Promise<Claim[]> {
    const results = await this.#claimThenFree(places, accept)
    return results.flatMap((result) => ('value' in result ? [result.value] : []))
  }

  async #claimThenFree(
    places: readonly QueuePlace[],
    accept?: (posting: Posting) => boolean,
  ): Promise<Result<Claim>[]> {
    const { view, session, incarnation, held, chooser, rejected } = this.#options
    chooser.requested(places)
    session.begin(places)
    using _view = view.hold()
    incarnation.start()
    try {
      return await this.#claimWithinLimits(places, accept)
    } finally {
      chooser.answered(places)
      held.freeSuspectPlaces(places.map(({ entry }) => entry))
      view.queue.endTrials(places)
      rejected.unreserve(places)
      session.end(places)
    }
  }

  /** Claims the jobs. Jobs over a limit are trashed instead. An error of one job does not affect the others. */
  async #claimWithinLimits(
    places: readonly QueuePlace[],
    accept?: (posting: Posting) => boolean,
  ): Promise<Result<Claim>[]> {
    const { incarnation, backend, chooser, rejected } = this.#options
    const settings = this.#options.limits.flowRules
    const sorted = sortPlain(places, settings) ?? (await sortCandidates(places, { incarnation, backend, settings }))
    const { within: claimable, over, refused } = sorted
    const within = accept ? claimable.filter((candidate) => this.#isAcceptedWhole(candidate, accept)) : claimable
    const discarding = over.map((candidate) => this.#discard(candidate).catch(toFailed))
    const claimed = await this.#claimInTransactions(within)
    const discarded = discarding.length === 0 ? [] : await Promise.all(discarding)
    const unclaimed = refused.map(({ error }) => ({ error }))
    // A job that was trashed was not claimed by another owner: it is no sign of contention.
    chooser.recordResults([...claimed, ...unclaimed])
    const results = [...claimed, ...discarded, ...unclaimed]
    const tried = [...within, ...over, ...refused]
    for (const [index, { place }] of tried.entries()) {
      const result = results[index]
      if (result && 'error' in result) rejected.rejected(place, result.error)
      else rejected.granted(place)
    }
    return results
  }

  /** Returns whether `accept` accepts the whole posting of a job that was chosen without its details. */
  #isAcceptedWhole({ place, posting }: Candidate, accept: (posting: Posting) => boolean): boolean {
    const { acceptGuard } = this.#options
    if (posting === place.stored.posting || !hasDroppedDetails(place.stored)) return true
    if (acceptGuard.accepts(accept, posting)) return true
    acceptGuard.decline(accept, place.stored.posting)
    return false
  }

  /** Trashes a job that may not be claimed. Returns the error that says why. */
  async #discard({ place: { entry, stored }, posting }: Candidate): Promise<Result<Claim>> {
    const { settler, limits } = this.#options
    const { id, revision } = stored
    if (entry.cancelRequested && isDoomed(posting)) {
      await settler.doomed.end(id)
      return { error: new Unclaimable(`job ${posting.uuid} was trashed: a job on which it depends is in the trash`) }
    }
    const applied = limits.flowRules.applyTo(posting)
    const limit = exceededLimit(applied) ?? (canExpire(applied) ? expiryReason(applied) : 'over a limit')
    const { cancelRequested } = entry
    await settler.discard(entry, { id, revision, posting, cancelRequested, reason: limit })
    return { error: new Unclaimable(`job ${posting.uuid} was trashed: ${limit}`) }
  }

  /** Claims each job in one transaction; the requests are sent together. */
  async #claimInTransactions(candidates: readonly Candidate[]): Promise<Result<Claim>[]> {
    if (candidates.length === 0) return []
    const { limits: book, backend, who, incarnation } = this.#options
    if (!book.isOpenFor('view')) await book.open('view')
    // The post and the end of the job go by this clock, too: with another one, the run could begin before the post.
    const at = new Date(backend.clock.now())
    const attempt = { who, at, incarnation: incarnation.id }
    const prepared = candidates.map((candidate) => this.#toRequest(candidate, attempt))
    const requests = prepared.filter((request): request is ClaimRequest => !('error' in request))
    const answers = await this.#requestClaims(requests)
    if (this.#noteLimits(requests, answers)) await book.refresh().catch(() => undefined)
    let next = 0
    const claimed = prepared.map((request, index): Result<Claim> => {
      if ('error' in request) return request
      const [answer = this.#noAnswer, place] = [answers[next], candidates[index]?.place]
      next += 1
      if ('error' in answer) return answer
      return place ? this.#createClaim(place.entry, request, answer.value) : this.#noAnswer
    })
    const claims = claimed.flatMap((result) => ('value' in result ? [result.value] : []))
    const alive = this.#options.session.whenAlive()
    if (alive !== undefined) await this.#waitUntilProven(alive, claims)
    const cancelling = this.#deliverCancelRequests(candidates, claimed)
    if (cancelling.length > 0) await Promise.all(cancelling)
    // A claim that is already lost or cancelled is handed out, too: its signals have fired.
    for (const claim of claims) claim.assertLease()
    return claimed
  }

  /** Returns the request for a claim. A posting to which no attempt can be added must not prevent the other claims: its error is returned. */
  #toRequest(
    { place, posting }: Candidate,
    attempt: { readonly who: string; readonly at: Date; readonly incarnation: string },
  ): ClaimRequest | { readonly error: Error } {
    try {
      const { id, revision } = place.stored
      const limits = this.#options.limits.limitsOf(posting, { isCancelled: place.entry.cancelRequested })
      const { maxAttempts } = this.#options.limits.flowRules.applyTo(posting)
      const request = { id, revision, who: attempt.who, posting: beginAttempt(posting, attempt, { maxAttempts }) }
      return limits ? { ...request, limits } : request
    } catch (error) {
      return toFailed(error)
    }
  }

  #requestClaims(requests: readonly ClaimRequest[]): Promise<readonly Result<ClaimGrant>[]> {
    if (requests.length === 0) return NO_ANSWERS
    return this.#options.backend.claims.claim(requests).catch((error: unknown) => requests.map(() => toFailed(error)))
  }

  /** Takes in what the answers say about limits. Returns whether a claim was refused because limits were changed: they have to be read again. */
  #noteLimits(requests: readonly ClaimRequest[], answers: readonly Result<ClaimGrant>[]): boolean {
    const { view, limits } = this.#options
    let isStale = false
    for (const [index, answer] of answers.entries()) {
      // An answer by former limits says nothing of the present limits, whose rates may differ.
      const isCurrent = requests[index]?.limits?.revision === limits.revision
      if ('value' in answer) {
        if (isCurrent)
          for (const { key, arrivalMs } of answer.value.arrivals ?? []) view.queue.noteArrival(key, arrivalMs)
      } else if (answer.error instanceof LimitReached) {
        if (isCurrent) this.#noteLimitReached(requests[index], answer.error)
      } else isStale ||= answer.error instanceof LimitsChanged
    }
    return isStale
  }

  /** A job that costs fewer tokens may start before the refused job could: the arrival time of the key says when. */
  #noteLimitReached(request: ClaimRequest | undefined, { key, untilMs }: LimitReached): void {
    const { queue } = this.#options.view
    const rate = request?.limits?.wants.find((want) => want.key === key)?.rate
    if (rate && untilMs !== undefined)
      queue.noteArrival(key, untilMs + Math.max(0, rate.burst - rate.cost) * rate.intervalMs)
    else queue.noteLimitReached(key)
  }

  #createClaim(entry: JobEntry, { id, posting }: ClaimRequest, granted: ClaimGrant): Result<Claim> {
    const { view, settler: keeper, held, who } = this.#options
    const { session, revision, fence, mark } = granted
    try {
      view.addOwnWrite(entry, { posting, revision })
      const job = new Job(entry)
      const claim = new Claim({ job, entry, keeper, id, who, session, revision, fence, mark, posting })
      held.add(entry, claim, session)
      return { value: claim }
    } catch (error) {
      return toFailed(error)
    }
  }

  /**
   * Waits until the session is proven to be alive, because an owner must not act before. Almost always it is proven already. If
   * the session ends first, the next proof may come late: then the wait ends as soon as all of these claims are lost.
   */
  async #waitUntilProven(alive: Promise<unknown>, claims: readonly Claim[]): Promise<void> {
    const proven = alive.then(
      () => true,
      () => true,
    )
    // Nothing is made for each of the claims before it is clear that there is something to wait for.
    if (await Promise.race([proven, nextTurn(false)])) return
    const losses = claims.map(
      ({ stops: { lost } }) => new Promise<void>((resolve) => (lost.aborted ? resolve() : lost.onAbort(resolve))),
    )
    await Promise.race([proven, Promise.all(losses)])
  }

  /** Cancels the claims of jobs whose cancel was requested before they were claimed. */
  #deliverCancelRequests(candidates: readonly Candidate[], claimed: readonly Result<Claim>[]): Promise<void>[] {
    const cancelling: Promise<void>[] = []
    for (const [index, { place }] of candidates.entries()) {
      const { entry } = place
      const result = claimed[index]
      if (!entry.cancelRequested || entry.id === undefined || !result || 'error' in result) continue
      cancelling.push(this.#options.canceller.deliverEarlier(entry.id, result.value))
    }
    return cancelling
  }
}

const NO_ANSWERS: Promise<readonly Result<ClaimGrant>[]> = Promise.resolve([])
