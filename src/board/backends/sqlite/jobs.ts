/**
 * The jobs on a board, and what begins and ends with them: keys, dependencies, batches, trash, history.
 *
 * A step checks everything before it changes anything: what it throws is a refusal, and what it changed before that would be committed. Only a claim
 * applies changed rates of limits first, which count also if it is refused.
 */
import { encode } from '../../../core/codec.ts'
import { encodeText } from '../../../core/texts.ts'
import type { Row, SqliteValue } from '../../../sqlite/index.ts'
import type {
  BackendJobs,
  JobStatus,
  Posted,
  PostRequest,
  StoredJob,
  TrashReason,
  UnreadableJob,
} from '../../contract/index.ts'
import { rank } from '../../model/claim-order.ts'
import type { Dependency } from '../../model/dependencies.ts'
import type { HistoryEntry } from '../../model/ended-job.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { encodeLife, toCountedBytes } from '../../model/posting/posting-codec.ts'
import type { BatchSteps } from './batches.ts'
import type { DependencySteps } from './dependencies.ts'
import type { HistorySteps } from './history.ts'
import type { KeySteps } from './keys.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext, ChangeLog } from './store/change-log.ts'
import {
  BODY,
  type EncodedPost,
  encodeHistory,
  encodePost,
  encodeUnlimited,
  jobId,
  jobNumber,
  LARGE_BODY_BYTES,
  NEVER,
  STORED_COLUMNS,
  toQueueColumn,
  toStoredJob,
} from './store/rows.ts'

export interface JobsOptions {
  readonly context: BoardContext
  readonly changes: ChangeLog
  readonly keys: KeySteps
  readonly dependencies: DependencySteps
  readonly batches: BatchSteps
  readonly history: HistorySteps
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
  /** The reason of its move to the trash, and its owner then; absent for a job that is done. */
  readonly trash?: (TrashReason & { readonly who: string; readonly posting: Posting; readonly at?: Date }) | undefined
  readonly history?: HistoryEntry | undefined
}

