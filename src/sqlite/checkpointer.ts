/**
 * Checkpoints the log of a file into the file when it has grown. That takes several waits for the disk, 30 to 70 ms on a slow one, so a thread does
 * it with a connection of its own. The thread is started for the first long log: a process that writes little has none.
 *
 * SQLite's own checkpoints are off: they never make the log shorter. Here a checkpoint resets the log with the write lock held. If another process
 * holds that lock for long, it writes back what it can, and does not reset the log.
 */
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { libraryName } from './driver.ts'

/** The size of the log from which it is written back, in bytes. */
const CHECKPOINT_BYTES = 4 * 1_024 * 1_024
/** The number of commits between two looks at the size of the log. */
const COMMITS_PER_SIZE_CHECK = 50
/** The size of the log from which a checkpoint that failed is reported, again each time the size has doubled, in bytes. */
const LONG_LOG_BYTES = 64 * 1_024 * 1_024

/** The code of the thread. It answers each request with whether the checkpoint was complete: another connection that reads or writes prevents it. */
const THREAD = `
const { existsSync } = require('node:fs')
const { parentPort, workerData } = require('node:worker_threads')
// node:sqlite warns that it is experimental.
process.emitWarning = () => undefined
const { DatabaseSync } = require(workerData.library)
let database
parentPort.on('message', (request) => {
  if (request === 'end') {
    database?.close()
    return parentPort.close()
  }
  try {
    // To open a file that was moved away would create another one.
    if (!existsSync(workerData.path)) throw new Error('the file is gone')
    database ??= new DatabaseSync(workerData.path, { timeout: workerData.timeout })
    parentPort.postMessage(database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get().busy === 0)
  } catch {
    // A full disk, say: what is committed is safe in the log, and it is tried again when the log has grown.
    parentPort.postMessage(false)
  }
})
`
/** The time for which a checkpoint waits for readers and writers, in milliseconds. */
const CHECKPOINT_TIMEOUT_MS = 100

export interface CheckpointerOptions {
  /** The path of the file. */
  readonly path: string
  /** Runs a checkpoint with the connection of the file. Returns whether it was complete. Never throws. */
  readonly checkpoint: () => boolean
  /** Called with the size of the log in bytes when it is long and a checkpoint has failed. */
  readonly onLongLog: (size: number) => void
}

export class Checkpointer {
  readonly #options: CheckpointerOptions
  #thread: Worker | undefined
  /** Whether a thread can be started: not where the system has no more, or Node's permissions forbid it. */
  #hasThreads = true
  #isRunning = false
  #commits = 0
  #checkpointFrom = CHECKPOINT_BYTES
  #reportFrom = LONG_LOG_BYTES

  constructor(options: CheckpointerOptions) {
    this.#options = options
  }

  /** Counts a commit, and from time to time starts a checkpoint if the log is long. Never throws. */
  noteCommit(): void {
    this.#commits += 1
    if (this.#isRunning || this.#commits % COMMITS_PER_SIZE_CHECK !== 0) return
    if (this.#logSize >= this.#checkpointFrom) this.#startCheckpoint()
  }

  /** Ends the thread, after the checkpoint that it may be writing. */
  async close(): Promise<void> {
    const thread = this.#thread
    if (!thread) return
    thread.ref()
    const ended = new Promise((resolve) => thread.once('exit', resolve))
    thread.postMessage('end')
    await ended
  }

  get #logSize(): number {
    try {
      return statSync(`${this.#options.path}-wal`).size
    } catch {
      return 0
    }
  }

  #startCheckpoint(): void {
    this.#isRunning = true
    if (this.#hasThreads) {
      try {
        this.#thread ??= this.#startThread()
        this.#thread.postMessage('checkpoint')
        return
      } catch {
        this.#hasThreads = false
      }
    }
    this.#done(this.#options.checkpoint())
  }

  #startThread(): Worker {
    const workerData = { library: libraryName(), path: this.#options.path, timeout: CHECKPOINT_TIMEOUT_MS }
    // An empty environment: modules that NODE_OPTIONS preloads are meant for programs.
    const thread = new Worker(THREAD, { eval: true, workerData, execArgv: [], env: {} })
    thread.unref()
    thread.on('message', (isDone: boolean) => this.#done(isDone))
    thread.on('error', () => {
      this.#hasThreads = false
    })
    thread.on('exit', () => {
      this.#thread = undefined
      if (this.#isRunning) this.#done(false)
    })
    return thread
  }

  #done(isDone: boolean): void {
    this.#isRunning = false
    const size = isDone ? 0 : this.#logSize
    this.#checkpointFrom = size + CHECKPOINT_BYTES
    this.#reportFrom = isDone ? LONG_LOG_BYTES : this.#reportLong(size)
  }

  /** Reports a long log. @returns the size from which it is reported next */
  #reportLong(size: number): number {
    if (size < this.#reportFrom) return this.#reportFrom
    this.#options.onLongLog(size)
    return 2 * size
  }
}
