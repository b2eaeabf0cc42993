/** Waits for the ends of batches: reads a batch at each hint of the backend, if the backend gives hints, and periodically. */
import { abortAfter, Condition, followSignals, rejectOnAbort } from '../../../core/async/abort.ts'
import { keepAlive } from '../../../core/async/lifecycle.ts'
import { NotConnected, Timeout } from '../../../core/errors.ts'
import { withinTime } from '../../../core/time.ts'
import type { Backend } from '../../contract/index.ts'
import type { WaitOptions } from '../../jobs/job.ts'
import { type StoredBatch, toBatchState } from '../../model/job-batch.ts'

/** The pause between two reads of a batch for which the backend gives hints. */
const WATCHED_PAUSE_MS = 10_000
/** The pause between two reads of another batch. */
const UNWATCHED_PAUSE_MS = 500

/** A batch for which calls wait. */
interface Watched {
  readonly changed: Condition
  waiters: number
  isWatched: boolean
}

export class BatchWaits {
  readonly #backend: Pick<Backend, 'batches'>
  /** Fires when the board is closed. */
  readonly #signal: AbortSignal
  readonly #watched = new Map<string, Watched>()

  constructor(options: { readonly backend: Pick<Backend, 'batches'>; readonly signal: AbortSignal }) {
    this.#backend = options.backend
    this.#signal = options.signal
  }

  /** Wakes the calls that wait for this batch; without a uuid, all calls. */
  onHint(uuid?: string): void {
    if (uuid !== undefined) this.#watched.get(uuid)?.changed.notify()
    else for (const { changed } of this.#watched.values()) changed.notify()
  }

  /**
   * Resolves with the state in which the batch has ended.
   *
   * @param read reads the batch, and throws NotFound where there is none
   * @throws Timeout, the signal's reason; what `read` throws, but not NotConnected
   */
  async wait(
    batch: { readonly uuid: string; toString(): string },
    read: () => Promise<StoredBatch>,
    { signal, timeout }: WaitOptions,
  ): Promise<'done' | 'failed' | 'cancelled'> {
    using _alive = keepAlive()
    using stop = followSignals([this.#signal, signal])
    let last: StoredBatch | undefined
    using _timer = abortAfter(stop, timeout, (time) => toTimeout(batch, last, time))
    const watched = this.#enter(batch.uuid)
    try {
      for (;;) {
        stop.throwIfAborted()
        // The wait for a hint begins before the read, so that a change between the two is not missed.
        const changed = watched.changed.wait()
        await rejectOnAbort(this.#watch(batch.uuid, watched), stop)
        last = (await rejectOnAbort(unlessNotConnected(read), stop)) ?? last
        const state = last?.endedAt === undefined ? undefined : toBatchState(last)
        if (state && state !== 'open' && state !== 'running') return state
        const pause = watched.isWatched ? WATCHED_PAUSE_MS : UNWATCHED_PAUSE_MS
        await rejectOnAbort(withinTime(pause, changed), stop)
      }
    } finally {
      // Not awaited: without a connection, the answer would arrive late and delay the caller.
      this.#leave(batch.uuid, watched).catch(() => undefined)
    }
  }

  #enter(uuid: string): Watched {
    const watched = this.#watched.get(uuid) ?? { changed: new Condition(), waiters: 0, isWatched: false }
    watched.waiters += 1
    this.#watched.set(uuid, watched)
    return watched
  }

  async #watch(uuid: string, watched: Watched): Promise<void> {
    if (watched.isWatched) return
    await unlessNotConnected(async () => {
      await this.#backend.batches.watch(uuid)
      watched.isWatched = true
    })
  }

  async #leave(uuid: string, watched: Watched): Promise<void> {
    watched.waiters -= 1
    if (watched.waiters > 0) return
    this.#watched.delete(uuid)
    if (watched.isWatched) await this.#backend.batches.unwatch(uuid)
  }
}

function toTimeout(batch: { toString(): string }, last: StoredBatch | undefined, time: string): Timeout {
  const known = last
    ? ` is still ${toBatchState(last)}, with ${last.open} of ${last.total} jobs open`
    : ' has not ended'
  return new Timeout(`${batch}${known} after ${time}`)
}

/** Returns what the work returns; undefined without a connection, so that the wait continues. */
async function unlessNotConnected<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof NotConnected) return undefined
    throw error
  }
}
