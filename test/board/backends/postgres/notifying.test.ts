/**
 * When the server notifies a board in Postgres of changes: no change is noticed late, and nobody is notified who does not sleep. The boards of these
 * tests poll once an hour, so what they notice was announced, or they looked for it.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import { JobBoard } from '../../../../src/board/api/job-board.ts'
import { PostgresBackend } from '../../../../src/board/backends/postgres/backend.ts'
import { boardMigrations, channelName } from '../../../../src/board/backends/postgres/store/schema.ts'
import { openBoard } from '../../../../src/board/index.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { migrate, PostgresPool, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { startNode } from '../../../support/node-process.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { usual as test, variant } from '../../../variant.ts'
import { nextConnection, nextEvent } from '../../events.ts'
import { namesOn } from '../../jobs.ts'
import { newSchema, type PostgresPlace, postgresPlaceOn } from './boards.ts'
import { openTransaction } from './server-side.ts'

const VIEWER = new URL('../../viewing-child.ts', import.meta.url)
const HOUR_MS = 3_600_000
/** Enough transactions side by side to make a board busy within one period of its measure. */
const CROWD = 20

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ config: { fsync: 'off', max_prepared_transactions: '2' } })
})

afterAll(() => server.stop())

async function openSleeper(place: PostgresPlace, who = 'sleeper'): Promise<JobBoard> {
  const uri = parseUri(place.uri, 'board')
  const board = uri.parameters.get('board') ?? ''
  const backend = new PostgresBackend({
    ...{ uri: uri.printable, location: parsePostgresLocation(uri, ['board']), board, who },
    ...{ sessionTimeout: 30_000, scanPeriod: HOUR_MS, window: 100_000, windowBytes: 2 ** 26, advisoryLocks: true },
  })
  const opened = new JobBoard(backend, { who })
  await boardInternals(opened).open()
  return opened
}

/** Opens a board that views, and returns it when its session is to be notified. */
async function openViewer(place: PostgresPlace, who = 'sleeper'): Promise<JobBoard> {
  const board = await openSleeper(place, who)
  await board.view()
  await untilFlag(place, who, true)
  return board
}

async function readFlag({ query }: PostgresPlace, who: string): Promise<unknown> {
  const [row] = await query('SELECT notified FROM @.sessions WHERE who = $1', [who])
  return row?.['notified']
}

function untilFlag(place: PostgresPlace, who: string, isSet: boolean): Promise<void> {
  return vi.waitFor(async () => expect(await readFlag(place, who)).toBe(isSet), 60_000)
}

/** Resolves when the board has noticed the job, without a request that would make it look. */
function noticed(board: JobBoard, name: string): Promise<unknown> {
  return nextEvent(board, 'posted', ({ job }) => job.name === name)
}

/** Posts as a transaction of its own; resolves when it is committed. */
function post({ query }: PostgresPlace): Promise<unknown> {
  return query(`WITH made AS (
      INSERT INTO @.jobs (board, uuid, name, priority, body) SELECT max(id), 'x', 'crowd', 'NORMAL', '' FROM @.boards RETURNING board, id
    ) SELECT @.log_change(board, 'posted', ARRAY[id]) FROM made`)
}

