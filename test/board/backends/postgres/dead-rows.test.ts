/** What is read beside a transaction that is open for long: the rows that were deleted since its snapshot cannot be removed, and must not be read again. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'
import { openTransaction } from './server-side.ts'

const MANY = 20_000

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ config: { fsync: 'off', autovacuum: 'off' } })
})

afterAll(() => server.stop())

/** One connection, which counts the pages that a call reads. */
async function openReader({ schema }: PostgresPlace) {
  const connection = await PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
  const ask = async (text: string): Promise<unknown> => {
    const { rows } = await connection.query(text.replaceAll('@', schema), [])
    return Object.values(rows[0] ?? {})[0]
  }
  return {
    ask,
    pagesOf: async (call: string): Promise<number> => {
      const plan = (await ask(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT ${call}`)) as {
        Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number }
      }[]
      const { Plan } = plan[0] ?? {}
      return (Plan?.['Shared Hit Blocks'] ?? Number.NaN) + (Plan?.['Shared Read Blocks'] ?? Number.NaN)
    },
    [Symbol.asyncDispose]: () => connection.close(),
  }
}

test('the history is trimmed without a read of the jobs that were removed from it before', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  await using reader = await openReader(place)
  const add = (jobs: number) =>
    reader.ask(`INSERT INTO @.history (board, uuid, record)
      SELECT (SELECT max(id) FROM @.boards), n, decode(repeat('00', 1000), 'hex') FROM generate_series(1, ${jobs}) AS n`)
  const trim = () => reader.pagesOf('@.trim_history((SELECT max(id) FROM @.boards), 10)')
  await add(MANY)
  await using stranger = await openTransaction(place)
  await stranger.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
  await stranger.query('SELECT FROM history LIMIT 1')
  // Its random numbers from now on are the same in each run: no call deletes all.
  await reader.ask('SELECT setseed(0.5)')
  await trim()
  await add(20)
  // A search for the oldest job reads 2,900 pages.
  expect(await trim()).toBeLessThan(1_000)
  expect(await reader.ask('SELECT count(*)::integer FROM @.history')).toBe(10)
})

test('the history of a board is trimmed although other boards have used the numbers between', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  await using reader = await openReader(place)
  const add = (board: string, jobs: number) =>
    reader.ask(
      `INSERT INTO @.history (board, uuid, record) SELECT ${board}, n, '' FROM generate_series(1, ${jobs}) AS n`,
    )
  const own = '(SELECT max(id) FROM @.boards)'
  await add(own, 20)
  await add('0', MANY)
  await add(own, 20)
  const kept = async () => Number(await reader.ask(`SELECT count(*) FROM @.history WHERE board = ${own}`))
  while ((await kept()) > 10) await reader.ask(`SELECT @.trim_history(${own}, 10)`)
  expect(await kept()).toBe(10)
  expect(await reader.ask('SELECT count(*)::integer FROM @.history WHERE board = 0')).toBe(MANY)
})

test('obsolete changes are deleted without a read of the changes that were deleted before', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  await using reader = await openReader(place)
  const own = '(SELECT max(id) FROM @.boards)'
  const add = (changes: number) =>
    reader.ask(
      `INSERT INTO @.changes (board, kind, jobs) SELECT ${own}, 'claimed', array_fill(n::bigint, ARRAY[100]) FROM generate_series(1, ${changes}) AS n`,
    )
  const prune = async () => {
    await reader.ask("UPDATE @.boards SET horizon_at = '-infinity'")
    return reader.pagesOf(`@.prune(${own})`)
  }
  await add(MANY)
  await prune()
  await using stranger = await openTransaction(place)
  await stranger.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
  await stranger.query('SELECT FROM changes LIMIT 1')
  await prune()
  await add(20)
  await prune()
  await prune()
  expect(await reader.ask('SELECT count(*)::integer FROM @.changes')).toBe(0)
  // A search for the oldest change reads 2,200 pages.
  expect(await prune()).toBeLessThan(500)
})
