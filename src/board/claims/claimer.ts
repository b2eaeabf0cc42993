/** Waits for jobs that can be claimed, and claims them. */
import { abortAfter, answerInTime, type FollowingSignal, followSignals } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { keepAlive } from '../../core/async/lifecycle.ts'
import { NotConnected, NotFound, OutcomeUnknown, Timeout } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { type Duration, formatDuration } from '../../core/time.ts'
import type { Backend } from '../contract/index.ts'
import { assertWaitOptions, Job, type WaitOptions } from '../jobs/job.ts'
import type { Posting } from '../model/posting/posting.ts'
import { queueOf } from '../model/queues.ts'
import { type QueueTurns, TurnsOfCallers } from '../queue/queue-turns.ts'
import type { LiveView } from '../view/live-view.ts'
import type { Canceller } from './cancelling.ts'
import type { JobChooser } from './choosing.ts'
import type { Claim } from './claim.ts'
import { assertClaimsOptions, type ClaimNextOptions, type ClaimsOptions, claimNextSettings } from './claim-options.ts'
import type { JobClaimer } from './claiming.ts'
import type { DoomedJobs } from './doomed-jobs.ts'
import type { Expirer } from './expirer.ts'
import { type Waiter, WaitingView } from './waiting/waiting-view.ts'
import { Withdrawals } from './withdrawals.ts'

/** The reason in the trash of a job whose claim was granted after its poster had stopped waiting. */
const LATE_REASON = 'its poster did not wait for it any longer'

/** The post of a job that its poster claims. */
export interface OwnPost {
  readonly post: () => Promise<Job>
  /** Finds the job after a post whose outcome is not known; absent if another post may have the same uuid. */
  readonly find?: (() => Promise<Job>) | undefined
}

export interface ClaimerOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly chooser: JobChooser
  readonly claiming: JobClaimer
  readonly canceller: Pick<Canceller, 'cancel'>
  readonly expirer: Pick<Expirer, 'start'>
  readonly doomed: Pick<DoomedJobs, 'start' | 'add'>
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

export class Claimer {
  readonly #options: ClaimerOptions
  readonly #waiting: WaitingView
  readonly #withdrawals: Withdrawals
  readonly #turns = new TurnsOfCallers()
  /** Aborts when the board is closed. Calls follow this flag, because to follow a signal costs more. */
  #closingFlag: FollowingSignal | undefined

  constructor(options: ClaimerOptions) {
    this.#options = options
    const cancel = (job: Job, reason: string) => options.canceller.cancel(job, { reason })
    this.#withdrawals = new Withdrawals({ ...options, cancel })
    this.#waiting = new WaitingView(options)
  }

  /** Resolves when there is a job to claim. Without a timeout, a caller on a busy board polls. @throws Timeout */
  async waitForClaimable(options: WaitOptions): Promise<void> {
    assertWaitOptions(options)
    await this.#inTime(options, { work: () => this.waitToClaim({ ...options, accept: () => true }) })
  }

