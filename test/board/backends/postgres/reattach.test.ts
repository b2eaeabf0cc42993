/** A session in Postgres goes on over another connection, and its claims with it: unless it is over, or may be soon. */
import { afterAll, beforeAll, describe, expect, onTestFinished, vi } from 'vitest'
import type { Job, JobBoard } from '../../../../src/board/index.ts'
import { ClaimLost } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { startProxy, type TcpProxy } from '../../../support/proxy.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor } from '../../boards.ts'
import { nextConnection, nextEvent, nextSession, recordEvents, whenLost } from '../../events.ts'
import { namesOn, refresh } from '../../jobs.ts'
import { checkLimitsInOutage } from '../../outage-limits.ts'
import { checkPassingRefusal } from '../../passing-refusals.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ config: { fsync: 'off' } })
})

afterAll(() => server.stop())

/** An owner behind a proxy, with a claim, and a board that sees the server directly. */
interface Setup extends AsyncDisposable {
  readonly place: PostgresPlace
  readonly proxy: TcpProxy
  readonly owner: JobBoard
  readonly other: JobBoard
}

async function openSetup(parameters = ''): Promise<Setup> {
  const place = await postgresPlaceOn(server.uri)
  const proxy = await startProxy({ port: server.port })
  const owner = await place.openAt(proxy.port, { who: 'owner', parameters })
  const other = await place.openAt(server.port, { who: 'other', parameters })
  return {
    ...{ place, proxy, owner, other },
    [Symbol.asyncDispose]: async () => {
      proxy.mode = 'pass'
      await Promise.all([owner.close(), other.close()])
      await proxy.close()
      await place[Symbol.asyncDispose]()
    },
  }
}

/** Cuts the owner off, so that it is without a connection until the proxy lets it through again. */
async function cutOff({ owner, proxy }: Setup): Promise<void> {
  const away = nextEvent(owner, 'state', ({ state }) => state === 'disconnected')
  proxy.mode = 'refuse'
  proxy.resetAll()
  await away
}

variant(
  'calls keep their time limits while nothing is answered, and what was given up is in the trash when the servers are back',
  async () => {
    await using setup = await openSetup('?sessionTimeout=60s')
    await checkLimitsInOutage({ ...setup, board: setup.owner })
  },
)

test('a trigger that fails for some time hides no job: each is claimed once it is gone, and one error is reported', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  await checkPassingRefusal(board, async () => {
    await place.query(
      `CREATE FUNCTION @.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$`,
    )
    await place.query('CREATE TRIGGER refuse BEFORE UPDATE ON @.jobs FOR EACH ROW EXECUTE FUNCTION @.refuse()')
    return {
      [Symbol.asyncDispose]: async () => {
        await place.query('DROP TRIGGER refuse ON @.jobs')
      },
    }
  })
})

variant('many jobs that are refused each time do not keep a later job from being claimed', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  for (let n = 0; n < 30; n += 1) await board.post('flow', {}, { name: 'refused', priority: 'HIGH' })
  await place.query(
    `CREATE FUNCTION @.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF NEW.name = 'refused' THEN RAISE EXCEPTION 'never'; END IF;
       RETURN NEW;
     END $$`,
  )
  await place.query('CREATE TRIGGER refuse BEFORE UPDATE ON @.jobs FOR EACH ROW EXECUTE FUNCTION @.refuse()')
  const reported = nextEvent(board, 'error')
  const claiming = board.claimNext({ max: 4 })
  await reported
  await board.post('flow', {}, { name: 'innocent', priority: 'LOW' })
  expect((await claiming).map(({ job }) => job.name)).toEqual(['innocent'])
  for (let n = 0; n < 3; n += 1) {
    await board.post('flow', {}, { name: `innocent ${n}`, priority: 'LOW' })
    expect((await board.claimNext()).map(({ job }) => job.name)).toEqual([`innocent ${n}`])
  }
})

