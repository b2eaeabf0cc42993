/**
 * After a gap the board is listed. What is told meanwhile is kept, and applied after the listing; that may contain some of it
 * already, which is harmless: a change says what is now so, and for whatever it touches the last one wins.
 */
import { NotConnected } from '../../core/errors.ts'
import { backoff, sleep } from '../../core/time.ts'
import type { Change } from '../backend.ts'

export interface GapOptions<T> {
  readonly list: () => Promise<T>
  /** With what was told since the gap began. It is closed from then on. */
  readonly close: (listing: T, missed: readonly Change[]) => void
  readonly failed: (error: unknown) => void
  /** Ends everything that goes on in the background. */
  readonly signal: AbortSignal
}

export class Gap<T> {
  readonly #options: GapOptions<T>
  /** Since the last gap, while it is not closed yet. */
  #missed: Change[] | undefined = []
  #gaps = 0

  constructor(options: GapOptions<T>) {
    this.#options = options
  }

  get closed(): boolean {
    return this.#missed === undefined
  }

  open(): void {
    this.#gaps += 1
    this.#missed = []
    void this.#list(this.#gaps)
  }

  /** False while there is no gap: then it is for the caller to apply. */
  keeps(batch: readonly Change[]): boolean {
    this.#missed?.push(...batch)
    return this.#missed !== undefined
  }

  async #list(gap: number): Promise<void> {
    const { list, close, failed, signal } = this.#options
    for (let attempt = 1; gap === this.#gaps && !signal.aborted; attempt += 1) {
      try {
        const listing = await list()
        if (gap !== this.#gaps) return
        const missed = this.#missed ?? []
        this.#missed = undefined
        close(listing, missed)
        return
      } catch (error) {
        // Without a connection there is nothing to try: its return is another gap.
        if (error instanceof NotConnected) return
        failed(error)
        await sleep(backoff(attempt, { first: 100, max: 10_000 }), { signal }).catch(() => undefined)
      }
    }
  }
}
