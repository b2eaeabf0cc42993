/**
 * The log of one term: a queue of transitions in front of an append-only file.
 *
 * What is written while a sync is under way goes out together with the next one, and each caller waits for its own. A
 * write costs one append, one fdatasync, one listing of a small folder and one stat, the last two from the cache.
 *
 * **When an append fails** the file may end in half a record. If the disk refused to take the bytes (it is full, say),
 * the next write first cuts the file back to what was acknowledged and may succeed: StorageFailure, `retryable`. If a sync
 * failed, nobody can tell any more what is on disk: this log refuses from then on, and an acquire repeated by the same
 * claim starts a new file. What was queued behind a failed write fails with it: it must not be recorded without it.
 */
import { type FileHandle, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import { asError, type ClaimLost, InvalidState, StorageFailure } from '../../core/errors.ts'
import type { FlowState } from '../../core/states.ts'
import { FINISHED_STATES } from '../book-query.ts'
import type { FlowDetail } from '../models.ts'
import type { AcquireRequest, FlowLog, Transition } from '../persistence.ts'
import { supersededError } from '../request-checks.ts'
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
  /** Replaces a log by what it comes to. */
  readonly compact: () => Promise<unknown>
}

/** In bytes; shorter ones take a page or a few of the disk anyway. */
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
  /** Up to here the file holds what was acknowledged. */
  #length: number
  /** Whether there may be more in the file than that. */
  #mayBeTorn = false
  /** Why nothing can be written any more. */
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
    // Whether it was worth it or not, or was refused because a newer run has come: what is written is written.
    if (this.#shouldCompact()) await this.#compact().catch(() => undefined)
    this.#onClose()
  }

  /** Nobody adds to a flow that is over, and all it went through would be read and kept for ever. */
  #shouldCompact(): boolean {
    const isOver = this.#state !== undefined && FINISHED_STATES.includes(this.#state)
    return isOver && this.#refusal === undefined && this.#length > COMPACT_ABOVE_BYTES
  }

  async #drain(): Promise<void> {
    // What is written in the same breath goes out together.
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

  /** After a failed sync the kernel may hold pages for clean that never reached the disk; trying again proves nothing. */
  async #sync(): Promise<void> {
    try {
      await this.#file.datasync()
    } catch (error) {
      const { message } = asError(error)
      const hint = 'see to the disk; another acquire by the same claim starts a new file'
      this.#refusal = new StorageFailure(`cannot sync the logbook of flow ${this.flow.uuid}: ${message}; ${hint}`, {
        cause: error,
        retryable: true,
      })
      throw this.#refusal
    }
  }

  /** After the sync and before the write is acknowledged, in this order: `acquire.ts` has the proof that needs it. */
  async #assertNewest(): Promise<void> {
    const newest = newestTerm((await missingAsUndefined(listTerms(this.#folder))) ?? [])
    const newer = newest && compareTerms(newest, this.#term) > 0 ? newest : undefined
    if (!newer && (await this.#isInPlace())) return
    this.#refusal = supersededError(this.#request, newer?.run)
    throw this.#refusal
  }

  /** By identity, not by name alone: the book may have been destroyed and made anew. An open file's number is its own. */
  async #isInPlace(): Promise<boolean> {
    this.#inode ??= (await this.#file.stat({ bigint: true })).ino
    const path = join(this.#folder, formatTermFile(this.#term, 'log'))
    const there = await missingAsUndefined(stat(path, { bigint: true }))
    return there?.ino === this.#inode
  }
}
