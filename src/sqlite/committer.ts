/**
 * Group commit: steps that are requested in one turn of the event loop, or while the previous transaction is flushed to the disk, share one
 * transaction, up to 250 steps or 5 ms. A step that comes alone does not wait for others, and other processes can take the write lock during the
 * flush.
 *
 * | a step | what becomes of it |
 * |---|---|
 * | returns | its caller receives the value after the commit, and with `synchronous=full` after the flush |
 * | throws an error of this library | it is refused: its caller receives the error with the answers of the others. What it changed before that is committed |
 * | throws another error, or the commit fails | the transaction is rolled back. If it had several steps, each is then run in a transaction of its own |
 *
 * While another process holds the write lock, the transaction is tried again every millisecond. For 100 ms after that, this process also pauses for a
 * millisecond before each transaction, so that others can take the lock. SQLite's own busy handler sleeps longer and longer instead:
 * beside seven other processes that wrote all the time, one process was given 2 transactions in 4 s, and another one 17,981.
 */
import { createDeferred, type Deferred } from '../core/async/abort.ts'
import { JobboardError } from '../core/errors.ts'
import { type Result, toFailed } from '../core/result.ts'
import { monotonic } from '../core/time.ts'
import { BUSY_PAUSE_MS, busyError, MAX_BUSY_MS } from './busy.ts'
import type { SqliteConnection } from './connection.ts'
import { isBusy, toFileError } from './errors.ts'

export interface StepOptions {
  /**
   * Whether the answer needs a flush before it, with `synchronous=full`; true by default. If false, the flush of a later step makes this one durable,
   * too. It waits nevertheless if another step of its transaction needs the flush.
   */
  readonly waitsForDisk?: boolean
}

interface Step extends StepOptions {
  readonly work: () => unknown
  /** The time at which the step was requested. */
  readonly since: number
  readonly deferred: Deferred<unknown>
}

export interface CommitterOptions {
  readonly connection: SqliteConnection
  /** The path of the file, for errors. */
  readonly path: string
  /** Called before each transaction. Throws an error of this library if the file cannot be written to any more. */
  readonly assertUsable: () => void
  /**
   * Called after each group of steps, before their callers receive the answers. Never throws. Returns a promise if the answers must wait for a flush;
   * if it is rejected, so are the calls. `waitsForDisk`: whether any of the steps needs the flush.
   */
  readonly onCommitted: (options: Required<StepOptions>) => Promise<void> | undefined
  /** Returns who may have the write lock, for the error of a step that has waited for it in vain. */
  readonly describeOthers: () => string
}

/** The maximum number of steps of a transaction, and the time after which it takes no more: other processes wait until it ends. */
const MAX_STEPS = 250
const MAX_TRANSACTION_MS = 5
/** The time after the lock was found busy in which this process pauses before each transaction, in milliseconds. */
const CONTENDED_MS = 100

export class Committer {
  readonly #options: CommitterOptions
  #queue: Step[] = []
  #isScheduled = false
  /** The time since which the lock has been busy. */
  #busySince: number | undefined
  /** The time at which the lock was last busy. */
  #busyAt: number | undefined
  /** Whether the last transaction is being flushed. */
  #isFlushing = false
  #idle: Deferred<void> | undefined

  constructor(options: CommitterOptions) {
    this.#options = options
  }

  /** Whether every step has its answer; not to be asked by a listener of a commit. */
  get isIdle(): boolean {
    return this.#queue.length === 0 && !this.#isFlushing
  }

  /** Resolves when every step has its answer. Another one may have come by the time the caller goes on. */
  whenIdle(): Promise<void> {
    if (this.isIdle) return Promise.resolve()
    this.#idle ??= createDeferred()
    return this.#idle.promise
  }

