/**
 * The loop that claims the jobs of one board for the slots of a conductor. It survives every error: it reports the error, and tries again
 * after a growing pause.
 *
 * It claims nothing while it is not the board's turn (`slots.ts`), while the conductor is paused, while a service is unhealthy, and while the
 * logbooks are known to be away.
 *
 * A board that has the slots for itself is asked once, and answers when a job is there. Boards that share slots are asked for the jobs that
 * can be claimed now, and then watched until there is one: no slot waits for a board that has nothing.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Claim, JobBoard, Posting, ServedQueues } from '../../board/index.ts'
import { boardInternals } from '../../board/internal.ts'
import { type FollowingSignal, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { retry, retryUntilAborted } from '../../core/async/retry.ts'
import { ShuttingDown, StorageFailure, Timeout } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import type { Lane, Slots } from './slots.ts'

const MAX_PAUSE_MS = 30_000

const RECHECK = new ShuttingDown('a rejected job may be acceptable now: check the queue again')

export interface ClaimLoopOptions {
  readonly board: JobBoard
  readonly slots: Slots
  /** The lane of the board. */
  readonly lane: Lane
  readonly burst: boolean
  /** The queues whose jobs it claims; all when absent. */
  readonly queues: ServedQueues | undefined
  readonly accept: (posting: Posting) => boolean
  /** Returns whether any job may be acceptable; `recheck` is called when it returns true again. */
  readonly hasRoom: () => boolean
  /** Returns whether jobs may be claimed: services that tasks need can be used, and the board is prepared. `recheck` is called when that changes. */
  readonly mayClaim: () => boolean
  readonly dispatch: (claim: Claim) => void
  /** Returns why the logbooks, which were away, cannot be reached yet; undefined once they answer. Never rejects. */
  readonly findStorageFault: () => Promise<string | undefined>
  readonly log: Logger
  readonly onError: (error: unknown) => void
}

export class ClaimLoop {
  readonly #options: ClaimLoopOptions
  /** The number of consecutive runs that found the logbooks away. */
  #storageFailures = 0
  #storageAway = false
  /** Whether it pauses after a failure. */
  #isPausing = false
  /** Whether the queue was refreshed after there was nothing to claim. */
  #isQueueFresh = false
  /** Whether a wait for jobs has ended since the last claim was granted. */
  #hasWaited = false
  /** The signal for calls that claim or wait for jobs, until it fires: most calls end without it, and the next one has the same. */
  #lookSignal: FollowingSignal | undefined
  /** Identifies the call in progress that claims or waits for jobs. */
  #look: object | undefined
  #lastCheckedAt: Date | undefined

  constructor(options: ClaimLoopOptions) {
    this.#options = options
  }

  /** Whether it could claim a job if a slot were free. */
  get isHealthy(): boolean {
    const { board } = this.#options
    const { claimFault } = boardInternals(board)
    return board.connected && claimFault === undefined && !this.#isPausing && !this.#storageAway
  }

  get isStorageAway(): boolean {
    return this.#storageAway
  }

  /**
   * The last time at which the loop looked for a job to claim, or, while it waits for a job, checked that it has received all changes of
   * the board.
   */
  get lastClaimableCheck(): Date | undefined {
    return this.#lastCheckedAt
  }

