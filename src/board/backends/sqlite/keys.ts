/** The keys of a board: a key is taken while its job is on the board, and until its window is over. */
import { encodeText } from '../../../core/texts.ts'
import type { KeyTaken } from '../../contract/index.ts'
import type { BoardPlace } from './changes.ts'
import { jobId, readText } from './rows.ts'

/** The job because of which a key cannot be taken. */
export type KeyHolder = Omit<KeyTaken, 'created'> & { readonly uuid: string }

export class Keys {
  readonly #place: BoardPlace

  constructor(place: BoardPlace) {
    this.#place = place
  }

  /** Returns the job that has the key; undefined if the key can be taken. */
  holderOf(key: string | undefined): KeyHolder | undefined {
    if (key === undefined) return undefined
    const { db, board, now } = this.#place
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
    const { db, board, now } = this.#place
    const stored = encodeText(key)
    if (window === undefined) db.run('DELETE FROM key_windows WHERE board = ? AND key = ?', board, stored)
    else {
      const sql = 'INSERT OR REPLACE INTO key_windows (board, key, job, uuid, until) VALUES (?, ?, ?, ?, ?)'
      db.run(sql, board, stored, job, encodeText(uuid), now() + window)
    }
  }
}
