import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { IncompatibleVersion } from '../../src/core/errors.ts'
import { migrate, PostgresError, type SqlDriver } from '../../src/postgres/index.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

let server: PostgresServer
let pool: pg.Pool
let schema: string

beforeAll(async () => {
  server = await startPostgres()
  pool = new pg.Pool({ connectionString: server.uri })
  pool.on('error', () => undefined)
})

afterAll(async () => {
  await pool?.end()
  await server?.stop()
})

beforeEach(() => {
  schema = `test_${randomUUID().replaceAll('-', '')}`
})

const stepsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => `CREATE TABLE ${schema}.step${index + 1} (n int);`)

const migrations = (count: number) => ({ schema, part: 'logbooks', steps: stepsOf(count) }) as const

async function tables(): Promise<string[]> {
  const text = `SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1`
  const { rows } = await pool.query(text, [schema])
  return rows.map(({ table_name: name }) => String(name))
}

test('many that start at once do each step once', async () => {
  // Each on connections of its own, as processes are.
  const others = Array.from({ length: 8 }, () => new pg.Pool({ connectionString: server.uri, max: 1 }))
  await Promise.all(others.map((driver) => migrate(driver, migrations(5))))
  await Promise.all(others.map((driver) => driver.end()))
  expect(await tables()).toEqual(['migrations', 'step1', 'step2', 'step3', 'step4', 'step5'])
  const { rows } = await pool.query(`SELECT version FROM ${schema}.migrations ORDER BY version`)
  expect(rows.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5])
})

test('a newer release goes on where an older one was, and the older one refuses what it does not know', async () => {
  await migrate(pool, migrations(2))
  await migrate(pool, migrations(4))
  expect(await tables()).toContain('step4')
  const refusal: unknown = await migrate(pool, migrations(2)).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(IncompatibleVersion)
  expect(String(refusal)).toContain('step 4, this release knows 2')
})

test('a step that fails leaves nothing behind, and is done again', async () => {
  const broken = { ...migrations(2), steps: [...stepsOf(1), `CREATE TABLE ${schema}.half (n int); SELECT 1/0;`] }
  await expect(migrate(pool, broken)).rejects.toThrow()
  expect(await tables()).toEqual(['migrations', 'step1'])
  await migrate(pool, migrations(2))
  expect(await tables()).toEqual(['migrations', 'step1', 'step2'])
})

test('a schema that is up to date takes one look, and no right to make anything', async () => {
  await migrate(pool, migrations(1))
  const user = `reader_${schema}`.slice(0, 60)
  await pool.query(`CREATE ROLE ${user} LOGIN`)
  await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${user}`)
  await pool.query(`GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${user}`)
  const limited = new pg.Pool({ connectionString: server.uri.replace('postgres@', `${user}@`) })
  const asked: string[] = []
  const driver: SqlDriver = {
    query: (text, values) => {
      asked.push(text)
      return limited.query(text, values)
    },
  }
  try {
    await migrate(driver, migrations(1))
    expect(asked.filter((text) => text.startsWith('DO'))).toEqual([])
    await expect(migrate(driver, migrations(2))).rejects.toThrow('permission denied')
  } finally {
    await limited.end()
  }
})

test('a step that waits for a table keeps nobody else waiting, and is done when the table is free', async () => {
  await migrate(pool, migrations(1))
  const changing = { ...migrations(1), steps: [...stepsOf(1), `ALTER TABLE ${schema}.step1 ADD COLUMN more int;`] }
  const user = await pool.connect()
  await user.query('BEGIN')
  await user.query(`SELECT FROM ${schema}.step1`)
  const triedTwice = createDeferred()
  let tries = 0
  const driver: SqlDriver = {
    query: (text, values) => {
      if (text.includes('ADD COLUMN')) tries += 1
      if (tries === 2) triedTwice.resolve()
      return pool.query(text, values)
    },
  }
  const migrating = migrate(driver, changing)
  await triedTwice.promise
  // It would wait behind the step for as long as the transaction is open.
  await pool.query(`SELECT FROM ${schema}.step1`)
  await user.query('COMMIT')
  user.release()
  await migrating
  const { rows } = await pool.query(`SELECT more FROM ${schema}.step1`)
  expect(rows).toEqual([])
})

test('a step whose tables are never free fails with what to do', async () => {
  await migrate(pool, migrations(1))
  const changing = { ...migrations(1), steps: [...stepsOf(1), `ALTER TABLE ${schema}.step1 ADD COLUMN more int;`] }
  const user = await pool.connect()
  await user.query('BEGIN')
  await user.query(`SELECT FROM ${schema}.step1`)
  const refusal: unknown = await migrate(pool, changing, { limitMs: 1 }).catch((error: unknown) => error)
  await user.query('ROLLBACK')
  user.release()
  expect(refusal).toBeInstanceOf(PostgresError)
  expect(refusal).toMatchObject({
    message: expect.stringContaining(`need migration step 2, but other transactions use its tables`),
    retryable: true,
  })
})
