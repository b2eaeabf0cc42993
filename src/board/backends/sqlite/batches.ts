/** The batches of a board. */
import { catchError } from '../../../core/result.ts'
import { encodeText } from '../../../core/texts.ts'
import type { Row } from '../../../sqlite/index.ts'
import type { BackendBatches, BatchChange, BatchJobs, NewBatch } from '../../contract/index.ts'
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
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext, ChangeLog } from './store/change-log.ts'
import { jobId, readText, toBatchStatus, toStoredBatch } from './store/rows.ts'

const COUNTED = `SELECT b.*, (SELECT count(*) FROM jobs j WHERE j.batch = b.number) AS open,
  (SELECT count(*) FROM batch_failures f WHERE f.batch = b.number) AS failed FROM batches b`

export class BatchSteps {
  readonly #context: BoardContext
  readonly #changes: ChangeLog

  constructor(context: BoardContext, changes: ChangeLog) {
    this.#context = context
    this.#changes = changes
  }

  /** @throws Duplicate */
  create({ uuid, bytes }: NewBatch): void {
    const { db, board } = this.#context
    if (this.#row(uuid)) throw refusalError(`batch ${uuid}`, { why: 'batch' })
    db.run('INSERT INTO batches (board, uuid, definition) VALUES (?, ?, ?)', board, encodeText(uuid), bytes)
  }

  find(uuid: string): StoredBatch | undefined {
    const { db, board } = this.#context
    const row = db.get(`${COUNTED} WHERE board = ? AND uuid = ?`, board, encodeText(uuid))
    return row && toStoredBatch(row)
  }

  /** Returns a batch. @throws NotFound */
  require(uuid: string): StoredBatch {
    const found = this.find(uuid)
    if (found) return found
    throw unknownBatchError(uuid)
  }

  newest(limit: number): StoredBatch[] {
    const { db, board } = this.#context
    return db.all(`${COUNTED} WHERE board = ? ORDER BY number DESC LIMIT ?`, board, limit).map(toStoredBatch)
  }

  /** @throws NotFound */
  jobs(uuid: string): BatchJobs {
    const { db } = this.#context
    const number = this.#numberOf(uuid)
    return {
      open: db.all('SELECT uuid FROM jobs WHERE batch = ?', number).map((row) => readText(row, 'uuid')),
      failed: db.all('SELECT job FROM batch_failures WHERE batch = ?', number).map(({ job }) => jobId(job)),
    }
  }

  /** Changes the status; returns the callback if the batch has ended. @throws NotFound */
  change(uuid: string, change: BatchChange): Posting | undefined {
    const { db } = this.#context
    const number = this.#numberOf(uuid)
    if (change.kind === 'cancel')
      db.run(
        'UPDATE batches SET sealed = 1, cancelled_by = ?, cancel_reason = ? WHERE number = ? AND ended_at IS NULL',
        ...[encodeText(change.who), encodeText(change.reason), number],
      )
    else if (change.kind === 'seal') db.run('UPDATE batches SET sealed = 1 WHERE number = ?', number)
    else if (change.kind === 'carry') this.#carry(number, change)
    else this.#reopen(number, { sealed: false })
    this.#changes.addBatch(uuid)
    return this.#endIfEmpty(number)
  }

  /** Returns the number of the batch that counts a new job; null for none. @throws NotFound, InvalidState, Duplicate if it refuses the job */
  numberFor(posting: Posting, member: string | undefined): number | null {
    const { uuid, batch: name } = posting
    if (name === undefined) return null
    const row = this.#row(name)
    if (!row) throw unknownBatchError(name, posting)
    const status = toBatchStatus(row)
    const number = Number(row['number'])
    const isFromWithin = member !== undefined && this.#isOpen(number, member)
    if (status.cancelled || (status.sealed && !isFromWithin)) throw closedBatchError(name, status, posting)
    if (this.#isOpen(number, uuid)) throw duplicateMemberError(name, posting)
    return number
  }

  /** Counts a posted job. */
  countPost(number: number): void {
    this.#context.db.run('UPDATE batches SET total = total + 1 WHERE number = ?', number)
  }

  /** Counts a job that has left the board; returns the callback if the batch has ended with it. */
  countEnd(number: number, { job, trashed }: { readonly job: number; readonly trashed: boolean }): Posting | undefined {
    if (trashed) this.#context.db.run('INSERT OR REPLACE INTO batch_failures (job, batch) VALUES (?, ?)', job, number)
    return this.#endIfEmpty(number)
  }

  /** Returns the number of the batch that counts a job of the trash; null for none. @throws Duplicate if a job with its uuid is open there */
  numberOfTrashed(posting: Posting, job: number): number | null {
    const row = this.#context.db.get(
      'SELECT b.number FROM batch_failures f JOIN batches b ON b.number = f.batch WHERE f.job = ?',
      job,
    )
    if (!row) return null
    const number = Number(row['number'])
    if (this.#isOpen(number, posting.uuid)) throw duplicateRestoreError(posting.batch ?? '', posting)
    return number
  }

  /** Counts a job that was restored from the trash. Opens a batch that has ended. */
  countRestored(number: number, job: number): void {
    const { db } = this.#context
    db.run('DELETE FROM batch_failures WHERE job = ?', job)
    const row = db.get('SELECT uuid, ended_at FROM batches WHERE number = ?', number)
    if (!row) return
    if (row['ended_at'] !== null) this.#reopen(number, { sealed: true })
    this.#changes.addBatch(readText(row, 'uuid'))
  }

  #carry(
    number: number,
    { total, sealed, generation, cancelled, endedAt }: { readonly total: number } & BatchStatus,
  ): void {
    this.#context.db.run(
      `UPDATE batches SET total = ?, sealed = ?, generation = ?, cancelled_by = ?, cancel_reason = ?, ended_at = ? WHERE number = ?`,
      ...[total, Number(sealed), generation],
      ...(cancelled ? [encodeText(cancelled.who), encodeText(cancelled.reason)] : [null, null]),
      ...[endedAt ?? null, number],
    )
  }