  /** Makes sure that all changes are received while it waits for a job. Called periodically. @throws NotConnected */
  async check(): Promise<void> {
    const { board } = this.#options
    const look = this.#look
    if (!look || !board.connected) return
    const askedAt = new Date()
    await boardInternals(board).catchUp()
    // Without a connection, some boards answer at once, because they read everything again later: such an answer proves nothing.
    if (this.#look === look && board.connected) this.#lastCheckedAt = askedAt
  }

  /** Checks the queue again: a rejected job may be acceptable now, or the conductor was paused. */
  recheck(): void {
    if (this.#look) this.#lookSignal?.abort(RECHECK)
    this.#options.slots.changed.notify()
  }

  /** Notes the state of the logbooks, as a run has found it. @param fault the reason why they are away; undefined when they are there */
  noteStorage(fault: string | undefined): void {
    this.#setStorage(fault)
    this.#storageFailures = this.#storageAway ? this.#storageFailures + 1 : 0
    if (this.#storageAway) this.recheck()
  }

  #setStorage(fault: string | undefined): void {
    const isAway = fault !== undefined
    if (isAway === this.#storageAway) return
    this.#storageAway = isAway
    const { log } = this.#options
    if (isAway) log.warn({ reason: fault }, 'the logbooks are away: no job is claimed until they answer')
    else log.info('the logbooks are back')
  }

  /** Claims jobs until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    const { slots, lane, onError } = this.#options
    using _ = this.#watchConnection()
    const onRetry = (error: unknown) => {
      slots.setOut(lane)
      this.#isPausing = true
      onError(error)
    }
    const claimOnce = () => this.#claimOnce(signal)
    while (!signal.aborted)
      await retryUntilAborted(claimOnce, { firstPauseMs: 100, maxPauseMs: MAX_PAUSE_MS, signal, onRetry })
    this.#lookSignal?.[Symbol.dispose]()
    this.#isPausing = false
    slots.setOut(lane)
  }

  /** Notes when the board is away, and the time at which it loses its connection during a wait for jobs. */
  #watchConnection(): Disposable {
    const { board, slots, lane } = this.#options
    const note = () =>
      slots.setConnection(lane, board.connected ? 'there' : board.state === 'disconnected' ? 'away' : 'lost')
    note()
    const off = board.on('state', note)
    return { [Symbol.dispose]: off }
  }

  async #claimOnce(signal: AbortSignal): Promise<void> {
    const { slots, lane, burst } = this.#options
    this.#isPausing = false
    await this.#waitUntilReady(signal)
    const max = await slots.turn(lane, { canAsk: () => this.#canClaim, signal })
    if (max === 0) return
    const waits = slots.isSole(lane) && !burst
    // The only board needs no slots reserved: no other board takes them while it waits.
    if (waits) slots.setIdle(lane)
    const claims = await this.#claimNext({ max, signal, ...(waits ? {} : { timeout: 0 }) })
    if (claims === 'nothing') return this.#onNothing(signal)
    this.#isQueueFresh = false
    this.#hasWaited = false
    for (const claim of claims) this.#begin(claim)
    if (!waits) slots.endTurn(lane)
  }

  #begin(claim: Claim): void {
    const { slots, lane, dispatch, onError } = this.#options
    if (slots.begin(lane)) dispatch(claim)
    else claim[Symbol.asyncDispose]().catch(onError)
  }

  async #onNothing(signal: AbortSignal): Promise<void> {
    const { burst, slots, lane } = this.#options
    if (burst && !this.#isQueueFresh) {
      slots.endTurn(lane)
      return this.#refreshQueue(signal)
    }
    // The wait has found a job that cannot be claimed. Should that repeat, timers and sockets of the process still get their turn.
    if (this.#hasWaited) await nextTurn()
    slots.setIdle(lane)
    if (burst) slots.noteExhausted(lane)
    this.#isQueueFresh = false
    await this.#waitForJobs(signal)
    this.#hasWaited = true
  }

  /** Refreshes the queue: this process's view of it may be behind, for example just after a reconnect. */
  async #refreshQueue(signal: AbortSignal): Promise<void> {
    const fresh = this.#options.board.jobs({ onlyUnclaimed: true, ensureFresh: true })
    await rejectOnAbort(fresh.next(), signal)
    await fresh.return()
    this.#isQueueFresh = true
  }

  /** Returns the claims: none when a rejected job may be acceptable now, and `nothing` when there is no job to claim in this time. */
  async #claimNext(options: {
    readonly max: number
    readonly timeout?: number
    readonly signal: AbortSignal
  }): Promise<readonly Claim[] | 'nothing'> {
    const { board, accept, queues } = this.#options
    const wanted = { accept, ...defined({ queues }) }
    try {
      return (
        (await this.#lookWith(options.signal, (signal) => board.claimNext({ ...options, ...wanted, signal }))) ?? []
      )
    } catch (error) {
      if (error instanceof Timeout) return 'nothing'
      throw error
    }
  }

  /** Waits until a job can be claimed, or the lane is woken. */
  async #waitForJobs(signal: AbortSignal): Promise<void> {
    const { board, lane, accept, queues } = this.#options
    const waiting = this.#lookWith(signal, (stop) =>
      Promise.race([
        boardInternals(board).waitToClaim({ accept, ...defined({ queues }), signal: stop }),
        lane.wake.wait({ signal: stop }),
      ]),
    )
    // Ends the other wait, too.
    await waiting.finally(() => this.#lookSignal?.abort(RECHECK))
  }

  /** Calls work that {@link recheck} ends; resolves with undefined then. */
  async #lookWith<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    if (!this.#lookSignal || this.#lookSignal.aborted) {
      this.#lookSignal?.[Symbol.dispose]()
      this.#lookSignal = followSignals([signal])
    }
    const look = {}
    this.#look = look
    if (this.#options.board.connected) this.#lastCheckedAt = new Date()
    try {
      return await work(this.#lookSignal.signal)
    } catch (error) {
      // The work of a call that ended with a Timeout goes on until its signal fires: without the abort it would claim jobs, and no caller would run them.
      this.#lookSignal.abort(RECHECK)
      if (error === RECHECK && !signal.aborted) return undefined
      throw error
    } finally {
      this.#look = undefined
    }
  }

  /** Whether no job can be acceptable before a job that runs here has gone on: a search of the whole queue would find nothing. */
  get #isFull(): boolean {
    const { slots, hasRoom } = this.#options
    return slots.running > 0 && !hasRoom()
  }

  get #canClaim(): boolean {
    const { slots, mayClaim } = this.#options
    return !slots.isPaused && !this.#isFull && !this.#storageAway && mayClaim()
  }

  /** Waits until there is room for any job, it is not paused, services are healthy, and logbooks are not known to be away. */
  async #waitUntilReady(signal: AbortSignal): Promise<void> {
    const { slots, lane } = this.#options
    if (this.#storageFailures > 0 || !this.#canClaim) slots.setOut(lane)
    // After a run that has failed, the next one shows whether they are really back.
    if (this.#storageFailures > 0) await this.#waitForStorage(signal)
    while (!this.#canClaim) {
      if (this.#storageAway) await this.#waitForStorage(signal)
      else await slots.changed.wait({ signal })
    }
  }

  /**
   * Waits until the logbooks are back. Pauses at least once, even when they are back at once: each job that fails
   * because they are away was claimed in vain.
   */
  async #waitForStorage(signal: AbortSignal): Promise<void> {
    const checkStorage = async () => {
      this.#setStorage(await rejectOnAbort(this.#options.findStorageFault(), signal))
      if (this.#storageAway) throw new StorageFailure('the logbooks are away')
    }
    const failuresBefore = this.#storageFailures
    await retry(checkStorage, { firstPauseMs: 200, maxPauseMs: MAX_PAUSE_MS, failuresBefore, signal })
  }
}
