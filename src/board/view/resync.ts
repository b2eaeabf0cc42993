/**
 * Lists the board again after a gap in the changes. Changes that arrive meanwhile are kept, and applied after the listing.
 * The listing may contain some of them already. That is harmless: a change states the new state of a job, so applying it twice has the same result.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { retryUntilAborted } from '../../core/async/retry.ts'
import { NotConnected } from '../../core/errors.ts'
import type { BoardChange } from '../contract/index.ts'

export interface ResyncOptions<T> {
  readonly list: () => Promise<T>
  /**
   * Applies the listing, in steps between which other work of the process goes on.
   *
   * @param missed the changes between the gap and the answer with the listing
   */
  readonly apply: (listing: T, missed: readonly BoardChange[]) => Iterable<void>
  /** Called with all changes since the gap, when the listing is applied. The view is current from then on. */
  readonly onApplied: (missed: readonly BoardChange[]) => void
  readonly onError: (error: unknown) => void
  /** Called when the listing has failed without a connection. The reconnect is a gap, and then the board is listed again. */
  readonly onDisconnected: (error: NotConnected) => void
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
}

export class Resync<T> {
  readonly #options: ResyncOptions<T>
  /** The changes since the last gap; undefined while the view is current. */
  #missed: BoardChange[] | undefined = []
  #gaps = 0

  constructor(options: ResyncOptions<T>) {
    this.#options = options
  }

  /** Whether the board has been listed since the last gap. */
  get isDone(): boolean {
    return this.#missed === undefined
  }

  /** Lists the board again, because changes may have been missed. */
  start(): void {
    this.#gaps += 1
    this.#missed = []
    void this.#list(this.#gaps)
  }

  /** Ends a listing that is under way: its answer is ignored. */
  stop(): void {
    this.#gaps += 1
    this.#missed = []
  }

  /** Keeps the changes for later and returns true; returns false where the caller has to apply them now. */
  keep(batch: readonly BoardChange[]): boolean {
    this.#missed?.push(...batch)
    return this.#missed !== undefined
  }

  async #list(gap: number): Promise<void> {
    const { list, apply, onApplied, onError, onDisconnected, signal } = this.#options
    const listUnlessNewer = async () => {
      if (gap !== this.#gaps) return
      const listing = await list()
      if (gap !== this.#gaps) return
      for (const _step of apply(listing, [...(this.#missed ?? [])])) {
        await nextTurn()
        if (gap !== this.#gaps) return
      }
      const missed = this.#missed ?? []
      this.#missed = undefined
      try {
        onApplied(missed)
      } catch (error) {
        // A retry would apply an older listing to a view that is current.
        onError(error)
      }
    }
    await retryUntilAborted(listUnlessNewer, {
      ...{ firstPauseMs: 100, maxPauseMs: 10_000, signal, onRetry: onError },
      // Without a connection a retry is useless: the reconnect is another gap.
      isRetryable: (error) => !(error instanceof NotConnected),
    }).catch((error: unknown) => {
      if (error instanceof NotConnected && gap === this.#gaps) onDisconnected(error)
    })
  }
}
