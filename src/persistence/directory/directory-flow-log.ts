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
 */
import { type FileHandle, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import { asError, type ClaimLost, InvalidState, StorageFailure } from '../../core/errors.ts'
import type { FlowState } from '../../core/states.ts'
import { FINISHED_STATES } from '../book-query.ts'
import type { FlowDetail } from '../models.ts'
import type { AcquireRequest, FlowLog, Transition } from '../persistence.ts'
import { supersededError } from '../requests.ts'
import type { AcquiredLog } from './acquire.ts'
import { missingAsUndefined, toStorageFailure, writeAll } from './files.ts'
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
  /** Replaces the log by a snapshot. */
  readonly compact: () => Promise<unknown>
}

/** The size above which a log is compacted: shorter ones take only a few pages of the disk. */
const COMPACT_ABOVE_BYTES = 2 ** 16

export class DirectoryFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #request: AcquireRequest
  readonly #folder: string
  readonly #term: Term
  readonly #file: FileHandle
  #inode: bigint | undefined
  readonly #onClose: () => void
  readonly #compact: () => Promise<unknown>
  #state: FlowState | undefined
  /** The length of the acknowledged content of the file. */
  #length: number
  /** Whether the file may contain more than that. */
  #mayBeTorn = false
  /** The reason why no more writes are accepted. */
  #refusal: ClaimLost | StorageFailure | undefined
  #queue: QueuedWrite[] = []
  #draining: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(options: DirectoryFlowLogOptions) {
    const { acquired, request, folder, onClose, compact } = options
    this.flow = acquired.flow
    this.#request = request
    this.#folder = folder
    this.#term = acquired.term
    this.#file = acquired.file
    this.#length = acquired.length
    this.#onClose = onClose
    this.#compact = compact
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
    if (this.#shouldCompact()) await this.#compact().catch(() => undefined)
    this.#onClose()
  }

  /**
   * Returns whether the log is worth compacting: a finished flow gets no more transitions, and all its history would be
   * read and kept forever.
   */
  #shouldCompact(): boolean {
    const isOver = this.#state !== undefined && FINISHED_STATES.includes(this.#state)
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
    this.#mayBeTorn = true
    await writeAll(this.#file, bytes, this.#length)
    await this.#sync()
    await this.#assertNewest()
    this.#length += bytes.length
    this.#mayBeTorn = false
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
    const there = await missingAsUndefined(stat(path, { bigint: true }))
    return there?.ino === this.#inode
  }
}
