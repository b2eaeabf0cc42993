/** The participants of a board, each shown for as long as its session lasts. */
import { encode } from '../../../core/codec.ts'
import { NotConnected } from '../../../core/errors.ts'
import { encodeText } from '../../../core/texts.ts'
import type { BackendEntities, Entity } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext } from './store/change-log.ts'
import { readText, toEntity } from './store/rows.ts'

/** The condition that the session of an entity exists: a board registers no entity without a session. */
const LIVES = 'EXISTS (SELECT 1 FROM sessions WHERE id = session)'

export class EntitySteps {
  readonly #context: BoardContext

  constructor(context: BoardContext) {
    this.#context = context
  }

  /** @throws Duplicate while another living instance has the name; NotConnected when the session has ended */
  register({ kind, name, instance, metadata }: Entity, session: number): void {
    const { db, board } = this.#context
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
    const { db, board } = this.#context
    const sql = 'DELETE FROM entities WHERE board = ? AND kind = ? AND name = ? AND instance = ?'
    db.run(sql, board, encodeText(kind), encodeText(name), encodeText(instance))
  }

  list(kind: string): Entity[] {
    const { db, board } = this.#context
    const readMetadata = metadataReader()
    const rows = db.all(
      `SELECT * FROM entities WHERE board = ? AND kind = ? AND ${LIVES} ORDER BY name`,
      board,
      encodeText(kind),
    )
    return rows.map((row) => toEntity(row, readMetadata))
  }
}

export class SqliteEntities implements BackendEntities {
  readonly #board: SqliteBoard<{ readonly entities: EntitySteps }>

  constructor(board: SqliteBoard<{ readonly entities: EntitySteps }>) {
    this.#board = board
  }

  async register(entity: Entity): Promise<void> {
    const { id } = this.#board.requireSession(`registering ${entity.kind} ${entity.name}`)
    return this.#board.step(({ entities }) => entities.register(entity, id))
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#board.open) await this.#board.step(({ entities }) => entities.unregister(entity))
  }

  async list(kind: string): Promise<Entity[]> {
    return this.#board.read(({ entities }) => entities.list(kind))
  }
}
