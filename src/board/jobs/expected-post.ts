/**
 * Finds out whether a job that was posted in a transaction of the caller's own is on the board. Boards emit nothing about a
 * transaction that is rolled back, so without this a wait for such a job would never end.
 */
import { followSignals } from '../../core/async/abort.ts'
import { NotConnected, NotFound } from '../../core/errors.ts'
import { backoffDelay, sleep, systemClock } from '../../core/time.ts'
import type { Backend, TransactionState } from '../contract/index.ts'
import type { JobEntry } from '../model/entry.ts'

/** The pauses between two looks at a transaction that is still open: short at first, since most are committed at once. */
const POLL_BACK_OFF_MS = { first: 50, max: 2_000, jitter: 'none' } as const
/**
 * The time after a post for which backends are asked how its transaction ended: half of the day for which they keep that. Later, a
 * committed post would look as if it was rolled back.
 */
const KNOWN_FOR_MS = 12 * 60 * 60 * 1_000

export interface ExpectedPostOptions {
  readonly entry: JobEntry
  /** The name of the job for errors, with its uuid. */
  readonly job: string
  readonly backend: Pick<Backend, 'callerTransactions' | 'sections'>
  /** The transaction that posts the job, as the backend names it. */
  readonly transaction: string
  /** Called when the job is known to have been posted; takes in its present status. @throws NotConnected */
  readonly onPosted: () => Promise<void>
  /** The signal that ends every wait, because the board is closed. */
  readonly signal: AbortSignal
}

export class ExpectedPost {
  readonly #options: ExpectedPostOptions
  readonly #postedAt = systemClock()
  #looking: Promise<boolean> | undefined

  constructor(options: ExpectedPostOptions) {
    this.#options = options
  }

  /** Whether it is known that the job was posted. */
  get isKnown(): boolean {
    const { stored, ended } = this.#options.entry
    return stored !== undefined || ended !== undefined
  }

  /**
   * Resolves when the job is known to have been posted.
   *
   * @throws NotFound when the transaction was rolled back, as a whole or to a savepoint before the post; or when its outcome is not
   * known any more and the job is neither on the board nor in the trash; the reason of a signal
   */
  async whenPosted({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    using stop = followSignals([signal, this.#options.signal])
    for (let looks = 1; !this.isKnown; looks += 1) {
      stop.signal.throwIfAborted()
      if (await this.look()) return
      await sleep(backoffDelay(looks, POLL_BACK_OFF_MS), stop)
    }
  }

  /**
   * Returns whether the job is known to have been posted; false while the transaction is open, and without a connection. One look
   * at a time.
   *
   * @throws NotFound as {@link whenPosted}
   */
  look(): Promise<boolean> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<boolean> {
    const { job, onPosted } = this.#options
    const state = await this.#transactionState()
    if (this.isKnown) return true
    if (state === 'open') return false
    if (state === 'rolled back')
      throw new NotFound(
        `${job} was never posted: its transaction was rolled back, as a whole or to a savepoint before the post`,
      )
    try {
      if (state === 'unknown') await this.#assertThere()
      await onPosted()
      return true
    } catch (error) {
      if (!(error instanceof NotConnected)) throw error
      return this.isKnown
    }
  }

  /** Returns the state of the transaction; `open` without a connection, so that the next look can succeed. */
  async #transactionState(): Promise<TransactionState> {
    const { backend, transaction } = this.#options
    const now = systemClock()
    // The monotonic clock stops while the machine is suspended, and the wall clock may be set back.
    const passed = Math.max(now.monotonic - this.#postedAt.monotonic, now.wall - this.#postedAt.wall)
    if (passed > KNOWN_FOR_MS) return 'unknown'
    try {
      return await backend.callerTransactions.stateOf(transaction)
    } catch (error) {
      if (error instanceof NotConnected) return 'open'
      throw error
    }
  }

  /** Checks that the job is on the board or in the trash. @throws NotFound */
  async #assertThere(): Promise<void> {
    const { backend, entry, job } = this.#options
    const [status] = (await backend.sections?.statusOf([entry.id ?? ''])) ?? []
    if (status === 'gone')
      throw new NotFound(
        `${job} is neither on the board nor in the trash, and the outcome of its transaction is not known any more: ` +
          'it was never posted, or it is done; its logbook shows which',
      )
  }
}
