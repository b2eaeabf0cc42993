/**
 * The statements. Each is a transaction of its own, and can be repeated safely when its answer was lost.
 *
 * **Fencing.** A write is an UPDATE of the flow's row that names its term, and the atoms are written only for rows that
 * the UPDATE has changed. An acquire updates the same row. Therefore, when two race, one waits for the other's commit
 * and then evaluates the row again: an acquire that comes second returns what was written, a write that comes second
 * changes nothing. Flows are updated in the order of their numbers, so that the groups of a former and a new owner do not
 * usually deadlock; if they do, Postgres aborts one after a second, and it is repeated.
 */

import { FINISHED_STATES } from '../../core/states.ts'
import { encodeText } from '../../postgres/index.ts'
import { type BookQuery, listQueryStates } from '../book-query.ts'

export interface Statements {
  /**
   * $1–$8: books, their names, flows, names, versions, runs, claims, books' metas; $9 empty meta, $10 states, $11 now.
   */
  readonly acquire: string
  /** $1 book, $2 flow: who has it. */
  readonly owner: string
  /** $1 flows' numbers. */
  readonly atoms: string
  /** The function `begin_flows`; see functions/writing.sql for the parameters of both. */
  readonly begin: string
  /** The function `write_flows`. */
  readonly write: string
  /** $1 flows' numbers. */
  readonly terms: string
  readonly createBook: string
  readonly createFlow: string
  readonly readBook: string
  readonly changeBook: string
  /** $1 book, $2 instant or null. */
  readonly destroyBook: string
  readonly book: string
}

const FLOW_COLUMNS = 'id, uuid, name, version, state, meta, states, run, claim, term, writes, created_at, updated_at'
const ATOM_COLUMNS = 'flow, name, kind, version, state, intention, body, states, created_at, updated_at'

export function statements(schema: string): Statements {
  const [books, flows, atoms] = [`${schema}.books`, `${schema}.flows`, `${schema}.atoms`]
  return {
    acquire: `
WITH requested AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bytea[])
    WITH ORDINALITY AS a(book, book_name, uuid, name, version, run, claim, book_meta, at)
), made AS (
  INSERT INTO ${books} AS b (uuid, name, meta, created_at, updated_at)
  SELECT DISTINCT ON (book) book, book_name, book_meta, $11::timestamptz, $11 FROM requested ORDER BY book, at
  ON CONFLICT (uuid) DO UPDATE SET name = b.name
  RETURNING id, uuid
), taken AS (
  INSERT INTO ${flows} AS f (book, uuid, name, version, state, meta, states, run, claim, term, created_at, updated_at)
  SELECT m.id, a.uuid, a.name, a.version, 'PENDING', $9::bytea, $10::jsonb, a.run, a.claim, 1, $11, $11
  FROM requested a JOIN made m ON m.uuid = a.book ORDER BY m.id, a.uuid
  ON CONFLICT (book, uuid) DO UPDATE
    SET run = excluded.run, claim = excluded.claim, term = f.term + 1, updated_at = excluded.updated_at
    WHERE f.run < excluded.run OR (f.run = excluded.run AND f.claim = excluded.claim)
  RETURNING ${columns('f', FLOW_COLUMNS)}, f.book AS book
)
SELECT a.at, ${columns('t', FLOW_COLUMNS)} FROM taken t JOIN made m ON m.id = t.book
JOIN requested a ON a.book = m.uuid AND a.uuid = t.uuid`,

    owner: `
SELECT f.run, f.claim FROM ${flows} f JOIN ${books} b ON b.id = f.book WHERE b.uuid = $1 AND f.uuid = $2`,

    atoms: `SELECT ${ATOM_COLUMNS} FROM ${atoms} WHERE flow = ANY($1::bigint[]) ORDER BY flow, position`,

    begin: `SELECT o_position AS position, o_flow AS id FROM ${schema}.begin_flows(${arrays(
      'text text bytea text text text bigint text bigint text bytea text float8 float8',
      ATOM_TYPES,
    )})`,

    write: `SELECT o_flow AS id, o_term AS term FROM ${schema}.write_flows(${arrays(
      'bigint bigint text bigint text bytea text float8',
      ATOM_TYPES,
    )})`,

    terms: `SELECT id, run, term, writes FROM ${flows} WHERE id = ANY($1::bigint[])`,

    createBook: `
INSERT INTO ${books} (uuid, name, meta, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (uuid) DO NOTHING RETURNING id`,

    createFlow: `
WITH made AS (
  INSERT INTO ${books} AS b (uuid, name, meta, created_at, updated_at) VALUES ($1, $2, $3, $9::timestamptz, $9)
  ON CONFLICT (uuid) DO UPDATE SET name = b.name RETURNING id
)
INSERT INTO ${flows} (book, uuid, name, version, state, meta, states, run, claim, term, created_at, updated_at)
SELECT id, $4, $5, $6, 'PENDING', $7, $8::jsonb, 0, '', 0, $9, $9 FROM made
ON CONFLICT (book, uuid) DO NOTHING RETURNING id`,

    readBook: `
SELECT b.uuid AS book_uuid, b.name AS book_name, b.meta AS book_meta, b.created_at AS book_created_at,
  b.updated_at AS book_updated_at, ${prefixedColumns('f', FLOW_COLUMNS)}, ${prefixedColumns('a', ATOM_COLUMNS)}
FROM ${books} b LEFT JOIN ${flows} f ON f.book = b.id LEFT JOIN ${atoms} a ON a.flow = f.id
WHERE b.uuid = $1 ORDER BY f.created_at, f.uuid, a.position`,

    changeBook: `
UPDATE ${books} SET meta = $2, updated_at = $3, revision = revision + 1 WHERE uuid = $1 AND revision = $4 RETURNING id`,

    destroyBook: `
DELETE FROM ${books} b WHERE b.uuid = $1 AND ($2::timestamptz IS NULL OR (b.updated_at <= $2
  AND NOT EXISTS (SELECT FROM ${flows} f WHERE f.book = b.id AND f.updated_at > $2)))
RETURNING id`,

    book: `SELECT uuid, name, meta, revision, created_at, updated_at FROM ${books} WHERE uuid = $1`,
  }
}

