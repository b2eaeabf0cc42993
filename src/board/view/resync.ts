/**
 * After a gap in the changes the board is listed anew. Changes that arrive meanwhile are kept, and applied after the listing.
 * The listing may contain some of them already. That is harmless: a change states what is so now, and the last one wins.
 */
import { NotConnected } from '../../core/errors.ts'
import { backoffDelay, sleep } from '../../core/time.ts'
import type { BoardChange } from '../backend.ts'

export interface ResyncOptions<T> {
  readonly list: () => Promise<T>
  /** Called with the listing and the changes since the gap began; the view is current from then on. */
  readonly onListed: (listing: T, missed: readonly BoardChange[]) => void
  readonly onError: (error: unknown) => void
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
}

export class Resync<T> {
  readonly #options: ResyncOptions<T>
  /** The changes since the last gap, until the board has been listed. */
  #missed: BoardChange[] | undefined = []
  #gaps = 0

  constructor(options: ResyncOptions<T>) {
    this.#options = options
  }

  /** Whether the board has been listed since the last gap. */
  get isDone(): boolean {
    return this.#missed === undefined
  }

  /** Begins anew, because changes may have been missed. */
  start(): void {
    this.#gaps += 1
    this.#missed = []
    void this.#list(this.#gaps)
  }

  /** Keeps the changes for later and returns true; returns false where the caller has to apply them now. */
  keep(batch: readonly BoardChange[]): boolean {
    this.#missed?.push(...batch)
    return this.#missed !== undefined
  }

  async #list(gap: number): Promise<void> {
    const { list, onListed, onError, signal } = this.#options
    for (let attempt = 1; gap === this.#gaps && !signal.aborted; attempt += 1) {
      try {
        const listing = await list()
        if (gap !== this.#gaps) return
        const missed = this.#missed ?? []
        this.#missed = undefined
        onListed(listing, missed)
        return
      } catch (error) {
        // Without a connection a retry is useless: the reconnect is another gap.
        if (error instanceof NotConnected) return
        onError(error)
        await sleep(backoffDelay(attempt, { first: 100, max: 10_000 }), { signal }).catch(() => undefined)
      }
    }
  }
}
