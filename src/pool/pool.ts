/**
 * A pool of child processes that do one piece of work at a time. It knows nothing of what the work is: a worker module does it.
 *
 * - **Work waits** in order until a child is idle. More children are started, up to `max`, while work waits.
 * - **A child is replaced** after `maxTasks`, `maxAge`, or with more than `memory` in use, between two pieces of work. The successor is
 *   started first, and no work fails for it.
 * - **A child that cannot be started** is tried again after a pause that grows. After five failures in a row, work is refused with
 *   ChildUnavailable until one can be started again.
 * - **Work that its child has not begun** when the child dies is given to another child.
 *
 * Ideas: the pool of Celery's prefork workers, without its bookkeeping by file descriptors; RQ's child for each job (`isFresh`).
 */
import { createDeferred, type Deferred, onAbort } from '../core/async/abort.ts'
import type { Stoppable } from '../core/async/abort-flag.ts'
import { asError, ChildUnavailable, OutOfMemory, ShuttingDown } from '../core/errors.ts'
import { backoffDelay, monotonic, startInterval, startTimer } from '../core/time.ts'
import { Child, type ChildState, NotBegun } from './child.ts'
import type { ChildEnd } from './child-end.ts'
import type { PoolSettings } from './options.ts'
import type { OnAsk } from './questions.ts'

/** The number of failed starts in a row after which work is refused. */
const MAX_FAILED_STARTS = 5
/** The number of children that may die before they have begun the same piece of work. */
const MAX_UNBEGUN = 3
const START_BACK_OFF_MS = { first: 500, max: 30_000 } as const
/** The time after which an idle child above `min` is ended. */
const IDLE_MS = 60_000
/** The longest period of the beats, and of the checks of age and memory. */
const BEAT_MS = 1_000
/** The number of beats in the time of silence after which a child kills itself: one beat alone may be late. */
const BEATS_PER_SILENCE = 4
/** The time after which a child that has not answered any beat counts as stopped. */
const UNANSWERED_MS = 60_000
/** The time that a child has to dispose of its worker when it is retired. */
const RETIRE_MS = 10_000

export interface PoolOptions extends PoolSettings {
  /** The URL of the worker module, which exports `openWorker`. */
  readonly worker: string
  /** @internal The path of the program of children, for tests. */
  readonly program?: string
  /** Sent to each worker when it is opened; plain data. */
  readonly settings: unknown
  /** The time without a beat of this process after which a child kills itself and its work; 0 for never. */
  readonly silenceMs: number
  /** Returns for how many milliseconds, at least, this process still has the right to the work: a child without a beat ends before that. */
  readonly workLeftMs: () => number
  /** @throws an error if a child with these facts may not be used */
  readonly assertFacts: (facts: unknown) => void
  readonly onEvent: (event: PoolEvent) => void
  readonly onLine: (child: Child, line: string) => void
  readonly onDroppedLines: (child: Child, lines: number) => void
}

export type PoolEvent =
  | { readonly kind: 'started'; readonly child: Child; readonly tookMs: number }
  | { readonly kind: 'ended'; readonly child: Child; readonly end: ChildEnd }
  | { readonly kind: 'start-failed'; readonly error: Error; readonly inARow: number }
  /** Whether work is refused, because no child can be started. */
  | { readonly kind: 'availability'; readonly error: Error | undefined }

export interface WorkOptions {
  readonly work: unknown
  /** Returns for how many milliseconds, at least, this process has the right to this work, if that differs from the pool's. */
  readonly workLeftMs?: (() => number) | undefined
  readonly onNote: (note: unknown) => void
  /** Answers what the worker asks about the work. */
  readonly onAsk: OnAsk
  /** Stops the work: it is removed from the queue, or stopped in its child, in the steps that `child.ts` describes. */
  readonly stop: Stoppable
  /** Kills the child at once: the right to do the work is lost. */
  readonly kill: Stoppable
  /** The time between the signal of the work and SIGTERM. */
  readonly graceMs: number
  /** Whether the work is done by a child of its own, which ends after it. */
  readonly isFresh: boolean
  /** The memory of the child, in bytes, if that differs from the pool's. */
  readonly memory: number | undefined
  /** Called when a child is given the work. */
  readonly onAssigned: (child: Child) => void
}

interface WaitingWork extends WorkOptions {
  readonly answer: Deferred<unknown>
  /** The number of children that have died before they had begun it. */
  unbegun: number
}

