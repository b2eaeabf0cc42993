/**
 * The claims of one board object: it claims jobs of the queue by the backend's transaction, and settles or loses the claims.
 */
import { systemAlarmClock } from '../../core/alarm-clock.ts'
import {
  Cancelled,
  ClaimLost,
  NotConnected,
  NotFound,
  NotOwner,
  Unclaimable,
  UnsupportedCapability,
} from '../../core/errors.ts'
import { catchError, type Result, toFailed } from '../../core/result.ts'
import type { EntityRegistry } from '../api/entity-registry.ts'
import { Job } from '../api/job.ts'
import { NO_REASON } from '../api/options.ts'
import { readJob } from '../api/read-jobs.ts'
import { localReason } from '../api/waiting-for.ts'
import type {
  Backend,
  BackendCapabilities,
  BoardSessionEvent,
  Cancellation,
  ClaimGrant,
  ClaimRequest,
  SessionHold,
  Settlement,
  StoredJob,
} from '../backend.ts'
import { beginAttempt, exceededLimit, isSuspect, markOutages, unendedIncarnations } from '../model/attempts.ts'
import { type JobEntry, type QueueEntry, toJobState } from '../model/entry.ts'
import type { Posting } from '../model/posting.ts'
import type { JobEventKind, LiveView } from '../view/live-view.ts'
import { Claim } from './claim.ts'
import { ContentionEstimator } from './contention.ts'
import { Incarnation } from './incarnation.ts'
import { RejectedClaims } from './rejected-claims.ts'
import { SafeAccept } from './safe-accept.ts'

/** The maximum number of tries to claim a given job while other boards change it at the same time. */
const MAX_CLAIM_ATTEMPTS = 3
/** The time for which the lease is watched after the last claim has ended. */
const SESSION_HOLD_LINGER_MS = 2_000

export interface ClaimManagerOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly entities: EntityRegistry
  readonly who: string
  readonly onError: (error: Error) => void
}

/** A chosen job, with the posting by which limits are checked: attempts that an outage ended are marked as ended. */
interface Candidate {
  readonly place: QueueEntry
  readonly posting: Posting
}

export class ClaimManager {
  readonly #backend: Backend
  readonly #view: LiveView
  readonly #who: string
  readonly #onError: (error: Error) => void
  readonly #claims = new Map<JobEntry, Claim>()
  /** The claimed jobs that are suspects. */
  readonly #suspects = new Set<JobEntry>()
  /** The chosen jobs whose claims are not answered yet. */
  readonly #pendingClaims = new Set<QueueEntry>()
  readonly #contention = new ContentionEstimator()
  readonly #rejected: RejectedClaims
  readonly #incarnation: Incarnation
  readonly #safeAccept: SafeAccept
  /** The session hold, kept while there are claims and shortly after. */
  #hold: SessionHold | undefined
  #holdTimer: NodeJS.Timeout | undefined
  #session: BoardSessionEvent | undefined
  #paused: boolean | undefined

  constructor(options: ClaimManagerOptions) {
    this.#backend = options.backend
    this.#view = options.view
    this.#who = options.who
    this.#onError = options.onError
    this.#rejected = new RejectedClaims({ ...options, canClaim: () => this.canClaim })
    this.#incarnation = new Incarnation(options)
    this.#safeAccept = new SafeAccept(options)
  }

