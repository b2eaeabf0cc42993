/**
 * Manages the claims of one board object: claims jobs in transactions of the backend, and settles or loses the claims.
 */

import {
  Cancelled,
  ClaimLost,
  LimitReached,
  LimitsChanged,
  NotConnected,
  NotFound,
  NotOwner,
  Unclaimable,
} from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { catchError, type Result, toFailed } from '../../core/result.ts'
import { type AlarmClock, systemAlarmClock } from '../../core/time.ts'
import type { EntityRegistry } from '../api/entity-registry.ts'
import { Job } from '../api/job.ts'
import { NO_REASON, type ReleaseOptions } from '../api/options.ts'
import { readJob } from '../api/read-jobs.ts'
import type {
  Backend,
  BoardSessionEvent,
  Cancellation,
  ClaimGrant,
  ClaimRequest,
  DiscardRequest,
  JobStatus,
  LeaseWatch,
  Settlement,
  StoredJob,
} from '../contract/index.ts'
import { refusalError } from '../contract/refusals.ts'
import type { LimitBook } from '../limits/limit-book.ts'
import { beginAttempt, exceededLimit } from '../model/attempts.ts'
import { isDoomed } from '../model/dependencies.ts'
import { CANCELLED_BY, type HistoryEntry, toEndedJobRecord } from '../model/ended-job.ts'
import type { JobEntry, QueueEntry } from '../model/entry.ts'
import { canExpire, expiryReason } from '../model/expiry.ts'
import { hasDroppedDetails, type Posting } from '../model/posting.ts'
import type { TakeOptions } from '../queue/queue.ts'
import { needsSuspectPlace, SuspectPlace } from '../queue/suspect-place.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { JobEventKind, LiveView } from '../view/live-view.ts'
import { type Candidate, readWholePostings, sortCandidates } from './candidates.ts'
import { Claim } from './claim.ts'
import { DoomedJobs } from './doomed-jobs.ts'
import { Expirer } from './expirer.ts'
import { GivenJobClaimer, noAnswerError } from './given-job.ts'
import { Incarnation } from './incarnation.ts'
import { ContentionEstimator, RejectedClaims } from './rejected-claims.ts'
import { type ReleasedClaim, releaseClaim } from './release-claim.ts'
import { SafeAccept } from './safe-accept.ts'
import { assertSupported } from './supported.ts'

/** The time for which the session hold is kept after the last claim has ended. */
const SESSION_HOLD_LINGER_MS = 2_000

const OWN_CHANGES = { consume: 'consumed', trash: 'trashed', abandon: 'released' } as const

export interface ClaimManagerOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly entities: EntityRegistry
  readonly limits: LimitBook
  readonly records: BoardRecords
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly who: string
  /** The number of jobs that the history keeps. */
  readonly keepHistory: number
  readonly onError: (error: Error) => void
}

/** The end of a job, as the history records it. */
interface EndOfJob {
  readonly kind: Settlement['kind']
  readonly posting: Posting
  readonly reason?: string
  readonly results?: Uint8Array
}

export class ClaimManager {
  readonly #backend: Backend
  readonly #view: LiveView
  readonly #limits: LimitBook
  readonly #who: string
  readonly #keepHistory: number
  readonly #onError: (error: Error) => void
  readonly #claims = new Map<JobEntry, Claim>()
  /**
   * Ends the following of each claimed job. Without it, an owner with a closed view would not notice that its claim was taken away, or
   * its job cancelled.
   */
  readonly #followed = new Map<JobEntry, Disposable>()
  /** The jobs whose claim requests are not answered yet. */
  readonly #pendingClaims = new Set<QueueEntry>()
  readonly #contention = new ContentionEstimator()
  readonly #rejected: RejectedClaims
  readonly #incarnation: Incarnation
  readonly #safeAccept: SafeAccept
  readonly #givenJobs: GivenJobClaimer
  /** Moves jobs that nobody has started in time to the trash. */
  readonly expirer: Expirer
  /** Moves doomed jobs to the trash. */
  readonly doomed: DoomedJobs
  readonly #noAnswer: { readonly error: Error }
  /** The session hold, kept while there are claims and shortly after. */
  #hold: LeaseWatch | undefined
  #holdTimer: NodeJS.Timeout | undefined
  #session: BoardSessionEvent | undefined
  #paused: boolean | undefined
  #suspects = new SuspectPlace()