/** The status of one child, for people. */
export interface ChildStatus {
  readonly number: number
  readonly pid: number | undefined
  readonly state: ChildState
  readonly tasks: number
  readonly startedAt: Date
  /** The limit of memory in bytes. */
  readonly memory: number | undefined
}

export class ChildPool implements AsyncDisposable {
  readonly #options: PoolOptions
  readonly #children = new Set<Child>()
  /** The successor of each child that is being replaced: the child ends when its successor is ready. */
  readonly #replacedBy = new Map<Child, Child>()
  /** Children that end when they are idle: their successor is ready, or they did fresh work. */
  readonly #leaving = new Set<Child>()
  readonly #idleSince = new WeakMap<Child, number>()
  /** The work that waits, in the order in which it is given to children. */
  #waiting: Set<WaitingWork> = new Set()
  #childCount = 0
  #failedStarts = 0
  #refusal: Error | undefined
  #startTimer: NodeJS.Timeout | undefined
  #beatTimer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** The number of pieces of work that wait for a child. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** The reason why work is refused; undefined while children can be started. */
  get refusal(): Error | undefined {
    return this.#refusal
  }

  get children(): readonly ChildStatus[] {
    return [...this.#children].map((child) => ({
      ...{ number: child.number, pid: child.pid, state: child.state, tasks: child.workCount },
      ...{ startedAt: child.startedAt, memory: child.residentMemory },
    }))
  }

  /**
   * Starts `min` children, at least one, and the supervision. Resolves when the first is ready.
   *
   * @throws ChildUnavailable when the first child cannot be started, which is a mistake in the worker module more often than not
   */
  async start(): Promise<void> {
    this.#beatTimer = startInterval(() => this.#supervise(), this.#beatMs).unref()
    const first = this.#startChild(this.#options.memory)
    this.#fill()
    await first.ready
  }

  /**
   * Does a piece of work in a child, as soon as one is idle.
   *
   * @throws the failure of the work, as WrappedFailure; ChildDied, OutOfMemory; the reason of `stop` or `kill`; ChildUnavailable
   */
  async run(options: WorkOptions): Promise<unknown> {
    if (this.#isClosed) throw new ChildUnavailable('the pool of child processes is closed')
    if (this.#refusal) throw this.#refusal
    const work: WaitingWork = { ...options, answer: createDeferred(), unbegun: 0 }
    const { stop, kill } = options
    if (stop.aborted) throw stop.reason
    if (kill.aborted) throw kill.reason
    const remove = (reason: unknown) => {
      if (this.#waiting.delete(work)) work.answer.reject(reason)
    }
    const unsubscribers = [onAbort(stop, () => remove(stop.reason)), onAbort(kill, () => remove(kill.reason))]
    this.#waiting.add(work)
    this.#startTimer?.ref()
    this.#fill()
    try {
      return await work.answer.promise
    } finally {
      for (const unsubscribe of unsubscribers) unsubscribe()
    }
  }

  /** Ends all children: idle ones after they have disposed of their worker, the others at once. Rejects work with ShuttingDown. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#startTimer)
    const reason = new ShuttingDown('the pool of child processes is closed')
    for (const work of this.#waiting) work.answer.reject(reason)
    this.#waiting.clear()
    await Promise.all(
      [...this.#children].map(async (child) => {
        if (child.state === 'idle') return child.retire({ graceMs: RETIRE_MS })
        if (child.state !== 'retiring') child.kill(reason)
        await child.closed
      }),
    )
    // Not before: without beats, children would kill themselves while they dispose of their workers.
    clearInterval(this.#beatTimer)
  }

  // --- Work -------------------------------------------------------------------------------------------------------

  /** Gives work to idle children, and starts as many children as are needed. */
  #fill(): void {
    if (this.#isClosed) return
    const starting = [...this.#children].filter((child) => child.state === 'starting' && child.isUsable)
    for (const work of this.#waiting) {
      // Children that are about to end are not in the member count, but the ones that work use the machine: they count here.
      if (this.#busyCount >= this.#options.max) return
      // Thousands may wait: they are not looked at while nothing can be done for any of them.
      if (starting.length === 0 && !this.#canServe) break
      const child = this.#idleChildFor(work)
      if (child) this.#assign(work, child)
      else if (!takeFirst(starting, (each) => each.memory === this.#memoryFor(work))) this.#makeRoomFor(work)
    }
    // Work that waits comes first: it may need a child with another limit of memory.
    if (this.#waiting.size > 0) return
    while (this.#memberCount < this.#options.min && this.#canStart) this.#startChild(this.#options.memory)
  }

  /** Whether a child is idle, or a further one may be started. */
  get #canServe(): boolean {
    for (const child of this.#children) if (child.state === 'idle') return true
    return this.#canStart && this.#memberCount < this.#options.max
  }

  #idleChildFor(work: WaitingWork): Child | undefined {
    const memory = this.#memoryFor(work)
    for (const child of this.#children) {
      const isFit =
        child.memory === memory && !this.#isSpent(child) && !isTooLarge(child) && !(work.isFresh && child.workCount > 0)
      if (child.state === 'idle' && child.isUsable && isFit && !this.#leaving.has(child)) return child
    }
    return undefined
  }

  #memoryFor({ memory }: WaitingWork): number | undefined {
    return memory ?? this.#options.memory
  }

  /** Starts a child for this work; if there are `max` already, retires an idle child that does not fit the work. */
  #makeRoomFor(work: WaitingWork): void {
    if (!this.#canStart) return
    if (this.#memberCount < this.#options.max) {
      this.#startChild(this.#memoryFor(work))
      return
    }
    for (const child of this.#children) {
      if (child.state !== 'idle' || this.#replacedBy.has(child)) continue
      this.#retire(child)
      return
    }
  }

  #assign(work: WaitingWork, child: Child): void {
    this.#waiting.delete(work)
    const { stop, kill, graceMs } = work
    const answer = child.run(work)
    work.onAssigned(child)
    const unsubscribers = [
      onAbort(stop, () => child.stopWork(stop.reason, { graceMs })),
      onAbort(kill, () => child.kill(kill.reason)),
    ]
    if (work.isFresh) this.#leaving.add(child)
    else if (this.#isSpent(child) || child.ageMs > this.#options.maxAgeMs) this.#replace(child)
    const onSettled = () => {
      if (isTooLarge(child)) this.#replace(child)
      for (const unsubscribe of unsubscribers) unsubscribe()
      this.#idleSince.set(child, monotonic())
      this.#endIfLeaving(child)
      this.#fill()
    }
    answer.then(
      (result) => {
        work.answer.resolve(result)
        onSettled()
      },
      (error: unknown) => {
        this.#onFailed(work, error)
        onSettled()
      },
    )
  }

  #onFailed(work: WaitingWork, error: unknown): void {
    work.unbegun += 1
    if (!(error instanceof NotBegun)) work.answer.reject(error)
    else if (work.unbegun >= MAX_UNBEGUN) work.answer.reject(this.#unbegunError(error))
    else if (work.stop.aborted || work.kill.aborted)
      work.answer.reject(work.stop.aborted ? work.stop.reason : work.kill.reason)
    else if (this.#isClosed) work.answer.reject(new ShuttingDown('the pool of child processes is closed'))
    else this.#waiting = new Set([work, ...this.#waiting])
  }

  // --- Children ---------------------------------------------------------------------------------------------------

  /** The number of children, without the children that are replaced or about to end. */
  get #memberCount(): number {
    return [...this.#children].filter(
      (child) => child.isUsable && !this.#replacedBy.has(child) && !this.#leaving.has(child),
    ).length
  }

  get #busyCount(): number {
    return [...this.#children].filter((child) => child.state === 'busy').length
  }

  /** A child kills itself after `silenceMs` without a beat: several beats must fit into that time. */
  get #beatMs(): number {
    const { silenceMs } = this.#options
    return silenceMs > 0 ? Math.min(BEAT_MS, silenceMs / BEATS_PER_SILENCE) : BEAT_MS
  }

  get #canStart(): boolean {
    return !this.#isClosed && this.#startTimer === undefined
  }

  #startChild(memory: number | undefined): Child {
    this.#childCount += 1
    const maxUnansweredBeats = Math.ceil(UNANSWERED_MS / this.#beatMs)
    const child = new Child({ ...this.#options, number: this.#childCount, memory, maxUnansweredBeats })
    this.#children.add(child)
    const begin = monotonic()
    child.start().then(
      () => this.#onReady(child, monotonic() - begin),
      (error: unknown) => this.#onStartFailed(child, asError(error)),
    )
    void child.closed.then((end) => this.#onClosed(child, end))
    return child
  }

  #onReady(child: Child, tookMs: number): void {
    this.#failedStarts = 0
    this.#idleSince.set(child, monotonic())
    if (this.#refusal) this.#setRefusal(undefined)
    this.#options.onEvent({ kind: 'started', child, tookMs })
    for (const [old, successor] of this.#replacedBy) {
      if (successor !== child) continue
      this.#leaving.add(old)
      this.#endIfLeaving(old)
    }
    this.#fill()
  }

  #onStartFailed({ memory }: Child, error: Error): void {
    if (this.#isClosed) return
    // A limit of one task that is too small for any child is the fault of this task, not of the pool.
    if (error.cause instanceof OutOfMemory && memory !== this.#options.memory) {
      this.#rejectWaiting(error.cause, (work) => this.#memoryFor(work) === memory)
      this.#fill()
      return
    }
    this.#failedStarts += 1
    this.#options.onEvent({ kind: 'start-failed', error, inARow: this.#failedStarts })
    if (this.#failedStarts >= MAX_FAILED_STARTS) {
      // Children that live go on with the work that fits them.
      const living = [...this.#children].filter((child) => child.isUsable && child.state !== 'starting')
      const limits = new Set(living.map((child) => child.memory))
      if (limits.size === 0 && !this.#refusal) this.#setRefusal(error)
      this.#rejectWaiting(error, (work) => !limits.has(this.#memoryFor(work)))
    }
    clearTimeout(this.#startTimer)
    const startAgain = () => {
      this.#startTimer = undefined
      // While work is refused nothing asks for a child: one is started to find out whether it can be.
      if (this.#refusal && this.#memberCount === 0) this.#startChild(this.#options.memory)
      this.#fill()
    }
    this.#startTimer = startTimer(startAgain, backoffDelay(this.#failedStarts, START_BACK_OFF_MS))
    // Work that waits keeps the process alive.
    if (this.#waiting.size === 0) this.#startTimer.unref()
  }

  #rejectWaiting(error: Error, isHopeless: (work: WaitingWork) => boolean): void {
    for (const work of this.#waiting) {
      if (!isHopeless(work)) continue
      this.#waiting.delete(work)
      work.answer.reject(error)
    }
  }

  #setRefusal(error: Error | undefined): void {
    this.#refusal = error
    this.#options.onEvent({ kind: 'availability', error })
  }

  #unbegunError(error: NotBegun): ChildUnavailable {
    const why = `${MAX_UNBEGUN} children have ended before they began the work; the last: ${error.message}`
    return new ChildUnavailable(why, { cause: error })
  }

  #onClosed(child: Child, end: ChildEnd): void {
    this.#children.delete(child)
    this.#leaving.delete(child)
    this.#replacedBy.delete(child)
    // If this child was a successor and has ended too early, its predecessor is no longer being replaced.
    for (const [old, successor] of this.#replacedBy)
      if (successor === child && !this.#leaving.has(old)) this.#replacedBy.delete(old)
    this.#options.onEvent({ kind: 'ended', child, end })
    this.#fill()
  }

  #isSpent(child: Child): boolean {
    return child.workCount >= this.#options.maxTasks
  }

  #replace(child: Child): void {
    if (!this.#canStart || this.#replacedBy.has(child) || this.#leaving.has(child)) return
    this.#replacedBy.set(child, this.#startChild(child.memory))
  }

  #endIfLeaving(child: Child): void {
    if (child.state === 'idle' && this.#leaving.has(child)) this.#retire(child)
  }

  #retire(child: Child): void {
    this.#leaving.add(child)
    void child.retire({ graceMs: RETIRE_MS })
  }

  /** Sends beats, checks memory and age, and ends children that are not needed. */
  #supervise(): void {
    const { min, maxAgeMs } = this.#options
    for (const child of this.#children) {
      child.beat()
      void child.checkMemory()
      if (child.state !== 'idle' || !child.isUsable) continue
      const idleMs = monotonic() - (this.#idleSince.get(child) ?? monotonic())
      if (child.ageMs > maxAgeMs || isTooLarge(child) || this.#isSpent(child)) this.#replace(child)
      else if (idleMs > IDLE_MS && this.#memberCount > min) this.#retire(child)
    }
    this.#fill()
  }
}

/** Returns whether a child uses more memory than it may: it gets no further work. */
function isTooLarge({ memory, residentMemory = 0 }: Child): boolean {
  return memory !== undefined && residentMemory > memory
}

/** Removes the first item that fits from the list, and returns whether there is one. */
function takeFirst<T>(items: T[], isFit: (item: T) => boolean): boolean {
  const index = items.findIndex(isFit)
  if (index >= 0) items.splice(index, 1)
  return index >= 0
}
