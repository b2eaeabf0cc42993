/**
 * The view as it is used by callers that wait for jobs to claim.
 *
 * A caller that finds nothing on a busy board leaves the view when its {@link ChangeBudget} is spent: then the servers do not send it
 * what others work on. Until the budget is full again it polls the board for jobs that stay because nobody else takes them. Such a
 * job is found about a second later than by a caller that views the board.
 *
 *     viewing ──the budget is spent, and no job in the view is one for a caller──→ polling
 *     polling ──a job for a caller is found, or the budget is full──→ viewing
 *
 * A process does not begin to poll while something else in it needs the view, because changes are received for that anyway; nor while
 * a job that it would accept waits for others, because they change when its turn comes.
 */
import { rejectOnAbort } from '../../core/async/abort.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { monotonic, sleep } from '../../core/time.ts'
import type { Backend } from '../backend.ts'
import type { Posting } from '../model/posting.ts'
import { dueTime } from '../queue/queue.ts'
import type { LiveView } from '../view/live-view.ts'
import { ChangeBudget } from './change-budget.ts'
import { IdlePoll } from './idle-poll.ts'

/**
 * Opening the view again reads all its jobs: so the polling lasts longer by this time for each of them, and a long board is not read
 * every few seconds.
 */
const POLL_MS_PER_JOB = 4
const MAX_POLL_MS = 600_000
/** The pause between two looks: `perLook` times what the last one took, and at least `least`; half of it is random. */
const POLL_PAUSE_MS = { least: 500, perLook: 50 } as const

export interface WaitingViewOptions {
  readonly backend: Backend
  readonly view: LiveView
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** One caller that waits for jobs; it holds the view until it is disposed, except while it polls. */
export interface Waiter extends Disposable {
  /** Whether the caller, which has found nothing in the view, polls the board now. */
  readonly shouldPoll: boolean
  /** Closes the view, and resolves when it is open and listed again. @throws the signal's reason; AccessDenied */
  poll(signal: AbortSignal): Promise<void>
}

export class WaitingView {
  readonly #options: WaitingViewOptions
  readonly #budget = new ChangeBudget()
  /** Returns whether a caller accepts the job: one function of each caller. */
  readonly #accepts = new Set<(posting: Posting) => boolean>()
  /** The number of callers that hold the view. */
  #holds = 0
  /** The polling of all callers, while there is any. */
  #polling: Promise<void> | undefined

  constructor(options: WaitingViewOptions) {
    this.#options = options
  }

  /** Holds the view, and waits until it was listed; without a connection it is listed later. @throws AccessDenied */
  async begin(options: {
    readonly signal: AbortSignal
    readonly accepts: (posting: Posting) => boolean
  }): Promise<Waiter> {
    // Two callers may have the same function.
    const accepts = (posting: Posting) => options.accepts(posting)
    let hold: Disposable | undefined
    const release = () => {
      if (hold) this.#holds -= 1
      hold?.[Symbol.dispose]()
      hold = undefined
    }
    const enter = async (signal: AbortSignal) => {
      hold = this.#options.view.hold()
      this.#holds += 1
      await this.#options.view.whenEntered({ signal }).catch((error: unknown) => {
        if (!(error instanceof NotConnected)) throw error
      })
    }
    const end = () => {
      release()
      this.#accepts.delete(accepts)
    }
    this.#accepts.add(accepts)
    try {
      await enter(options.signal)
    } catch (error) {
      end()
      throw error
    }
    const mayPoll = () => this.#mayPoll()
    return {
      get shouldPoll() {
        return mayPoll()
      },
      poll: async (signal) => {
        this.#polling ??= this.#pollUntilRefilled(this.#rejectedIds())
        const polling = this.#polling
        release()
        this.#options.view.closeIfUnused()
        await rejectOnAbort(polling, signal)
        await enter(signal)
      },
      [Symbol.dispose]: end,
    }
  }

  /** Notes that a job was claimed: this process has work on this board. */
  noteClaimed(): void {
    this.#budget.fill(this.#options.view.received)
  }

  #mayPoll(): boolean {
    if (this.#polling !== undefined) return true
    const { backend, view } = this.#options
    if (!IdlePoll.isPossible(backend)) return false
    this.#budget.charge(view.received)
    if (!this.#budget.isSpent || !view.isCurrent || view.holds > this.#holds) return false
    if (!this.#hasWaitingJob()) return true
    // All jobs were visited: this is not done again at every change.
    this.#budget.fill(view.received)
    return false
  }

  /** Returns whether an accepted job in the view is due: it waits for others. */
  #hasWaitingJob(): boolean {
    const { backend, view } = this.#options
    for (const { claimed, stored, cancelRequested } of view.entries()) {
      if (claimed || !stored || !this.#isAccepted(stored.posting)) continue
      if (cancelRequested || dueTime(stored) <= backend.now()) return true
    }
    return false
  }

  #rejectedIds(): string[] {
    const rejected: string[] = []
    for (const { claimed, stored } of this.#options.view.entries())
      if (!claimed && stored && !this.#isAccepted(stored.posting)) rejected.push(stored.id)
    return rejected
  }

  #isAccepted(posting: Posting): boolean {
    for (const accepts of this.#accepts) if (accepts(posting)) return true
    return false
  }

  /** Polls the board. Never rejects: after an error the view is opened, which reports errors, and tries again. */
  async #pollUntilRefilled(rejected: readonly string[]): Promise<void> {
    const { backend, view, signal, onError } = this.#options
    const poll = new IdlePoll({ backend, rejected, accepts: (posting) => this.#isAccepted(posting) })
    const end = monotonic() + Math.min(MAX_POLL_MS, this.#budget.refillMs + rejected.length * POLL_MS_PER_JOB)
    // The other callers wait for a change: they are woken, and poll, too.
    view.changed.notify()
    try {
      for (let tookMs = 0; monotonic() < end && this.#accepts.size > 0; ) {
        const pauseMs = Math.max(POLL_PAUSE_MS.least, tookMs * POLL_PAUSE_MS.perLook)
        await sleep(pauseMs * (0.5 + Math.random() / 2), { signal })
        const begin = monotonic()
        if (await poll.look()) break
        tookMs = monotonic() - begin
      }
    } catch (error) {
      if (!signal.aborted && !(error instanceof NotConnected)) onError(asError(error))
    } finally {
      this.#polling = undefined
    }
  }
}
