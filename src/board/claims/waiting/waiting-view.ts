/**
 * Keeps the view open for callers that wait for jobs to claim. On a busy board, closes it and polls instead.
 *
 * When the {@link ChangeBudget} is spent, callers that have found no job close the view, and the servers send them no more changes. For some
 * time they poll the board for jobs that stay unclaimed. They find such a job about a second later than a caller that views the board, and
 * later on a long board.
 *
 * | state | event | next state |
 * |---|---|---|
 * | viewing | the budget is spent, and no job in the view is due and accepted | polling |
 * | polling | a look finds a job that is due and accepted | viewing, until a job was claimed or the board was read to its end |
 * | polling | a look fails | viewing, for 5 s without a connection, else for a minute |
 * | polling | its time is over; a new caller; a claim of another caller | viewing |
 *
 * After a claim, no polling begins for 10 s, unless the board was read to its end.
 *
 * {@link ChangeBudget} counts the changes, {@link IdlePoll} looks at the board; only this class knows the states.
 *
 * All callers of a board object poll together. None of them polls
 *
 * - with a time limit, because a job that is on the board has to be found within that time;
 * - while anything else in the process needs the view, because the process receives the changes anyway;
 * - while the view contains a due job that a caller accepts: it waits for other jobs, and only changes show when it can be claimed.
 */
import { type FollowingSignal, followSignals, rejectOnAbort } from '../../../core/async/abort.ts'
import type { Stoppable } from '../../../core/async/abort-flag.ts'
import { RecurringError } from '../../../core/async/recurring-error.ts'
import { asError, NotConnected } from '../../../core/errors.ts'
import { monotonic } from '../../../core/time.ts'
import type { Backend } from '../../contract/index.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { dueTime } from '../../queue/queue.ts'
import type { QueueChoice } from '../../queue/served-queues.ts'
import type { LiveView } from '../../view/live-view.ts'
import type { DoomedJobs } from '../doomed-jobs.ts'
import { ChangeBudget } from './change-budget.ts'
import { IdlePoll } from './idle-poll.ts'

/**
 * The time of one polling: until the budget is full again and at least `least`, and longer by `perRejected` for each job that no caller
 * accepts. A view that is opened on a busy board reads thousands of postings, so it must not be opened every few seconds. After `most` an
 * `accept` function that would accept a job by now is asked again.
 */
const POLL_MS = { least: 15_000, most: 600_000, perRejected: 4 } as const
/**
 * The time after a claim in which polling begins only when the view was read to its end. Without it, a process that drains a board longer than its window
 * would poll, and claim nothing for seconds.
 */
const READ_ON_MS = 10_000
/** The time without polling after a look has failed: without a connection, and for another reason. */
const NO_POLLING_MS = { notConnected: 5_000, failed: 60_000 } as const

export interface WaitingViewOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly doomed: Pick<DoomedJobs, 'add'>
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

export interface WaiterOptions {
  /** Returns whether the caller would claim the job. */
  readonly accepts: (posting: Posting) => boolean
  readonly mayPoll: boolean
  /** The queues of the jobs that the caller would claim; absent for all. */
  readonly queues?: QueueChoice | undefined
}

/** A caller that waits for jobs. It holds the view until it is disposed, except while it polls. */
export class Waiter implements Disposable {
  readonly accepts: (posting: Posting) => boolean
  readonly mayPoll: boolean
  readonly queues: QueueChoice | undefined
  /** The caller's hold of the view; undefined while it polls. */
  hold: Disposable | undefined
  readonly #waiting: WaitingView

  constructor({ accepts, mayPoll, queues }: WaiterOptions, waiting: WaitingView) {
    this.accepts = accepts
    this.mayPoll = mayPoll
    this.queues = queues
    this.#waiting = waiting
  }

