/**
 * The claims that one board object holds: taken from the queue through the backend's transaction, settled, or lost.
 */
import {
  ClaimLost,
  JobboardError,
  NotConnected,
  NotFound,
  NotOwner,
  OutcomeUnknown,
  Unclaimable,
} from '../core/errors.ts'
import { sleep } from '../core/time.ts'
import { beginAttempt, isSuspect, limitReached } from './attempts.ts'
import type { Backend, Choice, Granted, Result, SessionEvent, Settlement, Stored } from './backend.ts'
import { Claim } from './claim.ts'
import { type Entry, type Place, stateOf } from './entry.ts'
import { Job } from './job.ts'
import type { Happening, LiveView } from './live-view.ts'
import type { Posting } from './posting.ts'

/** How long a job rests, in milliseconds, whose claim a server refused because of its own troubles. */
const PAUSE = 500

export class HeldClaims {
  readonly #backend: Backend
  readonly #view: LiveView
  readonly #who: string
  readonly #failed: (error: Error) => void
  readonly #claims = new Map<Entry, Claim>()
  /** Chosen, and the answer is not there yet. */
  readonly #trying = new Set<Place>()
  #session: SessionEvent | undefined

  constructor(options: { backend: Backend; view: LiveView; who: string; failed: (error: Error) => void }) {
    this.#backend = options.backend
    this.#view = options.view
    this.#who = options.who
    this.#failed = options.failed
  }

  /**
   * What is claimable now, up to `max`, set aside for {@link take}. Synchronous: between finding nothing and waiting for
   * a change, no change can slip through.
   */
  choose(wanted: { max: number; accept: (posting: Posting) => boolean }): Place[] {
    if (this.#session?.state !== 'connected' || !this.#view.current) return []
    return this.#view.queue.take({ ...wanted, suspectHeld: this.#suspectHeld(), spread: 1 })
  }

  /** Tries to claim what was chosen; empty where others were faster. */
  async take(places: readonly Place[]): Promise<Claim[]> {
    const results = await this.#claimAll(places)
    return results.flatMap((result) => ('value' in result ? [result.value] : []))
  }

  /** Claims this very job. @throws Unclaimable, NotFound */
  async claim(job: Job): Promise<Claim> {
    const entry = Job.entryOf(job)
    if (entry.ended || !entry.stored) throw new NotFound(`${job} has left the board`)
    const place = this.#view.queue.pick(entry)
    if (!place) throw await this.#unclaimable(job, entry)
    const [result] = await this.#claimAll([place])
    if (result && 'value' in result) return result.value
    const limit = limitReached(entry.stored.posting)
    if (result?.error instanceof Unclaimable && limit === undefined) throw await this.#unclaimable(job, entry)
    throw result?.error ?? new NotConnected(`${this.#backend.uri} gave no answer`)
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

  sessionChanged(event: SessionEvent): void {
    this.#session = event
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
  }

  #suspectHeld(): boolean {
    for (const { stored } of this.#trying) if (isSuspect(stored.posting)) return true
    for (const { stored } of this.#claims.keys()) {
      // The newest attempt is the one under way: what makes a suspect is how those before it ended.
      if (stored && isSuspect({ ...stored.posting, attempts: stored.posting.attempts.slice(0, -1) })) return true
    }
    return false
  }

  async #claimAll(places: readonly Place[]): Promise<Result<Claim>[]> {
    for (const place of places) this.#trying.add(place)
    try {
      return await Promise.all(places.map((place) => this.#claimOne(place).catch(failed)))
    } finally {
      for (const place of places) this.#trying.delete(place)
      this.#view.queue.release(places)
      // Whoever found nothing because these were being tried looks again.
      this.#view.changed.notify()
    }
  }

  async #claimOne(place: Place): Promise<Result<Claim>> {
    const limit = limitReached(place.stored.posting)
    const result = await (limit === undefined ? this.#tryClaim(place) : this.#discard(place.stored, limit))
    if ('value' in result || isNews(result.error)) return result
    if (result.error instanceof JobboardError && result.error.retryable) await sleep(PAUSE)
    else this.#hide(place.entry, result.error)
    return result
  }

  async #tryClaim({ entry, stored }: Place): Promise<Result<Claim>> {
    const posting = beginAttempt(stored.posting, { who: this.#who, at: new Date() })
    const choice: Choice = { id: stored.id, who: this.#who, revision: stored.revision, posting }
    const [result] = await this.#backend.claim([choice])
    if (!result) return { error: new NotConnected(`${this.#backend.uri} gave no answer`) }
    return 'error' in result ? result : { value: this.#granted(entry, stored.id, posting, result.value) }
  }

  /** Nobody here can claim it, and choosing it again at once would never end. */
  #hide(entry: Entry, error: Error): void {
    entry.content = 'unreadable'
    this.#view.queue.update(entry)
    this.#failed(error)
  }

  #granted(entry: Entry, id: string, posting: Posting, granted: Granted): Claim {
    const { session, revision, fence } = granted
    this.#view.rewrote(entry, { posting, revision })
    const settle = (settled: Claim, settlement: Settlement) => this.#settle(entry, settled, settlement)
    const claim = new Claim({ job: new Job(entry), id, who: this.#who, session, revision, fence, posting, settle })
    this.#claims.set(entry, claim)
    // The end of the session may have been told between the answer and this line.
    const now = this.#session
    if (now?.session !== session || now.state === 'lost' || now.state === 'closed')
      this.#lose(entry, claim, 'the session is over')
    return claim
  }

  async #settle(entry: Entry, claim: Claim, settlement: Settlement): Promise<void> {
    const [result] = await this.#backend.settle([settlement])
    const error = result && 'error' in result ? result.error : undefined
    if (error && !(error instanceof ClaimLost)) throw error
    if (this.#claims.get(entry) === claim) this.#claims.delete(entry)
    // The change was told before the answer: a suspect that waited for this one to end is looked at again now.
    this.#view.changed.notify()
    if (error) throw error
  }

  async #discard(stored: Stored, limit: string): Promise<Result<Claim>> {
    const { id, revision, posting } = stored
    const result = await this.#backend.discard({ id, revision, posting, who: this.#who, reason: limit })
    return 'error' in result ? result : { error: new Unclaimable(`job ${posting.uuid} was trashed: ${limit}`) }
  }

  async #unclaimable(job: Job, entry: Entry): Promise<Error> {
    if (entry.ended || entry.id === undefined) return new NotFound(`${job} has left the board`)
    if (entry.content === 'unreadable') return new Unclaimable(`${job} cannot be read or claimed here`)
    const owner = await this.#backend.owner(entry.id)
    if (owner !== undefined) return new Unclaimable(`${job} is claimed by ${owner}`)
    // Released since, or gone: what has happened is on its way to the view.
    await this.#backend.barrier()
    if (stateOf(entry) === 'COMPLETE' || stateOf(entry) === 'TRASHED') return new NotFound(`${job} has left the board`)
    return new Unclaimable(`${job} changed just now; try again`)
  }

  #lose(entry: Entry, claim: Claim, why: string): void {
    this.#claims.delete(entry)
    claim.lose(new ClaimLost(`${claim.job}: ${why}; stop and write nothing, another may own it`))
  }
}

/** So that what becomes of one job takes no claim of another along. */
function failed(thrown: unknown): { readonly error: Error } {
  return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) }
}

/** Answers that the view hears about, or that a connection's return changes: choosing again is right. */
function isNews(error: Error): boolean {
  return [Unclaimable, NotFound, NotConnected, OutcomeUnknown, ClaimLost].some((known) => error instanceof known)
}
