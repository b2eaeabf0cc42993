/** Databases and roles whose defaults are not those of Postgres. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBoard } from '../../src/board/index.ts'
import { IncompatibleVersion, InvalidArgument } from '../../src/core/errors.ts'
import { parseUri } from '../../src/core/uri.ts'
import { openPersistence } from '../../src/persistence/index.ts'
import { PostgresConnection, PostgresPool, parsePostgresLocation } from '../../src/postgres/index.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(async () => void (await server?.stop()))

async function command(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.uri })
  await client.connect()
  await client.query(text)
  await client.end()
}

const uriOf = (database: string) => server.uri.replace(/\/[^/?]*(\?|$)/, `/${database}$1`)

const HOSTILE = {
  default_transaction_isolation: 'serializable',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  DateStyle: 'German, DMY',
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kathmandu',
  lock_timeout: '1',
  transform_null_equals: 'on',
  search_path: 'public',
}

test('each connection sets what statements rely on, and boards and logbooks work', async () => {
  await command('CREATE DATABASE hostile')
  for (const [name, value] of Object.entries(HOSTILE)) await command(`ALTER DATABASE hostile SET ${name} = '${value}'`)
  const place = parsePostgresLocation(parseUri(uriOf('hostile'), 'board'))
  await using pool = Object.assign(new PostgresPool(place), { [Symbol.asyncDispose]: async () => undefined })
  const connection = await PostgresConnection.open(place)
  for (const driver of [pool, connection])
    for (const [name, value] of Object.entries(HOSTILE)) {
      const { rows } = await driver.query('SELECT current_setting($1) AS value', [name])
      expect([name, rows[0]?.['value']]).not.toEqual([name, value])
    }
  await connection.close()
  await pool.close()

  const boards = await Promise.all([1, 2, 3].map((who) => openBoard(uriOf('hostile'), { who: `${who}` })))
  const [board] = boards
  if (!board) throw new Error('no board')
  await using persistence = await openPersistence(uriOf('hostile'))
  expect(persistence).toBeDefined()
  const batch = await board.batch({ name: 'import', onDone: { flow: 'done', store: { path: 'C:\\new' } } })
  const job = await board.post(
    'flow',
    { at: new Date(0) },
    { batch: batch.uuid, key: 'k', resources: { exclusive: ['a'] } },
  )
  await batch.seal()
  const ended = job.wait()
  await (await board.claim(job)).consume()
  expect(await ended).toBe('COMPLETE')
  // The callback is encoded by a function of the server.
  const [claim] = await board.claimNext()
  expect(claim?.job.details.store).toMatchObject({ path: 'C:\\new' })
  for (const each of boards) await each.close()
})

test('a database that is not in UTF-8 is refused when it is opened', async () => {
  await command(`CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
  for (const open of [() => openBoard(uriOf('latin')), () => openPersistence(uriOf('latin'))]) {
    const error: unknown = await open().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(IncompatibleVersion)
    expect(String(error)).toContain(
      "the database is encoded in LATIN1, which has not all characters; create one with ENCODING 'UTF8'",
    )
  }
})

test('a post over a client of another database with the same schema is refused, and nothing is posted', async () => {
  for (const name of ['one', 'two']) await command(`CREATE DATABASE ${name}`)
  await using board = await openBoard(uriOf('one'), { who: 'one' })
  await using other = await openBoard(uriOf('two'), { who: 'two' })
  const client = await PostgresConnection.open(parsePostgresLocation(parseUri(uriOf('two'), 'board')))
  await client.query('BEGIN', [])
  const error: unknown = await board.post('flow', {}, { client }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(InvalidArgument)
  expect(String(error)).toContain('client is connected to another database than the board; nothing was posted')
  await other.post('flow', {}, { client, name: 'right' })
  await client.query('COMMIT', [])
  // The schema of an older release has not all functions.
  await client.query('DROP FUNCTION jobboard.post_in_transaction', [])
  await client.query('BEGIN', [])
  const refusal: unknown = await board.post('flow', {}, { client }).catch((thrown: unknown) => thrown)
  expect(refusal).toBeInstanceOf(InvalidArgument)
  expect(String(refusal)).toContain(
    'another database than the board, or to one whose schema is that of an older release',
  )
  await client.close()
  expect([await board.countJobs(), await other.countJobs()]).toEqual([0, 1])
})
