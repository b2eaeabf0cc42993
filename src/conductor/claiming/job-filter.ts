/**
 * Decides which jobs a conductor accepts. A rejected job remains for other conductors, and costs no claim:
 *
 * - of an unknown flow or version: normal during the roll-out of a new version;
 * - whose former run still executes here: a task that ignores its signal must not run twice at once;
 * - of a flow with isolated tasks, while such tasks wait for a child process, or none can be started;
 * - half done by a dead owner, for `takeoverDelay`: external work that the owner had begun can come to an end.
 */
import type { JobBoard, Posting } from '../../board/index.ts'
import type { Logger } from '../../core/log.ts'
import type { AnyFlow } from '../../flow/index.ts'
import { type KnownFlows, UnknownFlows } from './known-flows.ts'
import { TakeoverDelay } from './takeover-delay.ts'

export interface JobFilterOptions {
  readonly board: JobBoard
  readonly flows: KnownFlows
  readonly log: Logger
  /** Returns whether a job of this flow may be begun, as far as it needs child processes. */
  readonly hasRoomFor: (flow: AnyFlow) => boolean
  /** The delay in milliseconds. */
  readonly takeoverDelay: number
  /** Returns whether code of a run of this job may be executing here. */
  readonly isRunning: (uuid: string) => boolean
  /** Called when a rejected job may be acceptable now. */
  readonly onRecheck: () => void
}

export class JobFilter implements Disposable {
  readonly #options: JobFilterOptions
  readonly #unknownFlows: UnknownFlows
  /** The jobs on the board that were rejected because a former run of them still executes here. */
  readonly #skipped = new Set<string>()
  readonly #takeoverDelay: TakeoverDelay

  constructor(options: JobFilterOptions) {
    this.#options = options
    this.#unknownFlows = new UnknownFlows(options)
    this.#takeoverDelay = new TakeoverDelay(options)
  }

  accepts(posting: Posting): boolean {
    const { flows, board, isRunning } = this.#options
    if (!flows.accepts(posting.details, board)) {
      // A posting without a flow is rejected only on a shared board, as one of TaskFlow's: it needs no report.
      if (posting.details.flow !== undefined) this.#unknownFlows.report(posting)
      return false
    }
    const flow = flows.find(posting.details)
    if (flow && !this.#options.hasRoomFor(flow)) return false
    if (isRunning(posting.uuid)) {
      this.#skipped.add(posting.uuid)
      return false
    }
    return this.#takeoverDelay.mayTakeOver(posting)
  }

  /** Notes that the code of a run of this job has ended. */
  noteRunEnded(uuid: string): void {
    if (this.#skipped.delete(uuid)) this.#options.onRecheck()
  }

  /** Stops the takeover delays; the filter is not used afterwards. */
  [Symbol.dispose](): void {
    this.#takeoverDelay[Symbol.dispose]()
  }
}
