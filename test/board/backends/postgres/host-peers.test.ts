/**
 * The jobs of a killed process go to another process of its host at once, and no job goes to another owner while its own may live. The sessions
 * last for an hour: what happens in these tests does not happen because one has expired.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { JobBoard } from '../../../../src/board/index.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { type NodeProcess, startNode } from '../../../support/node-process.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { startProxy } from '../../../support/proxy.ts'
import { usual as test, variant } from '../../../variant.ts'
import { namesOn, refresh } from '../../jobs.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'

const OWNER = new URL('./owner-child.ts', import.meta.url)
const HOUR = '&sessionTimeout=1h'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ config: { fsync: 'off' } })
})

afterAll(() => server.stop())

/** A board that waits for jobs, and takes over from processes of this host. */
interface Setup extends AsyncDisposable {
  readonly place: PostgresPlace
  readonly other: JobBoard
}

async function openSetup(): Promise<Setup> {
  const place = await postgresPlaceOn(server.uri, { parameters: HOUR })
  const other = await place.open({ who: 'other' })
  return {
    ...{ place, other },
    [Symbol.asyncDispose]: async () => {
      await other.close()
      await place[Symbol.asyncDispose]()
    },
  }
}

/** Starts a process that claims the next job. */
async function startOwner(uri: string, who = 'owner'): Promise<NodeProcess> {
  const owner = await startNode(OWNER, [uri, who])
  await owner.says(/^claimed /)
  return owner
}

async function socketOf({ place }: Pick<Setup, 'place'>, who: string): Promise<string> {
  const [row] = await place.query('SELECT socket FROM @.sessions WHERE who = $1', [who])
  return String(row?.['socket'])
}

async function hasSession({ place }: Pick<Setup, 'place'>, who: string): Promise<boolean> {
  return (await place.query('SELECT FROM @.sessions WHERE who = $1', [who])).length > 0
}

/** Returns the number of connections that other processes keep to the socket of this owner's process. */
async function countLinks(setup: Setup, who: string): Promise<number> {
  const socket = await socketOf(setup, who)
  // The first one is the socket that listens.
  return (await readFile('/proc/net/unix', 'latin1')).split(socket).length - 2
}

/** Resolves when other processes keep so many connections to the socket of this owner's process. */
async function untilLinked(setup: Setup, who: string, links: number): Promise<void> {
  await expect.poll(() => countLinks(setup, who), { timeout: 10_000 }).toBe(links)
}

/** Resolves when the board has looked at all processes of the host, twice: it has taken over from a process that never was. */
async function untilLooked(setup: Setup): Promise<void> {
  const { place } = setup
  const socket = await socketOf(setup, 'other')
  for (const who of ['first', 'second']) {
    await place.query(
      `INSERT INTO @.sessions (board, who, backend, backend_start, server_start, ttl, heartbeat_at, host, socket)
       SELECT board, $1, 0, now(), server_start, ttl, heartbeat_at, host, $2 FROM @.sessions WHERE who = 'other'`,
      [who, randomUUID()],
    )
    // A connection that breaks lets the process of the board look.
    createConnection({ path: `\0jobboard-${socket}`.padEnd(108, '-') }).end('\n')
    await expect.poll(() => hasSession(setup, who), { timeout: 10_000 }).toBe(false)
  }
}

test('a job goes to another process of the host when its owner is killed, which its waiting process notices', async () => {
  await using setup = await openSetup()
  const { place, other } = setup
  await other.post('flow', {}, { name: 'job' })
  await using owner = await startOwner(place.uri)
  await untilLinked(setup, 'other', 1)
  const claiming = other.claimNext()
  owner.signal('SIGKILL')
  const [claim] = await claiming
  expect(claim.job.attempts).toMatchObject([{ who: 'owner' }, { who: 'other' }])
  await claim.consume()
  expect(await hasSession(setup, 'owner')).toBe(false)
})

test('a job goes to the process that is started in the place of its killed owner', async () => {
  await using place = await postgresPlaceOn(server.uri, { parameters: HOUR })
  {
    await using poster = await place.open({ who: 'poster' })
    await poster.post('flow', {}, { name: 'job' })
  }
  await using killed = await startOwner(place.uri)
  killed.signal('SIGKILL')
  await killed.ended
  await using next = await startOwner(place.uri, 'next')
  expect(next.lines).toContain('claimed job')
})

variant('each of three killed processes is noticed, although the one before it is stopped', async () => {
  await using setup = await openSetup()
  const { place, other } = setup
  for (const name of ['one', 'two', 'three']) await other.post('flow', {}, { name })
  await using first = await startOwner(place.uri, 'first')
  await untilLinked(setup, 'other', 1)
  await using second = await startOwner(place.uri, 'second')
  await untilLinked(setup, 'other', 2)
  await using third = await startOwner(place.uri, 'third')
  await untilLinked(setup, 'second', 1)
  await untilLinked(setup, 'first', 2)
  second.signal('SIGSTOP')
  for (const killed of [third, first, second]) {
    const claiming = other.claimNext()
    killed.signal('SIGKILL')
    await (await claiming)[0].consume()
  }
  expect(await namesOn(other)).toEqual([])
})