  /**
   * Begins to poll if the caller, which has found nothing in the view, should poll now; otherwise returns undefined. The result resolves
   * when the view is open and listed again.
   *
   * @throws the signal's reason; AccessDenied
   */
  pollThenView(signal: Stoppable): Promise<void> | undefined {
    return this.#waiting.pollThenView(this, signal)
  }

  [Symbol.dispose](): void {
    this.#waiting.leave(this)
  }
}

interface Polling {
  readonly stop: FollowingSignal
  /** Resolves when the polling is over; never rejects. */
  readonly over: Promise<void>
}

export class WaitingView {
  readonly #options: WaitingViewOptions
  readonly #budget = new ChangeBudget()
  readonly #callers = new Set<Waiter>()
  #polling: Polling | undefined
  /**
   * The time before which the view must be read to its end before the next polling, in milliseconds on the monotonic clock. After a claim, the next section
   * of the view may have a job for this process, too. After a look has found a job, that job may be behind the window.
   */
  #readOnBefore = 0
  /** The time before which no polling begins, in milliseconds on the monotonic clock. */
  #noPollingBefore = 0
  readonly #recurring = new RecurringError()

  constructor(options: WaitingViewOptions) {
    this.#options = options
  }

  /**
   * Holds the view for a caller, and waits until it was listed. Without a connection it is listed later.
   *
   * @throws AccessDenied; the signal's reason
   */
  async begin(options: WaiterOptions & { readonly signal: Stoppable }): Promise<Waiter> {
    const caller = new Waiter(options, this)
    // The caller opens the view, so the others save nothing by polling; and it may accept jobs that they have rejected.
    this.#stopPolling()
    if (this.#callers.size === 0) this.#budget.skip(this.#options.view.received)
    this.#callers.add(caller)
    try {
      await this.#enter(caller, options.signal)
    } catch (error) {
      this.leave(caller)
      throw error
    }
    return caller
  }

  /** Polls for the caller if it should: see {@link Waiter.pollThenView}. */
  pollThenView(caller: Waiter, signal: Stoppable): Promise<void> | undefined {
    if (!caller.mayPoll || !this.#shouldPoll()) return undefined
    this.#polling ??= this.#poll()
    return this.#reopenViewAfter(this.#polling, caller, signal)
  }

  /** Ends the wait of a caller. */
  leave(caller: Waiter): void {
    this.#callers.delete(caller)
    this.#release(caller)
    // Without a caller no job is claimed, so the queues stay as they are: the next caller usually serves the same ones.
    if (this.#callers.size > 0) this.#updateServed()
    if (this.#polling && this.#callersThatMayPoll.length === 0) this.#stopPolling()
  }

  /** Notes that a job was claimed: this process has work on this board. */
  noteClaimed(): void {
    this.#budget.fill(this.#options.view.received)
    this.#readOnBefore = monotonic() + READ_ON_MS
    this.#stopPolling()
  }

  async #enter(caller: Waiter, signal: Stoppable): Promise<void> {
    const { view } = this.#options
    // A view that was closed while the caller polled has forgotten its queues.
    view.serve(caller.queues)
    caller.hold = view.hold()
    this.#updateServed()
    if (view.jobCount !== undefined) return view.whenServed({ signal })
    await view.whenEntered({ signal }).catch((error: unknown) => {
      if (!(error instanceof NotConnected)) throw error
    })
  }

  #updateServed(): void {
    this.#options.view.setServed([...this.#callers].map(({ queues }) => queues))
  }

  #release(caller: Waiter): void {
    caller.hold?.[Symbol.dispose]()
    caller.hold = undefined
  }

  get #callersThatMayPoll(): readonly Waiter[] {
    return [...this.#callers].filter(({ mayPoll }) => mayPoll)
  }

  /** Returns whether a caller that has found nothing in the view should poll. Charges the budget with what was received. */
  #shouldPoll(): boolean {
    const { backend, view } = this.#options
    if (!IdlePoll.isPossible(backend)) return false
    this.#budget.charge(view.received)
    if (view.holds > this.#callersThatMayPoll.filter(({ hold }) => hold).length) return false
    if (this.#polling) return true
    if (!this.#budget.isSpent || !view.isCurrent || monotonic() < this.#noPollingBefore) return false
    if (monotonic() < this.#readOnBefore && !view.extent.isReadToEnd) return false
    this.#readOnBefore = 0
    if (!this.#hasDueAcceptedJob()) return true
    // The check visits all jobs: with a full budget it is not made again at the next change.
    this.#budget.fill(view.received)
    return false
  }

  /** Returns whether an accepted job in the view is due: it waits for others. */
  #hasDueAcceptedJob(): boolean {
    const { backend, view } = this.#options
    for (const { claimed, content, stored, cancelRequested } of view.entries()) {
      if (claimed || !stored || content === 'unreadable' || !this.#isAccepted(stored.posting)) continue
      if (cancelRequested || dueTime(stored) <= backend.clock.now()) return true
    }
    return false
  }

  #rejectedIds(): string[] {
    const rejected: string[] = []
    for (const { claimed, content, stored } of this.#options.view.entries()) {
      if (claimed || !stored) continue
      // A job whose claim was refused for good is hidden as unreadable: it must not be found again and again.
      const isRejected = content === 'unreadable' || (content === 'fresh' && !this.#isAccepted(stored.posting))
      if (isRejected) rejected.push(stored.id)
    }
    return rejected
  }

  /** Returns whether a caller accepts the job. True if `accept` throws: the caller receives the error when it claims. */
  #isAccepted(posting: Posting): boolean {
    for (const { accepts, mayPoll } of this.#callers) {
      if (!mayPoll) continue
      try {
        if (accepts(posting)) return true
      } catch {
        return true
      }
    }
    return false
  }

  #poll(): Polling {
    const stop = followSignals([this.#options.signal])
    const over = this.#pollUntilOver(stop).finally(() => {
      stop[Symbol.dispose]()
      if (this.#polling?.stop === stop) this.#polling = undefined
    })
    // The other callers wait for a change of the view: now they poll, too.
    this.#options.view.changed.notify()
    return { stop, over }
  }

  #stopPolling(): void {
    this.#polling?.stop.abort(new Error('the polling is over'))
    this.#polling = undefined
  }

  /** Never rejects. After an error the view is opened, which reports its own errors and tries again. */
  async #pollUntilOver({ signal }: FollowingSignal): Promise<void> {
    const { backend, view, doomed, onError } = this.#options
    const rejected = this.#rejectedIds()
    const poll = new IdlePoll({
      ...{ backend, rejected, choices: this.#callersThatMayPoll.map(({ queues }) => queues) },
      ...{ accepts: (posting) => this.#isAccepted(posting) },
      onDoomed: (id) => doomed.add([id]),
    })
    const leastMs = Math.max(POLL_MS.least, this.#budget.refillMs)
    const pollMs = Math.min(POLL_MS.most, leastMs + rejected.length * POLL_MS.perRejected)
    try {
      const isFound = await rejectOnAbort(poll.findJob({ end: monotonic() + pollMs, signal }), signal)
      this.#recurring.clear()
      if (!isFound) return
      this.#readOnBefore = Number.POSITIVE_INFINITY
      this.#budget.fill(view.received)
    } catch (thrown) {
      if (signal.aborted) return
      const isAway = thrown instanceof NotConnected
      this.#noPollingBefore = monotonic() + (isAway ? NO_POLLING_MS.notConnected : NO_POLLING_MS.failed)
      if (isAway) return
      const error = asError(thrown)
      if (this.#recurring.isNew(error)) onError(error)
    }
  }

  async #reopenViewAfter({ over }: Polling, caller: Waiter, signal: Stoppable): Promise<void> {
    this.#release(caller)
    this.#options.view.closeIfUnused()
    await rejectOnAbort(over, signal)
    await this.#enter(caller, signal)
  }
}