variant('connections that are reset again and again cost no claim, and every job is done once', async () => {
  await using setup = await openSetup()
  const { owner, other, proxy } = setup
  const [JOBS, RESETS] = [200, 10]
  const states = new Set<string>()
  owner.on('state', ({ state }) => states.add(state))
  const done: string[] = []
  const finished = new AbortController()
  let resets = 0
  const work = async () => {
    for await (const claim of owner.claims({ signal: finished.signal })) {
      expect(await claim.perform(() => undefined)).toBe('consumed')
      done.push(claim.job.name)
      if (done.length === JOBS) finished.abort()
      if (resets >= RESETS || done.length < ((resets + 1) * JOBS) / (RESETS + 1)) continue
      resets += 1
      proxy.resetAll()
    }
  }
  const names = Array.from({ length: JOBS }, (_, number) => `job ${number}`)
  await Promise.all([...names.map((name) => other.post('flow', {}, { name })), work(), work(), work()])
  expect(resets).toBe(RESETS)
  expect(done.sort()).toEqual(names.sort())
  expect(states).toEqual(new Set(['disconnected', 'connected']))
  expect(await namesOn(other)).toEqual([])
})

test('what happened while there was no connection is reported afterwards, once', async () => {
  await using setup = await openSetup()
  const { owner, other, proxy } = setup
  await owner.post('flow', {}, { name: 'held' })
  const [claim] = await owner.claimNext()
  const { id } = await idAndLock(setup)
  const history = recordEvents(owner)
  await cutOff(setup)
  await other.post('flow', {}, { name: 'done' })
  await (await other.claimNext())[0].consume()
  await other.post('flow', {}, { name: 'waits' })
  await other.pause()
  const back = nextConnection(owner)
  proxy.mode = 'pass'
  await back
  await refresh(owner)
  expect(history).toEqual(
    ['posted done', 'claimed done', 'consumed done', 'posted waits'].filter((told) => history.includes(told)),
  )
  expect(history).toContain('posted waits')
  expect(owner.paused).toBe(true)
  expect((await idAndLock(setup)).id).toBe(id)
  await claim.consume()
  expect(await namesOn(owner)).toEqual(['waits'])
})

variant('a backend that is stopped is left behind: the owner takes another lock, and is no less alive', async () => {
  // The lease goes on for 2 s after the unanswered heartbeat: with a shorter timeout, a busy machine attaches too late.
  await using setup = await openSetup('&sessionTimeout=15s')
  const { owner, other, place } = setup
  await owner.post('flow', {})
  const [claim] = await owner.claimNext()
  const before = await idAndLock(setup)
  const back = nextConnection(owner)
  const signal = (name: string) =>
    place.query(`COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; kill -${name} ${before.backend}'`)
  await signal('STOP')
  try {
    await back
    const after = await idAndLock(setup)
    expect(after.id).toBe(before.id)
    expect(after.lock).not.toBe(before.lock)
    expect(await place.query('SELECT @.take_over($1) AS answer', [before.id])).toEqual([{ answer: 'alive' }])
    claim.assertHeld()
    await claim.consume()
  } finally {
    await signal('CONT')
  }
  await refresh(other)
  expect(await other.countJobs()).toBe(0)
})

