/** Other roles of the database, with no right to anything of a board: what they can do to it, and what they cannot. */
import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import {
  boardMigrations,
  resourceLockClass,
  sessionChannel,
  sessionLockClass,
} from '../../../../src/board/backends/postgres/store/schema.ts'
import { type JobBoard, openBoard } from '../../../../src/board/index.ts'
import { examinePostgres } from '../../../../src/cli/doctor/postgres.ts'
import { Unclaimable } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { openPersistence } from '../../../../src/persistence/index.ts'
import {
  advisoryClass,
  advisoryKey,
  migrate,
  PostgresConnection,
  parsePostgresLocation,
} from '../../../../src/postgres/index.ts'
import { startNode } from '../../../support/node-process.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { postgresPlaceOn } from './boards.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ config: { fsync: 'off' } })
  await using admin = await connected(server.uri)
  await admin.query('CREATE ROLE evil LOGIN', [])
})

afterAll(() => server.stop())

function connected(uri: string): Promise<PostgresConnection & AsyncDisposable> {
  const opening = PostgresConnection.open(parsePostgresLocation(parseUri(uri, 'board')))
  return opening.then((connection) => Object.assign(connection, { [Symbol.asyncDispose]: () => connection.close() }))
}

/** Does all that can be done to a batch, and takes its callbacks. */
async function runBatch(board: JobBoard, other: JobBoard): Promise<void> {
  const callback = { flow: 'flow', name: 'called back', delay: '1ms' } as const
  const batch = await board.batch({ name: 'batch', onDone: callback, onFailed: callback })
  await batch.postMany(['x', 'y'].map((name) => ({ flow: 'flow', store: {}, name })))
  const same = await other.findBatch(batch.uuid)
  await same.seal()
  const waiting = same.wait()
  await (await claimed(other, 'x')).consume()
  await (await claimed(board, 'y')).trash()
  expect(await waiting).toBe('failed')
  await (await claimed(board, 'called back')).consume()
  expect(await same.retryFailed()).toHaveLength(1)
  await (await claimed(board, 'y')).consume()
  await (await claimed(board, 'called back')).consume()
  expect((await other.batches()).map(({ state }) => state)).toEqual(['done'])
}

const evilUri = () => server.uri.replace('postgres@', 'evil@')

/**
 * For every function and operator of Postgres that takes more types than one, one in `public` that fits some types exactly:
 * those come first wherever a name is looked up there. Each of them only fails, which everybody who calls one can see.
 */
const OVERLOADS = `DO $do$
DECLARE
  v record;
  v_types text[];
  v_arguments text;
  v_type text;
BEGIN
  FOREACH v_type IN ARRAY '{bigint,integer,smallint,text,bytea,boolean,json,jsonb,double precision,timestamptz}'::text[] LOOP
    FOR v IN SELECT p.proname, p.prokind, p.proargtypes::oid[] AS types, p.provariadic <> 0 AS variadic FROM pg_proc p
      WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a') AND pronargs BETWEEN 1 AND 3
        AND proargtypes::oid[] && ARRAY['anyelement', 'anyarray', 'anynonarray', 'anycompatible', 'anycompatiblearray',
          'anycompatiblenonarray', '"any"']::regtype[]::oid[]
        AND NOT proargtypes::oid[] && ARRAY['internal', 'anyenum', 'anyrange']::regtype[]::oid[]
    LOOP
      v_types := ARRAY(SELECT CASE WHEN t::regtype::text ~ 'array$' THEN v_type || '[]'
        WHEN t::regtype::text ~ '^"?any' THEN v_type ELSE t::regtype::text END
        FROM unnest(v.types) WITH ORDINALITY AS u(t, at) ORDER BY at);
      v_arguments := array_to_string(v_types, ', ');
      BEGIN
        EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''evil: %s''; END $f$',
          v.proname, v_arguments, 'boolean', v.proname);
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
    BEGIN
      EXECUTE format('CREATE FUNCTION public.evil_step(json, %s) RETURNS json LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''evil: aggregate''; END $f$', v_type);
      EXECUTE format('CREATE AGGREGATE public.json_agg(%s) (sfunc = public.evil_step, stype = json, initcond = ''[]'')', v_type);
      EXECUTE format('CREATE AGGREGATE public.array_agg(%s) (sfunc = public.evil_step, stype = json, initcond = ''[]'')', v_type);
    EXCEPTION WHEN duplicate_function THEN NULL;
    END;
  END LOOP;
  FOREACH v_arguments IN ARRAY '{"double precision,integer","numeric,integer","text,integer","bigint[],bigint[]","integer[],integer","bigint[],bigint"}'::text[] LOOP
    EXECUTE format('CREATE FUNCTION public.evil_operator(%s) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''evil: operator''; END $f$', v_arguments);
    FOREACH v_type IN ARRAY '{*,+,-,||,<>,=,&&,@>}'::text[] LOOP
      BEGIN
        EXECUTE format('CREATE OPERATOR public.%s (leftarg = %s, rightarg = %s, function = public.evil_operator)', v_type,
          split_part(v_arguments, ',', 1), split_part(v_arguments, ',', 2));
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END LOOP;
END $do$`

