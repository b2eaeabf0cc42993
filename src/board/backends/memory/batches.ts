/** The batches of a memory board. */
import type { AlarmClock } from '../../../core/time.ts'
import type { BackendBatches, BatchChange, BatchJobs, NewBatch, PostRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import {
  type BatchStatus,
  decodeBatch,
  MAX_ENDED_BATCHES,
  type StoredBatch,
  toBatchCallback,
} from '../../model/job-batch.ts'
import {
  closedBatchError,
  duplicateMemberError,
  duplicateRestoreError,
  unknownBatchError,
} from '../../model/post-batch.ts'
import type { Posting } from '../../model/posting/posting.ts'
import type { MemoryBoard } from './store/board.ts'
import type { ChangeListeners } from './store/change-listeners.ts'

interface MemoryBatch {
  readonly bytes: Uint8Array
  /** The uuids of the jobs that have not ended. */
  readonly open: Set<string>
  /** The ids of the jobs that have ended in the trash. */
  readonly failed: Set<string>
  total: number
  status: BatchStatus
}

/** A job of a batch, as its posting names it. */
type Member = Pick<Posting, 'uuid' | 'batch'>

const NEW_STATUS: BatchStatus = { sealed: false, generation: 1 }

export interface BatchesOptions {
  readonly clock: AlarmClock
  readonly changes: ChangeListeners
}

export class BatchSteps {
  readonly #options: BatchesOptions
  readonly #batches = new Map<string, MemoryBatch>()
  /** The uuids of the batches that have ended, oldest end first. */
  readonly #ended = new Set<string>()

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  create({ uuid, bytes }: NewBatch): void {
    if (this.#batches.has(uuid)) throw refusalError(`batch ${uuid}`, { why: 'batch' })
    this.#batches.set(uuid, { bytes, open: new Set(), failed: new Set(), total: 0, status: NEW_STATUS })
  }

  find(uuid: string): StoredBatch | undefined {
    const batch = this.#batches.get(uuid)
    return batch && toStored(uuid, batch)
  }

  newest(limit: number): StoredBatch[] {
    return [...this.#batches]
      .slice(-limit)
      .reverse()
      .map(([uuid, batch]) => toStored(uuid, batch))
  }

  jobs(uuid: string): BatchJobs {
    const { open, failed } = this.#require(uuid)
    return { open: [...open], failed: [...failed] }
  }

  /** Changes the status; returns the batch, and its callback if it has ended. @throws NotFound */
  change(uuid: string, change: BatchChange): { readonly batch: StoredBatch; readonly callback: Posting | undefined } {
    const batch = this.#require(uuid)
    const { status } = batch
    switch (change.kind) {
      case 'seal':
        batch.status = { ...status, sealed: true }
        break
      case 'cancel': {
        const { who, reason } = change
        if (status.endedAt === undefined) batch.status = { ...status, sealed: true, cancelled: { who, reason } }
        break
      }
      case 'reopen':
        batch.status = this.#toReopened(uuid, batch, { sealed: false })
        break
      case 'carry': {
        const { kind: _, total, ...carried } = change
        batch.status = carried
        batch.total = total
        if (carried.endedAt !== undefined) this.#ended.add(uuid)
      }
    }
    const callback = this.#endIfEmpty(uuid, batch)
    this.#options.changes.notifyBatch(uuid)
    return { batch: toStored(uuid, batch), callback }
  }

  /** @throws NotFound, InvalidState, Duplicate if a batch refuses one of the jobs, which are posted together */
  assertTakes(posts: readonly Pick<PostRequest, 'posting' | 'member'>[]): void {
    const names = new Set<string>()
    for (const { posting, member } of posts) {
      const { uuid, batch: name } = posting
      if (name === undefined) continue
      const batch = this.#batches.get(name)
      if (!batch) throw unknownBatchError(name, posting)
      const { open, status } = batch
      const isFromWithin = member !== undefined && open.has(member)
      if (status.cancelled || (status.sealed && !isFromWithin)) throw closedBatchError(name, status, posting)
      if (open.has(uuid) || names.has(`${name}/${uuid}`)) throw duplicateMemberError(name, posting)
      names.add(`${name}/${uuid}`)
    }
  }

  /** Counts a posted job. */
  add({ uuid, batch: name }: Member): void {
    const batch = name === undefined ? undefined : this.#batches.get(name)
    if (!batch) return
    batch.open.add(uuid)
    batch.total += 1
  }

  /** Counts a job that has ended; returns the callback if the batch has ended with it. */
  end({ uuid, batch: name }: Member, ended: { readonly id: string; readonly trashed: boolean }): Posting | undefined {
    const batch = name === undefined ? undefined : this.#batches.get(name)
    if (!(name !== undefined && batch?.open.delete(uuid))) return undefined
    if (ended.trashed) batch.failed.add(ended.id)
    return this.#endIfEmpty(name, batch)
  }

  /** @throws Duplicate if an open job of the batch has the uuid of the job that is to be restored */
  assertRestores(posting: Posting, id: string): void {
    const batch = posting.batch === undefined ? undefined : this.#batches.get(posting.batch)
    if (batch?.failed.has(id) && batch.open.has(posting.uuid)) throw duplicateRestoreError(posting.batch ?? '', posting)
  }

  /** Counts a job that was restored from the trash, where it had this id. Opens a batch that has ended. */
  restore({ uuid, batch: name }: Member, id: string): void {
    const batch = name === undefined ? undefined : this.#batches.get(name)
    if (!(name !== undefined && batch?.failed.delete(id))) return
    batch.open.add(uuid)
    if (batch.status.endedAt !== undefined) batch.status = this.#toReopened(name, batch, { sealed: true })
    this.#options.changes.notifyBatch(name)
  }

  #toReopened(uuid: string, { status }: MemoryBatch, { sealed }: { readonly sealed: boolean }): BatchStatus {
    const { endedAt, generation } = status
    this.#ended.delete(uuid)
    return { sealed, generation: endedAt === undefined ? generation : generation + 1 }
  }

  #endIfEmpty(uuid: string, batch: MemoryBatch): Posting | undefined {
    const { status, open } = batch
    if (!status.sealed || status.endedAt !== undefined || open.size > 0) return undefined
    batch.status = { ...status, endedAt: this.#options.clock.now() }
    this.#ended.add(uuid)
    const [oldest] = this.#ended
    if (this.#ended.size > MAX_ENDED_BATCHES && oldest !== undefined) {
      this.#ended.delete(oldest)
      this.#batches.delete(oldest)
    }
    this.#options.changes.notifyBatch(uuid)
    return toBatchCallback(decodeBatch(uuid, batch.bytes), toStored(uuid, batch))
  }

  #require(uuid: string): MemoryBatch {
    const batch = this.#batches.get(uuid)
    if (batch) return batch
    throw unknownBatchError(uuid)
  }
}

/** Posts the callback of a batch that has ended, if there is one. */
interface CallbackPoster {
  postCallback(posting: Posting | undefined): void
}

interface Steps {
  readonly batches: BatchSteps
  readonly jobs: CallbackPoster
  readonly changes: ChangeListeners
}

export class MemoryBatches implements BackendBatches {
  readonly #board: MemoryBoard<Steps>

  constructor(board: MemoryBoard<Steps>) {
    this.#board = board
  }

  async create(batch: NewBatch): Promise<void> {
    this.#board.steps.batches.create(batch)
  }

  async find(uuid: string): Promise<StoredBatch | undefined> {
    return this.#board.steps.batches.find(uuid)
  }

  async list({ limit }: { readonly limit: number }): Promise<readonly StoredBatch[]> {
    return this.#board.steps.batches.newest(limit)
  }

  async change(uuid: string, change: BatchChange): Promise<StoredBatch> {
    const { batches, jobs } = this.#board.steps
    const { batch, callback } = batches.change(uuid, change)
    jobs.postCallback(callback)
    return batch
  }

  async jobs(uuid: string): Promise<BatchJobs> {
    return this.#board.steps.batches.jobs(uuid)
  }

  async watch(uuid: string): Promise<void> {
    const { sink } = this.#board.requireOpen()
    const { changes } = this.#board.steps
    const batchChanged = (changed?: string) => {
      if (changed === uuid) sink.batchChanged(uuid)
    }
    this.#board.watch(`batch: ${uuid}`, () => changes.add({ batchChanged }))
  }

  async unwatch(uuid: string): Promise<void> {
    this.#board.unwatch(`batch: ${uuid}`)
  }
}

function toStored(uuid: string, { bytes, open, failed, total, status }: MemoryBatch): StoredBatch {
  const done = total - open.size - failed.size
  return { uuid, bytes, ...status, total, done, failed: failed.size, open: open.size }
}
