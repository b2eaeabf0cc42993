/** The claim of a job that the caller names, and the reasons why such a job cannot be claimed. */
import { LimitReached, LimitsChanged, NotConnected, Unclaimable } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import type { Backend } from '../contract/index.ts'
import { refusalError } from '../contract/refusals.ts'
import { Job } from '../jobs/job.ts'
import { localReason } from '../jobs/waiting-for.ts'
import type { LimitBook } from '../limits/limit-book.ts'
import { exceededLimit } from '../model/attempts.ts'
import { type JobEntry, type QueuePlace, toJobState } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'
import { Claim } from './claim.ts'

/** The maximum number of tries to claim a given job while other boards change it at the same time. */
const MAX_CLAIM_ATTEMPTS = 3

export interface GivenJobClaimerOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly limits: Pick<LimitBook, 'refresh' | 'flowRules'>
  /** Lets a job be chosen again at once that was rejected a moment before. */
  readonly resume: (place: QueuePlace) => void
  /** Claims a reserved job. */
  readonly claim: (place: QueuePlace) => Promise<Result<Claim>>
}

export class GivenJobClaimer {
  readonly #options: GivenJobClaimerOptions

  constructor(options: GivenJobClaimerOptions) {
    this.#options = options
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
    const { backend, view, resume, claim, limits } = this.#options
    const entry = Job.entryFor(job)
    if (entry.ended || !entry.stored) return refusalError(String(job), { why: 'gone' })
    const reason = () => {
      view.queue.advance(backend.clock.now())
      return localReason(entry, { queue: view.queue, paused: false })
    }
    let held = reason()
    if (held?.kind === 'limit' || held?.kind === 'pause' || held?.kind === 'disabled') {
      // The limits may have been changed since this process has read them, also by itself.
      await limits.refresh()
      held = reason()
    }
    if (held?.kind === 'limit') return new LimitReached(`${job}: ${held.text}`, held)
    if (held) return new Unclaimable(`${job}: ${held.text}`)
    if (entry.queuePlace) resume(entry.queuePlace)
    const place = view.queue.reserveEntry(entry)
    if (!place) return await this.#explainUnclaimable(job, entry)
    const result = await claim(place)
    if ('value' in result) return result.value
    // By now the limits, and the settings of flows, are read again: the next try finds out what they say of this job.
    if (result.error instanceof LimitsChanged) return 'changed'
    // The job is in the trash now: the error says why.
    const limit =
      exceededLimit(limits.flowRules.applyTo(place.stored.posting)) ??
      (entry.ended === 'TRASHED' ? entry.ended : undefined)
    if (result.error instanceof LimitReached) return result.error
    if (!(result.error instanceof Unclaimable) || limit !== undefined) return result.error
    const why = await this.#explainUnclaimable(job, entry)
    // Without a change, such as where a resource is held, another try would be refused in the same way.
    return why === 'changed' && entry.queuePlace === place ? result.error : why
  }

  /** Finds out why a job cannot be claimed; `changed` if there is no reason any more. */
  async #explainUnclaimable(job: Job, entry: JobEntry): Promise<Error | 'changed'> {
    const { backend } = this.#options
    if (entry.ended || entry.id === undefined) return refusalError(String(job), { why: 'gone' })
    if (entry.content === 'unreadable') return new Unclaimable(`${job} cannot be read or claimed here`)
    const owner = await backend.claims.owner(entry.id)
    if (owner !== undefined) return new Unclaimable(`${job} is claimed by ${owner}`)
    // The job was released or has left the board since: the barrier waits until the view has received the change.
    await backend.changes.barrier()
    if (toJobState(entry) === 'COMPLETE' || toJobState(entry) === 'TRASHED')
      return refusalError(String(job), { why: 'gone' })
    return 'changed'
  }
}

/** Returns the error for a request that the backend has not answered. */
export function noAnswerError({ uri }: Pick<Backend, 'uri'>): NotConnected {
  return new NotConnected(`${uri} did not answer the claim`)
}