  #reopen(number: number, { sealed }: { readonly sealed: boolean }): void {
    this.#context.db.run(
      `UPDATE batches SET sealed = ?, generation = generation + (ended_at IS NOT NULL), ended_at = NULL, cancelled_by = NULL,
        cancel_reason = NULL WHERE number = ?`,
      ...[Number(sealed), number],
    )
  }

  #endIfEmpty(number: number): Posting | undefined {
    const { db, board, now } = this.#context
    const sql = `UPDATE batches SET ended_at = ? WHERE number = ? AND sealed = 1 AND ended_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE batch = number)`
    if (db.run(sql, now(), number) === 0) return undefined
    const row = db.get(`${COUNTED} WHERE number = ?`, number)
    if (!row) return undefined
    const old =
      'SELECT number FROM batches WHERE board = ? AND ended_at IS NOT NULL ORDER BY ended_at DESC, number DESC LIMIT -1 OFFSET ?'
    db.run(`DELETE FROM batch_failures WHERE batch IN (${old})`, board, MAX_ENDED_BATCHES)
    db.run(`DELETE FROM batches WHERE number IN (${old})`, board, MAX_ENDED_BATCHES)
    const batch = toStoredBatch(row)
    this.#changes.addBatch(batch.uuid)
    // The end of a job must not fail because the definition of its batch is damaged.
    const callback = catchError(() => toBatchCallback(decodeBatch(batch.uuid, batch.bytes), batch))
    return 'value' in callback ? callback.value : undefined
  }

  #isOpen(number: number, uuid: string): boolean {
    const sql = 'SELECT 1 FROM jobs WHERE batch = ? AND uuid = ?'
    return this.#context.db.get(sql, number, encodeText(uuid)) !== undefined
  }

  #row(uuid: string): Row | undefined {
    const { db, board } = this.#context
    return db.get('SELECT * FROM batches WHERE board = ? AND uuid = ?', board, encodeText(uuid))
  }

  /** Returns the number of a batch. @throws NotFound */
  #numberOf(uuid: string): number {
    const row = this.#row(uuid)
    if (row) return Number(row['number'])
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
}

export class SqliteBatches implements BackendBatches {
  readonly #board: SqliteBoard<Steps>

  constructor(board: SqliteBoard<Steps>) {
    this.#board = board
  }

  async create(batch: NewBatch): Promise<void> {
    return this.#board.step(({ batches }) => batches.create(batch))
  }

  async find(uuid: string): Promise<StoredBatch | undefined> {
    return this.#board.read(({ batches }) => batches.find(uuid))
  }

  async list({ limit }: { readonly limit: number }): Promise<readonly StoredBatch[]> {
    return this.#board.read(({ batches }) => batches.newest(limit))
  }

  async change(uuid: string, change: BatchChange): Promise<StoredBatch> {
    return this.#board.step(({ batches, jobs }) => {
      const before = batches.require(uuid)
      jobs.postCallback(batches.change(uuid, change))
      // The change may have ended the batch, and so have removed it as the oldest one.
      return batches.find(uuid) ?? before
    })
  }

  async jobs(uuid: string): Promise<BatchJobs> {
    return this.#board.read(({ batches }) => batches.jobs(uuid))
  }

  async watch(uuid: string): Promise<void> {
    this.#board.startWanting(this.#board.wanted.batches, [uuid])
  }

  async unwatch(uuid: string): Promise<void> {
    this.#board.wanted.batches.delete(uuid)
  }
}