  /** Resolves when there is a job to claim that `accept` accepts. @throws Timeout */
  async waitToClaim({
    accept,
    queues: served,
    ...options
  }: WaitOptions & Pick<ClaimNextOptions, 'queues'> & Pick<Required<ClaimNextOptions>, 'accept'>): Promise<void> {
    const { chooser, view } = this.#options
    const queues = this.#turns.of(served, 'wait')
    view.serve(queues?.choice)
    this.#startUpkeep()
    using _alive = keepAlive()
    using stop = followSignals([this.#closing, options.signal])
    using _timer = options.timeout === 0 ? undefined : this.#startTimeout(stop, options.timeout)
    const accepts = (posting: Posting) => isServed(posting, queues) && chooser.accepts(accept, posting)
    const mayPoll = options.timeout === undefined
    using waiter = await this.#waiting.begin({ signal: stop, accepts, mayPoll, queues: queues?.choice })
    while (!chooser.hasClaimable({ accept, queues }))
      await this.#waitForChange(waiter, { stop, timeout: options.timeout })
  }

  /** Waits for claimable jobs and claims up to `max`. @throws Timeout; the signal's reason; InvalidState when the board is closed */
  async claimNext(options: ClaimNextOptions): Promise<[Claim, ...Claim[]]> {
    const settings = { ...claimNextSettings(options), queues: this.#turns.of(options.queues, 'claimNext') }
    // Without a time limit there is no limit to enforce: the caller waits until jobs are claimed, or its signal fires.
    if (options.timeout === undefined) return this.#claimNext(options, settings)
    const undo = (claims: readonly Claim[]) => Promise.all(claims.map((claim) => claim[Symbol.asyncDispose]()))
    return this.#inTime(options, { work: () => this.#claimNext(options, settings), undo })
  }

  async #claimNext(
    options: ClaimNextOptions,
    settings: ReturnType<typeof claimNextSettings> & { readonly queues: QueueTurns | undefined },
  ): Promise<[Claim, ...Claim[]]> {
    const { chooser, claiming, view } = this.#options
    const { queues } = settings
    view.serve(queues?.choice)
    this.#startUpkeep()
    using _alive = keepAlive()
    using stop = followSignals([this.#closing, options.signal])
    // The timeout ends only the wait for a change: a job that is already chosen may be granted by the time it fires.
    using late = options.timeout === undefined ? stop : followSignals([stop])
    using _timer = options.timeout === 0 ? undefined : this.#startTimeout(late, options.timeout)
    const accepts = (posting: Posting) => isServed(posting, queues) && chooser.accepts(settings.accept, posting)
    const mayPoll = options.timeout === undefined
    using waiter = await this.#waiting.begin({ signal: late, accepts, mayPoll, queues: queues?.choice })
    while (true) {
      stop.throwIfAborted()
      while (view.extent.isTooShortFor(settings.max) && (await view.extent.readOn({ signal: stop })))
        stop.throwIfAborted()
      const places = chooser.reserveNext(settings)
      if (places.length === 0) {
        await this.#waitForChange(waiter, { stop: late, timeout: options.timeout })
        continue
      }
      const [first, ...rest] = await claiming.tryClaims(places, settings.accept)
      if (!first) continue
      this.#waiting.noteClaimed()
      for (const { job } of queues ? [first, ...rest] : []) queues?.noteClaimed(job.queue)
      return [first, ...rest]
    }
  }

  /**
   * Waits for a change after no job in the view could be claimed. Meanwhile reads on behind the end of the window; the wait ends when
   * more was read. On a busy board a caller without a time limit polls instead (`waiting-view.ts`).
   *
   * @throws Timeout at once with a timeout of 0, when there is nothing behind the end
   */
  async #waitForChange(
    waiter: Waiter,
    { stop, timeout }: { readonly stop: FollowingSignal; readonly timeout: Duration | undefined },
  ): Promise<void> {
    const { chooser, view } = this.#options
    const polling = chooser.canClaim ? waiter.pollThenView(stop) : undefined
    if (polling !== undefined) return polling
    const signal = { signal: stop }
    const more =
      chooser.canClaim && !chooser.isResting && view.extent.canReadOn ? view.extent.readOn(signal) : undefined
    if (timeout !== 0) {
      more?.catch(() => undefined)
      await view.changed.wait(signal)
    } else if (!(await more)) throw this.#timeoutError(0)
  }

  /**
   * Posts a job and claims it as soon as its turn comes, in spite of its delay. If that fails, the job is cancelled and trashed: at once, or
   * when the servers answer again (`withdrawals.ts`).
   *
   * @throws Timeout, the signal's reason; what the post throws; NotFound when the job was cancelled meanwhile
   */
  async claimOwnPost(own: OwnPost, options: WaitOptions): Promise<Claim> {
    return this.#inTime(options, {
      work: () => this.#postThenClaim(own, options),
      undo: (claim) => this.#withdrawals.giveUp(claim, LATE_REASON),
    })
  }

  async #postThenClaim({ post, find }: OwnPost, options: WaitOptions): Promise<Claim> {
    using stop = followSignals([this.#closing, options.signal])
    using late = followSignals([stop])
    using _timer = this.#startTimeout(late, options.timeout)
    let job: Job
    try {
      job = await post()
    } catch (error) {
      if (find && error instanceof OutcomeUnknown) await this.#withdrawals.withdraw(find, describeError(error))
      throw error
    }
    try {
      return await this.#claimPosted(job, { stop, late })
    } catch (error) {
      await this.#withdrawals.withdraw(async () => job, describeError(error))
      throw error
    }
  }

  async #claimPosted(
    job: Job,
    { stop, late }: { readonly stop: FollowingSignal; readonly late: FollowingSignal },
  ): Promise<Claim> {
    const { view } = this.#options
    late.throwIfAborted()
    using _reserved = view.queue.reserve(Job.entryFor(job))
    using _view = view.hold()
    await view.whenEntered({ signal: late }).catch((error: unknown) => {
      if (!(error instanceof NotConnected)) throw error
    })
    while (!view.isCurrent) await view.changed.wait({ signal: late })
    using _held = await view.extent.pin(Job.entryFor(job))
    return await this.#claimThis(job, { stop, late })
  }

  /** @param signals.late ends the wait for a change; a claim that was requested by then may still be granted */
  async #claimThis(
    job: Job,
    { stop, late }: { readonly stop: FollowingSignal; readonly late: FollowingSignal },
  ): Promise<Claim> {
    const { chooser, claiming, view } = this.#options
    this.#startUpkeep()
    const entry = Job.entryFor(job)
    using _alive = keepAlive()
    while (true) {
      stop.throwIfAborted()
      if (entry.ended) throw new NotFound(`${job} left the board while it waited to be claimed here: ${entry.ended}`)
      const place = chooser.reserve(entry)
      const claim = place && (await claiming.tryClaim(place))
      if (claim) return claim
      if (!place) await view.changed.wait({ signal: late })
    }
  }

