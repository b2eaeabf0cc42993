/** Reads the board over the connections of a pool. Its only writes register and unregister participants. */
import { encode } from '../../../core/codec.ts'
import { NotConnected } from '../../../core/errors.ts'
import { decodeText, encodeText, type SqlDriver } from '../../../postgres/index.ts'
import type { Cancellation, Entity, JobStatus, StoredJob, TrashedEntry, UnreadableJob } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import { readDependencies } from './dependency-rows.ts'
import {
  jobId,
  jobNumbers,
  parseEntity,
  parseStoredJob,
  parseTrashedEntry,
  STORED_COLUMNS,
  textDigest,
} from './records.ts'
import type { PostgresSession } from './session.ts'

export interface PostgresReaderOptions {
  readonly driver: SqlDriver
  readonly schema: string
  readonly board: number
}

/**
 * The statement that reads entries of the trash. It names all types: a role that may create operators in `public` could have its
 * own `float8 * integer` called otherwise.
 */
const TRASH_QUERY = `
SELECT *, extract(epoch FROM trashed_at)::float8 * 1000::float8 AS at FROM @.trash
WHERE board = $1 AND id = ANY($2::bigint[]) ORDER BY trashed_at, id`

export class BoardReader {
  readonly #driver: SqlDriver
  readonly #schema: string
  readonly #board: number

