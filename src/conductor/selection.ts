/**
 * Which jobs a conductor takes. What it says no to is left to others, and costs no claim:
 *
 * - of a size that it does not serve;
 * - of a flow, or a version, that is not known here: right while a new version is rolled out;
 * - whose former run still executes here: a task that ignores its signal must not get a second copy of itself beside it;
 * - half done by an owner that is dead, for `takeoverDelay`: time for what it had begun outside to come to an end.
 */
import type { JobBoard, Posting, Size } from '../board/index.ts'
import type { Logger } from '../core/log.ts'
import { monotonic } from '../core/time.ts'
import type { KnownFlows } from './known-flows.ts'
import { UnknownFlows } from './unknown-flows.ts'

/** Of how many is remembered since when they wait to be taken over; of one that is forgotten it begins anew. */
const MOST_TAKEOVERS = 10_000

export interface SelectionOptions {
  readonly board: JobBoard
  readonly flows: KnownFlows
  readonly log: Logger
  /** All when absent. */
  readonly sizes?: readonly Size[] | undefined
  /** In milliseconds. */
  readonly takeoverDelay: number
  /** Whether code of a run of this job may be executing here. */
  readonly running: (uuid: string) => boolean
  /** A job that was refused may be accepted now. */
  readonly lookAgain: () => void
}

export class Selection {
  readonly #options: SelectionOptions
  readonly #unknownFlows: UnknownFlows
  /** Jobs on the board that were left alone because a former run of theirs still executes here. */
  readonly #leftAlone = new Set<string>()
  /** Half-done jobs of dead owners: by job, which run it was, and when it may be taken over. */
  readonly #takeovers = new Map<string, { readonly run: number; readonly from: number }>()

  constructor(options: SelectionOptions) {
    this.#options = options
    this.#unknownFlows = new UnknownFlows(options)
  }

  accepts(posting: Posting): boolean {
    const { flows, board, sizes, running } = this.#options
    if (sizes && !sizes.includes(posting.size)) return false
    if (!flows.accepts(posting.details, board)) {
      // Only a job of TaskFlow's is refused without naming a flow: that is no news.
      if (posting.details.flow !== undefined) this.#unknownFlows.met(posting)
      return false
    }
    if (running(posting.uuid)) {
      this.#leftAlone.add(posting.uuid)
      return false
    }
    return this.#mayTakeOver(posting)
  }

  /** The code of a run of this job has ended. */
  runOver(uuid: string): void {
    if (this.#leftAlone.delete(uuid)) this.#options.lookAgain()
  }

  #mayTakeOver({ uuid, runs: run, attempts }: Posting): boolean {
    const { takeoverDelay, lookAgain } = this.#options
    const last = attempts.at(-1)
    if (takeoverDelay === 0 || !last || last.ended !== undefined) return true
    const known = this.#takeovers.get(uuid)
    if (known?.run === run) return known.from <= monotonic()
    this.#takeovers.set(uuid, { run, from: monotonic() + takeoverDelay })
    const [oldest] = this.#takeovers.keys()
    if (this.#takeovers.size > MOST_TAKEOVERS && oldest !== undefined) this.#takeovers.delete(oldest)
    // A millisecond more: timers fire a little early by the clock that is compared with.
    setTimeout(lookAgain, takeoverDelay + 1).unref()
    return false
  }
}