describe('a role that may make functions in public', () => {
  /** A database of its own: what is made in `public` is seen by everybody there. */
  async function database(): Promise<string> {
    const name = `db_${randomUUID().replaceAll('-', '')}`
    {
      await using admin = await connected(server.uri)
      await admin.query(`CREATE DATABASE ${name}`, [])
    }
    const uri = server.uri.replace(/postgres$/, name)
    await using admin = await connected(uri)
    // As it is up to Postgres 14, and in every database that was upgraded from there.
    await admin.query('GRANT CREATE ON SCHEMA public TO PUBLIC', [])
    await using evil = await connected(uri.replace('postgres@', 'evil@'))
    await evil.query('SET search_path TO pg_catalog', [])
    await evil.query(OVERLOADS, [])
    const { rows } = await evil.query(
      `SELECT pg_catalog.count(*)::int AS made FROM pg_proc WHERE pronamespace = 'public'::regnamespace`,
      [],
    )
    expect(Number(rows[0]?.['made'])).toBeGreaterThan(200)
    return uri
  }

  variant('has none of its code run by a board, or by logbooks', async () => {
    const uri = await database()
    await using board = await openBoard(`${uri}?board=b&sessionTimeout=5s`, { who: 'board' })
    const errors: unknown[] = []
    board.on('error', ({ error }) => errors.push(error))
    {
      await using other = await openBoard(`${uri}?board=b&sessionTimeout=5s`, { who: 'other' })
      const resources = { exclusive: ['disk'], shared: ['net'] }
      await other.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
      const trashed = await other.post('flow', {}, { name: 'a', key: 'a', resources })
      for (const name of ['b', 'c', 'd']) await other.post('flow', {}, { name, key: name, resources })
      await other.post('flow', {}, { name: 'late', priority: 'HIGH', delay: '1h', key: { name: 'late', for: '1h' } })
      const replacing = { name: 'late', for: '2h', on: 'replace' } as const
      const late = await other.post('flow', {}, { name: 'late', priority: 'HIGH', delay: '1h', key: replacing })
      expect(late.replaced).toBe(true)
      const before = await other.post('flow', {}, { name: 'before' })
      const after = await other.post('flow', {}, { name: 'after', after: [before] })
      const failed = await other.post('flow', {}, { name: 'failed', after: [after] })
      expect((await board.dependencies(await board.find(after.ref))).waitsFor).toHaveLength(1)
      await (await claimed(board, 'before')).consume({ results: { n: 1 } })
      await (await claimed(board, 'after')).trash()
      expect(await failed.wait()).toBe('TRASHED')
      for (const entry of await all(board.trashed())) await board.purge(entry)
      expect((await board.history()).map(({ name }) => name)).toEqual(['failed', 'after', 'before'])
      expect((await board.result(before)).results).toEqual({ n: 1 })
      const first = await claimed(board, 'a')
      await first.abandon({ reason: 'later', delay: '1ms' })
      const unviewed = await openBoard(`${uri}?board=b&sessionTimeout=5s`)
      const followed = (await unviewed.find(trashed.ref)).wait()
      await (await claimed(board, 'a')).trash({ reason: 'why' })
      expect(await followed).toBe('TRASHED')
      await unviewed.close()
      expect(await trashed.wait()).toBe('TRASHED')
      expect(trashed.attempts).toHaveLength(2)
      await (await claimed(board, 'b')).consume()
      const [entry] = await all(board.trashed())
      if (entry) await board.restore(entry)
      await board.cancel(await other.post('flow', {}, { name: 'unwanted' }), { reason: 'not wanted' })
      await runBatch(board, other)
      await board.pause()
      await board.resume()
      await refresh(other)
      expect((await board.entities('conductor')).length).toBe(1)
      expect((await namesOn(board)).sort()).toEqual(['a', 'c', 'd', 'late'])
      await claimed(other, 'c')
    }
    await claimed(board, 'c')
    // A heartbeat calls functions too, and nothing above waits for one.
    await using admin = await connected(uri)
    const heartbeatAt = async () => {
      const { rows } = await admin.query("SELECT heartbeat_at::text FROM jobboard.sessions WHERE who = 'board'", [])
      return rows[0]?.['heartbeat_at']
    }
    const last = await heartbeatAt()
    await vi.waitFor(async () => expect(await heartbeatAt()).not.toBe(last), 20_000)
    expect(errors).toEqual([])
    await using logbooks = await openPersistence(uri)
    const ask = {
      book: { uuid: 'book', name: 'book' },
      flow: { uuid: 'flow', name: 'f', version: '1' },
      run: 1,
      claim: 'c',
    }
    await logbooks.acquire(ask)
    await all(logbooks.listBooks({ name: 'book', finished: false }))
  })

  test('finds a search path of its own on every function, also where an older release has made them', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    await using admin = await connected(server.uri)
    const { steps, ...migrations } = boardMigrations(schema)
    const [tables = ''] = steps
    const older = (steps.at(-1) ?? '')
      .replaceAll('SET search_path TO pg_catalog, pg_temp', '')
      .replaceAll('CREATE OR REPLACE', 'CREATE')
    // The functions of an older release name no column that its tables do not have.
    await migrate(admin, {
      ...migrations,
      indexes: [],
      steps: [`${tables}\nSET LOCAL check_function_bodies TO off;\n${older}`],
    })
    const open = `
SELECT proname FROM pg_proc WHERE pronamespace = '${schema}'::regnamespace AND proname <> 'milliseconds'
  AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY(proconfig), false)`
    expect((await admin.query(open, [])).rows.length).toBeGreaterThan(10)
    await migrate(admin, boardMigrations(schema))
    expect((await admin.query(open, [])).rows).toEqual([])
  })
})

