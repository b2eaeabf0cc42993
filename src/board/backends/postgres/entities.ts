/** Participants, such as conductors, that are registered for as long as a session lasts. */
import { encode } from '../../../core/codec.ts'
import { NotConnected } from '../../../core/errors.ts'
import { decodeText, encodeText, type Row } from '../../../postgres/index.ts'
import type { BackendEntities, Entity } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import type { PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'
import { readBytes, textDigest, tryDecode } from './store/rows.ts'

const REGISTER = `
WITH living AS (
  SELECT id FROM @.sessions WHERE id = $7 FOR KEY SHARE
), registered AS (
  INSERT INTO @.entities AS e (board, key, kind, name, instance, metadata, session)
  SELECT $1::integer, $2::bytea, $3, $4, $5, $6::bytea, id FROM living
  ON CONFLICT (board, key) DO UPDATE SET instance = excluded.instance, metadata = excluded.metadata, session = excluded.session
    WHERE e.instance = excluded.instance OR NOT EXISTS (SELECT FROM @.sessions s WHERE s.id = e.session)
  RETURNING 1
)
SELECT EXISTS (SELECT FROM living) AS is_alive, EXISTS (SELECT FROM registered) AS registered`

export class PostgresEntities implements BackendEntities {
  readonly #board: PostgresBoard
  readonly #registering = new Set<Promise<void>>()

  constructor(board: PostgresBoard) {
    this.#board = board
  }

  async register(entity: Entity): Promise<void> {
    const registered = this.#register(entity)
    const done = registered.catch(() => undefined).finally(() => this.#registering.delete(done))
    this.#registering.add(done)
    await registered
  }

  async unregister({ kind, name, instance }: Entity): Promise<void> {
    if (!this.#board.isOpen) return
    const text = 'DELETE FROM @.entities WHERE board = $1 AND key = $2 AND instance = $3'
    await this.#board.ask(`unregistering ${kind} ${name}`, text, [textDigest(kind, name), instance])
  }

  async list(kind: string): Promise<Entity[]> {
    // Queries use several connections, so entities whose registration is pending are visible only after it.
    await Promise.all(this.#registering)
    const text = `SELECT e.* FROM @.entities e JOIN @.sessions s ON s.id = e.session
WHERE e.board = $1 AND e.kind = $2 ORDER BY e.name`
    const rows = await this.#board.ask(`listing every ${kind}`, text, [encodeText(kind)])
    const readMetadata = metadataReader()
    return rows.map((row) => toEntity(row, readMetadata))
  }

  /** @throws Duplicate, NotConnected when the session is over */
  #register({ kind, name, instance, metadata }: Entity): Promise<void> {
    const what = `registering ${kind} ${name}`
    return translateErrors(what, async () => {
      const { id } = this.#board.requireSession(what)
      const names = [textDigest(kind, name), encodeText(kind), encodeText(name)]
      const [row] = await this.#board.query(REGISTER, [...names, instance, encode(metadata, 'msgpack'), id])
      if (row?.['is_alive'] !== true) throw new NotConnected(`${what}: the session is over`)
      if (row['registered'] !== true) throw refusalError(what, { why: 'name' })
    })
  }
}

function toEntity(row: Row, readMetadata: ReturnType<typeof metadataReader>): Entity {
  return {
    kind: decodeText(String(row['kind'])),
    name: decodeText(String(row['name'])),
    instance: String(row['instance']),
    metadata: readMetadata(tryDecode(readBytes(row, 'metadata'))),
  }
}
