/**
 * The claims that one board object holds: taken from the queue through the backend's transaction, settled, or lost.
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
import { beginAttempt, isSuspect, limitReached, unendedIncarnations, withoutOutages } from '../attempts.ts'
import type {
  Backend,
  BackendCapabilities,
  Cancellation,
  Choice,
  Granted,
  Result,
  SessionEvent,
  SessionHold,
  Settlement,
  Stored,
} from '../backend.ts'
import type { EntityRegistry } from '../entity-registry.ts'
import { type Entry, type Place, stateOf } from '../entry.ts'
import { Job } from '../job.ts'
import { NO_REASON } from '../options.ts'
import type { Posting } from '../posting.ts'
import type { Happening, LiveView } from '../view/live-view.ts'
import { readJob } from '../view/read-jobs.ts'
import { heldBack } from '../waiting-for.ts'
import { Claim } from './claim.ts'
import { Crowd } from './crowd.ts'
import { Incarnation } from './incarnation.ts'
import { Refusals } from './refusals.ts'
import { SafeAccept } from './safe-accept.ts'

/** How often the claim of a named job is tried while other boards change the job at the same time. */
const MOST_TRIES = 3
/** How long, in milliseconds, the lease is watched after the last claim has ended. */
const LINGER = 2_000

export interface HeldClaimsOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly entities: EntityRegistry
  readonly who: string
  readonly failed: (error: Error) => void
}

/** A job that was chosen, with its posting as the claim is to be judged by: attempts that an outage ended have their end. */
interface Candidate {
  readonly place: Place
  readonly posting: Posting
}

export class HeldClaims {
  readonly #backend: Backend
  readonly #view: LiveView
  readonly #who: string
  readonly #failed: (error: Error) => void
  readonly #claims = new Map<Entry, Claim>()
  /** Which of them may be poison. */
  readonly #suspects = new Set<Entry>()
  /** Chosen, and the answer is not there yet. */
  readonly #trying = new Set<Place>()
  readonly #crowd = new Crowd()
  readonly #refusals: Refusals
  readonly #incarnation: Incarnation
  readonly #accept: SafeAccept
  /** Held while there are claims, or may be soon. */
  #hold: SessionHold | undefined
  #holdTimer: NodeJS.Timeout | undefined
  #session: SessionEvent | undefined
  #paused: boolean | undefined

  constructor(options: HeldClaimsOptions) {
    this.#backend = options.backend
    this.#view = options.view
    this.#who = options.who
    this.#failed = options.failed
    this.#refusals = new Refusals({ ...options, open: () => this.open })
    this.#incarnation = new Incarnation(options)
    this.#accept = new SafeAccept(options)
  }

