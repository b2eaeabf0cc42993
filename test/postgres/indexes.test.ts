import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { parseUri } from '../../src/core/uri.ts'
import { finishIndexes, type Migrations, migrate, parsePostgresLocation } from '../../src/postgres/index.ts'
import { createDatabase, type PostgresDatabase } from '../support/postgres-database.ts'
import { startTransactionPooler } from '../support/transaction-pooler.ts'

let database: PostgresDatabase
let uri: string
let pool: pg.Pool
let schema: string
let numberOfSchemas = 0

beforeAll(async () => {
  database = await createDatabase()
  // The server itself: a pooler ends a statement whose client leaves.
  uri = `postgres://postgres@127.0.0.1:${database.port}${new URL(database.uri).pathname}`
  pool = new pg.Pool({ connectionString: uri })
  pool.on('error', () => undefined)
})

afterAll(async () => {
  await pool?.end()
  await database?.stop()
})

beforeEach(async () => {
  schema = `test_${++numberOfSchemas}`
  await migrate(pool, migrations())
})

const INDEX = { name: 'things_by_name', table: 'things', definition: '(name)' }

const migrations = (indexes: Migrations['indexes'] = []) =>
  ({ schema, part: 'board', steps: [`CREATE TABLE ${schema}.things (name text);`], indexes }) as const

/** Returns whether the index can be used; undefined if there is none. */
async function isValid(name: string = INDEX.name): Promise<boolean | undefined> {
  const text = 'SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)'
  return (await pool.query(text, [`${schema}.${name}`])).rows[0]?.indisvalid
}

/** Resolves when the index is valid. Each look is a round trip. */
async function untilValid(): Promise<void> {
  while ((await isValid()) !== true);
}

/** Resolves when so many builds wait for a transaction. Each look is a round trip. */
async function untilBuilding(count = 1): Promise<number[]> {
  const text = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'CREATE INDEX CONCURRENTLY%' || $1 || '%'`
  for (;;) {
    const { rows } = await pool.query(text, [`"${schema}"`])
    if (rows.length >= count) return rows.map(({ pid }) => Number(pid))
  }
}

function finish(signal = new AbortController().signal): Promise<void> {
  const location = parsePostgresLocation(parseUri(`${uri}?schema=${schema}`, 'board'))
  return finishIndexes([INDEX], { location, signal, pauses: { firstPauseMs: 5, maxPauseMs: 20 } })
}

/** Opens a transaction that has written to the table, as a caller's that has posted a job. */
async function openWriter() {
  const client = await pool.connect()
  await client.query('BEGIN')
  await client.query(`INSERT INTO ${schema}.things VALUES ('open')`)
  return {
    query: (text: string) => client.query(text),
    commit: async () => {
      await client.query('COMMIT')
      client.release()
    },
  }
}

test('a small table that nobody uses gets its index at once', async () => {
  await pool.query(`INSERT INTO ${schema}.things VALUES ('a')`)
  const builders = Array.from({ length: 4 }, () => migrate(pool, migrations([INDEX])))
  expect(await Promise.all(builders)).toEqual([[], [], [], []])
  expect(await isValid()).toBe(true)
})

test('a table that is large is left to the background', async () => {
  await pool.query(`INSERT INTO ${schema}.things SELECT repeat('x', 1000) || n FROM generate_series(1, 1200) AS n`)
  expect(await migrate(pool, migrations([INDEX]))).toMatchObject([INDEX])
  expect(await isValid()).toBeUndefined()
  await finish()
  expect(await isValid()).toBe(true)
})

test('while a transaction is open, processes start, write and change the schema; the index comes after it', async () => {
  const writer = await openWriter()
  expect(await migrate(pool, migrations([INDEX]))).toMatchObject([INDEX])
  const finished = finish()
  await untilBuilding()
  expect(await migrate(pool, migrations([INDEX]))).toMatchObject([INDEX])
  await pool.query(`INSERT INTO ${schema}.things VALUES ('other')`)
  await pool.query(`UPDATE ${schema}.things SET name = 'another'`)
  await writer.query(`INSERT INTO ${schema}.things VALUES ('more')`)
  const steps = [...migrations().steps, `CREATE TABLE ${schema}.further (n int);`]
  await migrate(pool, { ...migrations(), steps })
  await writer.commit()
  await finished
  expect(await isValid()).toBe(true)
  expect((await pool.query(`SELECT FROM ${schema}.things`)).rows).toHaveLength(3)
})

test('an invalid index that an interrupted build has left is dropped, and built again', async () => {
  const writer = await openWriter()
  const builder = finish()
  const [pid] = await untilBuilding()
  await pool.query('SELECT pg_cancel_backend($1)', [pid])
  // The next try waits, too: it drops the index, or builds it.
  while (!(await isWaitingToDrop()));
  expect(await isValid()).toBe(false)
  // A start does not take the invalid index for one.
  expect(await migrate(pool, migrations([INDEX]))).toMatchObject([{ ...INDEX, isInvalid: true }])
  await writer.commit()
  await builder
  expect(await isValid()).toBe(true)
})

async function isWaitingToDrop(): Promise<boolean> {
  const text = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DROP INDEX CONCURRENTLY%' || $1 || '%'`
  return (await pool.query(text, [`"${schema}"`])).rows.length > 0
}