  /**
   * Runs a step in the next transaction.
   *
   * @throws what the step throws: see the table above
   * @throws WritesRefused, AccessDenied, StorageFailure, NotConnected: nothing was changed, except after a flush that failed: then the change is
   * committed, and a power cut may undo it
   */
  run<T>(work: () => T, options: StepOptions = {}): Promise<T> {
    const deferred = createDeferred<unknown>()
    this.#queue.push({ ...options, work, deferred, since: monotonic() })
    this.#schedule()
    return deferred.promise as Promise<T>
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isFlushing || this.#queue.length === 0) return
    this.#isScheduled = true
    const begin = () => {
      // This calls listeners, which may request steps: they wait until it is known whether this transaction is flushed, and then for that flush.
      this.#commitNext()
      this.#isScheduled = false
      this.#schedule()
      this.#resolveIdle()
    }
    if (this.#isContended) setTimeout(begin, BUSY_PAUSE_MS)
    else setImmediate(begin)
  }

  /** Whether another process writes, or has just written: taking the lock again at once would leave the others no moment to take it. */
  get #isContended(): boolean {
    return this.#busyAt !== undefined && monotonic() - this.#busyAt < CONTENDED_MS
  }

  #resolveIdle(): void {
    if (!this.isIdle) return
    this.#idle?.resolve()
    this.#idle = undefined
  }

  #commitNext(): void {
    const steps = this.#queue.slice(0, MAX_STEPS)
    const results = this.#commit(steps)
    if (results === 'busy') {
      this.#busyAt = monotonic()
      this.#busySince ??= this.#busyAt
      if (this.#busyAt - this.#busySince >= MAX_BUSY_MS) this.#giveUp(this.#busyAt - MAX_BUSY_MS)
      return
    }
    this.#busySince = undefined
    // The steps leave the queue first: a step that has been committed must not run again, whatever happens here.
    const done = this.#queue.splice(0, results.length)
    const onDisk = this.#options.onCommitted({ waitsForDisk: done.some(({ waitsForDisk = true }) => waitsForDisk) })
    if (onDisk !== undefined) void this.#answerLater(done, { results, onDisk })
    else answer(done, results)
  }

  async #answerLater(
    steps: readonly Step[],
    { results, onDisk }: { readonly results: readonly Result<unknown>[]; readonly onDisk: Promise<void> },
  ): Promise<void> {
    this.#isFlushing = true
    try {
      await onDisk
      answer(steps, results)
    } catch (error) {
      for (const { deferred } of steps) deferred.reject(error)
    }
    this.#isFlushing = false
    this.#schedule()
    this.#resolveIdle()
  }

  /** Rejects the steps that were requested at this time or before. */
  #giveUp(before: number): void {
    const later = this.#queue.findIndex(({ since }) => since > before)
    const steps = this.#queue.splice(0, later === -1 ? this.#queue.length : later)
    if (steps.length === 0) return
    const { path, describeOthers } = this.#options
    const error = busyError(path, describeOthers())
    for (const { deferred } of steps) deferred.reject(error)
  }

  /** Runs as many of the steps as a transaction takes. Returns their results, at least one; 'busy' if none was committed. */
  #commit(steps: readonly Step[]): readonly Result<unknown>[] | 'busy' {
    const { connection, path, assertUsable } = this.#options
    try {
      assertUsable()
      return connection.transact(() => runSteps(steps))
    } catch (error) {
      if (isBusy(error)) return 'busy'
      if (steps.length === 1) return [toFailed(toFileError(error, path))]
    }
    const results: Result<unknown>[] = []
    for (const step of steps) {
      const alone = this.#commit([step])
      if (alone === 'busy') break
      results.push(...alone)
    }
    return results.length > 0 ? results : 'busy'
  }
}

/** Gives the callers of steps their results. */
function answer(steps: readonly Step[], results: readonly Result<unknown>[]): void {
  for (const [index, { deferred }] of steps.entries()) {
    const result = results[index]
    if (!result) continue
    if ('error' in result) deferred.reject(result.error)
    else deferred.resolve(result.value)
  }
}

/** Runs steps, at least one, until the time of a transaction is over. @throws an error that is no refusal */
function runSteps(steps: readonly Step[]): readonly Result<unknown>[] {
  const until = monotonic() + MAX_TRANSACTION_MS
  const results: Result<unknown>[] = []
  for (const { work } of steps) {
    results.push(runStep(work))
    if (monotonic() >= until) break
  }
  return results
}

/** Runs a step. @throws an error that is no refusal: the step may have changed something */
function runStep(work: () => unknown): Result<unknown> {
  try {
    return { value: work() }
  } catch (error) {
    if (error instanceof JobboardError) return { error }
    throw error
  }
}