/** Returns the statement for a page of books. They are in the order of their UUIDs' bytes, as in the index. */
export function listStatement(schema: string, query: BookQuery): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const parameter = (value: unknown) => `$${values.push(value)}`
  const flows = (condition: string) => `EXISTS (SELECT FROM ${schema}.flows f WHERE f.book = b.id${condition})`
  const conditions: string[] = []
  const { after, name, finished, unchangedSince, limit } = query
  const states = listQueryStates(query)
  if (after !== undefined) conditions.push(`b.uuid > ${parameter(encodeText(after))}`)
  if (name !== undefined) conditions.push(`b.name = ${parameter(encodeText(name))}`)
  if (states) conditions.push(flows(` AND f.state = ANY(${parameter(states)}::text[])`))
  if (finished !== undefined) {
    const unfinished = flows(` AND f.state <> ALL(${parameter(FINISHED_STATES)}::text[])`)
    conditions.push(`${finished ? '' : 'NOT '}(${flows('')} AND NOT ${unfinished})`)
  }
  if (unchangedSince) {
    const since = parameter(unchangedSince.toISOString())
    conditions.push(
      `b.updated_at <= ${since}::timestamptz AND NOT ${flows(` AND f.updated_at > ${since}::timestamptz`)}`,
    )
  }
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  const columns = 'b.uuid, b.name, b.meta, b.created_at, b.updated_at'
  const text = `SELECT ${columns} FROM ${schema}.books b ${where} ORDER BY b.uuid LIMIT ${parameter(limit ?? null)}`
  return { text, values }
}

/** The types of the columns of atoms, as {@link toAtomParameters} returns them. */
const ATOM_TYPES = 'bigint boolean text integer text text text text bytea text float8 float8'

/** Returns array parameters of these types. They come as text: no driver encodes them element by element, or has to know their types. */
function arrays(...types: readonly string[]): string {
  const all = types.flatMap((each) => each.split(' '))
  return all.map((type, index) => `$${index + 1}::text::${type}[]`).join(', ')
}

function columns(table: string, names: string): string {
  return names.replace(/\w+/g, (name) => `${table}.${name}`)
}

/** Returns columns as `f.uuid AS f_uuid` and so on: several tables have columns of one name. */
function prefixedColumns(table: string, names: string): string {
  return names.replace(/\w+/g, (name) => `${table}.${name} AS ${table}_${name}`)
}
