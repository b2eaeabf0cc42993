/**
 * The jobs on a board, and what begins and ends with them: keys, dependencies, batches, trash, history.
 *
 * A step checks everything before it changes anything: what it throws is a refusal, and what it changed before that would be committed. Only a claim
 * applies changed rates of limits first, which count also if it is refused.
 */
import { encode } from '../../../core/codec.ts'
import { encodeText } from '../../../core/texts.ts'
import type { Row, SqliteValue } from '../../../sqlite/index.ts'
import type { Cancellation, JobStatus, StoredJob, TrashReason, UnreadableJob } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { rank } from '../../model/claim-order.ts'
import type { Dependency } from '../../model/dependencies.ts'
import type { HistoryEntry } from '../../model/ended-job.ts'
import { encodeLife, encodePosting, type Posting, toCountedBytes } from '../../model/posting.ts'
import type { Batches } from './batches.ts'
import type { BoardPlace, Changes } from './changes.ts'
import type { Dependencies } from './dependencies.ts'
import { encodeHistory, type History } from './history.ts'
import type { Keys } from './keys.ts'
import { BODY, jobId, jobNumber, LARGE_BODY_BYTES, NEVER, readText, STORED_COLUMNS, toStoredJob } from './rows.ts'

export interface JobsOptions {
  readonly place: BoardPlace
  readonly changes: Changes
  readonly keys: Keys
  readonly dependencies: Dependencies
  readonly batches: Batches
  readonly history: History
}

/** A job to add. */
export interface NewJob {
  readonly posting: Posting
  readonly bytes: Uint8Array
  readonly after?: readonly Dependency[] | undefined
  /** The number of the batch that counts it. */
  readonly batch: number | null
}

/** The end of a job. */
export interface JobEnd {
  /** Why and by whom it is moved to the trash; absent for a job that is done. */
  readonly trash?: (TrashReason & { readonly who: string; readonly posting: Posting; readonly at?: Date }) | undefined
  readonly history?: HistoryEntry | undefined
}

const JOB = `SELECT id, uuid, rank, revision, session, batch, cancelled_by, due_when_ready, body IS NULL AS large,
  EXISTS (SELECT 1 FROM dependencies WHERE waits_for = jobs.id) OR EXISTS (SELECT 1 FROM dependencies WHERE job = jobs.id) AS linked
FROM jobs WHERE id = ? AND board = ?`

export class Jobs {
  readonly #options: JobsOptions

  constructor(options: JobsOptions) {
    this.#options = options
  }

