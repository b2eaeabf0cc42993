/** Windows of keys as rows: in transactions of callers, at their ends to the microsecond, and when answers are lost. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresBackend } from '../../../../src/board/backends/postgres/index.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { createDatabase, type PostgresDatabase } from '../../../support/postgres-database.ts'
import { startProxy } from '../../../support/proxy.ts'
import { nextConnection, rejectionOf } from '../../events.ts'
import { namesOn } from '../../jobs.ts'
import { openReplacing, replaceUnheard } from '../../lost-replacement.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'

const KEY = { name: 'import', for: '1h' } as const

let server: PostgresDatabase

beforeAll(async () => {
  server = await createDatabase()
})

afterAll(() => server.stop())

/** A client with a transaction open. */
async function openTransaction(): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client(server.uri)
  await client.connect()
  await client.query('BEGIN')
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}

/** Moves the ends of all windows, as if this time had passed. */
async function passTime({ query }: PostgresPlace, interval: string): Promise<void> {
  await query('UPDATE @.key_windows SET until = until - $1::interval', [interval])
}

async function countWindows({ query }: PostgresPlace): Promise<number> {
  const [row] = await query('SELECT count(*) AS count FROM @.key_windows')
  return Number(row?.['count'])
}

describe('a window', () => {
  test('ends by the server’s clock', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const first = await board.post('flow', {}, { key: KEY })
    await (await board.claim(first)).consume()
    await passTime(place, '59 min')
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ because: 'window', uuid: first.uuid })
    await passTime(place, '1 min')
    const next = await board.post('flow', {}, { key: KEY })
    expect(next.created).toBe(true)
    await (await board.claim(next)).consume()
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ because: 'window', uuid: next.uuid })
    expect(await countWindows(place)).toBe(1)
  })

  test('that is over is deleted in time, and no other', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    for (const name of ['old', 'older']) await board.post('flow', {}, { key: { name, for: '1m' } })
    await passTime(place, '2 min')
    await board.post('flow', {}, { key: KEY })
    await place.query("UPDATE @.boards SET horizon_at = horizon_at - interval '1 hour'")
    await place.query('SELECT @.prune(id) FROM @.boards')
    expect(await place.query('SELECT until > clock_timestamp() AS holds FROM @.key_windows')).toEqual([{ holds: true }])
  })

  test('counts only where the transaction of its post is committed', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using client = await openTransaction()
    await board.post('flow', {}, { key: KEY, client })
    await client.query('ROLLBACK; BEGIN')
    expect(await countWindows(place)).toBe(0)
    const job = await board.post('flow', {}, { key: KEY, client })
    expect(job.created).toBe(true)
    await client.query('COMMIT; BEGIN')
    await (await board.claim(await board.find(job.uuid))).consume()
    expect(await board.post('flow', {}, { key: KEY, client })).toMatchObject({ because: 'window', uuid: job.uuid })
    await passTime(place, '1 hour')
    expect(await board.post('flow', {}, { key: KEY, client })).toMatchObject({ created: true })
    await client.query('COMMIT')
    expect(await board.countJobs()).toBe(1)
  })

  test('of a job that was posted and consumed behind a snapshot is not missed by a post in it', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    for (const key of [{ name: 'a', for: '1h' }, 'b'] as const) {
      await using client = await openTransaction()
      await client.query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ')
      await client.query(`SELECT FROM ${place.schema}.jobs`)
      const first = await board.post('flow', {}, { key: { name: key === 'b' ? 'b' : 'a', for: '1h' } })
      await (await board.claim(first)).consume()
      const refused = await rejectionOf(board.post('flow', {}, { key, client }))
      expect(refused).toMatchObject({ cause: { sqlState: '40001' } })
    }
    expect(await namesOn(board)).toEqual([])
  })

  test('is seen by a post that has waited for the transaction of the post before it', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using other = await place.open()
    await using client = await openTransaction()
    const first = await board.post('flow', {}, { key: KEY, client })
    const waiting = other.post('flow', {}, { key: 'import' })
    const isWaiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${place.schema}.post(%'`
    while ((await place.query(isWaiting)).length === 0);
    await client.query('COMMIT')
    expect(await waiting).toMatchObject({ created: false, because: 'waiting', uuid: first.uuid })
  })
})

test('a replacement whose answer is lost is found to be done, once', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using other = await place.open()
  await using proxy = await startProxy({ port: server.port })
  const uri = parseUri(place.uri.replace(/:\d+\//, `:${proxy.port}/`), 'board')
  await using board = await openReplacing(postgresBackend(uri, { who: 'board' }), () => {
    proxy.mode = 'swallow-replies'
  })
  // The first request of a kind opens its connection: that is not what this test is about.
  await board.pause()
  await board.resume()
  const { replacing, uuid } = await replaceUnheard(board, other)
  const back = nextConnection(board)
  proxy.resetAll()
  proxy.mode = 'pass'
  await back
  expect(await replacing).toMatchObject({ created: false, because: 'waiting', replaced: true, uuid })
  expect(await place.query('SELECT revision, name FROM @.jobs')).toEqual([{ revision: 1, name: 'new' }])
  expect(await countWindows(place)).toBe(1)
  const [claim] = await other.claimNext()
  expect(claim.job.details.store).toEqual({ n: 2 })
  await claim.consume()
  expect(await other.post('flow', {}, { key: 'sync' })).toMatchObject({ because: 'window', uuid })
})
