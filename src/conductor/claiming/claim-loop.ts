/**
 * The loop that claims jobs for all slots of a conductor, never more jobs than slots are free. It survives every error:
 * it reports the error, and tries again after a growing pause.
 *
 * It claims nothing while all slots are taken, while the conductor is paused, while a service is unhealthy, and while the logbooks are known
 * to be away. It ends at the stop signal, or by itself: after `maxJobs` jobs; when no job has run for `maxIdleTime`; with
 * `burst`, when no job is left to claim. Before it ends by itself, it waits for the jobs that it has claimed.
 */
import type { Claim, JobBoard, Posting } from '../../board/index.ts'
import { Condition, type FollowingSignal, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { retry, retryUntilAborted } from '../../core/async/retry.ts'
import { ShuttingDown, StorageFailure, Timeout } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { monotonic } from '../../core/time.ts'

const MAX_PAUSE_MS = 30_000

const RECHECK = new ShuttingDown('a rejected job may be acceptable now: check the queue again')

export interface ClaimLoopOptions {
  readonly board: JobBoard
  readonly slots: number
  readonly burst: boolean
  readonly maxJobs?: number | undefined
  /** The time in milliseconds. */
  readonly maxIdleTime?: number | undefined
  readonly accept: (posting: Posting) => boolean
  /** Returns whether any job may be acceptable; `recheck` is called when it returns true again. */
  readonly hasRoom: () => boolean
  /** Returns whether the services that tasks need can be used; `recheck` is called when that changes. */
  readonly areServicesHealthy: () => boolean
  readonly dispatch: (claim: Claim) => void
  /** Returns whether the logbooks, which were away, can be reached again. Never rejects. */
  readonly isStorageBack: () => Promise<boolean>
  readonly onError: (error: unknown) => void
  /** Called when it was paused or resumed. */
  readonly onChange: () => void
}

export class ClaimLoop {
  readonly #options: ClaimLoopOptions
  /** Notified when a slot, the pause state or the storage has changed. */
  readonly #wakeUp = new Condition()
  #taken = 0
  #claimed = 0
  #paused = false
  /** The number of consecutive runs that found the logbooks away. */
  #storageFailures = 0
  #storageAway = false
  /** Whether it pauses after a failure. */
  #isPausing = false
  /** Whether the queue was refreshed after there was nothing to claim. */
  #isQueueFresh = false
  #idleSince = monotonic()
  /** The signal of the `claimNext` call in progress. */
  #claimSignal: FollowingSignal | undefined
  #lastCheckedAt: Date | undefined

  constructor(options: ClaimLoopOptions) {
    this.#options = options
  }

  /** Whether it could claim a job if a slot were free. */
  get isHealthy(): boolean {
    return this.#options.board.connected && !this.#isPausing && !this.#storageAway
  }

  get paused(): boolean {
    return this.#paused
  }

  get isStorageAway(): boolean {
    return this.#storageAway
  }

  /** The last time at which it could have claimed a job; the present time while it waits for one, viewing the board or polling it. */
  get lastClaimableCheck(): Date | undefined {
    return this.#claimSignal && this.#options.board.connected ? new Date() : this.#lastCheckedAt
  }

  pause(): void {
    this.#setPaused({ paused: true })
  }

  resume(): void {
    this.#setPaused({ paused: false })
  }

  /** Checks the queue again: a rejected job may be acceptable now. */
  recheck(): void {
    this.#claimSignal?.abort(RECHECK)
    this.#wakeUp.notify()
  }

  noteSlotFreed(): void {
    this.#taken -= 1
    if (this.#taken === 0) this.#idleSince = monotonic()
    this.#wakeUp.notify()
    // While a job runs, it waits for claims without a time limit.
    if (this.#taken === 0 && this.#claimTimeoutMs() !== undefined) this.recheck()
  }

  /** Notes the state of the logbooks, as a run has found it. */
  noteStorage(state: 'there' | 'away'): void {
    this.#storageAway = state === 'away'
    this.#storageFailures = this.#storageAway ? this.#storageFailures + 1 : 0
    if (this.#storageAway) this.recheck()
  }

  /** Claims jobs until the signal fires. Resolves with a reason when it ends by itself. */
  async run(signal: AbortSignal): Promise<string | undefined> {
    this.#idleSince = monotonic()
    using _ = this.#noticeOutages()
    const claimOnce = async () => {
      this.#isPausing = false
      await this.#waitUntilReady(signal)
      const over = await this.#claimOnce(signal)
      while (over !== undefined && this.#taken > 0) await this.#wakeUp.wait({ signal })
      return over
    }
    const onRetry = (error: unknown) => {
      this.#options.onError(error)
      this.#isPausing = true
    }
    let over: string | undefined
    while (over === undefined && !signal.aborted)
      over = await retryUntilAborted(claimOnce, { firstPauseMs: 100, maxPauseMs: MAX_PAUSE_MS, signal, onRetry })
    this.#isPausing = false
    return over
  }

  /** Notes the time at which the board loses its connection during a wait for jobs. */
  #noticeOutages(): Disposable {
    const off = this.#options.board.on('state', ({ state }) => {
      if (state !== 'connected' && this.#claimSignal) this.#lastCheckedAt = new Date()
    })
    return { [Symbol.dispose]: off }
  }

  /** Claims once. Returns the reason when the loop is over. */
  async #claimOnce(signal: AbortSignal): Promise<string | undefined> {
    const { maxJobs = Number.POSITIVE_INFINITY, slots, dispatch } = this.#options
    if (this.#hasReachedMaxJobs) return `it has claimed maxJobs (${maxJobs}) jobs`
    const max = Math.min(slots - this.#taken, maxJobs - this.#claimed)
    const claims = await this.#claimNext(max, signal)
    if (claims === 'nothing') return this.#reasonToStop(signal)
    this.#isQueueFresh = false
    for (const claim of claims) {
      this.#taken += 1
      this.#claimed += 1
      dispatch(claim)
    }
    return undefined
  }

  async #reasonToStop(signal: AbortSignal): Promise<string | undefined> {
    const { burst, maxIdleTime } = this.#options
    if (!burst) return `no job ran for maxIdleTime (${maxIdleTime} ms)`
    if (this.#isQueueFresh) return 'no job is left to claim, and burst is set'
    // This process's view of the queue may be behind, for example just after a reconnect.
    const fresh = this.#options.board.jobs({ onlyUnclaimed: true, ensureFresh: true })
    await rejectOnAbort(fresh.next(), signal)
    await fresh.return()
    this.#isQueueFresh = true
    return undefined
  }

  /** Returns the claims: none when a rejected job may be acceptable now, and `nothing` when the time limit is over. */
  async #claimNext(max: number, signal: AbortSignal): Promise<readonly Claim[] | 'nothing'> {
    const timeout = this.#claimTimeoutMs()
    using look = followSignals([signal])
    this.#claimSignal = look
    try {
      const { board, accept } = this.#options
      return await board.claimNext({ max, accept, signal: look.signal, ...defined({ timeout }) })
    } catch (error) {
      if (error === RECHECK && !signal.aborted) return []
      if (error instanceof Timeout) return 'nothing'
      throw error
    } finally {
      this.#lastCheckedAt = this.lastClaimableCheck
      this.#claimSignal = undefined
    }
  }

  /** Whether it has claimed as many jobs as `maxJobs` allows. */
  get #hasReachedMaxJobs(): boolean {
    return this.#claimed >= (this.#options.maxJobs ?? Number.POSITIVE_INFINITY)
  }

  /** Returns the time limit for a claim in milliseconds; undefined means no limit. */
  #claimTimeoutMs(): number | undefined {
    const { burst, maxIdleTime } = this.#options
    if (this.#taken > 0) return undefined
    if (burst) return 0
    return maxIdleTime === undefined ? undefined : Math.max(0, this.#idleSince + maxIdleTime - monotonic())
  }

  /** Whether no job can be acceptable before a job that runs here has gone on: a search of the whole queue would find nothing. */
  get #isFull(): boolean {
    return this.#taken > 0 && !this.#options.hasRoom()
  }

  get #canClaim(): boolean {
    const { slots, areServicesHealthy } = this.#options
    return this.#taken < slots && !this.#paused && !this.#isFull && areServicesHealthy()
  }

  /** Waits until a slot is free, there is room for any job, it is not paused, services are healthy, and logbooks are not known to be away. */
  async #waitUntilReady(signal: AbortSignal): Promise<void> {
    if (this.#hasReachedMaxJobs) return
    if (this.#storageFailures > 0) await this.#waitForStorage(signal)
    while (!this.#canClaim) await this.#wakeUp.wait({ signal })
  }

  /**
   * Waits until the logbooks are back. Pauses at least once, even when they are back at once: each job that fails
   * because they are away was claimed in vain.
   */
  async #waitForStorage(signal: AbortSignal): Promise<void> {
    const checkStorage = async () => {
      this.#storageAway = !(await rejectOnAbort(this.#options.isStorageBack(), signal))
      if (this.#storageAway) throw new StorageFailure('the logbooks are away')
    }
    const failuresBefore = this.#storageFailures
    await retry(checkStorage, { firstPauseMs: 200, maxPauseMs: MAX_PAUSE_MS, failuresBefore, signal })
  }

  #setPaused({ paused }: { paused: boolean }): void {
    if (this.#paused === paused) return
    this.#paused = paused
    this.#wakeUp.notify()
    if (paused) this.recheck()
    this.#options.onChange()
  }
}
