/**
 * Flushes the log of a file to the disk off the event loop.
 *
 * With `synchronous=FULL` SQLite waits for the disk inside COMMIT, with the write lock held: on a disk that takes 5 ms nothing else of the process
 * runs meanwhile, and no other process commits. Here COMMIT returns when the log is written, and the answer to the caller waits for an `fdatasync` of
 * the log in a thread of Node's pool. The log is one sequence, so a sync makes durable what any process has committed before it began.
 */
import { closeSync, constants, fdatasync, fsyncSync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import { messageOf, StorageFailure } from '../core/errors.ts'

const syncLog = promisify(fdatasync)

export class LogSync {
  readonly #path: string
  readonly #fd: number
  #failure: StorageFailure | undefined

  /** @param path of the file, whose log is there @throws an error of the system */
  constructor(path: string) {
    this.#path = path
    // To close a descriptor drops the POSIX locks of its file. SQLite locks other files, so the log may be opened and closed here.
    this.#fd = openSync(`${path}-wal`, constants.O_RDWR)
  }

  /**
   * @throws StorageFailure after a flush that failed: the kernel may have dropped what was not written, and a second flush may succeed nevertheless
   */
  assertSound(): void {
    if (this.#failure) throw this.#failure
  }

  /**
   * Resolves when everything that was committed before the call is on the disk. Must not be called again before.
   *
   * @throws StorageFailure if the disk fails: the commits may or may not be there after a power cut
   */
  async flush(): Promise<void> {
    try {
      await syncLog(this.#fd)
    } catch (cause) {
      const why = `the disk did not confirm the last changes (${messageOf(cause)}), so a power cut may undo them`
      const what = `${this.#path}: ${why}; look at the disk, and restart this process`
      this.#failure = new StorageFailure(what, { cause })
      throw this.#failure
    }
  }

  /** Closes the log. The caller has awaited all flushes. */
  close(): void {
    closeSync(this.#fd)
  }
}

/** Waits until a file, or the names in a folder, are on the disk. Windows has no such wait for folders, and needs none. */
export function syncToDisk(path: string): void {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    fsyncSync(fd)
  } catch (error) {
    if (process.platform !== 'win32') throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
