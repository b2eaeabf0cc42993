/** Resources of claimed jobs are advisory locks of the database: other programs see them, wait for them, and hold them. */
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import type { Claim, JobBoard, Resources } from '../../../../src/board/index.ts'
import { ClaimLost, InvalidArgument, ResourceLocked, Unclaimable } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { advisoryKey, PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { startNode } from '../../../support/node-process.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { startProxy } from '../../../support/proxy.ts'
import { usual as test, variant } from '../../../variant.ts'
import { nextConnection, nextEvent, rejectionOf, whenLost } from '../../events.ts'
import { claimed, refresh } from '../../jobs.ts'
import { type PostgresPlace, sharedPlaceOn } from './boards.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ config: { fsync: 'off' } })
})

afterAll(() => server.stop())

async function newPlace(): Promise<PostgresPlace> {
  const place = await sharedPlaceOn(server.uri)
  onTestFinished(() => place[Symbol.asyncDispose]())
  return place
}

async function opened(place: PostgresPlace, options: { port?: number; parameters?: string } = {}): Promise<JobBoard> {
  const { port = server.port, parameters = '' } = options
  const board = await place.openAt(port, { parameters })
  onTestFinished(() => board.close())
  return board
}

/** Another program, with a connection of its own. */
async function outsider(): Promise<PostgresConnection> {
  const connection = await PostgresConnection.open(
    parsePostgresLocation(parseUri(`${server.uri}?application_name=nightly`, 'board')),
  )
  onTestFinished(() => connection.close())
  return connection
}

async function ask(program: PostgresConnection, name: string, resource: string): Promise<unknown> {
  const { rows } = await program.query(`SELECT ${name}($1::bigint) AS answer`, [String(advisoryKey(resource))])
  return rows[0]?.['answer']
}

/** The modes of all locks of this name that are held. */
async function locksOf(place: PostgresPlace, resource: string): Promise<unknown[]> {
  const rows = await place.query(
    `SELECT mode FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND classid::bigint = ($1::bigint >> 32) & 4294967295 AND objid::bigint = $1::bigint & 4294967295`,
    [String(advisoryKey(resource))],
  )
  return rows.map(({ mode }) => mode)
}

/** A place with names of its own: advisory locks belong to the whole database. */
function nameOf(place: PostgresPlace, name: string): string {
  return `${place.schema}/${name}`
}

async function postWith(board: JobBoard, resources: Resources, name = 'job') {
  return board.post('flow', {}, { name, resources })
}

describe('a claimed job', () => {
  test.each(['consume', 'abandon', 'trash'] as const)('holds the locks of its resources until %s', async (end) => {
    const place = await newPlace()
    const board = await opened(place)
    const [disk, room] = [nameOf(place, 'disk'), nameOf(place, 'room')]
    const job = await postWith(board, { exclusive: [disk], shared: [room] })
    expect(await locksOf(place, disk)).toEqual([])
    const claim = await board.claim(job)
    expect([await locksOf(place, disk), await locksOf(place, room)]).toEqual([['ExclusiveLock'], ['ShareLock']])
    const program = await outsider()
    expect(await ask(program, 'pg_try_advisory_lock', disk)).toBe(false)
    expect(await ask(program, 'pg_try_advisory_lock', room)).toBe(false)
    expect(await ask(program, 'pg_try_advisory_lock_shared', room)).toBe(true)
    const waiting = ask(program, 'pg_advisory_lock', disk)
    await claim[end]()
    await waiting
    expect(await locksOf(place, room)).toEqual(['ShareLock'])
  })

  test('shares a lock with other jobs of the same process: each holds its own', async () => {
    const place = await newPlace()
    const board = await opened(place)
    const room = nameOf(place, 'room')
    await postWith(board, { shared: [room] }, 'one')
    await postWith(board, { shared: [room] }, 'two')
    const [one, two] = [await claimed(board, 'one'), await claimed(board, 'two')]
    const program = await outsider()
    await one.consume()
    expect(await ask(program, 'pg_try_advisory_lock', room)).toBe(false)
    await two.consume()
    expect(await ask(program, 'pg_try_advisory_lock', room)).toBe(true)
  })

  test('does not share an exclusive resource with another job of the same process', async () => {
    const place = await newPlace()
    const board = await opened(place)
    const resources = { exclusive: [nameOf(place, 'disk')] }
    const first = await board.claim(await postWith(board, resources, 'first'))
    const second = await postWith(board, resources, 'second')
    expect(await rejectionOf(board.claim(second))).toBeInstanceOf(Unclaimable)
    await first.consume()
    await (await board.claim(second)).consume()
    expect(await locksOf(place, resources.exclusive[0] ?? '')).toEqual([])
  })

  variant('that is claimed by two boards at once is locked by the one that has it', async () => {
    const place = await newPlace()
    const boards = await Promise.all([opened(place), opened(place), opened(place)])
    const [first] = boards
    const disk = nameOf(place, 'disk')
    for (let round = 0; round < 20; round += 1) {
      const job = await postWith(first, { exclusive: [disk] })
      await Promise.all(boards.map(refresh))
      const results = await Promise.allSettled(boards.map(async (board) => board.claim(await board.find(job.uuid))))
      const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      expect(won.length).toBeLessThanOrEqual(1)
      expect(await locksOf(place, disk)).toEqual(won.map(() => 'ExclusiveLock'))
      const claim = won[0] ?? (await first.claimNext())[0]
      await claim.consume()
      expect(await locksOf(place, disk)).toEqual([])
    }
  })

  test('whose claim is taken away by hand is unlocked', async () => {
    const place = await newPlace()
    const board = await opened(place)
    const disk = nameOf(place, 'disk')
    const claim = await board.claim(await postWith(board, { exclusive: [disk] }))
    const lost = whenLost(claim)
    await place.query(
      `WITH freed AS (UPDATE @.jobs SET session = NULL, revision = revision + 1 RETURNING board, id), gone AS (DELETE FROM @.permits)
      SELECT @.log_change(board, 'freed', ARRAY[id]) FROM freed`,
    )
    expect(await lost).toBeInstanceOf(ClaimLost)
    await ask(await outsider(), 'pg_advisory_lock', disk)
  })

  variant('of a process that is killed is unlocked at once', async () => {
    const place = await newPlace()
    const board = await opened(place)
    const disk = nameOf(place, 'disk')
    await postWith(board, { exclusive: [disk] })
    await using owner = await startNode(CLAIMER, [place.uri])
    await owner.says('claimed')
    const waiting = ask(await outsider(), 'pg_advisory_lock', disk)
    owner.signal('SIGKILL')
    await Promise.all([waiting, owner.ended])
  })
})