  /**
   * Reserves up to `max` claimable jobs for {@link claimAllReserved}. Synchronous: no change can be missed between an empty result and
   * the wait for a change.
   */
  reserveNext(asked: { max: number; accept: (posting: Posting) => boolean }): QueueEntry[] {
    if (!this.canClaim) return []
    const { queue } = this.#view
    queue.advance(this.#backend.now())
    const accept = (posting: Posting) => this.#isSupported(posting) && this.#safeAccept.accepts(asked.accept, posting)
    const wanted = { ...asked, accept, holdsSuspect: this.#holdsSuspect(), spread: this.#currentSpread(asked.max) }
    return queue.reserveNext(wanted)
  }

  /** Reserves the given job for {@link claimAllReserved}, as {@link reserveNext} does, if its turn has come. */
  reserve(entry: JobEntry): QueueEntry | undefined {
    if (!this.canClaim) return undefined
    this.#view.queue.advance(this.#backend.now())
    return this.#view.queue.reserveFree(entry)
  }

  /** Claims a reserved job; resolves with undefined if the claim was refused. */
  async claimReserved(place: QueueEntry): Promise<Claim | undefined> {
    const [claim] = await this.claimAllReserved([place])
    return claim
  }

  /** Returns whether there is a job to claim. */
  hasClaimable(): boolean {
    return this.canClaim && this.#view.queue.hasClaimable((posting) => this.#isSupported(posting))
  }

  /** Claims the reserved jobs; the result has no claims for refused ones. */
  async claimAllReserved(places: readonly QueueEntry[]): Promise<Claim[]> {
    const results = await this.#claimAll(places)
    return results.flatMap((result) => ('value' in result ? [result.value] : []))
  }

  /**
   * Claims the given job.
   *
   * @throws Unclaimable, NotFound; UnsupportedCapability for what the backend cannot claim
   */
  async claim(job: Job): Promise<Claim> {
    for (let tries = 1; ; tries += 1) {
      const result = await this.#tryToClaim(job)
      if (result instanceof Claim) return result
      if (result !== 'changed') throw result
      if (tries === MAX_CLAIM_ATTEMPTS) throw new Unclaimable(`${job} is being changed by other boards; try again`)
    }
  }

  /** Returns the claim, the error that explains the refusal, or `changed` if the view was behind and has caught up. */
  async #tryToClaim(job: Job): Promise<Claim | Error | 'changed'> {
    const entry = Job.entryFor(job)
    if (entry.ended || !entry.stored) return new NotFound(`${job} has left the board`)
    const lacking = this.#backend.missingCapability?.(entry.stored.posting)
    if (lacking) return cannotClaimError(job, { lacking, uri: this.#backend.uri })
    this.#view.queue.advance(this.#backend.now())
    const held = localReason(entry, { queue: this.#view.queue, paused: false })
    if (held) return new Unclaimable(`${job}: ${held.text}`)
    if (entry.queueEntry) this.#rejected.resume(entry.queueEntry)
    const place = this.#view.queue.reserveEntry(entry)
    if (!place) return await this.#explainUnclaimable(job, entry)
    const [result] = await this.#claimAll([place])
    if (result && 'value' in result) return result.value
    const limit = exceededLimit(place.stored.posting)
    if (result?.error instanceof Unclaimable && limit === undefined) {
      const why = await this.#explainUnclaimable(job, entry)
      // Without a change, such as where a resource is held, another try would be refused in the same way.
      return why === 'changed' && entry.queueEntry === place ? result.error : why
    }
    return result?.error ?? this.#noAnswerError().error
  }

  /** Returns the claim of the job. @throws NotFound when the job is unclaimed, NotOwner when another board object holds the claim */
  async findClaim(job: Job): Promise<Claim> {
    const entry = Job.entryFor(job)
    const claim = this.#claims.get(entry)
    if (claim) return claim
    if (entry.ended || !entry.claimed || entry.id === undefined) {
      throw new NotFound(`${job} is ${job.state}: there is no claim to settle`)
    }
    const owner = await this.#backend.owner(entry.id)
    throw new NotOwner(`${job} is claimed by ${owner ?? 'another owner'}, not through this board object`)
  }

  pausedChanged(paused: boolean): void {
    this.#paused = paused
  }

  /** Trashes a job that was never run; for other jobs, records a cancel request. @throws NotFound */
  async cancel(job: Job, reason: string): Promise<void> {
    const entry = Job.entryFor(job)
    const { id, ended, claimed } = entry
    if (ended || id === undefined) throw new NotFound(`${job} has left the board`)
    const stored = claimed || job.runs > 0 ? undefined : await readJob(entry, this.#backend)
    if (stored?.posting.runs === 0 && (await this.#trashUnrun(entry, stored, reason))) return
    await this.#backend.request({ kind: 'cancel', id, job: String(job), who: this.#who, reason })
  }

  /** Trashes the job; returns false if another board has claimed it meanwhile. */
  async #trashUnrun(entry: JobEntry, stored: StoredJob, reason: string): Promise<boolean> {
    const { id, revision, posting } = stored
    const { cancelRequested } = entry
    const said = cancellationReason({ who: this.#who, reason })
    const discarded = { id, revision, posting, cancelRequested, who: this.#who, reason: said }
    try {
      await this.#backend.discard(discarded)
      return true
    } catch (error) {
      if (error instanceof Unclaimable) return false
      throw error
    }
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

  /** Takes in a change of a job: one that this process has not made ends its claim. */
  jobChanged(happening: JobEventKind, entry: JobEntry): void {
    const claim = this.#claims.get(entry)
    if (!claim || claim.isSettling || happening === 'claimed' || happening === 'posted') return
    this.#lose(entry, claim, `the claim was taken away (the job was ${happening})`)
    this.#releaseOrphans(claim)
  }

  /** Whether the board can claim jobs now. */
  get canClaim(): boolean {
    return this.#session?.state === 'connected' && this.#view.isCurrent && this.#paused === false
  }

  /** Returns whether this backend can claim such a job. */
  #isSupported(posting: Posting): boolean {
    return this.#backend.missingCapability?.(posting) === undefined
  }

  /** Returns the spread for `max` jobs: pending claims occupy as much of the head as new ones. */
  #currentSpread(max: number): number {
    const { spread } = this.#contention
    return spread === 1 ? 1 : (spread * (max + this.#pendingClaims.size)) / max
  }

  #holdsSuspect(): boolean {
    for (const { stored } of this.#pendingClaims) if (isSuspect(stored.posting)) return true
    return this.#suspects.size > 0
  }

  async #claimAll(places: readonly QueueEntry[]): Promise<Result<Claim>[]> {
    for (const place of places) this.#pendingClaims.add(place)
    this.#hold ??= this.#backend.holdSession()
    this.#incarnation.start()
    try {
      const results = await this.#claimWithinLimits(places)
      const lost = results.filter((result) => 'error' in result && result.error instanceof Unclaimable).length
      this.#contention.recordClaims({ won: results.filter((result) => 'value' in result).length, lost })
      return results
    } finally {
      for (const place of places) this.#pendingClaims.delete(place)
      this.#rejected.release(places)
      this.#releaseHold()
    }
  }

  /** Claims the jobs; those over a limit are trashed instead. An error of one job affects no other. */
  async #claimWithinLimits(places: readonly QueueEntry[]): Promise<Result<Claim>[]> {
    const { candidates, refused } = await this.#resolveOutages(places)
    const within: Candidate[] = []
    const over: Candidate[] = []
    for (const candidate of candidates) {
      const limit = catchError(() => exceededLimit(candidate.posting))
      if ('value' in limit && limit.value === undefined) within.push(candidate)
      else over.push(candidate)
    }
    const [claimed, discarded] = await Promise.all([
      this.#claimEach(within),
      Promise.all(over.map((candidate) => this.#discard(candidate).catch(toFailed))),
    ])
    const results = [...claimed, ...discarded, ...refused.map(({ error }) => ({ error }))]
    const tried = [...within, ...over, ...refused]
    for (const [index, { place }] of tried.entries()) {
      const result = results[index]
      if (result && 'error' in result) this.#rejected.rejected(place, result.error)
    }
    return results
  }

  /**
   * Finds out which attempts without an end were ended by an outage; sends no request where there are none. If the listing of
   * living owners fails, the job is not claimed now: it could be trashed for deaths that were outages.
   */
  async #resolveOutages(places: readonly QueueEntry[]): Promise<{
    readonly candidates: readonly Candidate[]
    readonly refused: readonly { readonly place: QueueEntry; readonly error: Error }[]
  }> {
    const candidates = places.map((place) => ({ place, posting: place.stored.posting }))
    const owners = new Set(candidates.flatMap(({ posting }) => unendedIncarnations(posting)))
    if (owners.size === 0) return { candidates, refused: [] }
    try {
      const living = await this.#incarnation.listLiving(owners)
      const judged = candidates.map(({ place, posting }) => ({ place, posting: markOutages(posting, living) }))
      return { candidates: judged, refused: [] }
    } catch (error) {
      const doubtful = ({ posting }: Candidate) => unendedIncarnations(posting).length > 0
      const refused = candidates.filter(doubtful).map(({ place }) => ({ place, ...toFailed(error) }))
      return { candidates: candidates.filter((candidate) => !doubtful(candidate)), refused }
    }
  }

  /** Claims each job in one transaction; the requests are sent together. */
  async #claimEach(candidates: readonly Candidate[]): Promise<Result<Claim>[]> {
    if (candidates.length === 0) return []
    const at = new Date((this.#backend.clock ?? systemAlarmClock).now())
    const attempt = { who: this.#who, at, incarnation: this.#incarnation.id }
    const places = candidates.map(({ place }) => place)
    // Each has its own try block: a posting to which no attempt can be added must not prevent the claims of other jobs.
    const chosen = candidates.map(({ place, posting }) =>
      catchError<ClaimRequest>(() => {
        const { id, revision } = place.stored
        return { id, revision, who: this.#who, posting: beginAttempt(posting, attempt) }
      }),
    )
    const choices = chosen.flatMap((choice) => ('value' in choice ? [choice.value] : []))
    const answers = await this.#requestClaims(choices)
    const claimed = places.map(({ entry }, index): Result<Claim> => {
      const choice = chosen[index]
      if (!choice || 'error' in choice) return choice ?? this.#noAnswerError()
      const answer = answers.get(choice.value) ?? this.#noAnswerError()
      return 'error' in answer ? answer : catchError(() => this.#createClaim(entry, choice.value, answer.value))
    })
    await this.#waitUntilProven(claimed.flatMap((result) => ('value' in result ? [result.value] : [])))
    await Promise.all(places.map(({ entry }, index) => this.#toHandedOut(entry, claimed[index])))
    return claimed
  }

  async #requestClaims(choices: readonly ClaimRequest[]): Promise<ReadonlyMap<ClaimRequest, Result<ClaimGrant>>> {
    if (choices.length === 0) return new Map()
    const answers = await this.#backend.claim(choices).catch((error: unknown) => choices.map(() => toFailed(error)))
    return new Map(choices.map((choice, index) => [choice, answers[index] ?? this.#noAnswerError()]))
  }

  #noAnswerError(): { readonly error: Error } {
    return { error: new NotConnected(`${this.#backend.uri} did not answer the claim`) }
  }

  /**
   * Waits until the session is proven to be alive, which it almost always is already; an owner must not act before. If the session
   * ends before it was proven, the next one may be far off: then the wait ends as soon as all of these claims are lost.
   */
  async #waitUntilProven(claims: readonly Claim[]): Promise<void> {
    const over = claims.map(
      ({ stops: { lost } }) => new Promise<void>((resolve) => (lost.aborted ? resolve() : lost.onAbort(resolve))),
    )
    await Promise.race([this.#hold?.whenAlive().catch(() => undefined), Promise.all(over)])
  }

  /** Prepares a claim for its caller. A claim that was already lost or cancelled is returned, too: its signals have fired. */
  async #toHandedOut(entry: JobEntry, result: Result<Claim> | undefined): Promise<void> {
    if (!result || 'error' in result) return
    if (entry.cancelRequested && entry.id !== undefined) await this.#notifyCancelled(entry.id, result.value)
    result.value.assertLease()
  }

  #createClaim(entry: JobEntry, { id, posting }: ClaimRequest, granted: ClaimGrant): Claim {
    const { session, revision, fence, mark } = granted
    this.#view.addOwnWrite(entry, { posting, revision })
    const claim = new Claim({
      job: new Job(entry),
      ...{ id, who: this.#who, session, revision, fence, posting },
      ...(mark === undefined ? {} : { mark }),
      settle: (settled, settlement) => {
        return this.#settle(entry, settled, { ...settlement, cancelRequested: entry.cancelRequested })
      },
      clock: this.#backend.clock ?? systemAlarmClock,
      isSessionAlive: () => this.#backend.alive(session),
    })
    this.#claims.set(entry, claim)
    // The newest attempt is under way: only the ends of earlier ones make a job a suspect.
    if (isSuspect({ ...posting, attempts: posting.attempts.slice(0, -1) })) this.#suspects.add(entry)
    // The end of the session may have been reported between the answer and this line.
    const now = this.#session
    if (now?.session !== session || now.state === 'lost' || now.state === 'closed')
      this.#lose(entry, claim, 'the session is over')
    return claim
  }

  async #settle(entry: JobEntry, claim: Claim, settlement: Settlement): Promise<void> {
    entry.settledPosting = settlement.posting
    try {
      await this.#backend.settle(settlement)
    } catch (error) {
      if (!(error instanceof ClaimLost)) throw error
      this.#finishClaim(entry, claim)
      // The settlement was refused: later reports show how the job ended.
      if (entry.settledPosting === settlement.posting) entry.settledPosting = undefined
      this.#releaseOrphans(claim)
      throw error
    }
    this.#finishClaim(entry, claim)
  }

  #finishClaim(entry: JobEntry, claim: Claim): void {
    if (this.#claims.get(entry) === claim) this.#forget(entry)
    // The change was reported before the answer: a suspect that waited for the end of this one is considered again now.
    this.#view.changed.notify()
  }

  async #discard({ place: { entry, stored }, posting }: Candidate): Promise<Result<Claim>> {
    const { id, revision } = stored
    const limit = exceededLimit(posting) ?? 'over a limit'
    const { cancelRequested } = entry
    await this.#backend.discard({ id, revision, posting, cancelRequested, who: this.#who, reason: limit })
    return { error: new Unclaimable(`job ${posting.uuid} was trashed: ${limit}`) }
  }

  /** Finds out why a job cannot be claimed; `changed` if there is no reason any more. */
  async #explainUnclaimable(job: Job, entry: JobEntry): Promise<Error | 'changed'> {
    if (entry.ended || entry.id === undefined) return new NotFound(`${job} has left the board`)
    if (entry.content === 'unreadable') return new Unclaimable(`${job} cannot be read or claimed here`)
    const owner = await this.#backend.owner(entry.id)
    if (owner !== undefined) return new Unclaimable(`${job} is claimed by ${owner}`)
    // The job was released or has left the board since: the barrier waits until the view has received the change.
    await this.#backend.barrier()
    if (toJobState(entry) === 'COMPLETE' || toJobState(entry) === 'TRASHED')
      return new NotFound(`${job} has left the board`)
    return 'changed'
  }

  /** Returns whether this board holds the claim of the job. */
  holds(entry: JobEntry): boolean {
    return this.#claims.has(entry)
  }

  /** Takes in a cancel request for a job, which this board may hold. */
  cancelled(entry: JobEntry): void {
    const claim = this.#claims.get(entry)
    if (claim && entry.id !== undefined) void this.#notifyCancelled(entry.id, claim)
  }

  /** Cancels the claim. The owner and reason of the request are for people: without them the claim is cancelled all the same. */
  async #notifyCancelled(id: string, claim: Claim): Promise<void> {
    const request = await this.#backend.cancellation(id).catch(() => undefined)
    const said = request ? cancellationReason(request) : 'cancelled'
    claim.requestCancel(new Cancelled(`${claim.job}: ${said}`, { trashReason: said }))
  }

  /** Releases the session hold a little after the last claim has ended, because the next claim may follow at once. */
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

  /** Releases the resources of an orphaned claim. If that fails, they are released with the session. */
  #releaseOrphans(claim: Claim): void {
    this.#backend.releaseOrphans?.(claim.orphanedClaim).catch((error: Error) => {
      if (!(error instanceof NotConnected)) this.#onError(error)
    })
  }

  #forget(entry: JobEntry): void {
    this.#claims.delete(entry)
    this.#suspects.delete(entry)
    this.#releaseHold()
  }

  #lose(entry: JobEntry, claim: Claim, why: string): void {
    this.#forget(entry)
    claim.markLost(
      new ClaimLost(`${claim.job}: ${why}; stop the work and write nothing, another owner may have the job`),
    )
  }
}

function cannotClaimError(job: Job, { lacking, uri }: { lacking: keyof BackendCapabilities; uri: string }): Error {
  const message = `${job}: ${uri} does not support ${lacking}, which this job needs; claim it with a board that does`
  return new UnsupportedCapability(message, { capability: lacking })
}

/** Returns the reason that the trash keeps for a cancelled job. */
function cancellationReason({ who, reason }: Cancellation): string {
  return reason === NO_REASON ? `cancelled by ${who}` : `cancelled by ${who}: ${reason}`
}