describe('a session that another takes over', () => {
  test('while it has no connection is lost when it comes back, and its claims with it', async () => {
    await using setup = await openSetup()
    const { owner, other, place, proxy } = setup
    await owner.post('flow', {})
    const [claim] = await owner.claimNext()
    const { id } = await idAndLock(setup)
    await cutOff(setup)
    const [lost, back] = [whenLost(claim), nextSession(owner)]
    await place.query("UPDATE @.sessions SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE id = $1", [id])
    // The lock went with the connection, as soon as the server has noticed.
    while ((await place.query('SELECT @.take_over($1) AS answer', [id]))[0]?.['answer'] === 'hung');
    const [taken] = await other.claimNext()
    expect(claim.lost.aborted).toBe(false)
    proxy.mode = 'pass'
    expect(await lost).toBeInstanceOf(ClaimLost)
    await back
    expect(taken.run).toBe(2)
    await taken.consume()
  })

  test('is not attached again after its time, though no other owner has taken it over', async () => {
    await using setup = await openSetup()
    const { owner, place, proxy } = setup
    await owner.post('flow', {})
    const [claim] = await owner.claimNext()
    const { id } = await idAndLock(setup)
    await cutOff(setup)
    const lost = whenLost(claim)
    await place.query("UPDATE @.sessions SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE id = $1", [id])
    proxy.mode = 'pass'
    expect(await lost).toBeInstanceOf(ClaimLost)
    expect((await owner.claimNext())[0].run).toBe(2)
  })

  test('is not taken over while an attachment within its time is not committed yet', async () => {
    await using setup = await openSetup()
    const { place } = setup
    const { id } = await idAndLock(setup)
    // The attachment below ends the owner's backend. An owner that can connect again would then end the session.
    await cutOff(setup)
    const mine = await PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
    const takeOver = () => place.query('SELECT @.take_over($1) AS answer', [id])
    try {
      await mine.query('BEGIN', [])
      await mine.query(`SELECT ${place.schema}.reattach($1, 7)`, [id])
      expect(await takeOver()).toEqual([{ answer: 'alive' }])
      await mine.query('COMMIT', [])
      expect(await takeOver()).toEqual([{ answer: 'alive' }])
    } finally {
      await mine.close()
    }
  })

  variant(
    'is over although a transaction of its is open: that keeps the job that it has locked, and what it claims late is freed',
    async () => {
      await using setup = await openSetup()
      const { owner, other, place } = setup
      const [settled, , late] = await Promise.all(
        ['settling', 'idle', 'late'].map((name) => other.post('flow', {}, { name })),
      )
      await owner.claimNext({ max: 2 })
      await refresh(other)
      const { id } = await idAndLock(setup)
      await cutOff(setup)
      const takeOver = async () => (await place.query('SELECT @.take_over($1) AS answer', [id]))[0]?.['answer']
      const opened = () => PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
      const [settling, claiming] = [await opened(), await opened()]
      try {
        for (const zombie of [settling, claiming]) {
          await zombie.query('BEGIN', [])
          await zombie.query(`SELECT ${place.schema}.is_alive($1)`, [id])
        }
        await settling.query(`DELETE FROM ${place.schema}.jobs WHERE id = $1`, [numberOf(settled)])
        await place.query("UPDATE @.sessions SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE id = $1", [id])
        await expect.poll(takeOver).toBe('hung')
        await refresh(other)
        expect(await namesOn(other, { onlyUnclaimed: true })).toEqual(['idle', 'late'])
        await claiming.query(`UPDATE ${place.schema}.jobs SET session = $1 WHERE id = $2`, [id, numberOf(late)])
        await claiming.query('COMMIT', [])
        expect(await takeOver()).toBe('hung')
        await settling.query('COMMIT', [])
        // The other board takes over, too.
        expect(['ended', 'gone']).toContain(await takeOver())
        expect(await place.query('SELECT FROM @.jobs WHERE session = $1', [id])).toEqual([])
        expect(await place.query('SELECT count(*)::integer AS left FROM @.jobs')).toEqual([{ left: 2 }])
      } finally {
        await Promise.all([settling.close(), claiming.close()])
      }
    },
  )

  test('is not attached by a request of a former attachment that arrives late', async () => {
    await using setup = await openSetup()
    const { place } = setup
    const { id } = await idAndLock(setup)
    const attach = async (number: number) =>
      (await place.query('SELECT @.reattach($1, $2) AS done', [id, number]))[0]?.['done']
    expect(await attach(3)).toBe(true)
    expect([await attach(2), await attach(3)]).toEqual([false, false])
  })
})

variant('a lease that ends without a connection ends the claims before another gets them', async () => {
  await using setup = await openSetup('&sessionTimeout=2s')
  const { owner, other, proxy } = setup
  await owner.post('flow', {})
  const [claim] = await owner.claimNext()
  const order: string[] = []
  const lost = whenLost(claim).then(() => order.push('lost'))
  const taken = other.claimNext().then(([nextOwner]) => {
    order.push('taken')
    return nextOwner
  })
  await cutOff(setup)
  await lost
  const nextOwner = await taken
  expect(order).toEqual(['lost', 'taken'])
  const back = nextConnection(owner)
  proxy.mode = 'pass'
  await back
  expect(owner.connected).toBe(true)
  await nextOwner.consume()
})

variant('a server that is started again twice ends every claim, and eight jobs run eight at a time', async () => {
  await using own = await startPostgres({ config: { fsync: 'off' } })
  await using place = await postgresPlaceOn(own.uri)
  await using owner = await place.open()
  const claimAll = async () => {
    const claims = await owner.claimNext({ max: 8 })
    while (claims.length < 8) claims.push(...(await owner.claimNext({ max: 8 - claims.length })))
    return claims
  }
  for (let number = 0; number < 8; number++) await owner.post('flow', {})
  for (let times = 0; times < 2; times++) {
    const losses = (await claimAll()).map(whenLost)
    const back = nextSession(owner)
    await own.restart()
    await Promise.all([...losses, back])
  }
  const claims = await claimAll()
  for (const { job } of claims)
    expect(job.attempts.map(({ ended }) => ended)).toEqual(['returned', 'returned', undefined])
})

