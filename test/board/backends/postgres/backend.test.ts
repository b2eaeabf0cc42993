/** What is Postgres' own of a board there: where it is, who may use it, what stands between, how it is told of changes. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import { JobBoard } from '../../../../src/board/api/job-board.ts'
import { PostgresBackend } from '../../../../src/board/backends/postgres/backend.ts'
import { openBoard, type SqlClient } from '../../../../src/board/index.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import {
  AccessDenied,
  InvalidArgument,
  NotConnected,
  NotFound,
  Unclaimable,
  UnsupportedCapability,
} from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { startNode } from '../../../support/node-process.ts'
import { freePort } from '../../../support/ports.ts'
import type { PostgresServer } from '../../../support/postgres.ts'
import { startPooledPostgres } from '../../../support/session-pooler.ts'
import { startTransactionPooler } from '../../../support/transaction-pooler.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent, nextSession, rejectionOf } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { type PostgresPlace, postgresPlaceOn, sharedPlaceOn } from './boards.ts'

const CHILD = new URL('../../board-child.ts', import.meta.url)

let server: PostgresServer

beforeAll(async () => {
  server = await startPooledPostgres()
})

afterAll(() => server.stop())

describe('where a board is', () => {
  variant('boards of one database, of one schema and of several, know nothing of each other', async () => {
    const schemas = [1, 2].map(() => `test_${randomUUID().replaceAll('-', '')}`)
    const uris = schemas.flatMap((schema) => ['a', 'b'].map((board) => `${server.uri}?schema=${schema}&board=${board}`))
    const boards = await Promise.all(uris.map((uri) => openBoard(uri)))
    try {
      for (const [index, board] of boards.entries()) {
        await board.post('flow', {}, { name: `job ${index}`, key: 'one', resources: { exclusive: [`disk ${index}`] } })
        await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
      }
      for (const [index, board] of boards.entries()) {
        expect(await namesOn(board)).toEqual([`job ${index}`])
        await claimed(board, `job ${index}`)
        expect(await board.entities('conductor')).toHaveLength(1)
      }
      await boards[0]?.pause()
      await Promise.all(boards.map(refresh))
      expect(boards.map(({ paused }) => paused)).toEqual([true, false, false, false])
    } finally {
      await Promise.all(boards.map((board) => board.close()))
    }
  })

  variant('is made once by processes that start at the same moment, and shared', async () => {
    await using place = await sharedPlaceOn(server.uri)
    const names = ['one', 'two', 'three']
    const children = await Promise.all(names.map((name) => startNode(CHILD, [place.uri, name])))
    expect(await Promise.all(children.map(({ ended }) => ended))).toEqual([0, 0, 0])
    expect(children.flatMap(({ lines }) => lines).sort()).toEqual([...names].sort())
  })

  test('is looked for, and not made, by one who only looks', async () => {
    await using place = await sharedPlaceOn(server.uri)
    const looking = () => openBoard(place.uri, { create: false })
    expect(await rejectionOf(looking())).toBeInstanceOf(NotFound)
    await using _board = await place.open()
    await using _looking = await looking()
    expect(
      await rejectionOf(openBoard(`${server.uri}?schema=${place.schema}&board=x`, { create: false })),
    ).toBeInstanceOf(NotFound)
  })

  test.each([
    ['board=', 'board must not be empty'],
    ['sessionTimeout=soon', 'sessionTimeout'],
    ['sessionTimeout=0', 'sessionTimeout'],
    ['scanPeriod=1h', 'scanPeriod'],
    ['schema=Pg', 'schema'],
    ['bord=x', 'bord'],
  ])('%s is refused by name', async (parameter, what) => {
    const error = await rejectionOf(openBoard(`${server.uri}?${parameter}`))
    expect(error).toBeInstanceOf(InvalidArgument)
    expect(String(error)).toContain(what)
  })

  test('a missing server, a missing database, and a user without permission are distinguished', async () => {
    expect(await rejectionOf(openBoard(`postgres://127.0.0.1:${await freePort()}/x`))).toBeInstanceOf(NotConnected)
    expect(await rejectionOf(openBoard(server.uri.replace(/\/postgres$/, '/nowhere')))).toBeInstanceOf(NotFound)
    await using place = await sharedPlaceOn(server.uri)
    await using _board = await place.open()
    const role = `role_${place.schema}`
    await place.query(`CREATE ROLE ${role} LOGIN`)
    const uri = place.uri.replace('postgres@', `${role}@`)
    expect(await rejectionOf(openBoard(uri))).toBeInstanceOf(AccessDenied)
    await place.query(`GRANT USAGE ON SCHEMA @ TO ${role}`)
    for (const what of ['ALL TABLES', 'ALL SEQUENCES']) await place.query(`GRANT ALL ON ${what} IN SCHEMA @ TO ${role}`)
    await using guest = await openBoard(uri)
    await (await guest.claim(await guest.post('flow', {}))).consume()
  })
})

describe('what stands between a board and its server', () => {
  test('must not lend its connections for single transactions: that is noticed, and refused', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using pooler = await startTransactionPooler(server.port)
    const error = await rejectionOf(place.openAt(pooler.port))
    expect(error).toBeInstanceOf(UnsupportedCapability)
    expect(String(error)).toContain('pooler')
  })

  test('may lead to another backend later: the session is lost then, and another opened', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.openAt(server.port, { parameters: '&sessionTimeout=1s' })
    const claim = await board.claim(await board.post('flow', {}))
    const lost = nextEvent(board, 'state', ({ state }) => state === 'lost')
    // As it looks from a connection that was silently made anew: the backend in the row is another's, and a later one's.
    await place.query('UPDATE @.sessions SET backend = backend + 1, attachment = attachment + 100')
    await lost
    expect(claim.lost.aborted).toBe(true)
  })

  test('may lead to another server: what was claimed on the one is lost on the other', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const claim = await board.claim(await board.post('flow', {}))
    // As a standby knows the row that came to it: from a server that was started at another time.
    await place.query("UPDATE @.sessions SET server_start = server_start - interval '1 hour'")
    const back = nextSession(board)
    expect(await rejectionOf(claim.consume())).toMatchObject({ code: 'JOBBOARD_CLAIM_LOST' })
    await back
    const [again] = await board.claimNext()
    expect(again.run).toBe(2)
    await again.consume()
  })
})

describe('a board that is not notified of anything', () => {
  test('receives jobs and their ends all the same, within a scan period', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using unnotified = await boardWithoutNotifications(place)
    await using other = await place.open()
    const waiting = unnotified.claimNext()
    await other.post('flow', {}, { name: 'job' })
    const [claim] = await waiting
    expect(claim.job.name).toBe('job')
    const ended = nextEvent(unnotified, 'consumed')
    await claim.consume()
    await ended
    const job = await other.post('flow', {}, { name: 'elsewhere' })
    const posted = unnotified.wait()
    await posted
    const gone = nextEvent(unnotified, 'trashed')
    await (await other.claim(job)).trash()
    await gone
  })

  test('notices a pause, and its end, also when it has not looked for so long that it was cleared away', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    await place.query('ALTER FUNCTION @.changes_since(integer, pg_snapshot) RENAME TO changes_there')
    await place.query(`
CREATE FUNCTION @.changes_since(p_board integer, p_snapshot pg_snapshot)
RETURNS TABLE (snapshot text, at float8, told json) LANGUAGE sql AS $function$
  SELECT snapshot, at + 61000, NULL::json FROM @.changes_there(p_board, p_snapshot)
$function$`)
    for (const paused of [true, false]) {
      await place.query('UPDATE @.boards SET paused = $1', [paused])
      await refresh(board)
      expect(board.paused).toBe(paused)
    }
  })
})

describe("a job that is posted in a transaction of one's own", () => {
  async function transaction(): Promise<PostgresConnection> {
    const client = await PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
    await client.query('BEGIN', [])
    return client
  }

  test('is on the board when that is committed, and is waited for from the start', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await place.query('CREATE TABLE @.orders (name text)')
    const client = await transaction()
    try {
      await client.query(`INSERT INTO ${place.schema}.orders VALUES ('one')`, [])
      const job = await board.post('flow', { n: 1 }, { client, name: 'outbox' })
      expect(job).toMatchObject({ created: true, state: 'UNCLAIMED', name: 'outbox' })
      const ended = job.wait()
      expect(await namesOn(board)).toEqual([])
      const waiting = board.claimNext()
      await client.query('COMMIT', [])
      const [claim] = await waiting
      expect(claim.job.uuid).toBe(job.uuid)
      expect(job.state).toBe('CLAIMED')
      await claim.consume()
      expect(await ended).toBe('COMPLETE')
    } finally {
      await client.close()
    }
  })

  test('never was on the board if that is rolled back, and others are not held up meanwhile', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const client = await transaction()
    try {
      await board.post('flow', {}, { client, key: 'one' })
      const other = await board.post('flow', {}, { name: 'other' })
      await (await board.claim(other)).consume()
      await client.query('ROLLBACK', [])
    } finally {
      await client.close()
    }
    expect(await namesOn(board)).toEqual([])
    expect(await board.post('flow', {}, { key: 'one' })).toMatchObject({ created: true })
  })

  test('is the one that is there where its key is taken', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const first = await board.post('flow', {}, { key: 'one' })
    const client = await transaction()
    try {
      const again = await board.post('flow', {}, { client, key: 'one' })
      expect(again).toMatchObject({ created: false, uuid: first.uuid })
    } finally {
      await client.close()
    }
  })

  test('is refused for a pool, which would commit it at once', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const pool = new pg.Pool({ connectionString: server.uri })
    try {
      // @ts-expect-error the compiler refuses a pool, too
      const refused = await rejectionOf(board.post('flow', {}, { client: pool }))
      expect(refused).toBeInstanceOf(InvalidArgument)
      expect(String(refused)).toContain('const client = await pool.connect()')
      // Whatever it looks like: a wrapper of a pool has no transaction either.
      const wrapper: SqlClient = { query: (text, values) => pool.query(text, values) }
      expect(await rejectionOf(board.post('flow', {}, { client: wrapper }))).toBeInstanceOf(InvalidArgument)
    } finally {
      await pool.end()
    }
    expect(await namesOn(board)).toEqual([])
  })

  test('is refused for a client that has no transaction open, before and after one', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const client = new pg.Client({ connectionString: server.uri })
    await client.connect()
    try {
      const refused = () => rejectionOf(board.post('flow', {}, { client }))
      expect(String(await refused())).toContain('client has no transaction open')
      await client.query('BEGIN')
      await board.post('flow', {}, { client, name: 'inside' })
      await client.query('COMMIT')
      expect(await refused()).toBeInstanceOf(InvalidArgument)
      // The driver knows of a BEGIN only when it is answered; the server knows better.
      void client.query('BEGIN')
      await board.post('flow', {}, { client, name: 'queued' })
      await client.query('COMMIT')
    } finally {
      await client.end()
    }
    expect(await namesOn(board)).toEqual(['inside', 'queued'])
  })

  test('costs no further round trip where the driver knows of the transaction', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const client = new pg.Client({ connectionString: server.uri })
    await client.connect()
    try {
      await client.query('BEGIN')
      const sent: string[] = []
      const counting: SqlClient = {
        query: (text, values) => {
          sent.push(text)
          return client.query(text, values)
        },
      }
      await board.post('flow', {}, { client: Object.assign(counting, { getTransactionStatus: () => 'T' }) })
      expect(sent).toHaveLength(1)
      await client.query('COMMIT')
    } finally {
      await client.end()
    }
  })

  test('ends a wait for it when the transaction is rolled back, whole or to a savepoint', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const client = await transaction()
    try {
      const job = await board.post('flow', {}, { client })
      const waiting = rejectionOf(job.wait())
      await client.query('ROLLBACK', [])
      expect(await waiting).toBeInstanceOf(NotFound)
      expect(await rejectionOf(job.wait())).toBeInstanceOf(NotFound)
      await client.query('BEGIN', [])
      await client.query('SAVEPOINT before', [])
      const other = await board.post('flow', {}, { client })
      await client.query('ROLLBACK TO SAVEPOINT before', [])
      await client.query('COMMIT', [])
      expect(await rejectionOf(other.wait())).toBeInstanceOf(NotFound)
    } finally {
      await client.close()
    }
  })

  test('is waited for without a view, also where it has ended before', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.openUnviewed()
    await using worker = await place.open({ who: 'worker' })
    const client = await transaction()
    try {
      const [consumed, trashed, left, abandoned] = [
        await board.post('flow', {}, { client, name: 'consumed' }),
        await board.post('flow', {}, { client, name: 'trashed' }),
        await board.post('flow', {}, { client, name: 'left' }),
        await board.post('flow', {}, { client, name: 'abandoned' }),
      ]
      await client.query('SAVEPOINT before', [])
      const never = await board.post('flow', {}, { client, name: 'never' })
      await client.query('ROLLBACK TO SAVEPOINT before', [])
      const waiting = left.wait()
      await client.query('COMMIT', [])
      await (await claimed(worker, 'consumed')).consume()
      await (await claimed(worker, 'trashed')).trash()
      expect(await consumed.wait()).toBe('COMPLETE')
      expect(await trashed.wait()).toBe('TRASHED')
      expect(await rejectionOf(never.wait())).toBeInstanceOf(NotFound)
      expect(never.state).toBe('UNCLAIMED')
      const claim = await claimed(worker, 'abandoned')
      await vi.waitFor(() => expect(abandoned.state).toBe('CLAIMED'), 60_000)
      await claim.abandon()
      await (await claimed(worker, 'left')).consume()
      expect(await waiting).toBe('COMPLETE')
      expect(board.jobCount).toBeUndefined()
    } finally {
      await client.close()
    }
  })

  test('is found by its reference when that is committed, and ends no wait before', async () => {
    await using place = await sharedPlaceOn(server.uri)
    const board = await place.openUnviewed()
    await using worker = await place.open()
    const client = await transaction()
    try {
      const job = await board.post('flow', {}, { client })
      expect(await rejectionOf(board.find(job.ref))).toBeInstanceOf(NotFound)
      const ended = job.wait()
      expect(job.state).toBe('UNCLAIMED')
      await client.query('COMMIT', [])
      expect(await board.find(job.ref)).toMatchObject({ uuid: job.uuid, state: 'UNCLAIMED' })
      await (await worker.claimNext())[0].consume()
      expect(await ended).toBe('COMPLETE')
      await client.query('BEGIN', [])
      const open = rejectionOf((await board.post('flow', {}, { client })).wait())
      await board.close()
      expect(await open).toMatchObject({ code: 'JOBBOARD_INVALID_STATE' })
    } finally {
      await client.close()
    }
  })

  test('is emitted once to listeners, also when it is waited for at once', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using worker = await place.open()
    const events: string[] = []
    for (const event of ['posted', 'claimed', 'consumed'] as const)
      board.on(event, ({ job }) => events.push(`${event} ${job.name}`))
    const client = await transaction()
    try {
      for (let n = 0; n < 10; n += 1) {
        const job = await board.post('flow', {}, { client, name: `${n}` })
        await client.query('COMMIT', [])
        const ended = job.wait()
        // A job that has left the board before its posting was read has no events.
        await vi.waitFor(() => expect(events).toEqual([`posted ${n}`]), 60_000)
        await (await worker.claimNext())[0].consume()
        expect(await ended).toBe('COMPLETE')
        await refresh(board)
        expect(events.splice(0)).toEqual([`posted ${n}`, `claimed ${n}`, `consumed ${n}`])
        await client.query('BEGIN', [])
      }
    } finally {
      await client.close()
    }
  })

  test('needs a board in Postgres, and a client', async () => {
    await using board = await openBoard('memory:')
    const client = { query: async () => ({ rows: [] }) }
    expect(await rejectionOf(board.post('flow', {}, { client }))).toMatchObject({ capability: 'client' })
    await using place = await sharedPlaceOn(server.uri)
    await using there = await place.open()
    // @ts-expect-error no client
    expect(await rejectionOf(there.post('flow', {}, { client: 'pg' }))).toBeInstanceOf(InvalidArgument)
  })
})

describe('a followed job', () => {
  async function follower(place: PostgresPlace): Promise<{ backend: PostgresBackend; board: JobBoard }> {
    const backend = backendAt(place)
    const board = new JobBoard(backend, { who: 'follower' })
    await boardInternals(board).open()
    return { backend, board }
  }

  test('that leaves the board while it begins to be followed leaves no row behind', async () => {
    await using place = await sharedPlaceOn(server.uri)
    const { backend, board } = await follower(place)
    await using _closed = board
    const id = jobIdFor(await board.post('flow', {}))
    await using ending = await PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board'))).then(
      (connection) => Object.assign(connection, { [Symbol.asyncDispose]: () => connection.close() }),
    )
    await ending.query('BEGIN', [])
    await ending.query(
      `WITH gone AS (DELETE FROM ${place.schema}.jobs RETURNING board, id)
      SELECT ${place.schema}.log_change(board, 'consumed', ARRAY[id]) FROM gone`,
      [],
    )
    const following = backend.changes.follow([id])
    // It waits for the transaction that ends the job.
    const waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%follow(%'"
    await vi.waitFor(async () => expect(await place.query(waits)).toHaveLength(1), 60_000)
    await ending.query('COMMIT', [])
    expect(await following).toEqual(['gone'])
    expect(await place.query('SELECT FROM @.followers')).toEqual([])
  })

  test('is asked about again without a write, and followed again after the end of following', async () => {
    await using place = await sharedPlaceOn(server.uri)
    const { backend, board } = await follower(place)
    await using _closed = board
    const ids = [jobIdFor(await board.post('flow', {})), jobIdFor(await board.post('flow', {}))]
    const rows = () => place.query('SELECT job, xmin::text FROM @.followers ORDER BY job')
    const free = { claimed: false, cancelled: false, revision: 0 }
    expect(await backend.changes.follow([...ids, 'job0000009999'])).toEqual([free, free, 'gone'])
    const before = await rows()
    expect(before).toHaveLength(2)
    expect(await backend.changes.follow(ids)).toEqual([free, free])
    expect(await rows()).toEqual(before)
    await backend.changes.unfollow(ids)
    expect(await rows()).toEqual([])
    expect(await backend.changes.follow(ids)).toEqual([free, free])
    await backend.changes.unfollow(ids.slice(0, 1))
    expect((await rows()).map(({ job }) => `job${String(job).padStart(10, '0')}`)).toEqual(ids.slice(1))
  })

  variant('by many sessions that stop while it ends blocks no other session', async () => {
    await using place = await sharedPlaceOn(server.uri)
    const followers = await Promise.all(Array.from({ length: 6 }, () => follower(place)))
    await using worker = await place.open()
    for (let round = 0; round < 10; round += 1) {
      const jobs = await Promise.all(Array.from({ length: 20 }, () => worker.post('flow', {})))
      const ids = jobs.map(jobIdFor)
      await Promise.all(followers.map(({ backend }) => backend.changes.follow(ids)))
      const ending = worker
        .claimNext({ max: jobs.length })
        .then((claims) => Promise.all(claims.map((claim, index) => (index % 2 ? claim.trash() : claim.consume()))))
      const unfollowing = followers.map(({ backend }, index) =>
        backend.changes.unfollow(index % 2 ? ids : ids.toReversed()),
      )
      await Promise.all([ending, ...unfollowing])
    }
    expect(await place.query('SELECT FROM @.followers')).toEqual([])
    await Promise.all(followers.map(({ board }) => board.close()))
  })

  test('does not keep a board listening that was given up while its connection was replaced', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.openUnviewed()
    const view = await board.view()
    const session = await place.sessionOf(board)
    const back = nextEvent(board, 'state', ({ state }) => state === 'connected')
    const gone = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
    await place.query('SELECT pg_terminate_backend(backend) FROM @.sessions WHERE id = $1', [session])
    await gone
    view[Symbol.dispose]()
    boardInternals(board).closeUnusedView()
    await back
    const last = 'SELECT query FROM pg_stat_activity a JOIN @.sessions s ON s.backend = a.pid WHERE s.id = $1'
    await vi.waitFor(async () => {
      const [row] = await place.query(last, [session])
      // Either it has not begun to listen, or it has stopped.
      expect(row?.['query']).not.toMatch(/^LISTEN/)
    }, 60_000)
    expect(board.jobCount).toBeUndefined()
  })
})

describe('a job that must not be run again when its owner is lost', () => {
  test('is trashed, with that as the reason, and frees what it held', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using owner = await place.open({ who: 'owner' })
    await using other = await place.open({ who: 'other' })
    const resources = { exclusive: ['disk'] }
    const once = await owner.post('flow', {}, { name: 'once', key: 'one', onOwnerLost: 'fail', resources })
    await owner.post('flow', {}, { name: 'again', resources })
    await claimed(owner, 'once')
    await refresh(other)
    const trashed = nextEvent(other, 'trashed')
    await place.expire(owner)
    expect((await trashed).job.uuid).toBe(once.uuid)
    const [entry] = await all(other.trashed())
    expect(entry).toMatchObject({ reason: 'its owner owner was lost', who: 'owner' })
    expect((await claimed(other, 'again')).run).toBe(1)
    expect(await other.post('flow', {}, { key: 'one' })).toMatchObject({ created: true })
  })
})

describe('permits', () => {
  test('count only while their owner lives', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const job = await board.post('flow', {}, { resources: { exclusive: ['disk'] } })
    const permit = (session: number) =>
      place.query(
        `INSERT INTO @.permits (board, resource, job, name, exclusive, session)
        SELECT id, $1, 999, 'disk', true, $2 FROM @.boards`,
        [diskKey, session],
      )
    await permit(-1)
    const claim = await board.claim(job)
    await claim.abandon()
    await place.query('DELETE FROM @.permits')
    await permit(await place.sessionOf(board))
    expect(await rejectionOf(board.claim(claim.job))).toBeInstanceOf(Unclaimable)
  })
})

/** Of `disk`: anybody can compute it, here with Python's `hashlib.blake2s(b'disk', digest_size=8)`. */
const diskKey = '406831021742604773'

function backendAt(place: PostgresPlace, options: { readonly listen?: boolean } = {}): PostgresBackend {
  const uri = parseUri(place.uri, 'board')
  const board = uri.parameters.get('board') ?? ''
  return new PostgresBackend({
    ...{ uri: uri.printable, location: parsePostgresLocation(uri, ['board']), board, who: 'direct' },
    ...{ sessionTimeout: 30_000, scanPeriod: 200, window: 100, windowBytes: 2 ** 26, advisoryLocks: true, ...options },
  })
}

async function boardWithoutNotifications(place: PostgresPlace): Promise<JobBoard> {
  const opened = new JobBoard(backendAt(place, { listen: false }), { who: 'unnotified' })
  await boardInternals(opened).open()
  await opened.view()
  return opened
}
