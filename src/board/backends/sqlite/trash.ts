/** The trash of a board. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { catchError, type Result } from '../../../core/result.ts'
import { encodeText } from '../../../core/texts.ts'
import type {
  BackendRestoreOptions,
  BackendTrash,
  DiscardRequest,
  RestoreOutcome,
  TrashedEntry,
  TrashListing,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { Dependency } from '../../model/dependencies.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import type { BatchSteps } from './batches.ts'
import type { DependencySteps } from './dependencies.ts'
import type { JobSteps } from './jobs.ts'
import type { KeySteps } from './keys.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext } from './store/change-log.ts'
import type { JobRows } from './store/job-rows.ts'
import { encodeUnlimited, jobId, jobNumber, toTrashedEntry } from './store/rows.ts'

export interface TrashOptions {
  readonly context: BoardContext
  readonly rows: JobRows
  readonly jobs: JobSteps
  readonly keys: KeySteps
  readonly dependencies: DependencySteps
  readonly batches: BatchSteps
}

export class TrashSteps {
  readonly #options: TrashOptions

  constructor(options: TrashOptions) {
    this.#options = options
  }

  /** Moves an unclaimed job to the trash. @returns the ids of the jobs that were cancelled because of that @throws NotFound, Unclaimable */
  discard(discarded: DiscardRequest): readonly string[] {
    const { rows, jobs } = this.#options
    const row = rows.requireUnclaimed(discarded.id, discarded.revision)
    return jobs.end(row, { trash: discarded, history: discarded.history })
  }

  /** Moves an entry behind the other jobs of its priority. @throws NotFound; Duplicate if its key is taken */
  restore(entry: TrashedEntry, posting: Posting, after: readonly Dependency[]): RestoreOutcome {
    const { context, jobs, keys, dependencies, batches } = this.#options
    const job = jobNumber(entry.id)
    const isThere = context.db.get('SELECT 1 FROM trash WHERE id = ? AND board = ?', job, context.board)
    if (!isThere) throw notInTrashError(entry)
    const gone = dependencies.findGone(after)
    if (gone.length > 0) return { restored: false, gone }
    const holder = keys.holderOf(posting.key)
    // Its own window does not keep a job in the trash.
    if (holder && holder.inWindowOf !== entry.id) throw refusalError(`job ${posting.uuid}`, { why: 'key' })
    const batch = batches.numberOfTrashed(posting, job)
    const bytes = encodeUnlimited(posting)
    context.db.run('DELETE FROM trash WHERE id = ?', job)
    if (batch !== null) batches.countRestored(batch, job)
    jobs.add({ posting, bytes, after, batch })
    return { restored: true }
  }

  /** @throws NotFound */
  purge(entry: TrashedEntry): void {
    const { db, board } = this.#options.context
    if (db.run('DELETE FROM trash WHERE id = ? AND board = ?', jobNumber(entry.id), board) === 0)
      throw notInTrashError(entry)
  }

  /** Returns the ids of all entries and their sizes, oldest first. */
  index(): { readonly id: string; readonly bytes: number }[] {
    const { db, board } = this.#options.context
    const sql = `SELECT id, length(body) + coalesce(length(life), 0) + coalesce(length(failure), 0) AS bytes FROM trash
      WHERE board = ? ORDER BY number`
    return db.all(sql, board).map((row) => ({ id: jobId(row['id']), bytes: Number(row['bytes']) }))
  }

  /** @throws InvalidPosting for an entry that cannot be read */
  entry(id: string): TrashedEntry | undefined {
    const { db, board } = this.#options.context
    const row = db.get('SELECT * FROM trash WHERE id = ? AND board = ?', jobNumber(id), board)
    return row && toTrashedEntry(row)
  }

  /** Returns the id of the newest entry with this uuid. */
  find(uuid: string): string | undefined {
    const { db, board } = this.#options.context
    const sql = 'SELECT id FROM trash WHERE board = ? AND uuid = ? ORDER BY number DESC LIMIT 1'
    const row = db.get(sql, board, encodeText(uuid))
    return row && jobId(row['id'])
  }
}

export class SqliteTrash implements BackendTrash {
  readonly #board: SqliteBoard<{ readonly trash: TrashSteps }>

  constructor(board: SqliteBoard<{ readonly trash: TrashSteps }>) {
    this.#board = board
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    const { sink } = this.#board.requireOpen()
    const doomed = await this.#board.step(({ trash }) => trash.discard(discarded))
    if (doomed.length > 0) sink.doomed(doomed)
  }

  async restore(
    entry: TrashedEntry,
    posting: Posting,
    { after = [] }: BackendRestoreOptions = {},
  ): Promise<RestoreOutcome> {
    return this.#board.step(({ trash }) => trash.restore(entry, posting, after))
  }

  async purge(entry: TrashedEntry): Promise<void> {
    return this.#board.step(({ trash }) => trash.purge(entry))
  }

  async *list(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const { sink } = this.#board.requireOpen()
    const index = this.#board.read(({ trash }) => trash.index())
    for (const page of pagesOf(selectTrash(index, listing, ({ id }) => id))) {
      for (const { id } of page) {
        const read = this.#read(id)
        if ('error' in read) sink.error(new Error(`trash entry ${id} is unreadable`, { cause: read.error }))
        else if (read.value) yield read.value
      }
      await nextTurn()
    }
  }

  async entry(id: string): Promise<TrashedEntry | undefined> {
    const read = this.#read(id)
    return 'error' in read ? undefined : read.value
  }

  async find(uuid: string): Promise<TrashedEntry | undefined> {
    const id = this.#board.read(({ trash }) => trash.find(uuid))
    return id === undefined ? undefined : this.entry(id)
  }

  #read(id: string): Result<TrashedEntry | undefined> {
    return catchError(() => this.#board.read(({ trash }) => trash.entry(id)))
  }
}

function notInTrashError({ posting }: TrashedEntry): Error {
  return refusalError(`job ${posting.uuid} (${posting.name})`, { why: 'not in trash' })
}