describe('a job stays with its owner', () => {
  test('while the process of the owner is stopped', async () => {
    await using setup = await openSetup()
    const { place, other } = setup
    await other.post('flow', {}, { name: 'job' })
    await using owner = await startOwner(place.uri)
    owner.signal('SIGSTOP')
    await untilLooked(setup)
    await refresh(other)
    expect(await namesOn(other, { onlyUnclaimed: true })).toEqual([])
    expect(await hasSession(setup, 'owner')).toBe(true)
    owner.signal('SIGCONT')
    expect(owner.lines).not.toContain('lost job')
  })

  variant('while its connection is cut on the side of the server, and the owner does not know it', async () => {
    await using setup = await openSetup()
    await using proxy = await startProxy({ port: server.port })
    const { place, other } = setup
    await other.post('flow', {}, { name: 'job' })
    await using owner = await startOwner(place.uri.replace(/:\d+\//, `:${proxy.port}/`))
    proxy.mode = 'blackhole'
    const [row] = await place.query(
      "SELECT pg_terminate_backend(backend), lock, backend FROM @.sessions WHERE who = 'owner'",
    )
    const isHeld = async () =>
      (await place.query('SELECT @.is_held($1, $2) AS held', [row?.['lock'], row?.['backend']]))[0]?.['held']
    await expect.poll(isHeld).toBe(false)
    await untilLooked(setup)
    expect(await hasSession(setup, 'owner')).toBe(true)
    await refresh(other)
    expect(await namesOn(other, { onlyUnclaimed: true })).toEqual([])
    // Its connections end before its process: a process that the proxy still represents must not count either.
    const claiming = other.claimNext()
    owner.signal('SIGKILL')
    expect((await claiming)[0].job.name).toBe('job')
  })

  variant('while its process is on another host, also if it has ended', async () => {
    await using setup = await openSetup()
    const { place, other } = setup
    await other.post('flow', {}, { name: 'job' })
    await using owner = await startOwner(place.uri)
    await place.query("UPDATE @.sessions SET host = 'elsewhere' WHERE who = 'owner'")
    owner.signal('SIGKILL')
    await owner.ended
    await untilLooked(setup)
    expect(await hasSession(setup, 'owner')).toBe(true)
    await refresh(other)
    expect(await namesOn(other, { onlyUnclaimed: true })).toEqual([])
  })

  test('while its backend holds the lock, whatever is known of its process; and while it is attached to another connection', async () => {
    await using setup = await openSetup()
    const { place } = setup
    const [first, second] = [await openConnection(), await openConnection()]
    const id = await openSession(place, first)
    const takeOver = async (socket = 'socket') =>
      (await place.query('SELECT @.take_over_ended($1, $2) AS answer', [id, socket]))[0]?.['answer']
    expect(await takeOver()).toBe('hung')
    await second.query('BEGIN', [])
    await second.query(`SELECT ${place.schema}.reattach($1, 1)`, [id])
    await first.close()
    expect(await takeOver()).toBe('hung')
    await second.query('COMMIT', [])
    expect([await takeOver(), await takeOver('another socket')]).toEqual(['hung', 'gone'])
    await second.close()
    await expect.poll(() => takeOver()).toBe('ended')
    expect(await takeOver()).toBe('gone')
  })
})

test('a process that is killed while its claim is under way loses the job of this claim, too', async () => {
  await using setup = await openSetup()
  const { place, other } = setup
  await other.post('flow', {}, { name: 'job' })
  const [owner, claiming] = [await openConnection(), await openConnection()]
  const session = await openSession(place, owner)
  await claiming.query('BEGIN', [])
  await claiming.query(`SELECT ${place.schema}.is_alive($1)`, [session])
  await owner.close()
  const takeOver = async () =>
    (await place.query("SELECT @.take_over_ended($1, 'socket') AS answer", [session]))[0]?.['answer']
  const isHeld = async () =>
    (await place.query("SELECT @.is_held(lock, backend) AS held FROM @.sessions WHERE who = 'odd'"))[0]?.['held']
  await expect.poll(isHeld).toBe(false)
  expect(await takeOver()).toBe('hung')
  await claiming.query(`UPDATE ${place.schema}.jobs SET session = $1`, [session])
  await claiming.query('COMMIT', [])
  await claiming.close()
  expect(await takeOver()).toBe('ended')
  expect((await other.claimNext())[0].job.name).toBe('job')
})

function openConnection(): Promise<PostgresConnection> {
  return PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
}

/** Opens a session on this connection, as a process with the socket `socket` would do that is on a host of its own. */
async function openSession({ schema }: PostgresPlace, connection: PostgresConnection): Promise<number> {
  const text = `SELECT ${schema}.open_session((SELECT max(id) FROM ${schema}.boards), 'odd', 60000, true, 'host', 'socket') AS id`
  return Number((await connection.query(text, [])).rows[0]?.['id'])
}