/** Keeps the board busy until the condition holds. */
async function crowdUntil(place: PostgresPlace, isOver: () => Promise<boolean>): Promise<void> {
  const clients = await Promise.all(Array.from({ length: CROWD }, () => openTransaction(place)))
  try {
    while (!(await isOver())) {
      await Promise.all(
        clients.map((client) => client.query('SELECT log_change(max(id), $1, $2) FROM boards', ['freed', [1]])),
      )
      await Promise.all(clients.map((client) => client.query('COMMIT; BEGIN')))
    }
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}

/** What is announced on the board's channel, to somebody who only listens. */
interface Listener extends AsyncDisposable {
  /** Returns the number of notifications since the former call. */
  count(): Promise<number>
}

async function listenTo({ uri, schema, query }: PostgresPlace): Promise<Listener> {
  const [row] = await query('SELECT max(id) AS id FROM @.boards')
  const channel = channelName(schema, Number(row?.['id']))
  const client = new pg.Client({ connectionString: uri.split('?')[0] })
  await client.connect()
  await client.query(`LISTEN ${channel}`)
  const payloads: (string | undefined)[] = []
  client.on('notification', ({ payload }) => payloads.push(payload))
  return {
    count: async () => {
      await query('SELECT pg_notify($1, $2)', [channel, 'end'])
      // Notifications arrive before the answer to a later statement, but perhaps not before the answer to the first one.
      while (!payloads.includes('end')) await client.query('SELECT')
      return payloads.splice(0).length - 1
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

describe('a board that sleeps', () => {
  test('notices a job at once, posted by a board or in a transaction of the caller', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using sleeper = await openViewer(place)
    await using poster = await openSleeper(place, 'poster')
    const first = noticed(sleeper, 'first')
    await poster.post('flow', {}, { name: 'first' })
    await first
    await using client = await openTransaction(place)
    const second = noticed(sleeper, 'second')
    await poster.post('flow', {}, { name: 'second', client })
    await client.query('COMMIT')
    await second
    expect(await readFlag(place, 'sleeper')).toBe(true)
    expect(await readFlag(place, 'poster')).toBe(false)
  })

  test('notices a job of a transaction that had looked whether somebody sleeps before the board went to sleep', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using poster = await openSleeper(place, 'poster')
    await using early = await openTransaction(place)
    await poster.post('flow', {}, { name: 'early', client: early })
    await using sleeper = await openViewer(place)
    const late = noticed(sleeper, 'late')
    await poster.post('flow', {}, { name: 'late' })
    await late
    const found = noticed(sleeper, 'early')
    await early.query('COMMIT')
    await found
  })

  test('notices a job of a prepared transaction that had looked before', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using poster = await openSleeper(place, 'poster')
    await using early = await openTransaction(place)
    await poster.post('flow', {}, { name: 'early', client: early })
    await early.query("PREPARE TRANSACTION 'early'")
    await using sleeper = await openViewer(place)
    const late = noticed(sleeper, 'late')
    await poster.post('flow', {}, { name: 'late' })
    await late
    const found = noticed(sleeper, 'early')
    await early.query("COMMIT PREPARED 'early'")
    await found
  })

  test.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'notices a job of a caller whose %s snapshot is older than its flag',
    async (level) => {
      await using place = await postgresPlaceOn(server.uri)
      await using poster = await openSleeper(place, 'poster')
      await using old = await openTransaction(place)
      await old.query(`SET TRANSACTION ISOLATION LEVEL ${level}`)
      await old.query('SELECT count(*) FROM jobs')
      await using sleeper = await openViewer(place)
      await poster.post('flow', {}, { name: 'old', client: old })
      const late = noticed(sleeper, 'late')
      await poster.post('flow', {}, { name: 'late' })
      await late
      const found = noticed(sleeper, 'old')
      await old.query('COMMIT')
      await found
    },
  )

  test('is notified again after its connection broke, also if the server has forgotten the flag', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using sleeper = await openViewer(place)
    await using poster = await openSleeper(place, 'poster')
    const back = nextConnection(sleeper)
    await place.query('UPDATE @.sessions SET notified = false')
    await place.query("SELECT pg_terminate_backend(backend) FROM @.sessions WHERE who = 'sleeper'")
    await back
    await untilFlag(place, 'sleeper', true)
    const found = noticed(sleeper, 'found')
    await poster.post('flow', {}, { name: 'found' })
    await found
  })

  test('keeps its flag when a request of a former connection arrives late', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using _sleeper = await openViewer(place)
    await place.query('SELECT @.set_notified(id, false) FROM @.sessions')
    expect(await readFlag(place, 'sleeper')).toBe(true)
  })
})

describe('a busy board', () => {
  test('sends no notifications; when it is calm again, a job of a transaction that had looked meanwhile is noticed', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using sleeper = await openViewer(place)
    await using poster = await openSleeper(place, 'poster')
    await using listener = await listenTo(place)
    await using early = await openTransaction(place)
    // On a slow machine the board may be calm now and then.
    await crowdUntil(place, async () => {
      await listener.count()
      const before = await readFlag(place, 'sleeper')
      await Promise.all(Array.from({ length: CROWD }, () => post(place)))
      const after = await readFlag(place, 'sleeper')
      if (before !== false || after !== false) return false
      await poster.post('flow', {}, { name: 'early', client: early })
      expect(await listener.count()).toBe(0)
      return (await readFlag(place, 'sleeper')) === false
    })
    await untilFlag(place, 'sleeper', true)
    const late = noticed(sleeper, 'late')
    await poster.post('flow', {}, { name: 'late' })
    await late
    const found = noticed(sleeper, 'early')
    await early.query('COMMIT')
    await found
  })

  test('notices changes, and each job once', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using sleeper = await openViewer(place)
    await using poster = await openSleeper(place, 'poster')
    const names: string[] = []
    sleeper.on('posted', ({ job }) => names.push(job.name))
    await crowdUntil(place, async () => (await readFlag(place, 'sleeper')) === false)
    const posted = Array.from({ length: 50 }, (_, index) => `job ${index}`)
    const last = noticed(sleeper, 'last')
    for (const name of posted) await poster.post('flow', {}, { name })
    await poster.post('flow', {}, { name: 'last' })
    await last
    expect(names).toEqual([...posted, 'last'])
  })

  variant('has a process that dies while it polls: others are notified all the same', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using child = await startNode(VIEWER, [place.uri, 'dying'])
    await untilFlag(place, 'dying', true)
    await using sleeper = await openViewer(place)
    await crowdUntil(place, async () => {
      const flags = [await readFlag(place, 'dying'), await readFlag(place, 'sleeper')]
      return flags.every((flag) => flag === false)
    })
    child.signal('SIGKILL')
    await child.ended
    await untilFlag(place, 'sleeper', true)
    await using poster = await openSleeper(place, 'poster')
    const found = noticed(sleeper, 'found')
    await poster.post('flow', {}, { name: 'found' })
    await found
  })
})

