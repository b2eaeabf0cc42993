import { encodeText } from '../../../core/texts.ts'
import type { RestoreOutcome, TrashedEntry } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { Dependency } from '../../model/dependencies.ts'
import { encodePosting, type Posting } from '../../model/posting.ts'
import type { Batches } from './batches.ts'
import type { BoardPlace } from './changes.ts'
import type { Dependencies } from './dependencies.ts'
import type { Jobs } from './jobs.ts'
import type { Keys } from './keys.ts'
import { jobId, jobNumber, toTrashedEntry } from './rows.ts'

export interface TrashOptions {
  readonly place: BoardPlace
  readonly jobs: Jobs
  readonly keys: Keys
  readonly dependencies: Dependencies
  readonly batches: Batches
}

export class Trash {
  readonly #options: TrashOptions

  constructor(options: TrashOptions) {
    this.#options = options
  }

  /** Moves an entry to the end of the queue. @throws NotFound; Duplicate if its key is taken */
  restore(entry: TrashedEntry, posting: Posting, after: readonly Dependency[]): RestoreOutcome {
    const { place, jobs, keys, dependencies, batches } = this.#options
    const job = jobNumber(entry.id)
    const isThere = place.db.get('SELECT 1 FROM trash WHERE id = ? AND board = ?', job, place.board)
    if (!isThere) throw notInTrashError(entry)
    const gone = dependencies.findGone(after)
    if (gone.length > 0) return { restored: false, gone }
    const holder = keys.holderOf(posting.key)
    // Its own window does not keep a job in the trash.
    if (holder && holder.inWindowOf !== entry.id) throw refusalError(`job ${posting.uuid}`, { why: 'key' })
    const batch = batches.numberOfTrashed(posting, job)
    const bytes = encodePosting(posting, { encoding: 'msgpack', limit: Number.POSITIVE_INFINITY })
    place.db.run('DELETE FROM trash WHERE id = ?', job)
    if (batch !== null) batches.countRestored(batch, job)
    jobs.add({ posting, bytes, after, batch })
    return { restored: true }
  }

  /** @throws NotFound */
  purge(entry: TrashedEntry): void {
    const { db, board } = this.#options.place
    if (db.run('DELETE FROM trash WHERE id = ? AND board = ?', jobNumber(entry.id), board) === 0)
      throw notInTrashError(entry)
  }

  /** Returns the ids of all entries and their sizes, oldest first. */
  index(): { readonly id: string; readonly bytes: number }[] {
    const { db, board } = this.#options.place
    const sql = `SELECT id, length(body) + coalesce(length(life), 0) + coalesce(length(failure), 0) AS bytes FROM trash
      WHERE board = ? ORDER BY number`
    return db.all(sql, board).map((row) => ({ id: jobId(row['id']), bytes: Number(row['bytes']) }))
  }

  /** @throws InvalidPosting for an entry that cannot be read */
  entry(id: string): TrashedEntry | undefined {
    const { db, board } = this.#options.place
    const row = db.get('SELECT * FROM trash WHERE id = ? AND board = ?', jobNumber(id), board)
    return row && toTrashedEntry(row)
  }

  /** Returns the id of the newest entry with this uuid. */
  find(uuid: string): string | undefined {
    const { db, board } = this.#options.place
    const sql = 'SELECT id FROM trash WHERE board = ? AND uuid = ? ORDER BY number DESC LIMIT 1'
    const row = db.get(sql, board, encodeText(uuid))
    return row && jobId(row['id'])
  }
}

function notInTrashError({ posting }: TrashedEntry): Error {
  return refusalError(`job ${posting.uuid} (${posting.name})`, { why: 'not in trash' })
}
