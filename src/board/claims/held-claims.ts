/**
 * The claims that this board object holds, until they are settled or lost. A claim is lost when the session is over, or when a change shows
 * that somebody took it away. Each claimed job is followed: with a closed view, this process would otherwise receive no such change.
 */
import { ClaimLost, NotConnected, NotFound, NotOwner } from '../../core/errors.ts'
import { systemAlarmClock } from '../../core/time.ts'
import type { Backend, JobStatus } from '../contract/index.ts'
import { Job } from '../jobs/job.ts'
import type { JobEntry } from '../model/entry.ts'
import type { Posting } from '../model/posting/posting.ts'
import { needsSuspectPlace, SuspectPlace } from '../queue/suspect-place.ts'
import type { JobEventKind } from '../view/job-index.ts'
import type { LiveView } from '../view/live-view.ts'
import type { Claim } from './claim.ts'
import type { ClaimSession } from './claim-session.ts'

export interface HeldClaimsOptions {
  readonly backend: Pick<Backend, 'claims' | 'clock' | 'resources' | 'uri'>
  readonly view: Pick<LiveView, 'changed'>
  readonly session: Pick<ClaimSession, 'begin' | 'end' | 'isOver'>
  readonly onError: (error: Error) => void
}

/** The claims that one board object holds. */
export class HeldClaims {
  readonly #options: HeldClaimsOptions
  readonly #claims = new Map<JobEntry, Claim>()
  /** Ends the following of each claimed job. */
  readonly #followed = new Map<JobEntry, Disposable>()
  #suspects = new SuspectPlace()

  constructor(options: HeldClaimsOptions) {
    this.#options = options
    this.shareSuspects(this.#suspects)
  }

  /** Returns whether this board object holds the claim of the job. */
  holds(entry: JobEntry): boolean {
    return this.#claims.has(entry)
  }

  /** Returns the claim of the job; undefined if this board object does not hold it. */
  of(entry: JobEntry): Claim | undefined {
    return this.#claims.get(entry)
  }

  /** Returns the claim of the job. @throws NotFound when the job is unclaimed, NotOwner when another board object holds the claim */
  async find(job: Job): Promise<Claim> {
    const entry = Job.entryFor(job)
    const claim = this.#claims.get(entry)
    if (claim) return claim
    if (entry.ended || !entry.claimed || entry.id === undefined) {
      throw new NotFound(`${job} is ${job.state}: there is no claim to settle`)
    }
    const owner = await this.#options.backend.claims.owner(entry.id)
    throw new NotOwner(`${job} is claimed by ${owner ?? 'another owner'}, not through this board object`)
  }

  /** Returns the uuid of a job of this batch that is claimed here, if there is one. */
  findMember(batch: string): string | undefined {
    for (const { stored } of this.#claims.keys()) if (stored?.posting.batch === batch) return stored.posting.uuid
    return undefined
  }

  /** Adds a claim that was granted in a session. It is lost at once if that session is over. */
  add(entry: JobEntry, claim: Claim, session: string): void {
    this.#claims.set(entry, claim)
    this.#options.session.begin([entry])
    // The claim before it may not have been forgotten yet, if the answer to its settlement was lost.
    this.#followed.get(entry)?.[Symbol.dispose]()
    if (entry.follower) this.#followed.set(entry, entry.follower.follow(entry))
    const { posting } = claim
    // The newest attempt is still running: only earlier attempts make a job a suspect.
    if (posting.attempts.length > 1)
      this.takeSuspectPlace(entry, { ...posting, attempts: posting.attempts.slice(0, -1) })
    // The end of the session may have been reported between the answer and this line.
    if (this.#options.session.isOver(session)) this.#lose(entry, claim, 'the session is over')
  }

  /** Removes a claim that was settled, or whose settlement was refused because it was lost. */
  remove(entry: JobEntry, claim: Claim): void {
    if (this.#claims.get(entry) === claim) this.#forget(entry)
    // An open view received the change before this answer. A suspect that waited for the end of this claim can be claimed now.
    this.#options.view.changed.notify()
  }

  loseAll(why: string): void {
    for (const [entry, claim] of this.#claims) this.#lose(entry, claim, why)
  }

  /** Handles a change of a job. A change that this process did not make ends the claim. */
  jobChanged(event: JobEventKind, entry: JobEntry): void {
    const claim = this.#claims.get(entry)
    if (!claim || claim.isSettling || event === 'claimed' || event === 'posted') return
    this.#lose(entry, claim, `the claim was taken away (the job was ${event === 'abandoned' ? 'released' : event})`)
    this.freeOrphans(claim)
  }

  /** Handles the status of a followed job: ends a claim of this process that it does not show. A status that is older than the claim is ignored. */
  statusRead(entry: JobEntry, status: JobStatus): void {
    const claim = this.#claims.get(entry)
    if (!claim || claim.isSettling || typeof status === 'string' || status.revision < claim.revision) return
    if (status.claimed && status.revision === claim.revision) return
    this.#lose(entry, claim, `the claim was taken away (the job was ${status.claimed ? 'claimed again' : 'released'})`)
    this.freeOrphans(claim)
  }

  /** Releases the resources of an orphaned claim. If that fails, they are released when the session ends. */
  freeOrphans(claim: Claim): void {
    const { backend, onError } = this.#options
    backend.resources.freeOrphans(claim.orphanedClaim).catch((error: Error) => {
      if (!(error instanceof NotConnected)) onError(error)
    })
  }

  /** The place for suspects of this process. */
  get suspects(): SuspectPlace {
    return this.#suspects
  }

  /** Shares the place for suspects with other boards of this process. Call it before the first claim. */
  shareSuspects(place: SuspectPlace): void {
    this.#suspects = place
    place.onChange(() => this.#options.view.changed.notify())
  }

  /** Takes the place for suspects, if the job is one. */
  takeSuspectPlace(entry: JobEntry, posting: Posting): void {
    if (!needsSuspectPlace(posting, { isCancelled: entry.cancelRequested })) return
    const { uri, clock } = this.#options.backend
    this.#suspects.take(entry, { uuid: posting.uuid, board: uri, clock: clock.alarms ?? systemAlarmClock })
  }

  /** Frees the place for suspects of jobs whose claims were not granted. */
  freeSuspectPlaces(entries: readonly JobEntry[]): void {
    for (const entry of entries) if (!this.#claims.has(entry)) this.#suspects.free(entry)
  }

  #forget(entry: JobEntry): void {
    this.#claims.delete(entry)
    this.#followed.get(entry)?.[Symbol.dispose]()
    this.#followed.delete(entry)
    this.#suspects.free(entry)
    this.#options.session.end([entry])
  }

  #lose(entry: JobEntry, claim: Claim, why: string): void {
    this.#forget(entry)
    claim.markLost(
      new ClaimLost(`${claim.job}: ${why}; stop the work and write nothing, another owner may have the job`),
    )
  }
}