test('one process builds, the others wait for it without a lock of a table; if it dies, another one builds', async () => {
  const writer = await openWriter()
  const builders = Array.from({ length: 4 }, () => finish())
  const [pid] = await untilBuilding()
  // Each of the others looks several times meanwhile.
  for (let round = 0; round < 200; round += 1) expect(await untilBuilding()).toEqual([pid])
  await pool.query('SELECT pg_terminate_backend($1)', [pid])
  while (!(await isWaitingToDrop()));
  await writer.commit()
  await Promise.all(builders)
  expect(await isValid()).toBe(true)
  expect((await pool.query('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')).rows).toEqual([
    { deadlocks: '0' },
  ])
})

test('a process that ends leaves the build to the server', async () => {
  const writer = await openWriter()
  const controller = new AbortController()
  const builder = finish(controller.signal)
  await untilBuilding()
  controller.abort(new Error('closed'))
  await builder
  expect(await isValid()).toBe(false)
  await writer.commit()
  await untilValid()
})

test('a dump that is open all the time keeps only the last step of the build waiting', async () => {
  await pool.query(`INSERT INTO ${schema}.things VALUES ('a')`)
  const dump = await pool.connect()
  await dump.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await dump.query(`SELECT FROM ${schema}.things`)
  const builder = finish()
  await untilBuilding()
  await pool.query(`INSERT INTO ${schema}.things VALUES ('b')`)
  await dump.query('COMMIT')
  dump.release()
  await builder
  expect(await isValid()).toBe(true)
})

test('a role that does not own the table starts without the index, and leaves it to one that does', async () => {
  await pool.query(`CREATE ROLE ${schema} LOGIN`)
  await pool.query(`GRANT USAGE, CREATE ON SCHEMA ${schema} TO ${schema}`)
  await pool.query(`GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA ${schema} TO ${schema}`)
  const limited = new pg.Pool({ connectionString: uri.replace('postgres@', `${schema}@`) })
  try {
    expect(await migrate(limited, migrations([INDEX]))).toEqual([])
    expect(await isValid()).toBeUndefined()
    expect(await migrate(pool, migrations([INDEX]))).toEqual([])
    expect(await isValid()).toBe(true)
  } finally {
    await limited.end()
    await pool.query(`DROP OWNED BY ${schema}; DROP ROLE ${schema}`)
  }
})

test('an older release does not build an index that a newer release has removed', async () => {
  const newer = { ...migrations(), steps: [...migrations().steps, 'NULL;'], lastMandatory: 1 }
  await migrate(pool, newer)
  expect(await migrate(pool, migrations([INDEX]))).toEqual([])
  expect(await isValid()).toBeUndefined()
})