describe('nobody is notified', () => {
  test('of a board that nobody views, nor any more when the last view is closed', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using poster = await openSleeper(place, 'poster')
    await using listener = await listenTo(place)
    await poster.post('flow', {})
    expect(await listener.count()).toBe(0)
    const view = await poster.view()
    await untilFlag(place, 'poster', true)
    await poster.post('flow', {})
    expect(await listener.count()).toBe(1)
    view[Symbol.dispose]()
    boardInternals(poster).closeUnusedView()
    await untilFlag(place, 'poster', false)
    await poster.post('flow', {})
    expect(await listener.count()).toBe(0)
    expect(await namesOn(poster)).toHaveLength(3)
  })

  test('of a board whose only viewer has died, once its session is taken over', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using child = await startNode(VIEWER, [`${place.uri}&sessionTimeout=1s`, 'dying'])
    await untilFlag(place, 'dying', true)
    await using poster = await openBoard(`${place.uri}&sessionTimeout=1s`, { who: 'poster' })
    await using listener = await listenTo(place)
    child.signal('SIGKILL')
    await child.ended
    await vi.waitFor(async () => expect(await readFlag(place, 'dying')).toBeUndefined(), 60_000)
    await poster.post('flow', {})
    expect(await listener.count()).toBe(0)
  })

  test('but a session of an older release, which sets no flag, always', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using poster = await openSleeper(place, 'poster')
    await using listener = await listenTo(place)
    await place.query("SELECT @.open_session(max(id), 'former', 60000) FROM @.boards")
    await poster.post('flow', {})
    expect(await listener.count()).toBe(1)
  })
})

test('the migration lets former sessions be notified, and roles record changes that may not read sessions', async () => {
  const schema = newSchema()
  const pool = new PostgresPool(parsePostgresLocation(parseUri(`${server.uri}?poolSize=1`, 'board')))
  const { steps, ...migrations } = boardMigrations(schema)
  const before = steps.findIndex((step) => step.includes('sessions_to_notify'))
  await migrate(pool, { ...migrations, indexes: [], steps: steps.slice(0, before) })
  const setUp = `INSERT INTO @.boards (name, format) VALUES ('orders', 1);
    INSERT INTO @.sessions (board, who, backend, backend_start, server_start, ttl, heartbeat_at)
      VALUES (1, 'former', 1, now(), now(), '1 min', now());
    CREATE ROLE shop_${schema};
    CREATE ROLE columns_${schema};
    GRANT USAGE ON SCHEMA @ TO shop_${schema}, columns_${schema};
    GRANT SELECT ON @.followers TO columns_${schema};
    GRANT INSERT (board, kind, jobs, ranks, dues) ON @.changes TO columns_${schema};
    GRANT SELECT, INSERT ON @.changes, @.followers TO shop_${schema}`
  await pool.query(setUp.replaceAll('@', schema), [])
  await migrate(pool, boardMigrations(schema))
  const { rows } = await pool.query(`SELECT who, notified FROM ${schema}.sessions`, [])
  expect(rows).toEqual([{ who: 'former', notified: true }])
  for (const role of ['shop', 'columns']) {
    await pool.query(`SET ROLE ${role}_${schema}`, [])
    await pool.query(`SELECT ${schema}.log_change(1, 'posted', ARRAY[1]::bigint[])`, [])
    await expect(pool.query(`SELECT backend FROM ${schema}.sessions`, [])).rejects.toThrow('permission denied')
  }
  await pool.close()
})