variant('tables that another role adds later belong to the owner of the others, who can use them', async () => {
  await using admin = await connected(server.uri)
  const { rows } = await admin.query("SELECT FROM pg_roles WHERE rolname = 'owner'", [])
  if (rows.length === 0) await admin.query('CREATE ROLE owner LOGIN', [])
  const schema = `test_${randomUUID().replaceAll('-', '')}`
  await admin.query(`CREATE SCHEMA ${schema} AUTHORIZATION owner`, [])
  const uri = `${server.uri.replace('postgres@', 'owner@')}?schema=${schema}`
  const { steps, ...migrations } = boardMigrations(schema)
  {
    await using owner = await connected(uri)
    await migrate(owner, { ...migrations, indexes: [], steps: steps.slice(0, 2) })
  }
  // The administrator opens the board with the new release first.
  await using _admins = await openBoard(`${server.uri}?schema=${schema}`)
  await admin.query(
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO owner;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA ${schema} TO owner`,
    [],
  )
  await using board = await openBoard(uri)
  await using worker = await openBoard(uri)
  const before = await board.post('flow', {}, { name: 'before' })
  const job = await board.post('flow', {}, { name: 'job', after: [before] })
  const ended = job.wait()
  for (const name of ['before', 'job']) await (await claimed(worker, name)).consume()
  expect(await ended).toBe('COMPLETE')
  expect(await worker.history()).toHaveLength(2)
  await runBatch(board, worker)
})

test('a role that sends notifications in the name of a board ends no wait', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.openUnviewed()
  const [job, other] = [await board.post('flow', {}), await board.post('flow', {})]
  let hasEnded = false
  const ended = job.wait().finally(() => {
    hasEnded = true
  })
  const otherEnded = other.wait()
  await vi.waitFor(async () => expect(await place.query('SELECT FROM @.followers')).toHaveLength(2), 60_000)
  await using evil = await connected(evilUri())
  const [row] = await place.query('SELECT id FROM @.boards')
  const channel = sessionChannel(place.schema, Number(row?.['id']), await place.sessionOf(board))
  const number = Number(jobIdFor(job).slice('job'.length))
  for (const kind of ['trashed', 'consumed'])
    await evil.query('SELECT pg_notify($1, $2)', [channel, `${kind} ${number}`])
  for (const text of ['', 'consumed', 'consumed x', `toString ${number}`])
    await evil.query('SELECT pg_notify($1, $2)', [channel, text])
  await using worker = await place.open()
  await (await worker.claim(other)).consume()
  // Notifications arrive in their order.
  await otherEnded
  expect({ hasEnded, state: job.state }).toEqual({ hasEnded: false, state: 'UNCLAIMED' })
  await (await worker.claim(job)).consume()
  expect(await ended).toBe('COMPLETE')
})

test('a schema that a stranger owns is reported by boards, logbooks and the doctor; one of ours or of a superuser is not', async () => {
  await using admin = await connected(server.uri)
  await admin.query('CREATE ROLE ours LOGIN', [])
  await admin.query('CREATE SCHEMA evils AUTHORIZATION evil', [])
  await admin.query('CREATE SCHEMA ours AUTHORIZATION ours', [])
  const warningsOf = async (uri: string) => {
    const warnings: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) })
    await using _board = await openBoard(uri, { log })
    await using _logbooks = await openPersistence(uri, { log })
    const findings = await examinePostgres(uri, { what: 'board', timeout: 10_000 })
    const found = findings.filter(({ about }) => about === 'schema').map(({ text }) => text)
    return [...warnings.map((line): string => JSON.parse(line).msg), ...found]
  }
  // A superuser is a member of every role, and must not take that for its own.
  const warned = await warningsOf(`${server.uri}?schema=evils`)
  expect(warned).toHaveLength(3)
  for (const warning of warned) expect(warning).toContain('schema evils is owned by role evil')
  expect(await warningsOf(`${server.uri.replace('postgres@', 'ours@')}?schema=ours`)).toEqual([])
  expect(await warningsOf(`${server.uri}?schema=supers`)).toEqual([])
})

variant(
  'the jobs of an owner that is stopped with its backends are taken over, and the backends are reported until they end',
  async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using nextOwner = await place.openAt(server.port, { who: 'next-owner', parameters: '&sessionTimeout=1s' })
    await nextOwner.post('flow', {}, { name: 'job' })
    await using owner = await startNode(CLAIMER, [`${place.uri}&sessionTimeout=1s`])
    await owner.says('claimed')
    await refresh(nextOwner)
    const [row] = await place.query('SELECT s.backend FROM @.jobs j JOIN @.sessions s ON s.id = j.session')
    const backend = Number(row?.['backend'])
    const [reported, inherited] = [nextEvent(nextOwner, 'error'), nextOwner.claimNext()]
    process.kill(backend, 'SIGSTOP')
    owner.signal('SIGSTOP')
    try {
      const [claim] = await inherited
      expect(claim.run).toBe(2)
      expect(String((await reported).error)).toMatch(
        new RegExp(`Postgres backend ${backend} of owner stopped was asked to end \\d+ s ago, and does not:`),
      )
      const found = await examinePostgres(place.uri, { what: 'board', timeout: 10_000 })
      expect(found.filter(({ severity }) => severity === 'error')).toMatchObject([
        {
          about: 'backend',
          text: expect.stringMatching(new RegExp(`^backend ${backend} of stopped was asked to end`)),
        },
      ])
      process.kill(backend, 'SIGCONT')
      owner.signal('SIGCONT')
      await owner.says('lost')
      claim.assertHeld()
      await claim.consume()
      await expect
        .poll(() => place.query('SELECT @.stopped_backends(1) AS left'), { timeout: 60_000 })
        .toEqual([{ left: [] }])
    } finally {
      try {
        process.kill(backend, 'SIGCONT')
      } catch {
        // It has ended.
      }
      owner.signal('SIGKILL')
    }
  },
)

describe('a role that holds advisory locks', () => {
  test('stops no claim by the gate, and frees no pause of it', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using evil = await connected(evilUri())
    const gate = advisoryClass(`gate ${place.schema}`)
    await evil.query('SELECT pg_advisory_lock($1::integer, n) FROM generate_series(1, 50) n', [gate])
    await board.post('flow', {}, { name: 'job' })
    const claim = await claimed(board, 'job')
    await claim.abandon()
    await board.pause()
    await refresh(board)
    expect(board.paused).toBe(true)
    await board.resume()
    await (await claimed(board, 'job')).consume()
  })

  variant('of the sessions to come delays no session, and none that needs another connection', async () => {
    await using place = await postgresPlaceOn(server.uri)
    const parameters = '&statementTimeout=10m'
    await using owner = await place.openAt(server.port, { parameters })
    await owner.post('flow', {}, { name: 'job' })
    const claim = await claimed(owner, 'job')
    await using evil = await connected(evilUri())
    const [row] = await place.query('SELECT last_value AS last FROM @.session_ids')
    await evil.query('SELECT pg_advisory_lock($1::integer, $2::integer + n) FROM generate_series(1, 50) n', [
      sessionLockClass(place.schema),
      Number(row?.['last']),
    ])
    const back = nextEvent(owner, 'state', ({ state }) => state !== 'disconnected')
    await place.query('SELECT pg_terminate_backend(backend) FROM @.sessions')
    expect((await back).state).toBe('connected')
    await claim.consume()
    await using other = await place.openAt(server.port, { parameters })
    expect(other.connected).toBe(true)
    // No number is lost to locks that another role holds, however often that happens; only the new session has taken one.
    const [now] = await place.query('SELECT last_value AS last FROM @.session_ids')
    expect(Number(now?.['last'])).toBe(Number(row?.['last']) + 1)
    const locks = await place.query('SELECT id FROM @.sessions WHERE lock = id')
    expect(locks).toEqual([])
  })

  const kinds = [
    ['of a resource', 'SELECT pg_advisory_lock($1)', (key: bigint) => [String(key)]],
    [
      'under which claims of a resource wait for each other',
      'SELECT pg_advisory_lock($1::integer, $2::integer # id) FROM @.boards',
      (key: bigint, schema: string) => [resourceLockClass(schema), Number(BigInt.asIntN(32, key >> 32n))],
    ],
  ] as const
  test.each(kinds)('%s holds back only who wants it, and for a bounded time', async (_, text, toValues) => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using evil = await connected(evilUri())
    const [board1] = await place.query('SELECT id FROM @.boards')
    const lock = text.replace('FROM @.boards', '').replace(' id', ` ${board1?.['id']}`)
    await evil.query(lock, [...toValues(advisoryKey('disk'), place.schema)])
    const wanting = await board.post('flow', {}, { name: 'wants', resources: { exclusive: ['disk'] } })
    const innocent = await board.post('flow', {}, { name: 'innocent' })
    // In one batch.
    const [refused, granted] = await Promise.allSettled([board.claim(wanting), board.claim(innocent)])
    expect(refused).toMatchObject({ status: 'rejected', reason: expect.any(Unclaimable) })
    if (granted.status === 'rejected') throw granted.reason
    await granted.value.consume()
    // No session waits for the resource any more, and the process that asks receives the signal of the others.
    const stop = new AbortController()
    const waiting = board.claimNext({ signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await evil.query('SELECT pg_advisory_unlock_all()', [])
    await (await claimed(board, 'wants')).consume()
  })

  variant('of a dead owner does not keep its jobs from other owners', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using nextOwner = await place.openAt(server.port, { who: 'next-owner', parameters: '&sessionTimeout=1s' })
    await nextOwner.post('flow', {}, { name: 'job' })
    await using owner = await startNode(CLAIMER, [`${place.uri}&sessionTimeout=1s`])
    await owner.says('claimed')
    await refresh(nextOwner)
    const [row] = await place.query('SELECT s.lock FROM @.jobs j JOIN @.sessions s ON s.id = j.session')
    const lock = Number(row?.['lock'])
    await using evil = await connected(evilUri())
    // In the queue behind the owner: it gets the lock in the moment in which the owner's backend ends.
    const taken = evil.query('SELECT pg_advisory_lock($1, $2)', [sessionLockClass(place.schema), lock])
    const freed = nextEvent(nextOwner, 'abandoned')
    owner.signal('SIGKILL')
    await taken
    await freed
    await (await claimed(nextOwner, 'job')).consume()
  })
})
