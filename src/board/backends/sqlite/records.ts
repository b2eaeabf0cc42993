/** The records of a board. */
import { decodeText, encodeText } from '../../../core/texts.ts'
import type { Row } from '../../../sqlite/index.ts'
import type { RecordChange, RecordName, StoredRecord } from '../../model/record.ts'
import type { BoardPlace, Changes } from './changes.ts'
import { readBytes, readText } from './rows.ts'

const COLUMNS = 'kind, id, value, revision'

export class Records {
  readonly #place: BoardPlace
  readonly #changes: Changes

  constructor(place: BoardPlace, changes: Changes) {
    this.#place = place
    this.#changes = changes
  }

  list(kind: string): StoredRecord[] {
    const { db, board } = this.#place
    const sql = `SELECT ${COLUMNS} FROM records WHERE board = ? AND kind = ? ORDER BY id`
    return db.all(sql, board, encodeText(kind)).map(toRecord)
  }

  get({ kind, id }: RecordName): StoredRecord | undefined {
    const { db, board } = this.#place
    const sql = `SELECT ${COLUMNS} FROM records WHERE board = ? AND kind = ? AND id = ?`
    const row = db.get(sql, board, encodeText(kind), encodeText(id))
    return row && toRecord(row)
  }

  /** Returns the first record that is at another revision than its change expects. */
  findConflict(changes: readonly RecordChange[]): RecordName | undefined {
    const conflict = changes.find((change) => this.get(change)?.revision !== change.revision)
    return conflict && { kind: conflict.kind, id: conflict.id }
  }

  /** Carries a change out; returns the new revision, undefined for a removal. */
  apply({ kind, id, bytes }: RecordChange): number | undefined {
    const { db, board } = this.#place
    this.#changes.addRecord({ kind, id })
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

/** Parses the name of a record in the feed; undefined for a text that is none. */
export function parseRecordName(text: string): RecordName | undefined {
  try {
    const [kind, id] = JSON.parse(decodeText(text)) as unknown[]
    return typeof kind === 'string' && typeof id === 'string' ? { kind, id } : undefined
  } catch {
    return undefined
  }
}

function toRecord(row: Row): StoredRecord {
  const bytes = readBytes(row, 'value') ?? new Uint8Array()
  return { kind: readText(row, 'kind'), id: readText(row, 'id'), bytes, revision: Number(row['revision']) }
}