describe('a resource that another program has locked', () => {
  test('makes the job wait, uncharged, with its place, until it is unlocked', async () => {
    const place = await newPlace()
    const board = await opened(place)
    const disk = nameOf(place, 'disk')
    const program = await outsider()
    await ask(program, 'pg_advisory_lock', disk)
    const job = await postWith(board, { exclusive: [disk] }, 'waits')
    await postWith(board, {}, 'other')
    const error = await rejectionOf(board.claim(job))
    expect(error).toBeInstanceOf(ResourceLocked)
    const holder = { pid: program.backend, application: 'nightly' }
    expect(error).toMatchObject({ resource: disk, holder, code: 'JOBBOARD_RESOURCE_LOCKED' })
    expect(String(error)).toContain(`backend ${program.backend} (nightly) has locked resource ${disk}`)
    const other = await opened(place)
    const reason = await other.waitingFor(await other.find(job.uuid))
    expect(reason).toMatchObject({ kind: 'resource', resource: disk, holder })
    expect(reason?.text).toContain(`backend ${program.backend} of the database (nightly)`)
    expect((await other.claimNext({ max: 5 })).map((claim) => claim.job.name)).toEqual(['other'])
    const next = board.claimNext()
    await ask(program, 'pg_advisory_unlock', disk)
    const [claim] = await next
    expect([claim.job.name, claim.run]).toEqual(['waits', 1])
    await claim.consume()
  })

  test('shared is no hindrance to a job that shares it', async () => {
    const place = await newPlace()
    const board = await opened(place)
    const room = nameOf(place, 'room')
    await ask(await outsider(), 'pg_advisory_lock_shared', room)
    const shares = await postWith(board, { shared: [room] })
    await (await board.claim(shares)).consume()
    const alone = await postWith(board, { exclusive: [room] })
    expect(await board.waitingFor(alone)).toMatchObject({ kind: 'resource', resource: room })
    expect(await rejectionOf(board.claim(alone))).toBeInstanceOf(ResourceLocked)
  })

  test('leaves the other resources of the job free', async () => {
    const place = await newPlace()
    const board = await opened(place)
    const [disk, tape] = [nameOf(place, 'disk'), nameOf(place, 'tape')]
    await ask(await outsider(), 'pg_advisory_lock', disk)
    const both = await postWith(board, { exclusive: [tape, disk] })
    expect(await rejectionOf(board.claim(both))).toBeInstanceOf(ResourceLocked)
    expect(await locksOf(place, tape)).toEqual([])
  })

  test('by another board of the same database makes the job wait, too', async () => {
    const [one, two] = [await newPlace(), await newPlace()]
    const [first, second] = [await opened(one), await opened(two)]
    const resources = { exclusive: [nameOf(one, 'disk')] }
    const claim = await first.claim(await postWith(first, resources))
    const job = await postWith(second, resources)
    expect(await rejectionOf(second.claim(job))).toMatchObject({ holder: { application: 'jobboard' } })
    const next = second.claimNext()
    await claim.consume()
    await (await next)[0].consume()
  })
})