const ADD = `INSERT INTO jobs (board, uuid, rank, key, body, ran, posted_at, written_at, due_at, due_when_ready, batch, queue)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const READ = `SELECT ${STORED_COLUMNS} FROM jobs WHERE id = ? AND board = ?`

export class JobSteps {
  readonly #options: JobsOptions

  constructor(options: JobsOptions) {
    this.#options = options
  }

  /** @throws NotFound, InvalidState, Duplicate if the batch of the posting refuses it */
  post(post: EncodedPost): Posted {
    const { dependencies, batches, keys } = this.#options
    const { posting, after = [], member } = post.request
    const gone = after.length > 0 ? dependencies.findGone(after) : []
    if (gone.length > 0) return { created: false, gone }
    const batch = batches.numberFor(posting, member)
    const holder = keys.holderOf(posting.key)
    if (holder) return { created: false, ...holder }
    return this.addPost(post, batch)
  }

  /** Adds a posted job, which was checked before. @param batch the number of the batch that counts it */
  addPost({ request, bytes }: EncodedPost, batch: number | null): Posted {
    const { posting, after } = request
    if (batch !== null) this.#options.batches.countPost(batch)
    return { created: true, ...this.add({ posting, bytes, after, batch }) }
  }

  add({ posting, bytes, after = [], batch }: NewJob): { id: string; revision: number; order: bigint; bytes: number } {
    const { context, changes, keys, dependencies } = this.#options
    const { db, board, now } = context
    const { uuid, key, delay, keyFor, runs } = posting
    const at = now()
    const due = delay === undefined ? 0 : at + delay
    const waits = after.length > 0
    const placed = { rank: rank(posting.priority), due: waits ? NEVER : due, queue: toQueueColumn(posting.queue) }
    const isLarge = bytes.length >= LARGE_BODY_BYTES
    const job = db.insert(
      ADD,
      ...[board, encodeText(uuid), placed.rank, key === undefined ? null : encodeText(key)],
      ...[isLarge ? null : bytes, Number(runs > 0)],
      ...[at, at, placed.due, waits ? due : null, batch, placed.queue],
    )
    if (isLarge) db.run('INSERT OR REPLACE INTO bodies (job, body) VALUES (?, ?)', job, bytes)
    if (key !== undefined) keys.take(key, { job, uuid, window: keyFor })
    if (waits) dependencies.add(job, after)
    changes.addPlaced('posted', job, placed)
    return { id: jobId(job), revision: 0, order: BigInt(job), bytes: toCountedBytes(bytes, 'msgpack') }
  }

  /**
   * Ends the claim of a job that stays on the board, and stores what the claim changed of its posting.
   *
   * @param options.movedTo the queue to which it is moved
   */
  giveBack(job: number, posting: Posting, { movedTo }: { readonly movedTo?: string | undefined } = {}): void {
    const { context, changes } = this.#options
    const at = context.now()
    context.db.run(
      `UPDATE jobs SET life = ?, revision = revision + 1, written_at = ?, session = NULL, who = NULL,
        due_at = iif(cancelled_by IS NULL, ?, 0) WHERE id = ?`,
      ...[encodeLife(posting, 'msgpack'), at, posting.delay === undefined ? 0 : at + posting.delay, job],
    )
    changes.add('abandoned', job)
    if (movedTo !== undefined) this.#move(job, toQueueColumn(movedTo))
  }

  #move(job: number, queue: string | null): void {
    const { context, changes } = this.#options
    const row = context.db.get('UPDATE jobs SET queue = ? WHERE id = ? RETURNING rank, due_at', queue, job)
    changes.addPlaced('replaced', job, { rank: Number(row?.['rank']), due: Number(row?.['due_at']), queue })
  }

  /** Removes a job from the board. @returns the ids of the jobs that were cancelled because of its end */
  end(row: Row, { trash, history }: JobEnd): readonly string[] {
    const { context, changes, batches, dependencies } = this.#options
    const job = Number(row['id'])
    const entry = trash && encodeTrash(trash)
    const record = history && encodeHistory(history)
    if (entry) this.#moveToTrash(job, entry, trash.at?.getTime())
    context.db.run('DELETE FROM jobs WHERE id = ?', job)
    if (row['large'] === 1) context.db.run('DELETE FROM bodies WHERE job = ?', job)
    if (record) this.#options.history.add(record, { replaces: row['ended_before'] === 1 })
    changes.add(trash ? 'trashed' : 'consumed', job)
    const doomed = row['linked'] === 1 ? dependencies.end(job, trash) : []
    if (row['batch'] !== null)
      this.postCallback(batches.countEnd(Number(row['batch']), { job, trashed: trash !== undefined }))
    return doomed.map(jobId)
  }

  #moveToTrash(job: number, entry: readonly SqliteValue[], at = this.#options.context.now()): void {
    const { db } = this.#options.context
    db.run(
      `INSERT OR REPLACE INTO trash (board, id, uuid, body, life, who, reason, failure, at)
        SELECT board, id, uuid, ${BODY}, ?, ?, ?, ?, ? FROM jobs WHERE id = ?`,
      ...[...entry, at, job],
    )
  }

  /** Posts the callback of a batch, if there is one. */
  postCallback(posting: Posting | undefined): void {
    if (posting) this.add({ posting, bytes: encodeUnlimited(posting), batch: null })
  }

  read(id: string): StoredJob | UnreadableJob | undefined {
    const { db, board } = this.#options.context
    const row = db.get(READ, jobNumber(id), board)
    return row && toStoredJob(row)
  }

  status(id: string): JobStatus {
    const { db, board } = this.#options.context
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
}

export class SqliteJobs implements BackendJobs {
  readonly #board: SqliteBoard<{ readonly jobs: JobSteps }>

  constructor(board: SqliteBoard<{ readonly jobs: JobSteps }>) {
    this.#board = board
  }

  async post(request: PostRequest): Promise<Posted> {
    const post = encodePost(request)
    return this.#board.step(({ jobs }) => jobs.post(post))
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    return this.#board.read(({ jobs }) => ids.map((id) => jobs.read(id)))
  }
}

/** Returns the columns life, who, reason and failure of an entry of the trash. @throws InvalidArgument */
function encodeTrash({ who, reason, failure, posting }: NonNullable<JobEnd['trash']>): readonly SqliteValue[] {
  const encoded = failure ? encode(failure, 'msgpack') : null
  return [encodeLife(posting, 'msgpack'), encodeText(who), encodeText(reason), encoded]
}
