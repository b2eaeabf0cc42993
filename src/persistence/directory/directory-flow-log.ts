/**
 * The log of one term: a queue of transitions in front of an append-only file.
 *
 * Writes that arrive during a sync are appended together with the next one, and each caller waits for its own. A write
 * costs one append, one fdatasync, one listing of a small folder and one stat, the last two from the cache.
 *
 * **When an append fails** the file may end in half a record. If the disk refused to take the bytes (because it is
 * full, for example), the next write first truncates the file to its acknowledged length and may succeed:
 * StorageFailure, `retryable`. If a sync failed, the content on disk is unknown: this log refuses writes from then on,
 * and an acquire repeated by the same claim starts a new file. Writes queued behind a failed write fail with it: they
 * must not be recorded without it.
 *
 * **A log that gets long**, because tasks save checkpoints all the time, is left between two writes: the same claim
 * acquires the flow again, which starts a new file with a snapshot and removes the old one. All of the old file would
 * be read and decoded at once by the next run.
 */
import { type FileHandle, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import { asError, ClaimLost, Fenced, InvalidState, StorageFailure } from '../../core/errors.ts'
import { type FlowState, isFinished } from '../../core/states.ts'
import type { FlowDetail } from '../models.ts'
import type { AcquireRequest, FlowLog, Transition } from '../persistence.ts'
import { supersededError } from '../requests.ts'
import type { AcquiredLog } from './acquire.ts'
import { missingAsUndefined, toErrno, toStorageFailure, writeAll } from './files.ts'
import { encodeTransition } from './records.ts'
import { compareTerms, formatTermFile, listTerms, newestTerm, type Term } from './terms.ts'

interface QueuedWrite {
  readonly bytes: Uint8Array
  readonly done: Deferred<void>
}

export interface DirectoryFlowLogOptions {
  readonly acquired: AcquiredLog
  readonly request: AcquireRequest
  readonly folder: string
  /** Called when the file is closed. */
  readonly onClose: () => void
  /** Replaces the log of this term by a snapshot, which is then closed. */
  readonly compact: (term: Term) => Promise<unknown>
  /** Acquires the flow again for the same claim, in a new file. */
  readonly reacquire: () => Promise<AcquiredLog>
}

/** The size above which a log is compacted: shorter ones take only a few pages of the disk. */
const COMPACT_ABOVE_BYTES = 2 ** 16

/** The size above which a log is left for a new file, and how many times its snapshot it has at least by then. */
const LEAVE_ABOVE_BYTES = 4 * 2 ** 20
const LEAVE_ABOVE_SNAPSHOTS = 4

export class DirectoryFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #request: AcquireRequest
  readonly #folder: string
  #term: Term
  #file: FileHandle
  #inode: bigint | undefined
  readonly #onClose: () => void
  readonly #compact: (term: Term) => Promise<unknown>
  readonly #reacquire: () => Promise<AcquiredLog>
  #state: FlowState | undefined
  /** The length of the acknowledged content of the file. */
  #length: number
  #snapshotLength: number
  /** Whether the file may contain more than that. */
  #mayBeTorn = false
  /** The reason why no more writes are accepted. */
  #refusal: ClaimLost | StorageFailure | undefined
  #queue: QueuedWrite[] = []
  #draining: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(options: DirectoryFlowLogOptions) {
    const { acquired, request, folder, onClose, compact, reacquire } = options
    this.flow = acquired.flow
    this.#request = request
    this.#folder = folder
    this.#term = acquired.term
    this.#file = acquired.file
    this.#length = acquired.length
    this.#snapshotLength = acquired.length
    this.#onClose = onClose
    this.#compact = compact
    this.#reacquire = reacquire
  }

  async write(transition: Transition): Promise<void> {
    if (this.#closing !== undefined) throw new InvalidState(`the log of flow ${this.flow.uuid} is closed`)
    if (this.#refusal) throw this.#refusal
    const queued = { bytes: encodeTransition(transition, new Date()), done: createDeferred() }
    this.#queue.push(queued)
    this.#state = transition.state ?? this.#state
    this.#draining ??= this.#drain()
    return queued.done.promise
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #finish(): Promise<void> {
    await this.#draining
    await this.#file.close()
    // The transitions are durable, whether the compaction succeeded, failed, or was refused because of a newer run.
    if (this.#shouldCompact()) await this.#compact(this.#term).catch(() => undefined)
    this.#onClose()
  }

  /**
   * Returns whether the log is worth compacting: a finished flow gets no more transitions, and all its history would be
   * read and kept forever.
   */
  #shouldCompact(): boolean {
    const isOver = this.#state !== undefined && isFinished(this.#state)
    return isOver && this.#refusal === undefined && this.#length > COMPACT_ABOVE_BYTES
  }

  async #drain(): Promise<void> {
    // Writes of the same turn of the event loop are appended together.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0)
      try {
        await this.#append(Buffer.concat(batch.map(({ bytes }) => bytes)))
        for (const { done } of batch) done.resolve()
      } catch (error) {
        const refusal = toStorageFailure(error, `write to the logbook of flow ${this.flow.uuid}`)
        for (const { done } of [...batch, ...this.#queue.splice(0)]) done.reject(refusal)
      }
    }
    this.#draining = undefined
  }

  async #append(bytes: Uint8Array): Promise<void> {
    if (this.#refusal) throw this.#refusal
    if (this.#mayBeTorn) await this.#file.truncate(this.#length)
    if (this.#length > Math.max(LEAVE_ABOVE_BYTES, LEAVE_ABOVE_SNAPSHOTS * this.#snapshotLength))
      await this.#startNewFile()
    this.#mayBeTorn = true
    await writeAll(this.#file, bytes, this.#length)
    await this.#sync()
    await this.#assertNewest()
    this.#length += bytes.length
    this.#mayBeTorn = false
  }

  /**
   * Continues in a new file. If it cannot be started for now, the next write tries it again: a part of the acquire may
   * have been done, and writes to the old file would then be refused.
   */
  async #startNewFile(): Promise<void> {
    const acquired = await this.#acquireAgain()
    const old = this.#file
    this.#term = acquired.term
    this.#file = acquired.file
    this.#inode = undefined
    this.#length = acquired.length
    this.#snapshotLength = acquired.length
    await old.close()
  }

  async #acquireAgain(): Promise<AcquiredLog> {
    try {
      return await this.#reacquire()
    } catch (error) {
      if (error instanceof Fenced) this.#refusal = supersededError(this.#request, error.newestRun)
      else if (error instanceof ClaimLost) this.#refusal = error
      else if (toErrno(error) === 'ENOENT') this.#refusal = supersededError(this.#request, undefined)
      throw this.#refusal ?? error
    }
  }

  /**
   * Syncs the file. After a failed sync the kernel may treat pages as clean that never reached the disk; another sync
   * proves nothing.
   */
  async #sync(): Promise<void> {
    try {
      await this.#file.datasync()
    } catch (error) {
      const { message } = asError(error)
      const hint = 'check the disk; another acquire by the same claim starts a new file'
      this.#refusal = new StorageFailure(`cannot sync the logbook of flow ${this.flow.uuid}: ${message}; ${hint}`, {
        cause: error,
        retryable: true,
      })
      throw this.#refusal
    }
  }

  /**
   * Checks for a newer term, after the sync and before the write is acknowledged: the proof in `acquire.ts` requires
   * this order.
   */
  async #assertNewest(): Promise<void> {
    const newest = newestTerm((await missingAsUndefined(listTerms(this.#folder))) ?? [])
    const newer = newest && compareTerms(newest, this.#term) > 0 ? newest : undefined
    if (!newer && (await this.#isInPlace())) return
    this.#refusal = supersededError(this.#request, newer?.run)
    throw this.#refusal
  }

  /**
   * Returns whether the file still has its name. Compares inodes, not names alone: the book may have been destroyed and
   * created again. The inode number of an open file is not reused.
   */
  async #isInPlace(): Promise<boolean> {
    this.#inode ??= (await this.#file.stat({ bigint: true })).ino
    const path = join(this.#folder, formatTermFile(this.#term, 'log'))
    const stats = await missingAsUndefined(stat(path, { bigint: true }))
    return stats?.ino === this.#inode
  }
}