test('a connection that breaks while the owner reads what it missed is replaced by another', async () => {
  await using setup = await openSetup()
  const { owner, place } = setup
  await owner.post('flow', {})
  const [claim] = await owner.claimNext()
  const { backend } = await idAndLock(setup)
  const states: string[] = []
  owner.on('state', ({ state }) => states.push(state))
  await using admin = await administrator()
  await admin.query('BEGIN', [])
  await admin.query(`LOCK TABLE ${place.schema}.changes IN ACCESS EXCLUSIVE MODE`, [])
  await admin.query('SELECT pg_terminate_backend($1)', [backend])
  const second = await admin.waiting('changes_since')
  const back = nextEvent(owner, 'state', ({ state }) => state !== 'disconnected')
  await admin.query('SELECT pg_terminate_backend($1)', [second])
  await admin.query('COMMIT', [])
  expect((await back).state).toBe('connected')
  expect(states).toEqual(['disconnected', 'connected'])
  claim.assertHeld()
  await claim.consume()
})

describe('a board that is closed', () => {
  test('while the server does not answer a new session waits for no answer', async () => {
    await using setup = await openSetup('&sessionTimeout=1s&statementTimeout=10m')
    const { owner, place } = setup
    await using admin = await administrator()
    const lost = nextEvent(owner, 'state', ({ state }) => state === 'lost')
    await admin.query('BEGIN', [])
    await admin.query(`LOCK TABLE ${place.schema}.sessions IN ACCESS EXCLUSIVE MODE`, [])
    await lost
    await admin.waiting('end_session')
    // The lock is there until the board is closed.
    await owner.close()
    await admin.query('COMMIT', [])
  })

  test('while a heartbeat is under way leaves no timer behind', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using admin = await administrator()
    const timers = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timers.mockRestore())
    const owner = await place.openAt(server.port, { parameters: '&sessionTimeout=3s' })
    const { schema } = place
    await admin.query('BEGIN', [])
    await admin.query(`LOCK TABLE ${schema}.sessions IN ACCESS EXCLUSIVE MODE`, [])
    await admin.waiting('renew_session')
    const closed = owner.close()
    await admin.waiting('renew_session')
    await admin.query('COMMIT', [])
    await closed
    // Node says only here whether a timer has fired or was cleared.
    const isActive = (timer: NodeJS.Timeout) => timer.hasRef() && !Reflect.get(timer, '_destroyed')
    const active = timers.mock.results.filter(({ value }) => isActive(value))
    // The names of their functions, because a timer prints thousands of lines.
    expect(active.map(({ value }) => String(Reflect.get(value, '_onTimeout').name))).toEqual([])
  })
})

/** A connection of the server's administrator. */
async function administrator() {
  const connection = await PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
  /** Resolves with the backend that waits for a lock in a call of this function. */
  const waiting = async (call: string): Promise<number> => {
    while (true) {
      // Within a transaction the activity is otherwise the same at each look.
      await connection.query('SELECT pg_stat_clear_snapshot()', [])
      const { rows } = await connection.query(
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%.' || $1 || '(%'",
        [call],
      )
      if (rows[0]) return Number(rows[0]['pid'])
    }
  }
  return {
    query: (text: string, values: unknown[]) => connection.query(text, values),
    waiting,
    [Symbol.asyncDispose]: () => connection.close(),
  }
}

/** Of the owner's session, as the tables tell. */
function numberOf(job: Job | undefined): number {
  return job ? Number(jobIdFor(job).slice('job'.length)) : 0
}

async function idAndLock({ place, owner }: Setup): Promise<{ id: number; lock: number; backend: number }> {
  const id = await place.sessionOf(owner)
  const [row] = await place.query('SELECT lock, backend FROM @.sessions WHERE id = $1', [id])
  return { id, lock: Number(row?.['lock']), backend: Number(row?.['backend']) }
}
