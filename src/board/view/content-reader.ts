/**
 * Reads postings for the live view, in batches, after all changes at hand were applied. What was overtaken by a change is
 * read again, never believed.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { NotConnected } from '../../core/errors.ts'
import { backoff, sleep } from '../../core/time.ts'
import type { Backend, Stored, Unreadable } from '../backend.ts'
import type { Entry } from '../entry.ts'

/** How many postings are asked for at once, and how large they are together, as far as anybody knows. */
const BATCH = 512
const BATCH_BYTES = 4 * 1_024 * 1_024

export interface ContentReaderOptions {
  readonly backend: Pick<Backend, 'read'>
  /** Ends everything that goes on in the background. */
  readonly signal: AbortSignal
  /** What an entry's posting is now; undefined where it is gone. */
  readonly found: (entry: Entry, content: Stored | Unreadable | undefined) => void
  /** Something was found, or there is nothing more to read for now. */
  readonly progressed: () => void
  readonly failed: (error: unknown) => void
}

export class ContentReader {
  readonly #options: ContentReaderOptions
  /** In the order in which they were asked for, with the number of the request. */
  readonly #wanted = new Map<Entry, number>()
  #requests = 0
  #reading = false
  /** How large a posting is taken to be that nobody has read: as those that were read last. */
  #usualBytes = BATCH_BYTES / 64

  constructor(options: ContentReaderOptions) {
    this.#options = options
  }

  get busy(): boolean {
    return this.#reading || this.#wanted.size > 0
  }

  /** What was asked for up to now, for {@link hasRead}. */
  get requests(): number {
    return this.#requests
  }

  /** Whether everything is read that was asked for up to then, whatever was asked for since: on a busy board it never ends. */
  hasRead(requests: number): boolean {
    const [oldest] = this.#wanted.values()
    return oldest === undefined || oldest > requests
  }

  want(entry: Entry): void {
    if (!this.#wanted.has(entry)) {
      this.#requests += 1
      this.#wanted.set(entry, this.#requests)
    }
    if (!this.#reading) void this.#read()
  }

  /** It is known already, or nobody needs it any more. */
  forget(entry: Entry): void {
    this.#wanted.delete(entry)
  }

  /** Waits a turn first: all changes at hand make one batch, and the answer to an own post makes reading it needless. */
  async #read(): Promise<void> {
    const { signal, failed, progressed } = this.#options
    this.#reading = true
    await nextTurn()
    for (let attempt = 1; this.#wanted.size > 0 && !signal.aborted; attempt += 1) {
      try {
        while (this.#wanted.size > 0) await this.#readBatch()
      } catch (error) {
        // What is unread stays wanted: the connection's return is a gap, and closing it reads on.
        if (error instanceof NotConnected) break
        failed(error)
        await sleep(backoff(attempt, { first: 100, max: 10_000 }), { signal }).catch(() => undefined)
      }
    }
    this.#reading = false
    progressed()
  }

  async #readBatch(): Promise<void> {
    const { backend, found, progressed } = this.#options
    const batch: { entry: Entry; changes: number }[] = []
    let bytes = 0
    for (const entry of this.#wanted.keys()) {
      bytes += entry.stored?.bytes ?? this.#usualBytes
      if (batch.length >= BATCH || (batch.length > 0 && bytes > BATCH_BYTES)) break
      // Claimed meanwhile, as most are that change: the release asks for it again.
      if (entry.claimed && entry.stored) this.#wanted.delete(entry)
      else batch.push({ entry, changes: entry.changes })
    }
    if (batch.length === 0) return
    const contents = await backend.read(batch.map(({ entry }) => entry.id ?? ''))
    // Those that cannot be read count, too: a board full of large ones would else be asked for all at once.
    this.#usualBytes = contents.reduce((sum, read) => sum + (read?.bytes ?? 0), 0) / batch.length
    batch.forEach(({ entry, changes }, index) => {
      if (entry.changes !== changes || !this.#wanted.delete(entry)) return
      try {
        found(entry, contents[index])
      } catch (thrown) {
        // One posting that the view cannot take in is hidden; those beside it are read all the same.
        const error = thrown instanceof Error ? thrown : new Error(String(thrown))
        found(entry, { id: entry.id ?? '', error })
      }
    })
    progressed()
  }
}
