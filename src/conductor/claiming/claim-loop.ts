/**
 * The loop that claims for all slots of a conductor, never more jobs than slots are free. It outlives every error: what
 * fails is told, and tried again after a pause that grows.
 *
 * It claims nothing while all slots are taken, while the conductor is paused, and while the logbooks are known to be away.
 * It ends when it is told to, or by itself: after `maxJobs` jobs; when nothing has run for `maxIdleTime`; with `burst`, when
 * nothing is left to claim. Before it ends by itself, what it has claimed may finish.
 */
import type { Claim, JobBoard, Posting } from '../../board/index.ts'
import { type FollowingSignal, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { Condition } from '../../core/async/condition.ts'
import { ShuttingDown, Timeout } from '../../core/errors.ts'
import { backoffDelay, monotonic, sleep } from '../../core/time.ts'

const MAX_PAUSE_MS = 30_000

const RECHECK = new ShuttingDown('a job that was refused may be accepted now: look at the queue again')

export interface ClaimLoopOptions {
  readonly board: JobBoard
  readonly slots: number
  readonly burst: boolean
  readonly maxJobs?: number | undefined
  /** In milliseconds. */
  readonly maxIdleTime?: number | undefined
  readonly accept: (posting: Posting) => boolean
  readonly dispatch: (claim: Claim) => void
  /** Whether the logbooks, which were away, are there again. Never rejects. */
  readonly isStorageBack: () => Promise<boolean>
  readonly onError: (error: unknown) => void
  /** How it is has changed: paused, or not any more. */
  readonly onChange: () => void
}

export class ClaimLoop {
  readonly #options: ClaimLoopOptions
  /** Slots, pauses, storage: something that it waits for may be there. */
  readonly #wakeUp = new Condition()
  #taken = 0
  #claimed = 0
  #paused = false
  #failures = 0
  /** Runs in a row that found the logbooks away. */
  #storageFailures = 0
  #storageAway = false
  /** After a failure. */
  #isPausing = false
  /** Whether what is known of the queue was asked for after there was nothing to claim. */
  #isQueueFresh = false
  #idleSince = monotonic()
  /** Of the claimNext under way. */
  #claimSignal: FollowingSignal | undefined
  #lastCheckedAt: Date | undefined

  constructor(options: ClaimLoopOptions) {
    this.#options = options
  }

  /** Whether it could claim if there were a job and a slot for it. */
  get isHealthy(): boolean {
    return this.#options.board.connected && !this.#isPausing && !this.#storageAway
  }

  get paused(): boolean {
    return this.#paused
  }

  get isStorageAway(): boolean {
    return this.#storageAway
  }

  /** When it last could have claimed a job, if there had been one. */
  get lastClaimableCheck(): Date | undefined {
    return this.#claimSignal && this.#options.board.connected ? new Date() : this.#lastCheckedAt
  }

  pause(): void {
    this.#setPaused({ paused: true })
  }

  resume(): void {
    this.#setPaused({ paused: false })
  }

  /** A job that was refused may be accepted now. */
  recheck(): void {
    this.#claimSignal?.abort(RECHECK)
  }

  noteSlotFreed(): void {
    this.#taken -= 1
    if (this.#taken === 0) this.#idleSince = monotonic()
    this.#wakeUp.notify()
    // It waits without a limit while something runs.
    if (this.#taken === 0 && this.#claimTimeoutMs() !== undefined) this.recheck()
  }

  /** How a run went, as far as it tells whether the logbooks are there. */
  noteStorage(state: 'there' | 'away'): void {
    this.#storageAway = state === 'away'
    this.#storageFailures = this.#storageAway ? this.#storageFailures + 1 : 0
    if (this.#storageAway) this.recheck()
  }

  /** Resolves when the signal has fired, or with why it has ended by itself. */
  async run(signal: AbortSignal): Promise<string | undefined> {
    this.#idleSince = monotonic()
    using _ = this.#noticeOutages()
    while (!signal.aborted) {
      try {
        await this.#waitUntilReady(signal)
        const over = await this.#claimOnce(signal)
        this.#failures = 0
        if (over === undefined) continue
        while (this.#taken > 0) await this.#wakeUp.wait({ signal })
        return over
      } catch (error) {
        if (signal.aborted) break
        this.#failures += 1
        this.#options.onError(error)
        this.#isPausing = true
        await sleep(backoffDelay(this.#failures, { first: 100, max: MAX_PAUSE_MS }), { signal }).catch(() => undefined)
        this.#isPausing = false
      }
    }
    return undefined
  }

  /** While it waits for a job, the board may go. */
  #noticeOutages(): Disposable {
    const off = this.#options.board.on('state', ({ state }) => {
      if (state !== 'connected' && this.#claimSignal) this.#lastCheckedAt = new Date()
    })
    return { [Symbol.dispose]: off }
  }

  /** Claims once. Why the loop is over, if it is. */
  async #claimOnce(signal: AbortSignal): Promise<string | undefined> {
    const { maxJobs = Number.POSITIVE_INFINITY, slots, dispatch } = this.#options
    if (this.#hasReachedMaxJobs) return `${maxJobs} jobs were claimed, as many as maxJobs says`
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
    if (!burst) return `nothing was claimed for ${maxIdleTime} ms, as long as maxIdleTime says`
    if (this.#isQueueFresh) return 'nothing is left to claim, and it runs in a burst'
    // What this process knows of the queue may be behind: as when the connection has just come back.
    const fresh = this.#options.board.jobs({ onlyUnclaimed: true, ensureFresh: true })
    await rejectOnAbort(fresh.next(), signal)
    await fresh.return()
    this.#isQueueFresh = true
    return undefined
  }

  /** Empty when something that was refused may be accepted now; `nothing` when its patience is over. */
  async #claimNext(max: number, signal: AbortSignal): Promise<readonly Claim[] | 'nothing'> {
    const timeout = this.#claimTimeoutMs()
    using look = followSignals([signal])
    this.#claimSignal = look
    try {
      const { board, accept } = this.#options
      return await board.claimNext({ max, accept, signal: look.signal, ...(timeout === undefined ? {} : { timeout }) })
    } catch (error) {
      if (error === RECHECK && !signal.aborted) return []
      if (error instanceof Timeout) return 'nothing'
      throw error
    } finally {
      this.#lastCheckedAt = this.lastClaimableCheck
      this.#claimSignal = undefined
    }
  }

  /** Whether it has claimed all that it may. */
  get #hasReachedMaxJobs(): boolean {
    return this.#claimed >= (this.#options.maxJobs ?? Number.POSITIVE_INFINITY)
  }

  /** How long, in milliseconds, it waits for a job; undefined for ever. */
  #claimTimeoutMs(): number | undefined {
    const { burst, maxIdleTime } = this.#options
    if (this.#taken > 0) return undefined
    if (burst) return 0
    return maxIdleTime === undefined ? undefined : Math.max(0, this.#idleSince + maxIdleTime - monotonic())
  }

  /** A slot is free, nobody has paused it, and the logbooks are not known to be away. */
  async #waitUntilReady(signal: AbortSignal): Promise<void> {
    if (this.#hasReachedMaxJobs) return
    if (this.#storageFailures > 0) await this.#waitForStorage(signal)
    while (this.#taken >= this.#options.slots || this.#paused) await this.#wakeUp.wait({ signal })
  }

  /** At least one pause, also where it is back at once: each job that fails for want of it was claimed in vain. */
  async #waitForStorage(signal: AbortSignal): Promise<void> {
    let tries = this.#storageFailures
    do {
      await sleep(backoffDelay(tries, { first: 200, max: MAX_PAUSE_MS }), { signal })
      this.#storageAway = !(await rejectOnAbort(this.#options.isStorageBack(), signal))
      tries += 1
    } while (this.#storageAway)
  }

  #setPaused({ paused }: { paused: boolean }): void {
    if (this.#paused === paused) return
    this.#paused = paused
    this.#wakeUp.notify()
    if (paused) this.recheck()
    this.#options.onChange()
  }
}