  /** Yields one claim after the other, until the signal fires or the board is closed. */
  async *claimAll(options: ClaimsOptions): AsyncGenerator<Claim, void, undefined> {
    assertClaimsOptions(options)
    const over = () => options.signal?.aborted || this.#options.signal.aborted
    while (!over()) {
      const claims = await this.claimNext(options).catch((error: unknown) => {
        if (over()) return []
        throw error
      })
      yield* claims
    }
  }

  /**
   * Starts the work that a board does for other boards once it claims: it sets aside jobs that no conductor knows, and trashes jobs that
   * expire or are doomed.
   */
  #startUpkeep(): void {
    const { view, expirer, doomed } = this.#options
    view.unaccepted.start()
    expirer.start()
    doomed.start()
  }

  get #closing(): Stoppable {
    this.#closingFlag ??= followSignals([this.#options.signal])
    return this.#closingFlag
  }

  /** Does the work within the limits of the caller, also while the servers do not answer. @throws Timeout, the signal's reason */
  #inTime<T>(limits: WaitOptions, what: { work: () => Promise<T>; undo?: (value: T) => unknown }): Promise<T> {
    return answerInTime(limits, { ...what, late: () => this.#timeoutError(limits.timeout ?? 0) })
  }

  #startTimeout(stop: FollowingSignal, timeout: Duration | undefined): Disposable {
    return abortAfter(stop, timeout, () => this.#timeoutError(timeout ?? 0))
  }

  #timeoutError(time: Duration): Timeout {
    return new Timeout(`no job to claim on ${this.#options.backend.uri} within ${formatDuration(time)}`)
  }
}

/** Returns whether a caller claims the jobs of the queue of this job. */
function isServed(posting: Posting, queues: QueueTurns | undefined): boolean {
  return queues?.choice.includes(queueOf(posting)) ?? true
}