  constructor(options: ClaimManagerOptions) {
    this.#backend = options.backend
    this.#view = options.view
    this.#limits = options.limits
    this.#who = options.who
    this.#keepHistory = options.keepHistory
    this.#onError = options.onError
    this.#rejected = new RejectedClaims({ ...options, canClaim: () => this.canClaim })
    this.#incarnation = new Incarnation(options)
    this.#safeAccept = new SafeAccept(options)
    this.expirer = new Expirer({
      ...options,
      incarnation: this.#incarnation,
      discard: async (stored, request) => {
        const [posting = this.#noAnswer] = await readWholePostings([stored], this.#backend)
        if ('error' in posting) throw posting.error
        const { id, revision } = stored
        await this.discard({ stored }, { id, revision, posting: posting.value, ...request })
      },
    })
    this.doomed = new DoomedJobs({
      ...options,
      // The method `discard` waits for `doomed.ended`: called from here, it would wait for itself.
      discard: (stored, request) => {
        const { id, revision, posting } = stored
        return this.#discardOne({ stored }, { id, revision, posting, ...request })
      },
      toReason: cancellationReason,
    })
    this.#noAnswer = { error: noAnswerError(options.backend) }
    this.shareSuspects(this.#suspects)
    this.#givenJobs = new GivenJobClaimer({
      ...options,
      resume: (place) => this.#rejected.resume(place),
      claim: async (place) => (await this.#claimAll([place]))[0] ?? this.#noAnswer,
    })
  }

  /**
   * Reserves up to `max` claimable jobs for {@link claimAllReserved}. Synchronous, so that no change is missed
   * between an empty result and the wait for the next change.
   */
  reserveNext(asked: { max: number; accept: (posting: Posting) => boolean }): QueueEntry[] {
    if (!this.canClaim) return []
    const { queue } = this.#view
    this.#advanceQueue()
    const accept = (posting: Posting) => this.accepts(asked.accept, posting)
    const max = this.#rejected.limitTo(asked.max)
    if (max === 0) return []
    const wanted = { ...asked, max, accept, suspects: this.#suspects, spread: this.#currentSpread(max) }
    const places = this.#rejected.fault ? this.#reserveUnrefused(wanted) : queue.reserveNext(wanted)
    for (const place of places) this.#takeSuspectPlace(place.entry, place.stored.posting)
    // The search may have found when a limit permits the next job.
    this.#view.afterSearch()
    return places
  }

  /** Reserves jobs that were not refused before; if there are none, others. */
  #reserveUnrefused(wanted: TakeOptions): QueueEntry[] {
    const { queue } = this.#view
    const accept = (posting: Posting) => !this.#rejected.wasRefused(posting) && wanted.accept(posting)
    const places = queue.reserveNext({ ...wanted, accept })
    return places.length > 0 ? places : queue.reserveNext(wanted)
  }

  /** Returns whether `accept` accepts the job. */
  accepts(accept: (posting: Posting) => boolean, posting: Posting): boolean {
    return this.#safeAccept.accepts(accept, posting)
  }

  /** Reserves the given job for {@link claimAllReserved}; returns undefined if its turn has not come. */
  reserve(entry: JobEntry): QueueEntry | undefined {
    if (!this.canClaim) return undefined
    this.#advanceQueue()
    const place = this.#view.queue.reserveFree(entry)
    this.#view.afterSearch()
    return place
  }

  /** Takes in what is due by now. Other callers that wait look again: the alarm for them is not needed any more. */
  #advanceQueue(): void {
    if (this.#view.queue.advance(this.#backend.clock.now())) this.#view.changed.notify()
  }

  /** Claims a reserved job; resolves with undefined if the claim was refused. */
  async claimReserved(place: QueueEntry): Promise<Claim | undefined> {
    const [claim] = await this.claimAllReserved([place])
    return claim
  }

  /** Returns whether there is a job to claim that `accept` accepts. */
  hasClaimable(accept: (posting: Posting) => boolean): boolean {
    const wanted = { accept: (posting: Posting) => this.accepts(accept, posting), suspects: this.#suspects }
    const isFound = this.canClaim && this.#view.queue.hasClaimable(wanted)
    this.#view.afterSearch()
    return isFound
  }

  /** Claims the reserved jobs that `accept` accepts. Jobs whose claims were refused are missing in the result. */
  async claimAllReserved(places: readonly QueueEntry[], accept?: (posting: Posting) => boolean): Promise<Claim[]> {
    const results = await this.#claimAll(places, accept)
    return results.flatMap((result) => ('value' in result ? [result.value] : []))
  }

  /**
   * Claims the given job.
   *
   * @throws Unclaimable, NotFound; UnsupportedCapability for what the backend cannot claim
   */
  claim(job: Job): Promise<Claim> {
    return this.#givenJobs.claim(job)
  }

  /** Returns the claim of the job. @throws NotFound when the job is unclaimed, NotOwner when another board object holds the claim */
  async findClaim(job: Job): Promise<Claim> {
    const entry = Job.entryFor(job)
    const claim = this.#claims.get(entry)
    if (claim) return claim
    if (entry.ended || !entry.claimed || entry.id === undefined) {
      throw new NotFound(`${job} is ${job.state}: there is no claim to settle`)
    }
    const owner = await this.#backend.claims.owner(entry.id)
    throw new NotOwner(`${job} is claimed by ${owner ?? 'another owner'}, not through this board object`)
  }

  /** Returns the uuid of a job of this batch that is claimed here, if there is one. */
  findMember(batch: string): string | undefined {
    for (const { stored } of this.#claims.keys()) if (stored?.posting.batch === batch) return stored.posting.uuid
    return undefined
  }

  /** The error with which the board has refused several claims of this process in a row; undefined if there is none. */
  get fault(): Error | undefined {
    return this.#rejected.fault
  }

  /** Returns the error with which the last claim of the job by this process was refused, if a later claim may be granted. */
  refusalOf(job: Job): Error | undefined {
    return this.#rejected.refusalOf(Job.entryFor(job))
  }

  pausedChanged(paused: boolean): void {
    this.#paused = paused
  }

  /** Trashes a job that was never run; for other jobs, records a cancel request. @throws NotFound */
  async cancel(job: Job, { who = this.#who, ...given }: CancelReason): Promise<void> {
    const reason = given.reason.toWellFormed()
    const entry = Job.entryFor(job)
    const { id, ended, claimed } = entry
    if (ended || id === undefined) throw refusalError(String(job), { why: 'gone' })
    const hasRun = claimed || (entry.stored?.posting.runs ?? 0) > 0
    let stored = hasRun ? undefined : await readJob(entry, this.#backend)
    while (stored?.posting.runs === 0) {
      if (await this.#trashNeverRun(entry, stored, { who, reason })) return
      // Another post with its key may have replaced the posting: nobody would trash the job before somebody claims.
      const [found] = await this.#backend.jobs.read([id])
      if (!found || 'error' in found || found.revision === stored.revision) break
      stored = found
    }
    await this.#backend.signals.cancel({ id, job: String(job), who, reason })
    this.#view.applyOwnChange(entry, 'cancelled')
  }

  /** Trashes a job that never ran; returns false if it has another revision: it was claimed, or its posting was replaced. */
  async #trashNeverRun(entry: JobEntry, stored: StoredJob, cancellation: Cancellation): Promise<boolean> {
    const { id, revision, posting } = stored
    const { cancelRequested } = entry
    const trashReason = cancellationReason(cancellation)
    try {
      await this.discard(entry, { id, revision, posting, cancelRequested, reason: trashReason })
      this.#view.applyOwnChange(entry, 'trashed')
      return true
    } catch (error) {
      if (error instanceof Unclaimable) return false
      throw error
    }
  }

  /** Takes the claim of a job away from its owner. @throws as `JobBoard.release` */
  release(job: Job, options: ReleaseOptions): Promise<ReleasedClaim> {
    const context = { backend: this.#backend, view: this.#view, who: options.by ?? this.#who }
    return releaseClaim(job, options, { ...context, discard: (from, request) => this.discard(from, request) })
  }

  sessionChanged(event: BoardSessionEvent): void {
    this.#session = event
    if (event.state === 'lost') this.#incarnation.sessionLost()
    if (event.state === 'lost' || event.state === 'closed')
      this.loseAll(`the session with ${this.#backend.uri} is over`)
  }

  loseAll(why: string): void {
    for (const [entry, claim] of this.#claims) this.#lose(entry, claim, why)
  }

  /** Handles a change of a job. A change that this process did not make ends the claim. */
  jobChanged(event: JobEventKind, entry: JobEntry): void {
    const claim = this.#claims.get(entry)
    if (!claim || claim.isSettling || event === 'claimed' || event === 'posted') return
    this.#lose(entry, claim, `the claim was taken away (the job was ${event === 'abandoned' ? 'released' : event})`)
    this.#releaseOrphans(claim)
  }

  /** Handles the status of a followed job: ends a claim of this process that it does not show. A status that is older than the claim is ignored. */
  statusRead(entry: JobEntry, status: JobStatus): void {
    const claim = this.#claims.get(entry)
    if (!claim || claim.isSettling || typeof status === 'string' || status.revision < claim.revision) return
    if (status.claimed && status.revision === claim.revision) return
    this.#lose(entry, claim, `the claim was taken away (the job was ${status.claimed ? 'claimed again' : 'released'})`)
    this.#releaseOrphans(claim)
  }

  /** Registers this owner on the board, so that others know that it lives. @returns its incarnation */
  registerIncarnation(): string {
    this.#incarnation.register()
    return this.#incarnation.id
  }

  /** Whether the board can claim jobs now. */
  get canClaim(): boolean {
    return this.#session?.state === 'connected' && this.#view.isCurrent && this.#paused === false
  }

  /** Returns the spread for `max` jobs. It includes the pending claims, which also occupy the head of the queue. */
  #currentSpread(max: number): number {
    const { spread } = this.#contention
    return spread === 1 ? 1 : (spread * (max + this.#pendingClaims.size)) / max
  }

  /** @internal The place for suspects of this process. */
  get suspects(): SuspectPlace {
    return this.#suspects
  }

  /** @internal Shares the place for suspects with other boards of this process. Call it before the first claim. */
  shareSuspects(place: SuspectPlace): void {
    this.#suspects = place
    place.onChange(() => this.#view.changed.notify())
  }

  #takeSuspectPlace(entry: JobEntry, posting: Posting): void {
    if (!needsSuspectPlace(posting, { isCancelled: entry.cancelRequested })) return
    this.#suspects.take(entry, { uuid: posting.uuid, board: this.#backend.uri, clock: this.clock })
  }

  async #claimAll(places: readonly QueueEntry[], accept?: (posting: Posting) => boolean): Promise<Result<Claim>[]> {
    for (const place of places) this.#pendingClaims.add(place)
    this.#hold ??= this.#backend.session.watchLease()
    using _view = this.#view.hold()
    this.#incarnation.start()
    try {
      const results = await this.#claimWithinLimits(places, accept)
      const lost = results.filter((result) => 'error' in result && isLostRace(result.error)).length
      this.#contention.recordClaims({ won: results.filter((result) => 'value' in result).length, lost })
      return results
    } finally {
      for (const place of places) {
        this.#pendingClaims.delete(place)
        if (!this.#claims.has(place.entry)) this.#suspects.release(place.entry)
      }
      this.#view.queue.endTrials(places)
      this.#rejected.release(places)
      this.#releaseHold()
    }
  }

  /** Claims the jobs. Jobs over a limit are trashed instead. An error of one job does not affect the others. */
  async #claimWithinLimits(
    places: readonly QueueEntry[],
    accept?: (posting: Posting) => boolean,
  ): Promise<Result<Claim>[]> {
    const {
      within: claimable,
      over,
      refused,
    } = await sortCandidates(places, {
      incarnation: this.#incarnation,
      backend: this.#backend,
    })
    const within = accept ? claimable.filter((candidate) => this.#isAcceptedWhole(candidate, accept)) : claimable
    const [claimed, discarded] = await Promise.all([
      this.#claimEach(within),
      Promise.all(over.map((candidate) => this.#discard(candidate).catch(toFailed))),
    ])
    const results = [...claimed, ...discarded, ...refused.map(({ error }) => ({ error }))]
    const tried = [...within, ...over, ...refused]
    for (const [index, { place }] of tried.entries()) {
      const result = results[index]
      if (result && 'error' in result) this.#rejected.rejected(place, result.error)
      else this.#rejected.granted(place)
    }
    return results
  }

  /** Returns whether `accept` accepts the whole posting of a job that was chosen without its details. */
  #isAcceptedWhole({ place, posting }: Candidate, accept: (posting: Posting) => boolean): boolean {
    if (posting === place.stored.posting || !hasDroppedDetails(place.stored)) return true
    if (this.accepts(accept, posting)) return true
    this.#safeAccept.decline(accept, place.stored.posting)
    return false
  }

  /** Claims each job in one transaction; the requests are sent together. */
  async #claimEach(candidates: readonly Candidate[]): Promise<Result<Claim>[]> {
    if (candidates.length === 0) return []
    await this.#limits.open('view')
    // The post and the end of the job go by this clock, too: with another one, the run could begin before the post.
    const at = new Date(this.#backend.clock.now())
    const attempt = { who: this.#who, at, incarnation: this.#incarnation.id }
    const places = candidates.map(({ place }) => place)
    // Each request has its own try block: a posting to which no attempt can be added must not prevent the other claims.
    const prepared = candidates.map(({ place, posting }) =>
      catchError<ClaimRequest>(() => {
        const { id, revision } = place.stored
        const limits = this.#limits.limitsOf(posting, { isCancelled: place.entry.cancelRequested })
        return { id, revision, who: this.#who, posting: beginAttempt(posting, attempt), ...(limits ? { limits } : {}) }
      }),
    )
    const requests = prepared.flatMap((request) => ('value' in request ? [request.value] : []))
    const answers = await this.#requestClaims(requests)
    const claimed = places.map(({ entry }, index): Result<Claim> => {
      const request = prepared[index]
      if (!request || 'error' in request) return request ?? this.#noAnswer
      const answer = answers.get(request.value) ?? this.#noAnswer
      return 'error' in answer ? answer : catchError(() => this.#createClaim(entry, request.value, answer.value))
    })
    const claims = claimed.flatMap((result) => ('value' in result ? [result.value] : []))
    await this.#waitUntilProven(claims)
    await this.#deliverCancelRequests(places, claimed)
    // A claim that is already lost or cancelled is handed out, too: its signals have fired.
    for (const claim of claims) claim.assertLease()
    return claimed
  }

  async #requestClaims(requests: readonly ClaimRequest[]): Promise<ReadonlyMap<ClaimRequest, Result<ClaimGrant>>> {
    if (requests.length === 0) return new Map()
    const answers = await this.#backend.claims
      .claim(requests)
      .catch((error: unknown) => requests.map(() => toFailed(error)))
    await this.#noteLimits(requests, answers)
    return new Map(requests.map((request, index) => [request, answers[index] ?? this.#noAnswer]))
  }

  /** Takes in what the answers say about limits. After a refusal because limits were changed, resolves when they are known as they are now. */
  async #noteLimits(requests: readonly ClaimRequest[], answers: readonly Result<ClaimGrant>[]): Promise<void> {
    const { queue } = this.#view
    let isStale = false
    for (const [index, answer] of answers.entries()) {
      // What was answered by other limits says nothing of those that are set now: their rates may be others.
      const isCurrent = requests[index]?.limits?.revision === this.#limits.revision
      if ('value' in answer) {
        if (isCurrent) for (const { key, arrivalMs } of answer.value.arrivals ?? []) queue.noteArrival(key, arrivalMs)
      } else if (answer.error instanceof LimitReached) {
        if (isCurrent) this.#noteLimitReached(requests[index], answer.error)
      } else isStale ||= answer.error instanceof LimitsChanged
    }
    if (isStale) await this.#limits.refresh().catch(() => undefined)
  }

  /** Jobs that cost fewer tokens may start before the one that was refused could: the arrival time of the key says when. */
  #noteLimitReached(request: ClaimRequest | undefined, { key, untilMs }: LimitReached): void {
    const { queue } = this.#view
    const rate = request?.limits?.wants.find((want) => want.key === key)?.rate
    if (rate && untilMs !== undefined)
      queue.noteArrival(key, untilMs + Math.max(0, rate.burst - rate.cost) * rate.intervalMs)
    else queue.noteLimitReached(key)
  }

  /**
   * Waits until the session is proven to be alive, because an owner must not act before. Almost always it is proven already. If
   * the session ends first, the next proof may come late: then the wait ends as soon as all of these claims are lost.
   */
  async #waitUntilProven(claims: readonly Claim[]): Promise<void> {
    const losses = claims.map(
      ({ stops: { lost } }) => new Promise<void>((resolve) => (lost.aborted ? resolve() : lost.onAbort(resolve))),
    )
    await Promise.race([this.#hold?.whenAlive().catch(() => undefined), Promise.all(losses)])
  }

  /** Cancels the claims of jobs whose cancel was requested before they were claimed. */
  async #deliverCancelRequests(places: readonly QueueEntry[], claimed: readonly Result<Claim>[]): Promise<void> {
    const cancelling: Promise<void>[] = []
    for (const [index, { entry }] of places.entries()) {
      const result = claimed[index]
      if (!entry.cancelRequested || entry.id === undefined || !result || 'error' in result) continue
      const { value: claim } = result
      cancelling.push(this.#notifyCancelled(entry.id, claim).then(() => claim.noteCancelledBefore()))
    }
    if (cancelling.length > 0) await Promise.all(cancelling)
  }

  #createClaim(entry: JobEntry, { id, posting }: ClaimRequest, granted: ClaimGrant): Claim {
    const { session, revision, fence, mark } = granted
    this.#view.addOwnWrite(entry, { posting, revision })
    const job = new Job(entry)
    const claim = new Claim({ job, entry, manager: this, id, who: this.#who, session, revision, fence, mark, posting })
    this.#claims.set(entry, claim)
    // The claim before it may not have been forgotten yet, if the answer to its settlement was lost.
    this.#followed.get(entry)?.[Symbol.dispose]()
    if (entry.follower) this.#followed.set(entry, entry.follower.follow(entry))
    // The newest attempt is still running: only earlier attempts make a job a suspect.
    this.#takeSuspectPlace(entry, { ...posting, attempts: posting.attempts.slice(0, -1) })
    // The end of the session may have been reported between the answer and this line.
    const now = this.#session
    if (now?.session !== session || now.state === 'lost' || now.state === 'closed')
      this.#lose(entry, claim, 'the session is over')
    return claim
  }

  /** @internal The clock of the deadlines of claims. */
  get clock(): AlarmClock {
    return this.#backend.clock.alarms ?? systemAlarmClock
  }

  /** @internal Whether the board keeps a record of the jobs that have ended. */
  get keepsHistory(): boolean {
    return this.#keepHistory > 0 && this.#backend.capabilities.history
  }

  /** @internal Returns whether the session is certain to be alive at this instant. */
  isSessionAlive(session: string): boolean {
    return this.#backend.session.isAlive(session)
  }

  /** @internal Settles a claim in one transaction. @throws ClaimLost, NotConnected, OutcomeUnknown; UnsupportedCapability for added resources */
  async settle(entry: JobEntry, claim: Claim, settlement: Settlement): Promise<void> {
    if (settlement.kind === 'abandon' && settlement.held) assertSupported(this.#backend, settlement.posting)
    entry.settledPosting = settlement.posting
    try {
      await this.#backend.claims.settle({ ...settlement, ...this.#toHistory(entry, settlement) })
    } catch (error) {
      if (!(error instanceof ClaimLost)) throw error
      this.#finishClaim(entry, claim)
      // The settlement was refused: later changes show how the job ended.
      if (entry.settledPosting === settlement.posting) entry.settledPosting = undefined
      this.#releaseOrphans(claim)
      throw error
    }
    this.#finishClaim(entry, claim)
    this.#view.applyOwnChange(entry, OWN_CHANGES[settlement.kind])
    if (settlement.kind === 'trash') await this.doomed.ended
  }

  /** Trashes an unclaimed job in one transaction, and the jobs that this dooms. @throws as `Backend.trash.discard` */
  async discard(job: Pick<JobEntry, 'stored'>, discarded: Omit<DiscardRequest, 'who' | 'history'>): Promise<void> {
    await this.#discardOne(job, discarded)
    await this.doomed.ended
  }

  #discardOne(job: Pick<JobEntry, 'stored'>, discarded: Omit<DiscardRequest, 'who' | 'history'>): Promise<void> {
    const history = this.#toHistory(job, { kind: 'trash', ...discarded })
    return this.#backend.trash.discard({ ...discarded, who: this.#who, ...history })
  }

  /** Returns what the end of a job adds to the history. */
  #toHistory(
    { stored }: Pick<JobEntry, 'stored'>,
    { kind, posting, reason, results }: EndOfJob,
  ): { history?: HistoryEntry } {
    if (kind === 'abandon' || !this.keepsHistory) return {}
    const outcome = kind === 'consume' ? 'COMPLETE' : 'TRASHED'
    const end = { outcome, who: this.#who, endedAt: this.#backend.clock.now(), postedAt: stored?.postedAt } as const
    return {
      history: { job: toEndedJobRecord(posting, { ...end, ...defined({ reason, results }) }), keep: this.#keepHistory },
    }
  }

  #finishClaim(entry: JobEntry, claim: Claim): void {
    if (this.#claims.get(entry) === claim) this.#forget(entry)
    // An open view received the change before this answer. A suspect that waited for the end of this claim can be claimed now.
    this.#view.changed.notify()
  }

  async #discard({ place: { entry, stored }, posting }: Candidate): Promise<Result<Claim>> {
    const { id, revision } = stored
    if (entry.cancelRequested && isDoomed(posting)) {
      await this.doomed.end(id)
      return { error: new Unclaimable(`job ${posting.uuid} was trashed: a job on which it depends is in the trash`) }
    }
    const limit = exceededLimit(posting) ?? (canExpire(posting) ? expiryReason(posting) : 'over a limit')
    const { cancelRequested } = entry
    await this.discard(entry, { id, revision, posting, cancelRequested, reason: limit })
    return { error: new Unclaimable(`job ${posting.uuid} was trashed: ${limit}`) }
  }

  /** Returns whether this board object holds the claim of the job. */
  holds(entry: JobEntry): boolean {
    return this.#claims.has(entry)
  }

  /** Handles a cancel request for a job. This board object may hold its claim or not. */
  cancelled(entry: JobEntry): void {
    const claim = this.#claims.get(entry)
    if (claim && entry.id !== undefined) void this.#notifyCancelled(entry.id, claim)
    else if (!claim) this.doomed.noteShown(entry)
  }

  /** Cancels the claim. The name and reason in the request are for people: without them the claim is cancelled, too. */
  async #notifyCancelled(id: string, claim: Claim): Promise<void> {
    const request = await this.#backend.signals.cancellation(id).catch(() => undefined)
    const trashReason = cancellationReason(request ?? { who: 'an unknown owner', reason: NO_REASON })
    claim.requestCancel(new Cancelled(`${claim.job}: ${trashReason}`, { trashReason }))
  }

  /** Releases the session hold some time after the last claim has ended, because the next claim may follow soon. */
  #releaseHold(): void {
    clearTimeout(this.#holdTimer)
    if (this.#claims.size > 0 || this.#pendingClaims.size > 0) return
    this.#holdTimer = setTimeout(() => {
      if (this.#claims.size > 0 || this.#pendingClaims.size > 0) return
      this.#hold?.[Symbol.dispose]()
      this.#hold = undefined
      this.#incarnation.stopWatching()
    }, SESSION_HOLD_LINGER_MS)
    this.#holdTimer.unref()
  }

  /** Releases the resources of an orphaned claim. If that fails, they are released when the session ends. */
  #releaseOrphans(claim: Claim): void {
    this.#backend.resources.releaseOrphans(claim.orphanedClaim).catch((error: Error) => {
      if (!(error instanceof NotConnected)) this.#onError(error)
    })
  }

  #forget(entry: JobEntry): void {
    this.#claims.delete(entry)
    this.#followed.get(entry)?.[Symbol.dispose]()
    this.#followed.delete(entry)
    this.#suspects.release(entry)
    this.#releaseHold()
  }

  #lose(entry: JobEntry, claim: Claim, why: string): void {
    this.#forget(entry)
    claim.markLost(
      new ClaimLost(`${claim.job}: ${why}; stop the work and write nothing, another owner may have the job`),
    )
  }
}

/** Returns whether another owner was faster. */
function isLostRace(error: Error): boolean {
  return error instanceof Unclaimable && !(error instanceof LimitReached || error instanceof LimitsChanged)
}

/** The reason of a cancellation, and the person or program that asks for it: this process by default. */
interface CancelReason {
  readonly who?: string | undefined
  readonly reason: string
}

/** Returns the reason with which a cancelled job is moved to the trash. */
function cancellationReason({ who, reason }: Cancellation): string {
  return reason === NO_REASON ? `${CANCELLED_BY} ${who}` : `${CANCELLED_BY} ${who}: ${reason}`
}
