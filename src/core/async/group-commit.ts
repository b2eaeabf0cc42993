/**
 * Group commit: concurrent writes are sent together. While one commit is under way, the next batch is collected; it is sent
 * as soon as the first is answered. No item waits longer than one commit takes, and a single item does not wait at all.
 *
 * Every item has its own outcome: a refused item does not fail the others.
 */
import { createDeferred, type Deferred } from './abort.ts'

export type CommitResult<R> = { readonly value: R } | { readonly error: unknown }

export interface GroupCommitOptions<T, R> {
  /** Commits a batch; resolves to one outcome per item. If it rejects, the batch and all waiting items have failed. */
  readonly commit: (batch: readonly T[]) => Promise<readonly CommitResult<R>[]>
  readonly bytesOf: (item: T) => number
  readonly limits: { readonly items: number; readonly bytes: number }
  /** The key of an item. Two items with the same key are never in one commit: the second waits for the next. */
  readonly keyOf?: (item: T) => string
}

interface QueuedItem<T, R> {
  readonly item: T
  readonly done: Deferred<R>
}

export class GroupCommit<T, R> {
  readonly #options: GroupCommitOptions<T, R>
  #queue: QueuedItem<T, R>[] = []
  #committing: Promise<void> | undefined

  constructor(options: GroupCommitOptions<T, R>) {
    this.#options = options
  }

  /** Resolves when no commit is under way. */
  get idle(): Promise<void> {
    return this.#committing ?? Promise.resolve()
  }

  add(item: T): Promise<R> {
    const done = createDeferred<R>()
    this.#queue.push({ item, done })
    this.#committing ??= this.#commitAll()
    return done.promise
  }

  async #commitAll(): Promise<void> {
    while (this.#queue.length > 0) {
      // Callers that waited for the last commit write again in this turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve))
      const batch = this.#take()
      try {
        const outcomes = await this.#options.commit(batch.map(({ item }) => item))
        for (const [index, { done }] of batch.entries()) settleDeferred(done, outcomes[index])
      } catch (error) {
        for (const { done } of [...batch, ...this.#queue.splice(0)]) done.reject(error)
      }
    }
    this.#committing = undefined
  }

  #take(): QueuedItem<T, R>[] {
    const { bytesOf, limits, keyOf } = this.#options
    const taken: QueuedItem<T, R>[] = []
    const left: QueuedItem<T, R>[] = []
    const keys = new Set<string>()
    let bytes = 0
    for (const [index, waiting] of this.#queue.entries()) {
      bytes += bytesOf(waiting.item)
      // The first item is sent whatever its size.
      if (taken.length > 0 && (bytes > limits.bytes || taken.length >= limits.items)) {
        left.push(...this.#queue.slice(index))
        break
      }
      const key = keyOf?.(waiting.item)
      if (key !== undefined && keys.has(key)) left.push(waiting)
      else taken.push(waiting)
      if (key !== undefined) keys.add(key)
    }
    this.#queue = left
    return taken
  }
}

function settleDeferred<R>(done: Deferred<R>, outcome: CommitResult<R> | undefined): void {
  if (outcome && 'value' in outcome) done.resolve(outcome.value)
  else done.reject(outcome?.error ?? new Error('a commit returned no outcome for one of its items'))
}
