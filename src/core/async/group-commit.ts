/**
 * What is written side by side goes out together. While one commit is under way the next one gathers; it leaves as soon
 * as that is answered, and so nothing waits longer than one commit takes, and a lone write does not wait at all.
 *
 * Every item has an outcome of its own: one that is refused fails nobody else.
 */
import { createDeferred, type Deferred } from './abort.ts'

export type CommitResult<R> = { readonly value: R } | { readonly error: unknown }

export interface GroupCommitOptions<T, R> {
  /** One outcome per item. Where it rejects, all of them have failed, and everything that waits behind them. */
  readonly commit: (batch: readonly T[]) => Promise<readonly CommitResult<R>[]>
  readonly bytesOf: (item: T) => number
  readonly limits: { readonly items: number; readonly bytes: number }
  /** Of two items with one key the second waits for the next commit. */
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

  /** Resolves when nothing is under way any more. */
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
      // Whoever was waiting for the last commit writes again in this very turn.
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
      // The first goes out whatever its size.
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
  else done.reject(outcome?.error ?? new Error('a commit has told nothing of one of its items'))
}