  add({ posting, bytes, after = [], batch }: NewJob): { id: string; revision: number; order: bigint; bytes: number } {
    const { place, changes, keys, dependencies } = this.#options
    const { db, board, now } = place
    const { uuid, key, delay, keyFor, runs } = posting
    const at = now()
    const due = delay === undefined ? 0 : at + delay
    const waits = after.length > 0
    const placed = { rank: rank(posting.priority), due: waits ? NEVER : due }
    const isLarge = bytes.length >= LARGE_BODY_BYTES
    const job = db.insert(
      `INSERT INTO jobs (board, uuid, rank, key, body, ran, posted_at, written_at, due_at, due_when_ready, batch)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[board, encodeText(uuid), placed.rank, key === undefined ? null : encodeText(key)],
      ...[isLarge ? null : bytes, Number(runs > 0)],
      ...[at, at, placed.due, waits ? due : null, batch],
    )
    if (isLarge) db.run('INSERT OR REPLACE INTO bodies (job, body) VALUES (?, ?)', job, bytes)
    if (key !== undefined) keys.take(key, { job, uuid, window: keyFor })
    if (waits) dependencies.add(job, after)
    changes.addPlaced('posted', job, placed)
    return { id: jobId(job), revision: 0, order: BigInt(job), bytes: toCountedBytes(bytes, 'msgpack') }
  }

  /** Returns the row of a job; undefined if it is not on the board. */
  find(id: string): Row | undefined {
    const { db, board } = this.#options.place
    return db.get(JOB, jobNumber(id), board)
  }

  /** @throws NotFound; Unclaimable for a job that is claimed, or is at another revision */
  requireUnclaimed(id: string, revision: number): Row {
    const row = this.find(id)
    if (!row) throw refusalError(id, { why: 'gone' })
    if (row['session'] !== null || row['revision'] !== revision) throw refusalError(id, { why: 'changed' })
    return row
  }

  /** Ends the claim of a job that stays on the board, and stores what the claim changed of its posting. */
  giveBack(job: number, posting: Posting): void {
    const { place, changes } = this.#options
    const at = place.now()
    place.db.run(
      `UPDATE jobs SET life = ?, revision = revision + 1, written_at = ?, session = NULL, who = NULL,
        due_at = iif(cancelled_by IS NULL, ?, 0) WHERE id = ?`,
      ...[encodeLife(posting, 'msgpack'), at, posting.delay === undefined ? 0 : at + posting.delay, job],
    )
    changes.add('abandoned', job)
  }

  /** Requests to cancel a job, which is due at once from then on and waits for no other. The first request is kept. @throws NotFound */
  cancel(id: string, { job: name, who, reason }: Cancellation & { readonly job: string }): void {
    const { place, changes, dependencies } = this.#options
    const row = this.find(id)
    if (!row) throw refusalError(name, { why: 'gone' })
    if (row['cancelled_by'] !== null) return
    const job = Number(row['id'])
    const sql = 'UPDATE jobs SET cancelled_by = ?, cancel_reason = ?, due_at = 0, due_when_ready = NULL WHERE id = ?'
    place.db.run(sql, encodeText(who), encodeText(reason), job)
    dependencies.removeOf(job)
    changes.add('cancelled', job)
  }

  /** Removes a job from the board. @returns the ids of the jobs that were cancelled because of its end */
  end(row: Row, { trash, history }: JobEnd): readonly string[] {
    const { place, changes, batches, dependencies } = this.#options
    const job = Number(row['id'])
    const entry = trash && encodeTrash(trash)
    const record = history && encodeHistory(history)
    if (entry) this.#moveToTrash(job, entry, trash.at?.getTime())
    place.db.run('DELETE FROM jobs WHERE id = ?', job)
    if (row['large'] === 1) place.db.run('DELETE FROM bodies WHERE job = ?', job)
    if (record) this.#options.history.add(record)
    changes.add(trash ? 'trashed' : 'consumed', job)
    const doomed = row['linked'] === 1 ? dependencies.end(job, trash) : []
    if (row['batch'] !== null)
      this.postCallback(batches.countEnd(Number(row['batch']), { job, trashed: trash !== undefined }))
    return doomed.map(jobId)
  }

  #moveToTrash(job: number, entry: readonly SqliteValue[], at = this.#options.place.now()): void {
    const { db } = this.#options.place
    db.run(
      `INSERT OR REPLACE INTO trash (board, id, uuid, body, life, who, reason, failure, at)
        SELECT board, id, uuid, ${BODY}, ?, ?, ?, ?, ? FROM jobs WHERE id = ?`,
      ...[...entry, at, job],
    )
  }

  /** Posts the callback of a batch, if there is one. */
  postCallback(posting: Posting | undefined): void {
    if (!posting) return
    const bytes = encodePosting(posting, { encoding: 'msgpack', limit: Number.POSITIVE_INFINITY })
    this.add({ posting, bytes, batch: null })
  }

  read(id: string): StoredJob | UnreadableJob | undefined {
    const { db, board } = this.#options.place
    const row = db.get(`SELECT ${STORED_COLUMNS} FROM jobs WHERE id = ? AND board = ?`, jobNumber(id), board)
    return row && toStoredJob(row)
  }

  status(id: string): JobStatus {
    const { db, board } = this.#options.place
    const job = jobNumber(id)
    const row = db.get('SELECT session, cancelled_by, revision FROM jobs WHERE id = ? AND board = ?', job, board)
    if (row)
      return {
        claimed: row['session'] !== null,
        cancelled: row['cancelled_by'] !== null,
        revision: Number(row['revision']),
      }
    return db.get('SELECT 1 FROM trash WHERE id = ? AND board = ?', job, board) ? 'trashed' : 'gone'
  }

  owner(id: string): string | undefined {
    const { db, board } = this.#options.place
    const sql = 'SELECT who FROM jobs WHERE id = ? AND board = ? AND session IS NOT NULL'
    const row = db.get(sql, jobNumber(id), board)
    return row && readText(row, 'who')
  }

  cancellation(id: string): Cancellation | undefined {
    const { db, board } = this.#options.place
    const sql = `SELECT cancelled_by AS who, cancel_reason AS reason FROM jobs WHERE id = ? AND board = ?
      AND cancelled_by IS NOT NULL`
    const row = db.get(sql, jobNumber(id), board)
    return row && { who: readText(row, 'who'), reason: readText(row, 'reason') }
  }
}

/** Returns the columns life, who, reason and failure of an entry of the trash. @throws InvalidArgument */
function encodeTrash({ who, reason, failure, posting }: NonNullable<JobEnd['trash']>): readonly SqliteValue[] {
  const encoded = failure ? encode(failure, 'msgpack') : null
  return [encodeLife(posting, 'msgpack'), encodeText(who), encodeText(reason), encoded]
}
