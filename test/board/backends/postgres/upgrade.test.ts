/** Boards whose schema another release has made. `test/postgres` tests the steps and the indexes themselves, `bench -- upgrade` two releases side by side. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { boardMigrations } from '../../../../src/board/backends/postgres/store/schema.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { type Migrations, migrate, PostgresPool, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { count } from '../../../support/counts.ts'
import { createDatabase, type PostgresDatabase } from '../../../support/postgres-database.ts'
import { claimed, namesOn } from '../../jobs.ts'
import { functionsAsFormer, newSchema, postgresPlaceOn } from './boards.ts'
import { openTransaction } from './server-side.ts'

interface FormerFunction {
  readonly name: string
  readonly isCalled: boolean
  /** What follows CREATE FUNCTION, up to the result. */
  readonly head: string
}

/** Returns the functions of the older release, without their bodies. The file says how it is made. */
function readFormerFunctions(schema: string): FormerFunction[] {
  const lines = readFileSync(join(import.meta.dirname, 'former-functions.txt'), 'utf8').split('\n')
  return lines.flatMap((line) => {
    const [, star, name = '', rest] = /^([* ]) (\w+)(\(.*)$/.exec(line) ?? []
    if (star === undefined) return []
    return [{ name, isCalled: star === '*', head: `${schema}.${name}${rest}`.replaceAll('@', schema) }]
  })
}

/** Returns the step that makes functions with these heads, which do nothing. */
function stubs(functions: readonly FormerFunction[]): string {
  return functions
    .map(({ head }) => `CREATE FUNCTION ${head} LANGUAGE plpgsql AS $$ BEGIN RAISE 'former'; END $$;`)
    .join('\n')
}

/** The number of steps of the older release; the last one made its functions. */
const FORMER_STEPS = 22

let server: PostgresDatabase
let pool: PostgresPool

beforeAll(async () => {
  server = await createDatabase()
  pool = new PostgresPool(parsePostgresLocation(parseUri(server.uri, 'board')))
})

afterAll(async () => {
  await pool?.close()
  await server?.stop()
})

/** Returns the migrations of the older release, with these functions. */
function formerMigrations(schema: string, functions?: string): Migrations {
  const { steps } = boardMigrations(schema)
  return { schema, part: 'board', steps: [...steps.slice(0, FORMER_STEPS - 1), functions ?? functionsAsFormer(steps)] }
}

test('each function that the older release calls is replaced by one of this release, which takes the same calls', async () => {
  const schema = newSchema()
  const functions = readFormerFunctions(schema)
  await migrate(pool, formerMigrations(schema, stubs(functions)))
  await migrate(pool, boardMigrations(schema))
  const left = `SELECT DISTINCT proname AS name FROM pg_proc WHERE pronamespace = '${schema}'::regnamespace AND prosrc LIKE '%RAISE ''former''%'`
  const kept = new Set((await pool.query(left, [])).rows.map(({ name }) => name))
  const called = functions.filter(({ isCalled }) => isCalled)
  expect(called.length).toBeGreaterThan(30)
  expect(called.filter(({ name }) => kept.has(name))).toEqual([])
  // A call that relies on a default fits two functions of one name, and fails.
  const ambiguous = `SELECT proname FROM pg_proc WHERE pronamespace = '${schema}'::regnamespace
    GROUP BY proname HAVING count(*) > 1 AND max(pronargdefaults) > 0`
  expect((await pool.query(ambiguous, [])).rows).toEqual([])
})

test('a board of the older release gets all that a new board has', async () => {
  const [upgraded, created] = [newSchema(), newSchema()]
  await migrate(pool, formerMigrations(upgraded))
  await migrate(pool, boardMigrations(upgraded))
  await migrate(pool, boardMigrations(created))
  const read = async (schema: string) => {
    const columns = `SELECT table_name, column_name, data_type, column_default FROM information_schema.columns
      WHERE table_schema = '${schema}' ORDER BY 1, 2`
    const indexes = `SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = '${schema}' ORDER BY 1, 2`
    const rows = [...(await pool.query(columns, [])).rows, ...(await pool.query(indexes, [])).rows]
    return JSON.parse(JSON.stringify(rows).replaceAll(schema, 'schema'))
  }
  expect(await read(upgraded)).toEqual(await read(created))
})

test('the older release works with the schema of this one, and leaves it as it is', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  await board.post('flow', {}, { name: 'job' })
  const before = await place.query('SELECT part, version FROM @.migrations ORDER BY 1, 2')
  await migrate(pool, formerMigrations(place.schema, stubs(readFormerFunctions(place.schema))))
  expect(await place.query('SELECT part, version FROM @.migrations ORDER BY 1, 2')).toEqual(before)
  await (await claimed(board, 'job')).consume()
})

