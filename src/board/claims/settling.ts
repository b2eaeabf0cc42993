/** Ends jobs: settles claims, and moves unclaimed jobs to the trash. Writes what ends to the history of the board. */
import { ClaimLost, UnsupportedCapability } from '../../core/errors.ts'
import { attempt } from '../../core/result.ts'
import { type AlarmClock, systemAlarmClock } from '../../core/time.ts'
import type { Backend, DiscardRequest, Settlement, StoredJob } from '../contract/index.ts'
import type { LimitBook } from '../limits/limit-book.ts'
import { type HistoryEntry, toEndedJobRecord } from '../model/ended-job.ts'
import type { JobEntry } from '../model/entry.ts'
import type { Posting } from '../model/posting/posting.ts'
import type { LiveView } from '../view/live-view.ts'
import { readWholePostings } from './candidates.ts'
import type { Claim, ClaimEnd, ClaimKeeper, GrantedClaim } from './claim.ts'
import { DoomedJobs } from './doomed-jobs.ts'
import { noAnswerError } from './given-job.ts'
import type { HeldClaims } from './held-claims.ts'
import { assertSupported } from './supported.ts'

const OWN_CHANGES = { consume: 'consumed', trash: 'trashed', abandon: 'released' } as const

export interface SettlerOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly held: Pick<HeldClaims, 'remove' | 'freeOrphans'>
  readonly who: string
  /** The limits, with the settings of flows. */
  readonly limits: Pick<LimitBook, 'flowRules'>
  /** The number of jobs that the history keeps. */
  readonly keepHistory: number
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** The end of a job, as the history records it. */
interface EndOfJob {
  readonly kind: Settlement['kind']
  readonly posting: Posting
  readonly reason?: string
  readonly results?: Uint8Array | undefined
}

/** An unclaimed job that is moved to the trash. */
export type Discard = Omit<DiscardRequest, 'who' | 'history'>

/** Ends the jobs of one board object. */
export class Settler implements ClaimKeeper {
  readonly #options: SettlerOptions
  /** Moves doomed jobs to the trash. */
  readonly doomed: DoomedJobs

  constructor(options: SettlerOptions) {
    this.#options = options
    this.doomed = new DoomedJobs({
      ...options,
      // The method `discard` waits for `doomed.ended`: called from here, it would wait for itself.
      discard: (stored, request) => {
        const { id, revision, posting } = stored
        return this.#discardOne({ stored }, { id, revision, posting, ...request })
      },
    })
  }

  /** The clock of the deadlines of claims. */
  get clock(): AlarmClock {
    return this.#options.backend.clock.alarms ?? systemAlarmClock
  }

  /** Whether the board keeps a record of the jobs that have ended. */
  get keepsHistory(): boolean {
    // What other programs do would be missing in it.
    return this.#options.keepHistory > 0 && !this.#options.backend.shared
  }

  /** Returns whether the session is certain to be alive at this instant. */
  isSessionAlive(session: string): boolean {
    return this.#options.backend.session.isAlive(session)
  }

  /** Returns for how many milliseconds the present session is certain to be alive; undefined without a session. */
  sessionLeftMs(): number | undefined {
    return this.#options.backend.session.leftMs()
  }

  /** Returns the posting with the settings of its flow, as this process knows them. */
  withSettings(posting: Posting): Posting {
    return this.#options.limits.flowRules.applyTo(posting)
  }

  /** Settles a claim in one transaction. @throws ClaimLost, NotConnected, OutcomeUnknown; UnsupportedCapability for added resources */
  settle(claim: Claim, granted: GrantedClaim, end: ClaimEnd): Promise<void> {
    return attempt(() => {
      const { backend, view, held } = this.#options
      const { entry } = granted
      if (end.kind === 'abandon' && end.held) assertSupported(backend, end.posting)
      if (end.kind === 'consume' && end.record && end.record.place !== backend.claims.recordedPlace)
        throw new UnsupportedCapability(`${backend.uri} cannot write to the logbooks of ${claim.job}`, {
          capability: 'records',
        })
      entry.settledPosting = end.posting
      return backend.claims.settle(toSettlement(granted, end, this.#toHistory(entry, end))).then(
        () => {
          held.remove(entry, claim)
          view.applyOwnChange(entry, OWN_CHANGES[end.kind])
          return end.kind === 'trash' ? this.doomed.ended : undefined
        },
        (error: unknown) => {
          if (error instanceof ClaimLost) this.#onLost(entry, claim, end)
          throw error
        },
      )
    })
  }

  /** Handles a settlement that was refused: later changes show how the job ended. */
  #onLost(entry: JobEntry, claim: Claim, { posting }: ClaimEnd): void {
    const { held } = this.#options
    held.remove(entry, claim)
    if (entry.settledPosting === posting) entry.settledPosting = undefined
    held.freeOrphans(claim)
  }

  /** Trashes an unclaimed job in one transaction, and the jobs that this dooms. @throws as `Backend.trash.discard` */
  async discard(job: Pick<JobEntry, 'stored'>, discarded: Discard): Promise<void> {
    await this.#discardOne(job, discarded)
    await this.doomed.ended
  }

  /** Trashes an unclaimed job as {@link discard} does. Reads its posting again if the view has not kept its details. */
  async discardStored(stored: StoredJob, request: Pick<DiscardRequest, 'cancelRequested' | 'reason'>): Promise<void> {
    const { backend } = this.#options
    const [posting = { error: noAnswerError(backend) }] = await readWholePostings([stored], backend)
    if ('error' in posting) throw posting.error
    const { id, revision } = stored
    await this.discard({ stored }, { id, revision, posting: posting.value, ...request })
  }

  #discardOne(job: Pick<JobEntry, 'stored'>, discarded: Discard): Promise<void> {
    const history = this.#toHistory(job, { kind: 'trash', ...discarded })
    const { backend, who } = this.#options
    return backend.trash.discard({ ...discarded, who, ...(history ? { history } : {}) })
  }

  /** Returns what the end of a job adds to the history; undefined where it adds nothing. */
  #toHistory(
    { stored }: Pick<JobEntry, 'stored'>,
    { kind, posting, reason, results }: EndOfJob,
  ): HistoryEntry | undefined {
    if (kind === 'abandon' || !this.keepsHistory) return undefined
    const { backend, who, keepHistory } = this.#options
    const outcome = kind === 'consume' ? 'COMPLETE' : 'TRASHED'
    const end = { outcome, who, endedAt: backend.clock.now(), postedAt: stored?.postedAt, reason, results } as const
    return { job: toEndedJobRecord(this.withSettings(posting), end), keep: keepHistory }
  }
}

function toSettlement(granted: GrantedClaim, end: ClaimEnd, history: HistoryEntry | undefined): Settlement {
  const { id, who, session, revision, entry } = granted
  const { cancelRequested } = entry
  if (end.kind !== 'consume') return { ...end, id, who, session, revision, cancelRequested, history }
  // Field by field, because every job that is done comes through here, and a spread costs several times as much.
  const { posting, results, record } = end
  return { kind: 'consume', posting, results, record, id, who, session, revision, cancelRequested, history }
}
