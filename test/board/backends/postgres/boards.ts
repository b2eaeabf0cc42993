/** Places for boards on Postgres, each a schema of its own, with what tests do to them behind the boards' backs. */
import { randomUUID } from 'node:crypto'
import { type JobBoard, type OpenBoardOptions, openBoard } from '../../../../src/board/index.ts'
import { Job } from '../../../../src/board/jobs/job.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresPool, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import type { BoardBackend, BoardPlace } from '../../../contract/board.ts'
import { EVERYTHING, viewing } from '../../boards.ts'

export interface PostgresPlace extends BoardPlace {
  readonly schema: string
  /** Of the board, through the server itself. */
  readonly uri: string
  /** Through a proxy, or with parameters (`&sessionTimeout=2s`). */
  openAt(port: number, options?: OpenBoardOptions & { parameters?: string }): Promise<JobBoard>
  /** As another program would ask, with `@` for the schema. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>
  sessionOf(board: JobBoard): Promise<number>
}

/**
 * Many boards in one schema: making one takes longer than most tests do.
 *
 * @param options.window how many jobs a view holds, and how many bytes of postings
 */
export function postgresBoards(
  server: () => { readonly uri: string },
  { window, windowBytes }: { readonly window?: number; readonly windowBytes?: number } = {},
): BoardBackend {
  const schema = newSchema()
  const size = { ...(window === undefined ? {} : { window }), ...(windowBytes === undefined ? {} : { windowBytes }) }
  const parameters = Object.entries(size)
    .map(([name, value]) => `&${name}=${value}`)
    .join('')
  return {
    name: `postgres:${parameters}`,
    capabilities: EVERYTHING,
    place: () => postgresPlaceOn(server().uri, { schema, parameters }),
  }
}

/** Returns a name for a schema that no test has used. */
export function newSchema(): string {
  return `test_${randomUUID().replaceAll('-', '')}`
}

/** Makes a place for one board in a schema of its server that other tests use, too: making one takes longer than most tests do. */
export function sharedPlaceOn(server: string): Promise<PostgresPlace> {
  return postgresPlaceOn(server, { schema: 'tests' })
}

/** Schemas that a test has used, with empty tables, by the URI of their server: making one takes longer than most tests do with it. */
const emptySchemas = new Map<string, string[]>()

/** Matches statements after which other tests must not use the schema. */
/** Returns the step that makes the functions of this release, in place of those of a former one: some read columns that the tables do not have yet. */
export function functionsAsFormer(steps: readonly string[]): string {
  return `PERFORM pg_catalog.set_config('check_function_bodies', 'off', true); ${steps.at(-1)}`
}

const ALTERS_SCHEMA = /\b(CREATE|ALTER|DROP|GRANT)\b/

/**
 * Makes a place for one board, by default in a schema that no other test uses meanwhile.
 *
 * @param server its URI, as `startPostgres` tells it
 */
export async function postgresPlaceOn(
  server: string,
  options: { readonly schema?: string; readonly parameters?: string } = {},
): Promise<PostgresPlace> {
  const { schema = emptySchemas.get(server)?.pop() ?? newSchema(), parameters: usual = '' } = options
  let isAltered = false
  const name = randomUUID()
  const uri = `${server}?schema=${schema}&board=${name}${usual}`
  const observer = new PostgresPool(parsePostgresLocation(parseUri(`${server}?poolSize=2`, 'board')))
  const query: PostgresPlace['query'] = async (text, values = []) => {
    isAltered ||= ALTERS_SCHEMA.test(text)
    return (await observer.query(text.replaceAll('@', schema), [...values])).rows
  }
  const sessionOf = async (board: JobBoard) => {
    const probe = randomUUID()
    await using _probe = await board.registerEntity({ kind: 'probe', name: probe, metadata: {} })
    const [row] = await query('SELECT session FROM @.entities WHERE name = $1', [probe])
    return Number(row?.['session'])
  }
  return {
    schema,
    uri,
    query,
    sessionOf,
    open: (options) => viewing(openBoard(uri, options)),
    openUnviewed: (options) => openBoard(uri, options),
    openAt: (port, { parameters = '', ...options } = {}) => {
      return viewing(openBoard(`${uri.replace(/:\d+\//, `:${port}/`)}${parameters}`, options))
    },
    expire: async (board) => {
      // What a taker does to one that hangs: its backend is ended, and what it held is free before it can attach again.
      const session = await sessionOf(board)
      await query('SELECT pg_terminate_backend(backend), @.end_session(id) FROM @.sessions WHERE id = $1', [session])
    },
    putRaw: async (bytes) => {
      const [row] = await query(
        `WITH made AS (
          INSERT INTO @.jobs (board, uuid, name, priority, body) SELECT id, '', '', 'NORMAL', $1 FROM @.boards WHERE name = $2 RETURNING board, id
        )
        SELECT id, @.log_change(board, 'posted', ARRAY[id]) FROM made`,
        [Buffer.from(bytes), name],
      )
      return `job${String(row?.['id']).padStart(10, '0')}`
    },
    removeRaw: async (job) => {
      const id = Number(Job.entryFor(job).id?.slice('job'.length))
      await query(
        `WITH gone AS (DELETE FROM @.jobs WHERE id = $1 RETURNING board, id)
        SELECT @.log_change(board, 'consumed', ARRAY[id]) FROM gone`,
        [id],
      )
    },
    beginAnew: async () => {
      await query('DELETE FROM @.jobs WHERE board = (SELECT id FROM @.boards WHERE name = $1)', [name])
      await query('DELETE FROM @.boards WHERE name = $1', [name])
      await query('ALTER SEQUENCE @.fences RESTART')
    },
    [Symbol.asyncDispose]: async () => {
      const isReusable = options.schema === undefined && !isAltered && (await emptyTables(observer, schema))
      if (isReusable) emptySchemas.set(server, [...(emptySchemas.get(server) ?? []), schema])
      await observer.close()
    },
  }
}

/** Deletes all rows of the schema's tables. Returns false if the server does not answer, or if no board was opened. */
async function emptyTables(observer: PostgresPool, schema: string): Promise<boolean> {
  const tables =
    'SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = $2 AND relname <> $3'
  try {
    const { rows } = await observer.query(tables, [schema, 'r', 'migrations'])
    if (rows.length === 0) return false
    const deleting = rows.map(({ relname }) => `DELETE FROM ${schema}.${String(relname)};`).join('\n')
    // As a replica the server does not check foreign keys: the order of the tables does not matter.
    await observer.query(`DO $$ BEGIN SET LOCAL session_replication_role = replica;\n${deleting}\nEND $$`, [])
    return true
  } catch {
    return false
  }
}