test('a board of the older release is upgraded beside a transaction that writes to it', async () => {
  await using place = await postgresPlaceOn(server.uri, { schema: newSchema() })
  await migrate(pool, formerMigrations(place.schema))
  await using writer = await openTransaction(place)
  const insert = `INSERT INTO jobs (board, uuid, name, priority, body) VALUES (0, '', '', 'NORMAL', '')`
  await writer.query(insert)
  const opening = place.open()
  for (let n = 0; n < 20; n += 1) await writer.query(insert)
  await writer.query('COMMIT')
  await using board = await opening
  await board.post('flow', {}, { name: 'job' })
  await (await claimed(board, 'job')).consume()
})

test('a board whose trash is in use starts without the index of the trash, and builds it afterwards', async () => {
  await using place = await postgresPlaceOn(server.uri)
  {
    await using _board = await place.open()
  }
  await place.query('DROP INDEX @.trash_by_uuid')
  await using writer = await openTransaction(place)
  await writer.query('DELETE FROM trash')
  await writer.query('LOCK TABLE trash IN ROW EXCLUSIVE MODE')
  await using board = await place.open()
  const job = await board.post('flow', {}, { name: 'job' })
  await (await claimed(board, 'job')).trash()
  const built = "SELECT FROM pg_index WHERE indisvalid AND indexrelid = to_regclass('@.trash_by_uuid')"
  const isBuilt = async () => (await place.query(built)).length > 0
  expect(await isBuilt()).toBe(false)
  expect(await board.findTrashed(job.uuid)).toMatchObject({ uuid: job.uuid })
  expect(await namesOn(board)).toEqual([])
  await writer.query('COMMIT')
  while (!(await isBuilt()));
  expect(await board.findTrashed(job.uuid)).toMatchObject({ uuid: job.uuid })
})

test('on a long board that still has the former index, the most urgent job is claimed first, before and after the new index is built', async () => {
  await using place = await postgresPlaceOn(server.uri)
  {
    await using former = await place.open()
    const waiting = Array.from({ length: count({ test: 2_000, long: 100_000 }) }, () => ({ flow: 'flow', store: {} }))
    await former.postMany(waiting)
    await former.post('flow', {}, { name: 'urgent', priority: 'VERY_HIGH' })
  }
  await place.query('DROP INDEX @.jobs_in_turn')
  await place.query('CREATE INDEX jobs_in_order ON @.jobs (board, rank, id, due_at)')
  await using writer = await openTransaction(place)
  await writer.query('LOCK TABLE jobs IN ROW EXCLUSIVE MODE')
  await using board = await place.open()
  const indexes = async () => {
    const text = `SELECT c.relname AS name FROM pg_index JOIN pg_class c ON c.oid = indexrelid
      WHERE indisvalid AND indrelid = '@.jobs'::regclass AND c.relname IN ('jobs_in_order', 'jobs_in_turn')`
    return (await place.query(text)).map(({ name }) => name)
  }
  const claimFirst = async () => {
    const [claim] = await board.claimNext({ max: 1 })
    await claim?.consume()
    return claim?.job.name
  }
  expect(await claimFirst()).toBe('urgent')
  expect(await indexes()).toEqual(['jobs_in_order'])
  await writer.query('COMMIT')
  while ((await indexes())[0] !== 'jobs_in_turn');
  await board.post('flow', {}, { name: 'urgent', priority: 'VERY_HIGH' })
  expect(await claimFirst()).toBe('urgent')
  while ((await indexes()).length > 1);
})