  /**
   * What is claimable now, up to `max`, set aside for {@link take}. Synchronous: between finding nothing and waiting for
   * a change, no change can slip through.
   */
  choose(asked: { max: number; accept: (posting: Posting) => boolean }): Place[] {
    if (!this.open) return []
    const { queue } = this.#view
    queue.advance(this.#backend.now())
    const accept = (posting: Posting) => this.#possible(posting) && this.#accept.ask(asked.accept, posting)
    const wanted = { ...asked, accept, suspectHeld: this.#suspectHeld(), spread: this.#spread(asked.max) }
    return queue.take(wanted)
  }

  /** This very job, set aside for {@link take} as with {@link choose}, if its turn has come. */
  chooseThis(entry: Entry): Place | undefined {
    if (!this.open) return undefined
    this.#view.queue.advance(this.#backend.now())
    return this.#view.queue.pickFree(entry)
  }

  /** Undefined where others were faster. */
  async takeThis(place: Place): Promise<Claim | undefined> {
    const [claim] = await this.take([place])
    return claim
  }

  /** Whether there is anything to claim. */
  any(): boolean {
    return this.open && this.#view.queue.has((posting) => this.#possible(posting))
  }

  /** Tries to claim what was chosen; empty where others were faster. */
  async take(places: readonly Place[]): Promise<Claim[]> {
    const results = await this.#claimAll(places)
    return results.flatMap((result) => ('value' in result ? [result.value] : []))
  }

  /**
   * Claims this very job.
   *
   * @throws Unclaimable, NotFound; UnsupportedCapability for what the backend cannot claim
   */
  async claim(job: Job): Promise<Claim> {
    for (let tries = 1; ; tries += 1) {
      const result = await this.#tryToClaim(job)
      if (result instanceof Claim) return result
      if (result !== 'changed') throw result
      if (tries === MOST_TRIES) throw new Unclaimable(`${job} changed just now; try again`)
    }
  }

  /** Returns the claim, the error that says why there is none, or `changed` if the view was behind and has caught up. */
  async #tryToClaim(job: Job): Promise<Claim | Error | 'changed'> {
    const entry = Job.entryOf(job)
    if (entry.ended || !entry.stored) return new NotFound(`${job} has left the board`)
    const lacking = this.#backend.lacks?.(entry.stored.posting)
    if (lacking) return cannotClaim(job, { lacking, uri: this.#backend.uri })
    this.#view.queue.advance(this.#backend.now())
    const held = heldBack(entry, { queue: this.#view.queue, paused: false })
    if (held) return new Unclaimable(`${job}: ${held.text}`)
    const place = this.#view.queue.pick(entry)
    if (!place) return await this.#unclaimable(job, entry)
    const [result] = await this.#claimAll([place])
    if (result && 'value' in result) return result.value
    const limit = limitReached(place.stored.posting)
    if (result?.error instanceof Unclaimable && limit === undefined) {
      const why = await this.#unclaimable(job, entry)
      // A refusal that no change explains, of a resource that is held say, would be the same once more.
      return why === 'changed' && entry.place === place ? result.error : why
    }
    return result?.error ?? new NotConnected(`${this.#backend.uri} gave no answer`)
  }

  /** The claim of the job. @throws NotFound when nobody holds one, NotOwner when another does */
  async find(job: Job): Promise<Claim> {
    const entry = Job.entryOf(job)
    const claim = this.#claims.get(entry)
    if (claim) return claim
    if (entry.ended || !entry.claimed || entry.id === undefined) {
      throw new NotFound(`${job} is ${job.state}: nobody holds a claim of it`)
    }
    const owner = await this.#backend.owner(entry.id)
    throw new NotOwner(`${job} is claimed by ${owner ?? 'somebody else'}, not through this board object`)
  }

  pausedChanged(paused: boolean): void {
    this.#paused = paused
  }

  /** Trashes a job that was never run; of another, asks whoever runs it. @throws NotFound */
  async giveUp(job: Job, reason: string): Promise<void> {
    const entry = Job.entryOf(job)
    const { id, ended, claimed } = entry
    if (ended || id === undefined) throw new NotFound(`${job} has left the board`)
    const stored = claimed || job.runs > 0 ? undefined : await readJob(entry, this.#backend)
    if (stored?.posting.runs === 0 && (await this.#trashUnrun(entry, stored, reason))) return
    await this.#backend.request({ kind: 'cancel', id, job: String(job), who: this.#who, reason })
  }

  /** False where somebody was faster, and runs it by now. */
  async #trashUnrun(entry: Entry, stored: Stored, reason: string): Promise<boolean> {
    const { id, revision, posting } = stored
    const { cancelRequested } = entry
    const said = cancelledBy({ who: this.#who, reason })
    const discarded = { id, revision, posting, cancelRequested, who: this.#who, reason: said }
    const result = await this.#backend.discard(discarded)
    if (!('error' in result)) return true
    if (result.error instanceof Unclaimable) return false
    throw result.error
  }

  sessionChanged(event: SessionEvent): void {
    this.#session = event
    if (event.state === 'lost') this.#incarnation.sessionLost()
    if (event.state === 'lost' || event.state === 'closed')
      this.loseAll(`the session with ${this.#backend.uri} is over`)
  }

  loseAll(why: string): void {
    for (const [entry, claim] of this.#claims) this.#lose(entry, claim, why)
  }

  /** A change that was not this process' own doing ends its claim. */
  happened(happening: Happening, entry: Entry): void {
    const claim = this.#claims.get(entry)
    if (!claim || claim.settling || happening === 'claimed' || happening === 'posted') return
    this.#lose(entry, claim, `the claim was taken away (the job was ${happening})`)
    this.#freeLeftovers(claim)
  }

  /** Whether anything may be claimed at all. */
  get open(): boolean {
    return this.#session?.state === 'connected' && this.#view.isCurrent && this.#paused === false
  }

  /** Whether this backend can claim such a job at all. */
  #possible(posting: Posting): boolean {
    return this.#backend.lacks?.(posting) === undefined
  }

  /** What is being tried already takes as much of the head as what is wanted now. */
  #spread(max: number): number {
    const { spread } = this.#crowd
    return spread === 1 ? 1 : (spread * (max + this.#trying.size)) / max
  }

  #suspectHeld(): boolean {
    for (const { stored } of this.#trying) if (isSuspect(stored.posting)) return true
    return this.#suspects.size > 0
  }

  async #claimAll(places: readonly Place[]): Promise<Result<Claim>[]> {
    for (const place of places) this.#trying.add(place)
    this.#hold ??= this.#backend.holdSession()
    this.#incarnation.begin()
    try {
      const results = await this.#tryAll(places)
      const lost = results.filter((result) => 'error' in result && result.error instanceof Unclaimable).length
      this.#crowd.tried({ won: results.filter((result) => 'value' in result).length, lost })
      return results
    } finally {
      for (const place of places) this.#trying.delete(place)
      this.#refusals.release(places)
      this.#releaseHold()
    }
  }

  /** Those that are over a limit go to the trash instead. What becomes of one takes no other along. */
  async #tryAll(places: readonly Place[]): Promise<Result<Claim>[]> {
    const { candidates, refused } = await this.#judged(places)
    const within: Candidate[] = []
    const over: Candidate[] = []
    for (const candidate of candidates) {
      const limit = attempted(() => limitReached(candidate.posting))
      if ('value' in limit && limit.value === undefined) within.push(candidate)
      else over.push(candidate)
    }
    const [claimed, discarded] = await Promise.all([
      this.#claimEach(within),
      Promise.all(over.map((candidate) => this.#discard(candidate).catch(failed))),
    ])
    const results = [...claimed, ...discarded, ...refused.map(({ error }) => ({ error }))]
    const tried = [...within, ...over, ...refused]
    for (const [index, { place }] of tried.entries()) {
      const result = results[index]
      if (result && 'error' in result) this.#refusals.refused(place, result.error)
    }
    return results
  }

  /**
   * Finds out which attempts without an end were ended by an outage; nothing is asked where there are none. Where nobody
   * can be asked, the job is not claimed now: it could be trashed for deaths that were none.
   */
  async #judged(places: readonly Place[]): Promise<{
    readonly candidates: readonly Candidate[]
    readonly refused: readonly { readonly place: Place; readonly error: Error }[]
  }> {
    const candidates = places.map((place) => ({ place, posting: place.stored.posting }))
    const owners = new Set(candidates.flatMap(({ posting }) => unendedIncarnations(posting)))
    if (owners.size === 0) return { candidates, refused: [] }
    try {
      const living = await this.#incarnation.living(owners)
      const judged = candidates.map(({ place, posting }) => ({ place, posting: withoutOutages(posting, living) }))
      return { candidates: judged, refused: [] }
    } catch (error) {
      const doubtful = ({ posting }: Candidate) => unendedIncarnations(posting).length > 0
      const refused = candidates.filter(doubtful).map(({ place }) => ({ place, ...failed(error) }))
      return { candidates: candidates.filter((candidate) => !doubtful(candidate)), refused }
    }
  }

  /** One transaction each, asked for together. */
  async #claimEach(candidates: readonly Candidate[]): Promise<Result<Claim>[]> {
    if (candidates.length === 0) return []
    const at = new Date((this.#backend.clock ?? systemAlarmClock).now())
    const attempt = { who: this.#who, at, incarnation: this.#incarnation.id }
    const places = candidates.map(({ place }) => place)
    // Each in a try of its own: a posting that no attempt can be added to must not keep its neighbours from being claimed.
    const chosen = candidates.map(({ place, posting }) =>
      attempted<Choice>(() => {
        const { id, revision } = place.stored
        return { id, revision, who: this.#who, posting: beginAttempt(posting, attempt) }
      }),
    )
    const choices = chosen.flatMap((choice) => ('value' in choice ? [choice.value] : []))
    const answers = await this.#answersTo(choices)
    const claimed = places.map(({ entry }, index): Result<Claim> => {
      const choice = chosen[index]
      if (!choice || 'error' in choice) return choice ?? this.#noAnswer()
      const answer = answers.get(choice.value) ?? this.#noAnswer()
      return 'error' in answer ? answer : attempted(() => this.#granted(entry, choice.value, answer.value))
    })
    await this.#proven(claimed.flatMap((result) => ('value' in result ? [result.value] : [])))
    await Promise.all(places.map(({ entry }, index) => this.#handOut(entry, claimed[index])))
    return claimed
  }

  async #answersTo(choices: readonly Choice[]): Promise<ReadonlyMap<Choice, Result<Granted>>> {
    if (choices.length === 0) return new Map()
    const answers = await this.#backend.claim(choices).catch((error: unknown) => choices.map(() => failed(error)))
    return new Map(choices.map((choice, index) => [choice, answers[index] ?? this.#noAnswer()]))
  }

  #noAnswer(): { readonly error: Error } {
    return { error: new NotConnected(`${this.#backend.uri} gave no answer`) }
  }

  /**
   * Almost always known already. Before it is, nothing may be done that only an owner may do. Where the session ends before
   * it was proven, there may be no other for long: then all of these are lost, and that is known.
   */
  async #proven(claims: readonly Claim[]): Promise<void> {
    const over = claims.map(
      ({ stops: { lost } }) => new Promise<void>((told) => (lost.aborted ? told() : lost.onAbort(told))),
    )
    await Promise.race([this.#hold?.proven().catch(() => undefined), Promise.all(over)])
  }

  /** One that was lost, or asked back, before anybody had it in hand, is handed out all the same: its signals say so. */
  async #handOut(entry: Entry, result: Result<Claim> | undefined): Promise<void> {
    if (!result || 'error' in result) return
    if (entry.cancelRequested && entry.id !== undefined) await this.#cancel(entry.id, result.value)
    result.value.checkLease()
  }

  #granted(entry: Entry, { id, posting }: Choice, granted: Granted): Claim {
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
      alive: () => this.#backend.alive(session),
    })
    this.#claims.set(entry, claim)
    // The newest attempt is the one under way: what makes a suspect is how those before it ended.
    if (isSuspect({ ...posting, attempts: posting.attempts.slice(0, -1) })) this.#suspects.add(entry)
    // The end of the session may have been told between the answer and this line.
    const now = this.#session
    if (now?.session !== session || now.state === 'lost' || now.state === 'closed')
      this.#lose(entry, claim, 'the session is over')
    return claim
  }

  async #settle(entry: Entry, claim: Claim, settlement: Settlement): Promise<void> {
    entry.settled = settlement.posting
    const [result] = await this.#backend.settle([settlement])
    const error = result && 'error' in result ? result.error : undefined
    if (error && !(error instanceof ClaimLost)) throw error
    if (this.#claims.get(entry) === claim) this.#forget(entry)
    // The change was told before the answer: a suspect that waited for this one to end is looked at again now.
    this.#view.changed.notify()
    if (!error) return
    // It was not settled as this process meant to: what became of it is for others to say.
    if (entry.settled === settlement.posting) entry.settled = undefined
    this.#freeLeftovers(claim)
    throw error
  }

  async #discard({ place: { entry, stored }, posting }: Candidate): Promise<Result<Claim>> {
    const { id, revision } = stored
    const limit = limitReached(posting) ?? 'over a limit'
    const { cancelRequested } = entry
    const result = await this.#backend.discard({
      ...{ id, revision, posting, cancelRequested },
      ...{ who: this.#who, reason: limit },
    })
    return 'error' in result ? result : { error: new Unclaimable(`job ${posting.uuid} was trashed: ${limit}`) }
  }

  /** Finds out why a job is not to be claimed; `changed` where nothing that is known now speaks against it. */
  async #unclaimable(job: Job, entry: Entry): Promise<Error | 'changed'> {
    if (entry.ended || entry.id === undefined) return new NotFound(`${job} has left the board`)
    if (entry.content === 'unreadable') return new Unclaimable(`${job} cannot be read or claimed here`)
    const owner = await this.#backend.owner(entry.id)
    if (owner !== undefined) return new Unclaimable(`${job} is claimed by ${owner}`)
    // Released since, or gone: what has happened is on its way to the view.
    await this.#backend.barrier()
    if (stateOf(entry) === 'COMPLETE' || stateOf(entry) === 'TRASHED') return new NotFound(`${job} has left the board`)
    return 'changed'
  }

  /** Whether this board holds the claim of the job. */
  has(entry: Entry): boolean {
    return this.#claims.has(entry)
  }

  /** Somebody wants the job given up; it may be one of these. */
  cancelled(entry: Entry): void {
    const claim = this.#claims.get(entry)
    if (claim && entry.id !== undefined) void this.#cancel(entry.id, claim)
  }

  /** Who asked, and why, is for people: the claim is told in any case. */
  async #cancel(id: string, claim: Claim): Promise<void> {
    const request = await this.#backend.cancellation(id).catch(() => undefined)
    const said = request ? cancelledBy(request) : 'cancelled'
    claim.cancel(new Cancelled(`${claim.job}: ${said}`, { said }))
  }

  /** The lease is watched a little longer than there are claims: the next may come at once. */
  #releaseHold(): void {
    clearTimeout(this.#holdTimer)
    if (this.#claims.size > 0 || this.#trying.size > 0) return
    this.#holdTimer = setTimeout(() => {
      if (this.#claims.size > 0 || this.#trying.size > 0) return
      this.#hold?.[Symbol.dispose]()
      this.#hold = undefined
      this.#incarnation.rest()
    }, LINGER)
    this.#holdTimer.unref()
  }

  /** Where it fails, what is left goes with the session. */
  #freeLeftovers(claim: Claim): void {
    this.#backend.freeLeftovers?.(claim.leftovers).catch((error: Error) => {
      if (!(error instanceof NotConnected)) this.#failed(error)
    })
  }

  #forget(entry: Entry): void {
    this.#claims.delete(entry)
    this.#suspects.delete(entry)
    this.#releaseHold()
  }

  #lose(entry: Entry, claim: Claim, why: string): void {
    this.#forget(entry)
    claim.lose(new ClaimLost(`${claim.job}: ${why}; stop and write nothing, another may own it`))
  }
}

function cannotClaim(job: Job, { lacking, uri }: { lacking: keyof BackendCapabilities; uri: string }): Error {
  const message = `${job}: ${uri} has no ${lacking}, which it takes to claim it; it stays for boards that have`
  return new UnsupportedCapability(message, { capability: lacking })
}

function attempted<T>(work: () => T): Result<T> {
  try {
    return { value: work() }
  } catch (error) {
    return failed(error)
  }
}

/** So that what becomes of one job takes no claim of another along. */
function failed(thrown: unknown): { readonly error: Error } {
  return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) }
}

/** As the trash tells it, whoever puts the job there. */
function cancelledBy({ who, reason }: Cancellation): string {
  return reason === NO_REASON ? `cancelled by ${who}` : `cancelled by ${who}: ${reason}`
}