describe('when the connection of the session breaks', () => {
  variant('the locks are taken again', async () => {
    const place = await newPlace()
    const proxy = await startProxy({ port: server.port })
    onTestFinished(() => proxy.close())
    const board = await opened(place, { port: proxy.port })
    const disk = nameOf(place, 'disk')
    const claim = await board.claim(await postWith(board, { exclusive: [disk] }))
    for (let round = 0; round < 5; round += 1) {
      const back = nextConnection(board)
      proxy.resetAll()
      await back
      while ((await locksOf(place, disk)).length !== 1);
    }
    const program = await outsider()
    expect(await ask(program, 'pg_try_advisory_lock', disk)).toBe(false)
    await claim.consume()
    await ask(program, 'pg_advisory_lock', disk)
  })

  test('the claim is lost if another program gets a lock meanwhile', async () => {
    const place = await newPlace()
    const proxy = await startProxy({ port: server.port })
    onTestFinished(() => proxy.close())
    const board = await opened(place, { port: proxy.port })
    const disk = nameOf(place, 'disk')
    const claim = await board.claim(await postWith(board, { exclusive: [disk] }))
    const program = await outsider()
    const waiting = ask(program, 'pg_advisory_lock', disk)
    const away = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await away
    await waiting
    const lost = whenLost(claim)
    const over = nextEvent(board, 'state', ({ state }) => state === 'lost')
    proxy.mode = 'pass'
    expect(await lost).toBeInstanceOf(ClaimLost)
    expect(String((await over).reason)).toContain(`(nightly) has locked resource ${disk}`)
    const next = board.claimNext()
    await ask(program, 'pg_advisory_unlock', disk)
    expect((await next)[0].run).toBe(2)
  })

  variant('a job that ends before its locks were taken again leaves none', async () => {
    const place = await newPlace()
    const proxy = await startProxy({ port: server.port })
    onTestFinished(() => proxy.close())
    const board = await opened(place, { port: proxy.port })
    const disk = nameOf(place, 'disk')
    for (let round = 0; round < 10; round += 1) {
      const claim = await board.claim(await postWith(board, { exclusive: [disk] }))
      const back = nextConnection(board)
      proxy.resetAll()
      await back
      await claim.consume()
      // The server may end our former connection a moment later, so the outsider waits for the lock. Its own connection must have ended before the next claim.
      await ask(await outsider(), 'pg_advisory_lock', disk).then(() => undefined)
      await place.query(
        `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'nightly'`,
      )
    }
  })
})

test('advisoryLocks=off locks nothing and waits for nobody', async () => {
  const place = await newPlace()
  const board = await opened(place, { parameters: '&advisoryLocks=off' })
  const disk = nameOf(place, 'disk')
  await ask(await outsider(), 'pg_advisory_lock', disk)
  const job = await postWith(board, { exclusive: [disk] })
  expect(await board.waitingFor(job)).toBeUndefined()
  await (await board.claim(job)).consume()
})

test('advisoryLocks must be on or off', async () => {
  const place = await newPlace()
  const error = await rejectionOf(place.openAt(server.port, { parameters: '&advisoryLocks=maybe' }))
  expect(error).toBeInstanceOf(InvalidArgument)
  expect(String(error)).toContain('advisoryLocks must be on or off, got maybe')
})

variant('a server without room for more locks refuses the claim, and keeps none of its locks', async () => {
  await using small = await startPostgres({
    config: { fsync: 'off', max_locks_per_transaction: '10', max_connections: '10' },
  })
  await using place = await sharedPlaceOn(small.uri)
  await using board = await place.open()
  // Few for each job: the last one must fit when the others have ended.
  const many = (from: number) => Array.from({ length: 32 }, (_, n) => nameOf(place, `r${from + n}`))
  const claims: Claim[] = []
  let error: unknown
  for (let from = 0; error === undefined && from < 100 * 32; from += 32) {
    const job = await board.post('flow', {}, { name: `job ${from}`, resources: { exclusive: many(from) } })
    await board.claim(job).then(
      (claim) => claims.push(claim),
      (refusal: unknown) => {
        error = refusal
      },
    )
  }
  expect(error).toMatchObject({ retryable: true })
  expect(claims.length).toBeGreaterThan(0)
  while (
    (await place.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"))[0]?.['count'] !==
    String(32 * claims.length)
  );
  for (const claim of claims) {
    claim.assertHeld()
    await claim.consume()
  }
  expect((await board.claimNext())[0].run).toBe(1)
})
