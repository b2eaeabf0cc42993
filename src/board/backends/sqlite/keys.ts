/** The keys of a board: a key is taken while its job is on the board, and until its window is over. */
import { Unclaimable } from '../../../core/errors.ts'
import { encodeText } from '../../../core/texts.ts'
import type { BackendKeys, KeyTaken, Replaced, ReplaceRequest } from '../../contract/index.ts'
import { rank } from '../../model/claim-order.ts'
import { toCountedBytes } from '../../model/posting/posting-codec.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext, ChangeLog } from './store/change-log.ts'
import type { JobRows } from './store/job-rows.ts'
import { encodeWithinLimit, jobId, LARGE_BODY_BYTES, NEVER, readText, toQueueColumn } from './store/rows.ts'

export interface KeysOptions {
  readonly context: BoardContext
  readonly rows: JobRows
  readonly changes: ChangeLog
}

/** The job that makes a key unavailable. */
export type KeyHolder = Omit<KeyTaken, 'created'> & { readonly uuid: string }

export class KeySteps {
  readonly #options: KeysOptions

  constructor(options: KeysOptions) {
    this.#options = options
  }

  /** Returns the job that has the key; undefined if the key can be taken. */
  holderOf(key: string | undefined): KeyHolder | undefined {
    if (key === undefined) return undefined
    const { db, board, now } = this.#options.context
    const stored = encodeText(key)
    const job = db.get('SELECT uuid FROM jobs WHERE board = ? AND key = ?', board, stored)
    if (job) return { uuid: readText(job, 'uuid'), revision: 0 }
    const sql = 'SELECT job, uuid FROM key_windows WHERE board = ? AND key = ? AND until > ?'
    const window = db.get(sql, board, stored, now())
    return window && { uuid: readText(window, 'uuid'), revision: 0, inWindowOf: jobId(window['job']) }
  }

  /** Begins the window of a key whose job has been posted or replaced. @param window in milliseconds; undefined for none */
  take(
    key: string,
    { job, uuid, window }: { readonly job: number; readonly uuid: string; readonly window: number | undefined },
  ): void {
    const { db, board, now } = this.#options.context
    const stored = encodeText(key)
    if (window === undefined) db.run('DELETE FROM key_windows WHERE board = ? AND key = ?', board, stored)
    else {
      const sql = 'INSERT OR REPLACE INTO key_windows (board, key, job, uuid, until) VALUES (?, ?, ?, ?, ?)'
      db.run(sql, board, stored, job, encodeText(uuid), now() + window)
    }
  }

  /**
   * Replaces the posting of a job that waits, with the bytes of the new one.
   *
   * @throws NotFound; Unclaimable if it was claimed, changed or cancelled meanwhile
   */
  replace({ id, revision, posting, window }: ReplaceRequest, bytes: Uint8Array): Replaced {
    const { context, rows, changes } = this.#options
    const row = rows.requireUnclaimed(id, revision)
    if (row['cancelled_by'] !== null) throw new Unclaimable(`${id} was cancelled`)
    const [job, at] = [Number(row['id']), context.now()]
    const due = posting.delay === undefined ? 0 : at + posting.delay
    const waits = row['due_when_ready'] !== null
    const isLarge = bytes.length >= LARGE_BODY_BYTES
    const placed = { rank: rank(posting.priority), due: waits ? NEVER : due, queue: toQueueColumn(posting.queue) }
    context.db.run(
      `UPDATE jobs SET body = ?, life = NULL, uuid = ?, rank = ?, queue = ?, revision = revision + 1, written_at = ?, due_at = ?,
        due_when_ready = ? WHERE id = ?`,
      ...[
        isLarge ? null : bytes,
        encodeText(posting.uuid),
        placed.rank,
        placed.queue,
        at,
        placed.due,
        waits ? due : null,
        job,
      ],
    )
    context.db.run('DELETE FROM bodies WHERE job = ?', job)
    if (isLarge) context.db.run('INSERT INTO bodies (job, body) VALUES (?, ?)', job, bytes)
    if (posting.key !== undefined) this.take(posting.key, { job, uuid: posting.uuid, window })
    changes.addPlaced('replaced', job, placed)
    return { revision: revision + 1, bytes: toCountedBytes(bytes, 'msgpack') }
  }
}

export class SqliteKeys implements BackendKeys {
  readonly #board: SqliteBoard<{ readonly keys: KeySteps }>

  constructor(board: SqliteBoard<{ readonly keys: KeySteps }>) {
    this.#board = board
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    const bytes = encodeWithinLimit(request.posting)
    return this.#board.step(({ keys }) => keys.replace(request, bytes))
  }
}
