import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { IncompatibleVersion } from '../../src/core/errors.ts'
import { areMigrated, migrate, PostgresError, type SqlDriver } from '../../src/postgres/index.ts'
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

/** Resolves when a statement like this waits for a lock. Each look is a round trip. */
async function untilWaiting(statement: string): Promise<void> {
  const text =
    "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1 AND pid <> pg_backend_pid()"
  while ((await pool.query(text, [statement])).rows.length === 0);
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

test('an older release works with steps that only add, and leaves what they have made', async () => {
  const named = (name: string) =>
    `CREATE OR REPLACE FUNCTION ${schema}.release() RETURNS text LANGUAGE sql AS $$ SELECT '${name}' $$;`
  const older = { ...migrations(2), steps: [...stepsOf(1), named('older')] } as const
  const newer = { ...migrations(3), steps: [...stepsOf(1), 'NULL;', named('newer')], lastMandatory: 2 } as const
  await migrate(pool, older)
  await migrate(pool, newer)
  await migrate(pool, older)
  expect(await areMigrated(pool, older)).toBe(true)
  expect((await pool.query(`SELECT ${schema}.release() AS release`)).rows).toEqual([{ release: 'newer' }])
  // A release that cannot work with step 2 still refuses.
  await expect(migrate(pool, migrations(1))).rejects.toThrow('step 2, this release knows 1')
  await migrate(pool, newer)
})

test('a schema that the newest release has made is one that an older release can work with', async () => {
  await migrate(pool, { ...migrations(4), lastMandatory: 2 })
  await migrate(pool, migrations(2))
  // So asked releases that knew no other kind of steps.
  const asked = `SELECT max(version) AS version FROM ${schema}.migrations WHERE part = 'logbooks'`
  expect((await pool.query(asked)).rows).toEqual([{ version: 2 }])
})

test('a function is replaced while it runs: neither waits, and the call ends as it began', async () => {
  const step = (name: string) => `
    CREATE OR REPLACE FUNCTION ${schema}.work() RETURNS text LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(1, 15); RETURN '${name}'; END $$;`
  await migrate(pool, { ...migrations(1), steps: [step('older')] })
  const [holder, caller] = [await pool.connect(), await pool.connect()]
  const work = async () => (await caller.query(`SELECT ${schema}.work() AS name`)).rows[0]?.name
  expect(await work()).toBe('older')
  await holder.query('SELECT pg_advisory_lock(1, 15)')
  const working = work()
  await untilWaiting(`%${schema}.work()%`)
  await migrate(pool, { ...migrations(2), steps: ['NULL;', step('newer')] })
  await holder.query('SELECT pg_advisory_unlock(1, 15)')
  expect(await working).toBe('older')
  expect(await work()).toBe('newer')
  holder.release()
  caller.release()
})

test('a step and a transaction that have a table that the other one wants both go on', async () => {
  await migrate(pool, migrations(2))
  const user = await pool.connect()
  await user.query('BEGIN')
  await user.query(`LOCK TABLE ${schema}.step2 IN ROW EXCLUSIVE MODE`)
  const both = `ALTER TABLE ${schema}.step1 ADD COLUMN more int; ALTER TABLE ${schema}.step2 ADD COLUMN more int;`
  const migrating = migrate(pool, { ...migrations(2), steps: [...stepsOf(2), both] })
  await untilWaiting(`%${schema}.step2 ADD COLUMN%`)
  // The step has the first table now, and waits for the second one.
  await user.query(`INSERT INTO ${schema}.step1 VALUES (1)`)
  await user.query('COMMIT')
  user.release()
  await migrating
  expect((await pool.query(`SELECT n, more FROM ${schema}.step1`)).rows).toEqual([{ n: 1, more: null }])
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
