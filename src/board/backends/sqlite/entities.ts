/** The participants of a board, each shown for as long as its session lasts. */
import { encode } from '../../../core/codec.ts'
import { NotConnected } from '../../../core/errors.ts'
import { encodeText } from '../../../core/texts.ts'
import type { Entity } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import type { BoardPlace } from './changes.ts'
import { readText, toEntity } from './rows.ts'

/** An entity without a session is not one that a board has registered. */
const LIVES = 'EXISTS (SELECT 1 FROM sessions WHERE id = session)'

export class Entities {
  readonly #place: BoardPlace

  constructor(place: BoardPlace) {
    this.#place = place
  }

  /** @throws Duplicate while another living instance has the name; NotConnected when the session has ended */
  register({ kind, name, instance, metadata }: Entity, session: number): void {
    const { db, board } = this.#place
    if (!db.get('SELECT 1 FROM sessions WHERE id = ?', session))
      throw new NotConnected(`registering ${kind} ${name}: the session is over`)
    const key = [board, encodeText(kind), encodeText(name)] as const
    const living = db.get(
      `SELECT instance FROM entities WHERE board = ? AND kind = ? AND name = ? AND ${LIVES}`,
      ...key,
    )
    if (living && readText(living, 'instance') !== instance)
      throw refusalError(`registering ${kind} ${name}`, { why: 'name' })
    const sql =
      'INSERT OR REPLACE INTO entities (board, kind, name, instance, metadata, session) VALUES (?, ?, ?, ?, ?, ?)'
    db.run(sql, ...key, encodeText(instance), encode(metadata, 'msgpack'), session)
  }

  unregister({ kind, name, instance }: Entity): void {
    const { db, board } = this.#place
    const sql = 'DELETE FROM entities WHERE board = ? AND kind = ? AND name = ? AND instance = ?'
    db.run(sql, board, encodeText(kind), encodeText(name), encodeText(instance))
  }

  list(kind: string): Entity[] {
    const { db, board } = this.#place
    const readMetadata = metadataReader()
    const rows = db.all(
      `SELECT * FROM entities WHERE board = ? AND kind = ? AND ${LIVES} ORDER BY name`,
      board,
      encodeText(kind),
    )
    return rows.map((row) => toEntity(row, readMetadata))
  }
}