test('steps and indexes are done over a pooler that gives each transaction another connection', async () => {
  // This pooler has one connection to a database of its own; so the schema has another name there.
  await using pooler = await startTransactionPooler(database.port)
  const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${pooler.port}/postgres` })
  await client.connect()
  schema = `test_pooled_${database.port}_${process.pid}`
  expect(await migrate(client, migrations([INDEX]))).toEqual([])
  const text = `SELECT FROM pg_indexes WHERE schemaname = '${schema}' AND indexname = '${INDEX.name}'`
  const found = await client.query(text)
  expect(found.rows).toHaveLength(1)
  await client.query(`DROP SCHEMA ${schema} CASCADE`)
  await client.end()
})

const REPLACING = { ...INDEX, replaces: 'things_before' }

function finishReplacing(): Promise<void> {
  return finishIndexes([REPLACING], {
    location: parsePostgresLocation(parseUri(`${uri}?schema=${schema}`, 'board')),
    signal: new AbortController().signal,
    pauses: { firstPauseMs: 5, maxPauseMs: 20 },
  })
}

test('an index that replaces another one drops it: at once on a small table, and otherwise after it is built', async () => {
  await pool.query(`CREATE INDEX things_before ON ${schema}.things (name)`)
  const writer = await openWriter()
  const missing = await migrate(pool, migrations([REPLACING]))
  expect(missing).toMatchObject([{ name: INDEX.name, isMissing: true }])
  expect([await isValid(), await isValid('things_before')]).toEqual([undefined, true])
  const finished = finishReplacing()
  await untilBuilding()
  await writer.commit()
  await finished
  expect([await isValid(), await isValid('things_before')]).toEqual([true, undefined])
  await pool.query(`CREATE INDEX things_before ON ${schema}.things (name)`)
  expect(await migrate(pool, migrations([REPLACING]))).toEqual([])
  expect([await isValid(), await isValid('things_before')]).toEqual([true, undefined])
})

test('an index that was built by a process which ended before it dropped the former one still replaces it', async () => {
  await pool.query(`CREATE INDEX things_before ON ${schema}.things (name)`)
  await pool.query(`CREATE INDEX ${INDEX.name} ON ${schema}.things (name)`)
  const writer = await openWriter()
  expect(await migrate(pool, migrations([REPLACING]))).toMatchObject([{ isMissing: false, isInvalid: false }])
  const finished = finishReplacing()
  await writer.commit()
  await finished
  expect([await isValid(), await isValid('things_before')]).toEqual([true, undefined])
})

test('an invalid index does not replace another one', async () => {
  await pool.query(`CREATE INDEX things_before ON ${schema}.things (name)`)
  await pool.query(`CREATE INDEX ${INDEX.name} ON ${schema}.things (name)`)
  await pool.query('UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass($1)', [
    `${schema}.${INDEX.name}`,
  ])
  expect(await migrate(pool, migrations([REPLACING]))).toMatchObject([{ isMissing: true, isInvalid: true }])
  expect([await isValid(), await isValid('things_before')]).toEqual([false, true])
})

test('an index that newer snapshots could not use yet is not built at once, and replaces nothing', async () => {
  await pool.query(`ALTER TABLE ${schema}.things ADD COLUMN note text`)
  await pool.query(`CREATE INDEX things_before ON ${schema}.things (name)`)
  await pool.query(`INSERT INTO ${schema}.things VALUES ('a')`)
  const stranger = await pool.connect()
  await stranger.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await stranger.query('SELECT txid_current()')
  // The open transaction may still read the former version of the row, to which an index that is built now does not lead.
  await pool.query(`UPDATE ${schema}.things SET note = 'b'`)
  expect(await migrate(pool, migrations([REPLACING]))).toMatchObject([{ isMissing: true, isInvalid: false }])
  expect([await isValid(), await isValid('things_before')]).toEqual([undefined, true])
  const finished = finishReplacing()
  await untilBuilding()
  await stranger.query('COMMIT')
  stranger.release()
  await finished
  expect([await isValid(), await isValid('things_before')]).toEqual([true, undefined])
})

test('an index that is being built by hand is neither dropped nor built again', async () => {
  const writer = await openWriter()
  const byHand = pool.query(`CREATE INDEX CONCURRENTLY ${INDEX.name} ON ${schema}.things ${INDEX.definition}`)
  while ((await isValid()) !== false);
  const finished = finish()
  // The process looks several times meanwhile.
  for (let round = 0; round < 200; round += 1) expect(await isWaitingToDrop()).toBe(false)
  await writer.commit()
  await byHand
  await finished
  expect(await isValid()).toBe(true)
})

test('a table that is locked exclusively keeps no process from starting', async () => {
  const client = await pool.connect()
  await migrate(pool, migrations())
  await client.query(`BEGIN; LOCK TABLE ${schema}.things IN ACCESS EXCLUSIVE MODE`)
  expect(await migrate(pool, migrations([INDEX]))).toMatchObject([INDEX])
  await client.query('COMMIT')
  client.release()
  expect(await migrate(pool, migrations([INDEX]))).toEqual([])
})