  constructor({ driver, schema, board }: PostgresReaderOptions) {
    this.#driver = driver
    this.#schema = schema
    this.#board = board
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    const { rows } = await this.#query(
      `SELECT ${STORED_COLUMNS} FROM @.jobs WHERE board + 0 = $1 AND id = ANY($2::bigint[])`,
      [jobNumbers(ids)],
    )
    const found = new Map(rows.map((row) => [jobId(String(row['id'])), row]))
    return ids.map((id) => {
      const row = found.get(id)
      return row && parseStoredJob(row)
    })
  }

  /** Returns the status of those jobs that are no longer on the board. */
  async statusOf(jobs: readonly number[]): Promise<ReadonlyMap<number, 'gone' | 'trashed'>> {
    const { rows } = await this.#query(
      `SELECT a.id, t.id IS NOT NULL AS trashed FROM pg_catalog.unnest($2::bigint[]) AS a(id)
LEFT JOIN @.trash t ON t.board = $1 AND t.id = a.id
WHERE NOT EXISTS (SELECT FROM @.jobs j WHERE j.board = $1 AND j.id = a.id)`,
      [jobs],
    )
    return new Map(rows.map((row) => [Number(row['id']), row['trashed'] === true ? 'trashed' : 'gone']))
  }

  /** Follows jobs for a session, and returns the status of each; undefined if the session has ended. */
  async follow(session: PostgresSession, ids: readonly string[]): Promise<JobStatus[] | undefined> {
    const text = 'SELECT @.follow($1, $2, $3) AS statuses'
    const { rows } = await this.#query(text, [session.id, jobNumbers(ids)])
    const statuses = rows[0]?.['statuses']
    return Array.isArray(statuses) ? statuses.map(toJobStatus) : undefined
  }

  async unfollow(session: PostgresSession, ids: readonly string[]): Promise<void> {
    await this.#query('SELECT @.unfollow($1, $2, $3)', [session.id, jobNumbers(ids)])
  }

  async owner(id: string): Promise<string | undefined> {
    const { rows } = await this.#query('SELECT who FROM @.jobs WHERE board = $1 AND id = $2 AND session IS NOT NULL', [
      ...jobNumbers([id]),
    ])
    return rows[0] && decodeText(String(rows[0]['who']))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    const text =
      'SELECT cancelled_by, cancel_reason FROM @.jobs WHERE board = $1 AND id = $2 AND cancelled_by IS NOT NULL'
    const [row] = (await this.#query(text, jobNumbers([id]))).rows
    return row && { who: decodeText(String(row['cancelled_by'])), reason: decodeText(String(row['cancel_reason'])) }
  }

  async dependencies(
    id: string,
  ): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
    return readDependencies(id, { driver: this.#driver, schema: this.#schema })
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    const [row] = (await this.#query(TRASH_QUERY, [jobNumbers([id])])).rows
    return row && parseTrashedEntry(row)
  }

  /** Returns the newest entry with this uuid. */
  async findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    const { rows } = await this.#query(
      `SELECT *, extract(epoch FROM trashed_at)::float8 * 1000::float8 AS at FROM @.trash
WHERE board = $1 AND uuid = $2 ORDER BY trashed_at DESC, id DESC LIMIT 1`,
      [uuid],
    )
    return rows[0] && parseTrashedEntry(rows[0])
  }

  /** Returns which entries the trash has and how large they are, oldest first. */
  async trashIndex(): Promise<{ readonly id: string; readonly bytes: number }[]> {
    const { rows } = await this.#query(`
SELECT id, pg_catalog.octet_length(body) + coalesce(pg_catalog.octet_length(life), 0) + coalesce(pg_catalog.octet_length(failure), 0) AS bytes
FROM @.trash WHERE board = $1 ORDER BY trashed_at, id`)
    return rows.map((row) => ({ id: String(row['id']), bytes: Number(row['bytes']) }))
  }

  /** Returns the entries that are still in the trash; an unreadable entry is returned as an error. */
  async trashPage(page: readonly { readonly id: string }[]): Promise<(TrashedEntry | Error)[]> {
    const { rows } = await this.#query(TRASH_QUERY, [page.map(({ id }) => id)])
    return rows.map((row) => {
      try {
        return parseTrashedEntry(row)
      } catch (cause) {
        return new Error(`trash entry ${jobId(String(row['id']))} is unreadable`, { cause })
      }
    })
  }

  // --- Participants -----------------------------------------------------------------------------------------------

  /** Registers an entity for as long as the session lasts. @throws Duplicate, NotConnected when the session is over */
  async register(entity: Entity, session: PostgresSession): Promise<void> {
    const { kind, name, instance, metadata } = entity
    const values = [textDigest(kind, name), encodeText(kind), encodeText(name), instance, encode(metadata, 'msgpack')]
    const { rows } = await this.#query(
      `
WITH living AS (
  SELECT id FROM @.sessions WHERE id = $7 FOR KEY SHARE
), registered AS (
  INSERT INTO @.entities AS e (board, key, kind, name, instance, metadata, session)
  SELECT $1::integer, $2::bytea, $3, $4, $5, $6::bytea, id FROM living
  ON CONFLICT (board, key) DO UPDATE SET instance = excluded.instance, metadata = excluded.metadata, session = excluded.session
    WHERE e.instance = excluded.instance OR NOT EXISTS (SELECT FROM @.sessions s WHERE s.id = e.session)
  RETURNING 1
)
SELECT EXISTS (SELECT FROM living) AS lives, EXISTS (SELECT FROM registered) AS registered`,
      [...values, session.id],
    )
    if (rows[0]?.['lives'] !== true) throw new NotConnected(`registering ${kind} ${name}: the session is over`)
    if (rows[0]['registered'] !== true) throw refusalError(`registering ${kind} ${name}`, { why: 'name' })
  }

  async unregister({ kind, name, instance }: Entity): Promise<void> {
    const text = 'DELETE FROM @.entities WHERE board = $1 AND key = $2 AND instance = $3'
    await this.#query(text, [textDigest(kind, name), instance])
  }

  async entities(kind: string): Promise<Entity[]> {
    const text = `SELECT e.* FROM @.entities e JOIN @.sessions s ON s.id = e.session
WHERE e.board = $1 AND e.kind = $2 ORDER BY e.name`
    const readMetadata = metadataReader()
    return (await this.#query(text, [encodeText(kind)])).rows.map((row) => parseEntity(row, readMetadata))
  }

  #query(text: string, values: readonly unknown[] = []) {
    return this.#driver.query(text.replaceAll('@', this.#schema), [this.#board, ...values])
  }
}

/** A status as the function `follow` returns it. */
function toJobStatus(status: unknown): JobStatus {
  if (!Array.isArray(status)) return status === 'trashed' ? 'trashed' : 'gone'
  const [claimed, cancelled, revision] = status
  return { claimed: claimed === true, cancelled: cancelled === true, revision: Number(revision) }
}
