/**
 * Reads postings for the view, in batches, after all changes at hand were applied. A posting that has changed since it was
 * asked for is read again.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { retryUntilAborted } from '../../core/async/retry.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import type { BackendJobs, StoredJob, UnreadableJob } from '../contract/index.ts'
import type { JobEntry } from '../model/entry.ts'

/** The limits of one read: the number of postings, and their total size in bytes. */
export const MAX_BATCH = 512
export const MAX_BATCH_BYTES = 4 * 1_024 * 1_024
/**
 * The size assumed of a posting that was never read: half of the largest that a board accepts, because a batch is in memory as a
 * whole, decoded, many times as large. After batches of smaller postings less is assumed, down to a minimum that allows 256
 * postings in a batch: with 16 in each, a busy board would need a round trip for every 16 posts.
 */
const FIRST_UNREAD_BYTES = 256 * 1_024
const MIN_UNREAD_BYTES = 16 * 1_024

/** Estimates how many bytes an unread posting has, and so how many postings fit into one read. */
export class ReadSize {
  #bytes = FIRST_UNREAD_BYTES

  /** The assumed size of an unread posting, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of unread postings in one read. */
  get postings(): number {
    return Math.min(MAX_BATCH, Math.floor(MAX_BATCH_BYTES / this.#bytes))
  }

  /** Assumes the size of the largest posting of this read from now on, or a quarter of what was assumed before. */
  adapt(read: readonly ({ readonly bytes?: number } | undefined)[]): void {
    const largest = read.reduce((size, posting) => Math.max(size, posting?.bytes ?? 0), 0)
    this.#bytes = Math.min(Math.max(largest, this.#bytes / 4, MIN_UNREAD_BYTES), FIRST_UNREAD_BYTES)
  }
}

/** The postings that have to be read, in the order of the requests. */
export class ReadList {
  /** The entries, each with the number of its request. */
  readonly #wanted = new Map<JobEntry, number>()
  #requests = 0

  get isEmpty(): boolean {
    return this.#wanted.size === 0
  }

  get size(): number {
    return this.#wanted.size
  }

  /** The number of requests so far, for {@link hasRead}. */
  get requests(): number {
    return this.#requests
  }

  /** Returns whether the first `requests` postings are read. Later ones do not count: a busy board asks for ever more. */
  hasRead(requests: number): boolean {
    const [oldest] = this.#wanted.values()
    return oldest === undefined || oldest > requests
  }

  add(entry: JobEntry): void {
    if (this.#wanted.has(entry)) return
    this.#requests += 1
    this.#wanted.set(entry, this.#requests)
  }

  has(entry: JobEntry): boolean {
    return this.#wanted.has(entry)
  }

  /** Returns whether it was on the list. */
  delete(entry: JobEntry): boolean {
    return this.#wanted.delete(entry)
  }

  [Symbol.iterator](): Iterator<JobEntry> {
    return this.#wanted.keys()
  }
}

export interface ContentReaderOptions {
  readonly jobs: Pick<BackendJobs, 'read'>
  readonly list: ReadList
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
  /** Called with the posting of an entry; undefined where it is gone. */
  readonly onRead: (entry: JobEntry, content: StoredJob | UnreadableJob | undefined) => void
  /** Called after each batch, and when nothing is left to read. */
  readonly onProgress: () => void
  readonly onError: (error: unknown) => void
}

export class ContentReader {
  readonly #options: ContentReaderOptions
  #reading = false
  readonly #readSize = new ReadSize()
  /** The number of requests when a read found no connection: only a further request, or {@link resume}, reads on. */
  #suspendedAt: number | undefined

  constructor(options: ContentReaderOptions) {
    this.#options = options
  }

  /** Whether postings are being read, or have to be. */
  get isBusy(): boolean {
    return this.#reading || !this.#options.list.isEmpty
  }

  /** Starts to read what is on the list, unless that is under way. */
  start(): void {
    const { list, signal } = this.#options
    if (this.#reading || list.isEmpty || signal.aborted || list.requests === this.#suspendedAt) return
    void this.#read()
  }

  /** Reads on after the connection has returned. */
  resume(): void {
    this.#suspendedAt = undefined
    this.start()
  }

  /** Waits a turn first: all changes at hand make one batch, and the answer to an own post makes reading it needless. */
  async #read(): Promise<void> {
    const { list, signal, onError, onProgress } = this.#options
    this.#reading = true
    await nextTurn()
    const readAll = async () => {
      while (!list.isEmpty) {
        await this.#readBatch()
        // A board in memory answers at once: without a turn in between, a long one would stop everything else in the process for seconds.
        if (!list.isEmpty) await nextTurn()
      }
    }
    await retryUntilAborted(readAll, {
      ...{ firstPauseMs: 100, maxPauseMs: 10_000, signal, onRetry: onError },
      isRetryable: (error) => !(error instanceof NotConnected),
    }).catch(() => {
      // What is unread stays on the list: the connection's return is a gap, after which reading goes on.
      this.#suspendedAt = list.requests
    })
    this.#reading = false
    onProgress()
  }

  async #readBatch(): Promise<void> {
    const { jobs, list, onRead, onProgress } = this.#options
    const batch = this.#nextBatch()
    if (batch.length === 0) return
    const contents = await jobs.read(batch.map(({ entry }) => entry.id ?? ''))
    this.#readSize.adapt(contents)
    batch.forEach(({ entry, changes }, index) => {
      if (entry.changeCount !== changes || !list.delete(entry)) return
      try {
        onRead(entry, contents[index])
      } catch (thrown) {
        // A posting that the view cannot take in is hidden; its neighbours are read all the same.
        const error = asError(thrown)
        onRead(entry, { id: entry.id ?? '', error })
      }
    })
    onProgress()
  }

  #nextBatch(): readonly { readonly entry: JobEntry; readonly changes: number }[] {
    const { list } = this.#options
    const batch: { entry: JobEntry; changes: number }[] = []
    let bytes = 0
    for (const entry of list) {
      bytes += entry.stored?.bytes ?? this.#readSize.bytes
      if (batch.length >= MAX_BATCH || (batch.length > 0 && bytes > MAX_BATCH_BYTES)) break
      // Most changes are claims. The posting of a claimed job is not needed; its release adds it to the list again.
      if (entry.claimed && entry.stored) list.delete(entry)
      else batch.push({ entry, changes: entry.changeCount })
    }
    return batch
  }
}
