/**
 * Which jobs a conductor takes. What it says no to is left to others, and costs no claim:
 *
 * - of a size that it does not serve;
 * - of a flow, or a version, that is not known here: right while a new version is rolled out;
 * - whose former run still executes here: a task that ignores its signal must not get a second copy of itself beside it;
 * - half done by an owner that is dead, for `takeoverDelay`: time for what it had begun outside to come to an end.
 */
import type { JobBoard, Posting, Size } from '../../board/index.ts'
import type { Logger } from '../../core/log.ts'
import type { KnownFlows } from './known-flows.ts'
import { TakeoverDelay } from './takeover-delay.ts'
import { UnknownFlows } from './unknown-flows.ts'

export interface JobFilterOptions {
  readonly board: JobBoard
  readonly flows: KnownFlows
  readonly log: Logger
  /** All when absent. */
  readonly sizes?: readonly Size[] | undefined
  /** In milliseconds. */
  readonly takeoverDelay: number
  /** Whether code of a run of this job may be executing here. */
  readonly isRunning: (uuid: string) => boolean
  /** A job that was refused may be accepted now. */
  readonly onRecheck: () => void
}

export class JobFilter implements Disposable {
  readonly #options: JobFilterOptions
  readonly #unknownFlows: UnknownFlows
  /** Jobs on the board that were left alone because a former run of theirs still executes here. */
  readonly #skipped = new Set<string>()
  readonly #takeoverDelay: TakeoverDelay

  constructor(options: JobFilterOptions) {
    this.#options = options
    this.#unknownFlows = new UnknownFlows(options)
    this.#takeoverDelay = new TakeoverDelay(options)
  }

  accepts(posting: Posting): boolean {
    const { flows, board, sizes, isRunning } = this.#options
    if (sizes && !sizes.includes(posting.size)) return false
    if (!flows.accepts(posting.details, board)) {
      // Only a job of TaskFlow's is refused without naming a flow: that is no news.
      if (posting.details.flow !== undefined) this.#unknownFlows.report(posting)
      return false
    }
    if (isRunning(posting.uuid)) {
      this.#skipped.add(posting.uuid)
      return false
    }
    return this.#takeoverDelay.mayTakeOver(posting)
  }

  /** The code of a run of this job has ended. */
  noteRunEnded(uuid: string): void {
    if (this.#skipped.delete(uuid)) this.#options.onRecheck()
  }

  /** Nothing is selected any more. */
  [Symbol.dispose](): void {
    this.#takeoverDelay[Symbol.dispose]()
  }
}
