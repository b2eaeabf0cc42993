/** Which sessions a heartbeat reads, and that each session that is over is found, at the moment when its time has passed. */
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { sessionLockClass } from '../../../../src/board/backends/postgres/store/schema.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { startNode } from '../../../support/node-process.ts'
import { createDatabase, type PostgresDatabase } from '../../../support/postgres-database.ts'
import { usual as test, variant } from '../../../variant.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'

const OWNER = new URL('./owner-child.ts', import.meta.url)

let server: PostgresDatabase

beforeAll(async () => {
  server = await createDatabase()
})

afterAll(() => server.stop())

/** Adds sessions by hand, on a board of their own: `alive`, or `over` since ten seconds. Returns their numbers, and what each watches. */
async function addSessions({ query }: PostgresPlace, states: readonly ('alive' | 'over')[]) {
  const [made] = await query(`INSERT INTO @.boards (name, format) VALUES (gen_random_uuid()::text, 1) RETURNING id`)
  const board = Number(made?.['id'])
  const rows = await query(
    `INSERT INTO @.sessions (board, who, backend, backend_start, server_start, ttl, heartbeat_at)
     SELECT $1, 'by hand', 0, now(), now(), '30 s', now() - CASE state WHEN 'over' THEN interval '40 s' ELSE '10 s' END
     FROM unnest($2::text[]) WITH ORDINALITY AS states(state, at) ORDER BY at RETURNING id`,
    [board, states],
  )
  const ids = rows.map(({ id }) => Number(id))
  const watch = async (id: number | undefined) => {
    const [row] = await query('SELECT @.watched_sessions($1, $2) AS watched', [board, id])
    return row?.['watched'] as { expired: number[]; next: number | null }
  }
  return { board, ids, watch }
}

test('a session that is over is watched by the three before it that are alive, whatever is between them', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  const states = ['alive', 'over', 'over', 'alive', 'alive', 'alive', 'over', 'alive', 'over', 'over'] as const
  const { ids, watch } = await addSessions(place, states)
  // Another board, whose sessions come after these and are over, too.
  await addSessions(place, ['over', 'alive'])
  const found = await Promise.all(ids.map(watch))
  for (const [at, id] of ids.entries()) {
    const watchers = found.flatMap(({ expired }, by) => (by !== at && expired.includes(id) ? [by] : []))
    const living = watchers.filter((by) => states[by] === 'alive')
    // From the session on backwards, around the beginning.
    const before = ids.map((_, n) => (at - 1 - n + ids.length) % ids.length).filter((by) => states[by] === 'alive')
    expect(living.toSorted()).toEqual(states[at] === 'over' ? before.slice(0, 3).toSorted() : [])
  }
  for (const { next } of found) expect(next).toSatisfy((ms: number) => ms > 0 && ms <= 20_000)
})

test('a session that is alone watches none, and the only one that is left watches all', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  const one = await addSessions(place, ['alive'])
  expect(await one.watch(one.ids[0])).toEqual({ expired: [], next: null })
  const many = await addSessions(place, [...Array(20).fill('over'), 'alive', ...Array(20).fill('over')])
  const watched = await many.watch(many.ids[20])
  expect(watched.next).toBe(null)
  expect(watched.expired.toSorted()).toEqual(many.ids.filter((id) => id !== many.ids[20]).toSorted())
})

test('processes of an older release receive the numbers of expired sessions, and null when their session has lost its lock', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  const connection = await openConnection()
  onTestFinished(() => connection.close())
  const ask = async (call: string, values: readonly unknown[]) =>
    (await connection.query(`SELECT ${place.schema}.${call} AS answer`, [...values])).rows[0]?.['answer']
  const { ids, board } = await addSessions(place, ['over', 'alive'])
  const session = await ask('open_session($1, $2, $3)', [board, 'former', 60_000])
  for (let times = 0; times < 3; times += 1) expect(await ask('heartbeat($1)', [session])).toEqual([ids[0]])
  expect(await ask('renew_session($1)', [session])).toEqual({ expired: [ids[0]], next: expect.any(Number) })
  expect(await place.query('SELECT @.heartbeat($1) AS answer', [session])).toEqual([{ answer: null }])
  await connection.query('SELECT pg_advisory_unlock_all()', [])
  expect(await ask('heartbeat($1)', [session])).toBe(null)
  expect(await ask('renew_session($1)', [session])).toBe(null)
})

test('a heartbeat does not give the lock of its session to another role that waits for it', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  const [owner, stranger] = [await openConnection(), await openConnection()]
  onTestFinished(() => owner.close())
  const ask = async (call: string, values: readonly unknown[]) =>
    (await owner.query(`SELECT ${place.schema}.${call} AS answer`, [...values])).rows[0]?.['answer']
  const { board } = await addSessions(place, ['alive'])
  const session = await ask('open_session($1, $2, $3, true, NULL, NULL)', [board, 'owner', 60_000])
  const lockOf = async () =>
    Number((await place.query('SELECT lock FROM @.sessions WHERE id = $1', [session]))[0]?.['lock'])
  const isWaiting = async () =>
    (await place.query('SELECT FROM pg_locks WHERE NOT granted AND objid::bigint = $1', [await lockOf()])).length > 0
  const values = [sessionLockClass(place.schema), await lockOf()]
  const taken = stranger.query('SELECT pg_advisory_lock($1, $2)', values)
  await expect.poll(isWaiting).toBe(true)
  for (let times = 0; times < 3; times += 1) expect(await ask('renew_session($1)', [session])).not.toBe(null)
  expect(await isWaiting()).toBe(true)
  // An attachment to another connection takes another lock, twice.
  expect(await ask('reattach($1, 1)', [session])).toBe(true)
  for (let times = 0; times < 3; times += 1) expect(await ask('renew_session($1)', [session])).not.toBe(null)
  await owner.query('SELECT pg_advisory_unlock_all()', [])
  await taken
  await stranger.close()
})

variant(
  'a waiting process finds that the session of another host is over when its time has passed, not at the next third of its own time',
  async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using poster = await place.open()
    await poster.post('flow', {}, { name: 'job' })
    await poster.close()
    await using owner = await startNode(OWNER, [`${place.uri}&sessionTimeout=3s`])
    await owner.says('claimed job')
    await place.query("UPDATE @.sessions SET host = 'elsewhere' WHERE who = 'owner'")
    await using other = await place.openAt(server.port, { who: 'other', parameters: '&sessionTimeout=1h' })
    const claiming = other.claimNext()
    owner.signal('SIGKILL')
    const [claim] = await claiming
    expect(claim.job.name).toBe('job')
    await claim.consume()
  },
)

function openConnection(): Promise<PostgresConnection> {
  return PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
}
