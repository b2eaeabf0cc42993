/**
 * Brings the log of a file to the disk beside the event loop.
 *
 * With `synchronous=FULL` SQLite waits for the disk inside COMMIT, with the write lock held: on a disk that takes 5 ms nothing else of the process runs
 * meanwhile, and no other process commits. Here COMMIT returns when the log is written, and the answer to the caller waits for an `fdatasync` of
 * the log in a thread of Node's pool. The log is one sequence, so a sync makes durable what any process has committed before it began; what is
 * committed while a sync runs shares the next one.
 */
import { closeSync, constants, fdatasync, openSync } from 'node:fs'
import { createDeferred, type Deferred } from '../core/async/abort.ts'
import { messageOf, StorageFailure } from '../core/errors.ts'

export class LogSync {
  readonly #path: string
  /** The log; undefined until the first sync. */
  #fd: number | undefined
  /** The callers that wait for the next sync. */
  #next: Deferred<void> | undefined
  #isRunning = false
  #failure: StorageFailure | undefined

  /** @param path of the file, whose log is open */
  constructor(path: string) {
    this.#path = path
  }

  /** @throws StorageFailure after a sync that failed: the system may have dropped what was not on the disk, and a second sync would not say so */
  assertSound(): void {
    if (this.#failure) throw this.#failure
  }

  /**
   * Resolves when everything that was committed before the call is on the disk.
   *
   * @throws StorageFailure if the disk fails: the commits may or may not be there after a power cut
   */
  flush(): Promise<void> {
    this.#next ??= createDeferred()
    const { promise } = this.#next
    if (!this.#isRunning) this.#start()
    return promise
  }

  /** Closes the log. The caller has awaited all flushes. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #start(): void {
    const waiting = this.#next
    if (!waiting) return
    this.#next = undefined
    this.#isRunning = true
    const done = (error: unknown) => {
      this.#isRunning = false
      if (error) this.#failure ??= this.#toFailure(error)
      this.#start()
      if (this.#failure) waiting.reject(this.#failure)
      else waiting.resolve()
    }
    try {
      // SQLite's locks are on other files: opening and closing the log does not drop them.
      this.#fd ??= openSync(`${this.#path}-wal`, constants.O_RDWR)
      fdatasync(this.#fd, done)
    } catch (error) {
      queueMicrotask(() => done(error))
    }
  }

  #toFailure(cause: unknown): StorageFailure {
    const why = `${this.#path}: the disk did not confirm the last changes (${messageOf(cause)}), so a power cut may undo them`
    return new StorageFailure(`${why}; look at the disk, and restart this process`, { cause })
  }
}
