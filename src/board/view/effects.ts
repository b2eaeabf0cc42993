/**
 * Carries out the effects of changes: notifies the listener, and asks the backend how a job ended where no change says so.
 *
 * A listener may change other jobs, for example by a post on a memory board. The effects of that change are carried out last: otherwise, listeners
 * would receive the events of one job in the wrong order.
 */
import { asError, NotConnected } from '../../core/errors.ts'
import type { BackendSections, JobStatus } from '../contract/index.ts'
import type { JobEntry } from '../model/entry.ts'
import type { FlowReference } from '../model/flow-reference.ts'
import type { ClaimedPostings } from './claimed-postings.ts'
import type { JobFollower } from './job-follower.ts'
import type { Effect, JobEventKind, JobIndex } from './job-index.ts'
import type { Readiness } from './readiness.ts'

/** The receiver of what happens to the jobs in a view. */
export interface ViewListener {
  /** Called when a job has changed. `isEarlier`: the change is older than the view, so no event is emitted. */
  jobChanged(event: JobEventKind, entry: JobEntry, options: { readonly isEarlier: boolean }): void
  /** Called with the status of a followed job. */
  statusRead(entry: JobEntry, status: JobStatus): void
  /** Called when a cancel of the job was requested. */
  cancelRequested(entry: JobEntry): void
  /** Called when the jobs of a flow are set aside, because no conductor knows the flow; `first` is the first of these jobs. */
  flowUnaccepted(work: FlowReference, first: JobEntry): void
  /** Called after each search for a job while the view contains expired jobs. */
  jobsExpired(): void
  /** Called when jobs begin to wait for a limit; `first` is the first of them, and `until` the time if it is known. */
  limited(key: string, waiting: { readonly first: JobEntry; readonly until: number | undefined }): void
  onError(error: Error): void
}

export interface EffectRunnerOptions {
  readonly index: JobIndex
  /** Absent where the view holds the whole board: then every end is reported. */
  readonly sections: Pick<BackendSections, 'statusOf'> | undefined
  readonly listener: Pick<ViewListener, 'jobChanged' | 'cancelRequested' | 'onError'>
  readonly follower: Pick<JobFollower, 'forget'>
  readonly claimedPostings: Pick<ClaimedPostings, 'noteClaim' | 'settleEnd'>
  readonly readiness: Pick<Readiness, 'isCurrent'>
  /** Called when it was found how a job ended. */
  readonly onEndFound: () => void
}

export class EffectRunner {
  readonly #options: EffectRunnerOptions
  #isRunning = false

  constructor(options: EffectRunnerOptions) {
    this.#options = options
  }

  /** Whether effects are being carried out: a listener has called back. */
  get isRunning(): boolean {
    return this.#isRunning
  }

  /** Carries out all effects in their order. Does nothing while an earlier call does so. */
  run(): void {
    if (this.#isRunning) return
    const { index } = this.#options
    this.#isRunning = true
    try {
      for (let effects = index.takeEffects(); effects.length > 0; effects = index.takeEffects())
        for (const effect of effects) this.#runOne(effect)
    } finally {
      this.#isRunning = false
    }
  }

  #runOne(effect: Effect): void {
    const { listener } = this.#options
    if (effect.kind === 'emit') this.#emit(effect)
    else if (effect.kind === 'cancelled') listener.cancelRequested(effect.entry)
    else if (effect.kind === 'find-end') void this.findEnd(effect.entry, effect.id)
    else listener.onError(asError(effect.error))
  }

  #emit(effect: Extract<Effect, { kind: 'emit' }>): void {
    const { event, entry } = effect
    const { listener, follower, claimedPostings } = this.#options
    if (event === 'claimed') claimedPostings.noteClaim(entry)
    if (entry.ended) {
      claimedPostings.settleEnd(entry, entry.ended)
      if (entry.id !== undefined) follower.forget(entry.id)
    }
    listener.jobChanged(event, entry, effect)
  }

  /** Asks the backend how a job ended. Where answers and changes use different connections, an answer may arrive before its change. */
  async findEnd(entry: JobEntry, id: string): Promise<void> {
    const { index, sections, readiness, listener, onEndFound } = this.#options
    try {
      const [status = 'there'] = (await sections?.statusOf([id])) ?? []
      if (entry.ended || !readiness.isCurrent) return
      if (status === 'there') {
        if (entry.windowStatus !== 'outside') index.toRead.add(entry)
      } else {
        entry.trashing ||= status === 'trashed'
        index.end(entry, id)
      }
      onEndFound()
    } catch (error) {
      // Without a connection nothing is reported: the listing after the reconnect shows how the job ended.
      if (!(error instanceof NotConnected)) listener.onError(asError(error))
    }
  }
}
