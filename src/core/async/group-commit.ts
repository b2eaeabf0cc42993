/**
 * Group commit: concurrent requests are sent together. While one batch is in flight, the next one is collected; it is sent
 * as soon as the first has ended. A request that comes alone does not wait.
 *
 * Each request has its own outcome. A refused request does not fail the other requests of its batch, and a failed batch does
 * not fail the requests outside it.
 */
import { createDeferred, type Deferred } from './abort.ts'

/** A request in the queue or in flight. */
export interface QueuedRequest {
  reject(error: unknown): void
}

/** The answer whether a request joins a batch: `admit` adds it, `wait` leaves it for a later batch, `full` ends the batch before it. */
export type Admission = 'admit' | 'wait' | 'full'

export interface GroupCommitOptions<Q extends QueuedRequest> {
  /**
   * Sends a batch. Resolves when the next batch may be sent. Each request is settled or queued again, then or later. If the
   * promise rejects, the requests of this batch that are not settled yet are rejected with the same error.
   */
  readonly send: (batch: readonly Q[]) => Promise<void>
  /** Begins a batch: returns the predicate that decides which requests join it, called with each queued request in order. */
  readonly admits: () => (request: Q) => Admission
  /** Returns the error for a queued request that must no longer be sent. Nothing of such a request was done. */
  readonly refusalOf?: (request: Q) => Error | undefined
  /** Returns whether a batch can be sent now. If not, {@link GroupCommit.resume} has to be called later. */
  readonly isReady?: () => boolean
  /** Schedules the next batch, which contains all requests until then. By default, in the next turn of the event loop. */
  readonly schedule?: (run: () => void) => void
}

export class GroupCommit<Q extends QueuedRequest> {
  readonly #options: GroupCommitOptions<Q>
  #queue: Q[] = []
  #isScheduled = false
  #isInFlight = false
  #idle: Deferred<void> | undefined

  constructor(options: GroupCommitOptions<Q>) {
    this.#options = options
  }

  /** Resolves when no request is queued and no batch is in flight. */
  get idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve()
    this.#idle ??= createDeferred()
    return this.#idle.promise
  }

  get isIdle(): boolean {
    return this.#queue.length === 0 && !this.#isInFlight
  }

  enqueue(request: Q): void {
    this.#queue.push(request)
    this.resume()
  }

  /** Queues requests of an earlier batch again, in front of the others. */
  requeue(requests: readonly Q[]): void {
    this.#queue = [...requests, ...this.#queue]
    this.resume()
  }

  /** Rejects the queued requests for which `toError` returns an error. Nothing of such a request was done. */
  rejectQueued(toError: (request: Q) => Error | undefined): void {
    this.#queue = this.#queue.filter((request) => {
      const error = toError(request)
      if (error) request.reject(error)
      return error === undefined
    })
    this.#checkIdle()
  }

  /** Sends the next batch soon, unless one is in flight. */
  resume(): void {
    if (this.#isScheduled || this.#isInFlight || this.#queue.length === 0) return
    this.#isScheduled = true
    const { schedule = setImmediate } = this.#options
    schedule(() => {
      this.#isScheduled = false
      void this.#sendNext()
    })
  }

  async #sendNext(): Promise<void> {
    const { send, admits, refusalOf, isReady } = this.#options
    if (this.#queue.length === 0 || isReady?.() === false) return
    if (refusalOf) this.rejectQueued(refusalOf)
    const { batch, rest } = takeBatch(this.#queue, admits())
    if (batch.length === 0) return
    this.#queue = rest
    this.#isInFlight = true
    try {
      await send(batch)
    } catch (error) {
      this.#queue = this.#queue.filter((request) => !batch.includes(request))
      for (const request of batch) request.reject(error)
    }
    this.#isInFlight = false
    this.resume()
    this.#checkIdle()
  }

  #checkIdle(): void {
    if (!this.#idle || !this.isIdle) return
    this.#idle.resolve()
    this.#idle = undefined
  }
}

/** Returns the requests of the next batch, and the other requests. Both lists keep the order of the queue. */
export function takeBatch<Q>(
  queue: readonly Q[],
  admits: (request: Q) => Admission,
): { readonly batch: readonly Q[]; readonly rest: Q[] } {
  const batch: Q[] = []
  const waiting: Q[] = []
  for (const [index, request] of queue.entries()) {
    const admission = admits(request)
    if (admission === 'full') return { batch, rest: waiting.concat(queue.slice(index)) }
    if (admission === 'admit') batch.push(request)
    else waiting.push(request)
  }
  return { batch, rest: waiting }
}

/** The maximum size of a batch. */
export interface BatchSize {
  readonly items: number
  readonly bytes: number
}

export interface BatchLimits<T> {
  readonly bytesOf: (request: T) => number
  readonly limits: BatchSize | (() => BatchSize)
  /** The key of a request. Two requests with the same key are never in one batch: the second waits for the next. */
  readonly keyOf?: (request: T) => string
}

/** Returns the predicate for batches with limits. The first request of a batch is admitted, however large it is. */
export function withinLimits<T>({ bytesOf, limits, keyOf }: BatchLimits<T>): () => (request: T) => Admission {
  return () => {
    const most = typeof limits === 'function' ? limits() : limits
    const keys = new Set<string>()
    let items = 0
    let bytes = 0
    return (request) => {
      const key = keyOf?.(request)
      if (key !== undefined && keys.has(key)) return 'wait'
      bytes += bytesOf(request)
      if (items > 0 && (items >= most.items || bytes > most.bytes)) return 'full'
      items += 1
      if (key !== undefined) keys.add(key)
      return 'admit'
    }
  }
}

export type CommitResult<R> = { readonly value: R } | { readonly error: unknown }

export interface BatchCommitOptions<T, R> extends BatchLimits<T> {
  /** Commits a batch; resolves to one outcome per item. */
  readonly commit: (batch: readonly T[]) => Promise<readonly CommitResult<R>[]>
  /** Returns the error for a queued item that must not be committed any more. */
  readonly refusalOf?: (item: T) => Error | undefined
}

interface QueuedItem<T, R> extends Deferred<R> {
  readonly item: T
}

/** A group commit whose batches are committed by one call, which returns all outcomes. */
export class BatchCommit<T, R> {
  readonly #group: GroupCommit<QueuedItem<T, R>>

  constructor({ commit, bytesOf, limits, keyOf, refusalOf }: BatchCommitOptions<T, R>) {
    this.#group = new GroupCommit({
      send: async (batch) => {
        const outcomes = await commit(batch.map(({ item }) => item))
        for (const [index, queued] of batch.entries()) settleQueued(queued, outcomes[index])
      },
      admits: withinLimits({
        bytesOf: ({ item }) => bytesOf(item),
        limits,
        ...(keyOf ? { keyOf: ({ item }: QueuedItem<T, R>) => keyOf(item) } : {}),
      }),
      ...(refusalOf ? { refusalOf: ({ item }: QueuedItem<T, R>) => refusalOf(item) } : {}),
    })
  }

  /** Resolves when no item is queued and no batch is being committed. */
  get idle(): Promise<void> {
    return this.#group.idle
  }

  add(item: T): Promise<R> {
    const queued = { item, ...createDeferred<R>() }
    this.#group.enqueue(queued)
    return queued.promise
  }
}

function settleQueued<R>(queued: Deferred<R>, outcome: CommitResult<R> | undefined): void {
  if (outcome && 'value' in outcome) queued.resolve(outcome.value)
  else queued.reject(outcome?.error ?? new Error('a commit returned no outcome for one of its items'))
}
