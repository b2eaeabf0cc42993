/** The records of a board, which change together with posts. */
import { encodeText } from '../../../core/texts.ts'
import type { Row } from '../../../sqlite/index.ts'
import type { BackendRecords, WriteRequest, Written } from '../../contract/index.ts'
import { duplicateMemberError } from '../../model/post-batch.ts'
import { changesLimits, type RecordChange, type RecordName, type StoredRecord } from '../../model/record.ts'
import type { BatchSteps } from './batches.ts'
import type { DependencySteps } from './dependencies.ts'
import type { JobSteps } from './jobs.ts'
import type { KeySteps } from './keys.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { LimitSteps } from './limits.ts'
import type { BoardContext, ChangeLog } from './store/change-log.ts'
import { type EncodedPost, encodePost, readBytes, readText } from './store/rows.ts'

const COLUMNS = 'kind, id, value, revision'

export interface RecordsOptions {
  readonly context: BoardContext
  readonly changes: ChangeLog
  readonly jobs: JobSteps
  readonly keys: KeySteps
  readonly dependencies: DependencySteps
  readonly batches: BatchSteps
  readonly limits: LimitSteps
}

export class RecordSteps {
  readonly #options: RecordsOptions

  constructor(options: RecordsOptions) {
    this.#options = options
  }

  list(kind: string): StoredRecord[] {
    const { db, board } = this.#options.context
    const sql = `SELECT ${COLUMNS} FROM records WHERE board = ? AND kind = ? ORDER BY id`
    return db.all(sql, board, encodeText(kind)).map(toRecord)
  }

  get({ kind, id }: RecordName): StoredRecord | undefined {
    const { db, board } = this.#options.context
    const sql = `SELECT ${COLUMNS} FROM records WHERE board = ? AND kind = ? AND id = ?`
    const row = db.get(sql, board, encodeText(kind), encodeText(id))
    return row && toRecord(row)
  }

  /** Changes records and posts jobs, or does nothing of it. @throws NotFound, InvalidState, Duplicate if a batch refuses a post */
  write(changes: readonly RecordChange[], posts: readonly EncodedPost[]): Written {
    const { jobs, keys, dependencies, limits } = this.#options
    const conflict = changes.find((change) => this.get(change)?.revision !== change.revision)
    if (conflict) return { done: false, conflict: { kind: conflict.kind, id: conflict.id } }
    const names = new Set<string>()
    for (const { key } of posts.map(({ request }) => request.posting)) {
      if (key === undefined) continue
      if (names.has(key) || keys.holderOf(key)) return { done: false, conflict: { key } }
      names.add(key)
    }
    const gone = dependencies.findGone(posts.flatMap(({ request: { after = [] } }) => after))
    if (gone.length > 0) return { done: false, conflict: { gone } }
    const counted = this.#batchesFor(posts)
    if (changesLimits(changes)) limits.noteChange()
    const revisions = changes.map((change) => this.#apply(change))
    return { done: true, revisions, posted: posts.map((post, index) => jobs.addPost(post, counted[index] ?? null)) }
  }

  /** Returns the number of the batch of each post. @throws Duplicate also if two of the posts are the same job of a batch */
  #batchesFor(posts: readonly EncodedPost[]): (number | null)[] {
    const { batches } = this.#options
    const members = new Set<string>()
    return posts.map(({ request: { posting, member } }) => {
      const number = batches.numberFor(posting, member)
      if (number === null) return null
      const name = `${number}/${posting.uuid}`
      if (members.has(name)) throw duplicateMemberError(posting.batch ?? '', posting)
      members.add(name)
      return number
    })
  }

  /** Carries a change out; returns the new revision, undefined for a removal. */
  #apply({ kind, id, bytes }: RecordChange): number | undefined {
    const { db, board } = this.#options.context
    this.#options.changes.addRecord({ kind, id })
    const row = db.get('UPDATE boards SET records = records + 1 WHERE id = ? RETURNING records', board)
    const name = [board, encodeText(kind), encodeText(id)] as const
    if (!bytes) {
      db.run('DELETE FROM records WHERE board = ? AND kind = ? AND id = ?', ...name)
      return undefined
    }
    const revision = Number(row?.['records'])
    db.run(
      'INSERT OR REPLACE INTO records (board, kind, id, value, revision) VALUES (?, ?, ?, ?, ?)',
      ...name,
      bytes,
      revision,
    )
    return revision
  }
}

export class SqliteRecords implements BackendRecords {
  readonly #board: SqliteBoard<{ readonly records: RecordSteps }>

  constructor(board: SqliteBoard<{ readonly records: RecordSteps }>) {
    this.#board = board
  }

  async write({ changes, posts }: WriteRequest): Promise<Written> {
    const encoded = posts.map(encodePost)
    return this.#board.step(({ records }) => records.write(changes, encoded))
  }

  async list(kind: string): Promise<StoredRecord[]> {
    return this.#board.read(({ records }) => records.list(kind))
  }

  async get(name: RecordName): Promise<StoredRecord | undefined> {
    return this.#board.read(({ records }) => records.get(name))
  }

  async watch(kind: string): Promise<void> {
    this.#board.startWanting(this.#board.wanted.kinds, [kind])
  }

  async unwatch(kind: string): Promise<void> {
    this.#board.wanted.kinds.delete(kind)
  }
}

function toRecord(row: Row): StoredRecord {
  const bytes = readBytes(row, 'value') ?? new Uint8Array()
  return { kind: readText(row, 'kind'), id: readText(row, 'id'), bytes, revision: Number(row['revision']) }
}
