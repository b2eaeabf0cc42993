/** The jobs of a board that have ended last. */
import { encodeText } from '../../../core/texts.ts'
import type { Row } from '../../../sqlite/index.ts'
import type { BackendHistory } from '../../contract/index.ts'
import { decodeEndedJob, type EndedJob } from '../../model/ended-job.ts'
import type { UnreadableValues } from '../unreadable-values.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext } from './store/change-log.ts'
import { type EncodedEntry, readBytes, readText } from './store/rows.ts'

/** The number of rows of one read: each can have results of 64 KiB. */
const ROWS_PER_READ = 500

/** The largest number of jobs between two removals of the oldest, on average: one statement deletes so many rows, and it must stay short. */
const MAX_TRIM_PERIOD = 128

export class HistorySteps {
  readonly #context: BoardContext

  constructor(context: BoardContext) {
    this.#context = context
  }

  /**
   * Adds a job to the history. Removes the oldest jobs once in a period, at random, because processes that end few jobs and processes with another
   * `keep` add jobs, too. Until then some jobs remain in addition.
   *
   * @param options.replaces whether there may be an earlier record of the job
   */
  add({ uuid, bytes, keep }: EncodedEntry, { replaces }: { readonly replaces: boolean }): void {
    const { db, board } = this.#context
    if (keep === 0) {
      db.run('DELETE FROM history WHERE board = ?', board)
      return
    }
    // With the plus before board, here and in `find`, SQLite uses the index of uuids, and not the index of all jobs of the board.
    if (replaces) db.run('DELETE FROM history WHERE +board = ? AND uuid = ?', board, uuid)
    const row = db.get('UPDATE boards SET history = history + 1 WHERE id = ? RETURNING history', board)
    const number = Number(row?.['history'])
    db.run(
      'INSERT OR REPLACE INTO history (board, number, uuid, record) VALUES (?, ?, ?, ?)',
      board,
      number,
      uuid,
      bytes,
    )
    if (Math.random() * trimPeriod(keep) < 1)
      db.run('DELETE FROM history WHERE board = ? AND number <= ?', board, number - keep)
  }

  /** Returns the newest jobs, newest first. */
  newest(limit: number, unreadable: UnreadableValues): EndedJob[] {
    const { db, board } = this.#context
    const jobs: EndedJob[] = []
    const sql = 'SELECT number, uuid, record FROM history WHERE board = ? AND number < ? ORDER BY number DESC LIMIT ?'
    for (let before = Number.MAX_SAFE_INTEGER; jobs.length < limit; ) {
      const count = Math.min(ROWS_PER_READ, limit - jobs.length)
      const rows = db.all(sql, board, before, count)
      jobs.push(...rows.flatMap((row) => parseEndedJob(row) ?? unreadable.leftOut('history', readText(row, 'uuid'))))
      if (rows.length < count) break
      before = Number(rows.at(-1)?.['number'])
    }
    return jobs
  }

  find(uuid: string): EndedJob | undefined {
    const { db, board } = this.#context
    const row = db.get('SELECT record FROM history WHERE +board = ? AND uuid = ?', board, encodeText(uuid))
    return row && parseEndedJob(row)
  }
}

export class SqliteHistory implements BackendHistory {
  readonly #board: SqliteBoard<{ readonly history: HistorySteps }>

  constructor(board: SqliteBoard<{ readonly history: HistorySteps }>) {
    this.#board = board
  }

  async newest({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    const { unreadable } = this.#board.requireOpen()
    return this.#board.read(({ history }) => history.newest(limit, unreadable))
  }

  async find(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    return this.#board.read(({ history }) => uuids.map((uuid) => history.find(uuid)))
  }
}

function parseEndedJob(row: Row): EndedJob | undefined {
  return decodeEndedJob(readBytes(row, 'record') ?? new Uint8Array())
}

/** Returns the average number of added jobs between two removals of the oldest: an eighth of `keep`, from 1 to 128. */
function trimPeriod(keep: number): number {
  return Math.min(Math.max(Math.floor(keep / 8), 1), MAX_TRIM_PERIOD)
}
