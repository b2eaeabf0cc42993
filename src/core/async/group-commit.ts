/**
 * Group commit: concurrent requests are sent together. While one group is in flight, the next one is collected; it is sent
 * as soon as the first has ended. A request that comes alone does not wait.
 *
 * Each request has its own outcome. A refused request does not fail the other requests of its group, and a failed group does
 * not fail the requests outside it.
 */
import { createDeferred, type Deferred } from './abort.ts'

/** A request in the queue or in flight. */
export interface QueuedRequest {
  reject(error: unknown): void
}

/** The answer whether a request joins a group: `admit` adds it, `wait` leaves it for a later group, `full` ends the group before it. */
export type Admission = 'admit' | 'wait' | 'full'

export interface GroupCommitOptions<Q extends QueuedRequest> {
  /**
   * Sends a group. Resolves when the next group may be sent. Each request is settled or queued again, then or later. If the
   * promise rejects, the requests of this group that are not settled yet are rejected with the same error.
   */
  readonly send: (group: readonly Q[]) => Promise<void>
  /** Begins a group: returns the predicate that decides which requests join it, called with each queued request in order. */
  readonly admits: () => (request: Q) => Admission
  /** Returns the error for a queued request that must no longer be sent. Nothing of such a request was done. */
  readonly refusalOf?: (request: Q) => Error | undefined
  /** Returns whether a group can be sent now. If not, {@link GroupCommit.resume} has to be called later. */
  readonly isReady?: () => boolean
  /** Schedules the next group, which contains all requests until then. By default, in the next turn of the event loop. */
  readonly schedule?: (run: () => void) => void
}

export class GroupCommit<Q extends QueuedRequest> {
  readonly #options: GroupCommitOptions<Q>
  #queue: Q[] = []
  #isScheduled = false
  #isInFlight = false
  /** The number of groups that were sent, by which a group recognises that {@link next} has ended it. */
  #sent = 0
  #idle: Deferred<void> | undefined

  constructor(options: GroupCommitOptions<Q>) {
    this.#options = options
  }

  /** Resolves when no request is queued and no group is in flight. */
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

  /** Queues requests of an earlier group again, in front of the others. */
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

  /** Sends the next group soon, unless one is in flight. */
  resume(): void {
    if (this.#isScheduled || this.#isInFlight || this.#queue.length === 0) return
    this.#isScheduled = true
    const { schedule = setImmediate } = this.#options
    schedule(() => {
      this.#isScheduled = false
      void this.#sendNext()
    })
  }

  /**
   * Ends the group in flight and sends the next one at once, if requests are queued. It is for a group that is answered, before its callers are:
   * otherwise the server would wait until they have done what follows their answers.
   */
  next(): void {
    if (!this.#isInFlight || this.#queue.length === 0) return
    this.#isInFlight = false
    void this.#sendNext()
  }

  async #sendNext(): Promise<void> {
    const { send, admits, refusalOf, isReady } = this.#options
    if (this.#queue.length === 0 || isReady?.() === false) return
    if (refusalOf) this.rejectQueued(refusalOf)
    const { group, rest } = takeGroup(this.#queue, admits())
    if (group.length === 0) return
    this.#queue = rest
    this.#isInFlight = true
    this.#sent += 1
    const number = this.#sent
    try {
      await send(group)
    } catch (error) {
      this.#queue = this.#queue.filter((request) => !group.includes(request))
      for (const request of group) request.reject(error)
    }
    if (number !== this.#sent) return
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

/** Returns the requests of the next group, and the other requests. Both lists keep the order of the queue. */
export function takeGroup<Q>(
  queue: readonly Q[],
  admits: (request: Q) => Admission,
): { readonly group: readonly Q[]; readonly rest: Q[] } {
  const group: Q[] = []
  const waiting: Q[] = []
  for (const [index, request] of queue.entries()) {
    const admission = admits(request)
    if (admission === 'full') return { group, rest: waiting.concat(queue.slice(index)) }
    if (admission === 'admit') group.push(request)
    else waiting.push(request)
  }
  return { group, rest: waiting }
}

/** The maximum size of a group. */
export interface GroupSize {
  readonly items: number
  readonly bytes: number
}

export interface GroupLimits<T> {
  readonly bytesOf: (request: T) => number
  readonly limits: GroupSize | (() => GroupSize)
  /** The key of a request. Two requests with the same key are never in one group: the second waits for the next. */
  readonly keyOf?: (request: T) => string
}

/** Returns the predicate for groups with limits. The first request of a group is admitted, however large it is. */
export function withinLimits<T>({ bytesOf, limits, keyOf }: GroupLimits<T>): () => (request: T) => Admission {
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

export interface ItemCommitOptions<T, R> extends GroupLimits<T> {
  /** Commits a group; resolves to one outcome per item. */
  readonly commit: (group: readonly T[]) => Promise<readonly CommitResult<R>[]>
  /** Returns the error for a queued item that must not be committed any more. */
  readonly refusalOf?: (item: T) => Error | undefined
  /** Delays the answers of a group that was committed, whether or not that failed. Meanwhile the next group is committed. */
  readonly beforeAnswers?: () => Promise<void>
}

interface QueuedItem<T, R> extends QueuedRequest {
  readonly item: T
  resolve(value: R): void
}

/** A group commit whose groups are committed by one call, which returns all outcomes. */
export class ItemCommit<T, R> {
  readonly #group: GroupCommit<QueuedItem<T, R>>

  constructor({ commit, bytesOf, limits, keyOf, refusalOf, beforeAnswers }: ItemCommitOptions<T, R>) {
    this.#group = new GroupCommit({
      send: async (group) => {
        const committed = commit(group.map(({ item }) => item))
        if (!beforeAnswers) return answerAll(group, await committed)
        const outcomes = await committed.catch((error: unknown) => group.map(() => ({ error })))
        void beforeAnswers().then(
          () => answerAll(group, outcomes),
          (error: unknown) =>
            answerAll(
              group,
              group.map(() => ({ error })),
            ),
        )
      },
      admits: withinLimits({
        bytesOf: ({ item }) => bytesOf(item),
        limits,
        ...(keyOf ? { keyOf: ({ item }: QueuedItem<T, R>) => keyOf(item) } : {}),
      }),
      ...(refusalOf ? { refusalOf: ({ item }: QueuedItem<T, R>) => refusalOf(item) } : {}),
    })
  }

  /** Resolves when no item is queued and no group is being committed. */
  get idle(): Promise<void> {
    return this.#group.idle
  }

  add(item: T): Promise<R> {
    return new Promise<R>((resolve, reject) => this.#group.enqueue({ item, resolve, reject }))
  }
}

function answerAll<T, R>(group: readonly QueuedItem<T, R>[], outcomes: readonly CommitResult<R>[]): void {
  for (const [index, queued] of group.entries()) settleQueued(queued, outcomes[index])
}

function settleQueued<R>(queued: QueuedItem<unknown, R>, outcome: CommitResult<R> | undefined): void {
  if (outcome && 'value' in outcome) queued.resolve(outcome.value)
  else queued.reject(outcome?.error ?? new Error('a commit returned no outcome for one of its items'))
}
