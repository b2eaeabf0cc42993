/**
 * Passes on what the view and the limits of a board report. They are made before the parts that receive it, because those are built on them:
 * so the receivers are bound afterwards, before the board is opened.
 */
import { InvalidState } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { toDate } from '../../../core/time.ts'
import type { ClaimParts } from '../../claims/assemble-claims.ts'
import type { JobStatus } from '../../contract/index.ts'
import { Job } from '../../jobs/job.ts'
import type { TokenTaker } from '../../limits/token-taker.ts'
import type { JobEntry } from '../../model/entry.ts'
import type { FlowReference } from '../../model/flow-reference.ts'
import type { LimitRules } from '../../model/limits.ts'
import type { ViewListener } from '../../view/effects.ts'
import type { JobEventKind } from '../../view/job-index.ts'
import type { LiveView } from '../../view/live-view.ts'
import type { ErrorReporter } from './events.ts'

export interface ViewEventsOptions {
  readonly log: Logger
  readonly errorReporter: ErrorReporter
}

/** The parts that receive the events. */
export interface ViewReceivers {
  readonly view: Pick<LiveView, 'setLimits'>
  readonly claims: Pick<ClaimParts, 'held' | 'canceller' | 'expirer'>
  readonly tokens: Pick<TokenTaker, 'rulesChanged'>
}

/** The listener of a view, and of the limits of its board. */
export class ViewEvents implements ViewListener {
  readonly #options: ViewEventsOptions
  #bound: ViewReceivers | undefined

  constructor(options: ViewEventsOptions) {
    this.#options = options
  }

  /** Binds the parts that receive the events. Call it once, before the board is opened. */
  bind(receivers: ViewReceivers): void {
    this.#bound = receivers
  }

  jobChanged(event: JobEventKind, entry: JobEntry, { isEarlier }: { readonly isEarlier: boolean }): void {
    this.#receivers.claims.held.jobChanged(event, entry)
    if (entry.stored && !isEarlier) this.#options.errorReporter.events.emit(event, { job: new Job(entry) })
  }

  statusRead(entry: JobEntry, status: JobStatus): void {
    this.#receivers.claims.held.statusRead(entry, status)
  }

  cancelRequested(entry: JobEntry): void {
    this.#receivers.claims.canceller.requested(entry)
  }

  jobsExpired(): void {
    this.#receivers.claims.expirer.noteExpired()
  }

  flowUnaccepted({ flow, version }: FlowReference, first: JobEntry): void {
    const { log, errorReporter } = this.#options
    const job = new Job(first)
    log.warn(
      { flow, version, job: job.uuid },
      'no living conductor knows the flow of these jobs, and other jobs no longer wait for them: start a conductor that has the flow, or cancel the jobs',
    )
    errorReporter.events.emit('unaccepted', { flow, version, job })
  }

  limited(key: string, { first, until }: { readonly first: JobEntry; readonly until: number | undefined }): void {
    const { log, errorReporter } = this.#options
    const job = new Job(first)
    const known = until === undefined ? {} : { until: toDate(until) }
    log.info({ limit: key, job: job.uuid, ...known }, 'jobs wait for a limit')
    errorReporter.events.emit('limited', { key, job, ...known })
  }

  onError(error: Error): void {
    this.#options.errorReporter.report(error)
  }

  /** Takes in the limits that are set now. */
  rulesChanged(rules: LimitRules): void {
    this.#receivers.view.setLimits(rules)
    this.#receivers.tokens.rulesChanged()
  }

  get #receivers(): ViewReceivers {
    if (this.#bound) return this.#bound
    throw new InvalidState('the parts of the board are not bound to its events yet')
  }
}
