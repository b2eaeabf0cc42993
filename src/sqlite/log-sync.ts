/**
 * Brings the log of a file to the disk beside the event loop.
 *
 * With `synchronous=FULL` SQLite waits for the disk inside COMMIT, with the write lock held: on a disk that takes 5 ms nothing else of the process runs
 * meanwhile, and no other process commits. Here COMMIT returns when the log is written, and the answer to the caller waits for an `fdatasync` of
 * the log in a thread of Node's pool. The log is one sequence, so a sync makes durable what any process has committed before it began.
 */
import { close, constants, fdatasync, open } from 'node:fs'
import { promisify } from 'node:util'
import { messageOf, StorageFailure } from '../core/errors.ts'

const [openLog, closeLog, syncLog] = [promisify(open), promisify(close), promisify(fdatasync)]

export class LogSync {
  readonly #path: string
  /** The log; undefined until the first sync. */
  #fd: number | undefined
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
   * Resolves when everything that was committed before the call is on the disk. To be called again only after that.
   *
   * @throws StorageFailure if the disk fails: the commits may or may not be there after a power cut
   */
  async flush(): Promise<void> {
    try {
      // SQLite's locks are on other files: opening and closing the log does not drop them.
      this.#fd ??= await openLog(`${this.#path}-wal`, constants.O_RDWR)
      await syncLog(this.#fd)
    } catch (cause) {
      const why = `the disk did not confirm the last changes (${messageOf(cause)}), so a power cut may undo them`
      const what = `${this.#path}: ${why}; look at the disk, and restart this process`
      this.#failure = new StorageFailure(what, { cause })
      throw this.#failure
    }
  }

  /** Closes the log. The caller has awaited all flushes. */
  async close(): Promise<void> {
    if (this.#fd !== undefined) await closeLog(this.#fd)
    this.#fd = undefined
  }
}
