/** What a claim and a settle read, whatever Postgres believes of the table: that belief is often out of date. */
import pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { usual as test, variant } from '../../../variant.ts'
import { refresh } from '../../jobs.ts'
import { postgresPlaceOn } from './boards.ts'

const MANY = 2_000
const FEW = 50

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ config: { fsync: 'off', autovacuum: 'off' } })
})

afterAll(() => server.stop())

variant(
  'a claim and a settle read the jobs that they are about, where statistics say that there are none',
  async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using observer = await Observer.open(server.uri, place.schema)
    const session = Number(
      await observer.ask("SELECT @.open_session((SELECT max(id) FROM @.boards), 'observer', 60000)"),
    )
    const post = () => Promise.all(Array.from({ length: MANY }, () => board.post('flow', {})))
    await post()
    // As the statistics see it there is nothing that could be claimed, and nothing of another session.
    const first = await observer.ids()
    await observer.claim(first, session)
    await place.query('VACUUM ANALYZE @.jobs')
    await observer.settle(first, session)
    await post()
    await refresh(board)
    const ids = await observer.ids()
    for (let from = 0; from < 10 * FEW; from += FEW) {
      const some = ids.slice(from, from + FEW)
      expect(await observer.claim(some, session)).toBeLessThan(5 * FEW)
    }
    for (let from = 0; from < 10 * FEW; from += FEW) {
      const some = ids.slice(from, from + FEW)
      expect(await observer.settle(some, session)).toBeLessThan(5 * FEW)
    }
    expect(await board.countJobs()).toBeLessThanOrEqual(MANY)
  },
)

test('no index but the primary key finds jobs by their numbers, where Postgres believes that there are no jobs', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  // With fewer jobs, the primary key and the index of the claim order are trees of the same height, and the first one is chosen.
  await board.postMany(Array.from({ length: 10 * MANY }, () => ({ flow: 'flow', store: {} })))
  await place.query('DELETE FROM @.jobs')
  // The table has pages whose rows are all dead: from now on no rows are expected, however many pages it will have.
  await place.query('ANALYZE @.jobs')
  const settings = 'seqscan hashjoin mergejoin material bitmapscan'
    .split(' ')
    .map((name) => `SET LOCAL enable_${name} TO off`)
  const client = new pg.Client(server.uri)
  await client.connect()
  try {
    await client.query(['BEGIN', 'SET LOCAL plan_cache_mode TO force_generic_plan', ...settings].join('; '))
    await client.query(
      `PREPARE claim(bigint[]) AS UPDATE "${place.schema}".jobs SET who = 'me' WHERE id = ANY($1) AND session IS NULL AND revision = 0`,
    )
    const { rows } = await client.query("EXPLAIN EXECUTE claim('{1,2,3}')")
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('jobs_pkey')
  } finally {
    await client.end()
  }
})

test.each(['consume', 'trash'])(
  'the end of a job reads the jobs that depend on it, and no others (%s)',
  async (kind) => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using observer = await Observer.open(server.uri, place.schema)
    const session = Number(
      await observer.ask("SELECT @.open_session((SELECT max(id) FROM @.boards), 'observer', 60000)"),
    )
    await place.query('VACUUM ANALYZE @.jobs, @.dependencies, @.trash')
    const firsts = await Promise.all(Array.from({ length: 10 }, () => board.post('flow', {})))
    const ids = await observer.ids()
    const dependents = firsts.flatMap((first) =>
      Array.from({ length: FEW }, () => board.post('flow', {}, { after: [first] })),
    )
    await Promise.all([...dependents, ...Array.from({ length: MANY }, () => board.post('flow', {}))])
    await observer.claim(ids, session)
    // Each dependent is read five times, the others are not read.
    for (const id of ids) expect(await observer.settle([id], session, kind)).toBeLessThan(6 * FEW)
    expect(await observer.ask('SELECT count(*) FROM @.dependencies')).toBe('0')
  },
)

variant.each([
  ['consume', MANY],
  ['trash', MANY],
  ['consume', 0],
])(
  'the end of a job (%s) reads few of the jobs of its batch, of which %i others are unclaimed',
  async (kind, others) => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using observer = await Observer.open(server.uri, place.schema)
    const session = Number(
      await observer.ask("SELECT @.open_session((SELECT max(id) FROM @.boards), 'observer', 60000)"),
    )
    await place.query('VACUUM ANALYZE @.jobs, @.batches, @.batch_posts, @.batch_failures, @.trash')
    const batch = await board.batch({ name: 'batch', onDone: { flow: 'flow' } })
    const post = (name: string) => batch.post('flow', {}, { name })
    await Promise.all(Array.from({ length: FEW }, () => post('own')))
    const ids = await observer.ids()
    await Promise.all(Array.from({ length: others }, () => post('other')))
    await Promise.all(Array.from({ length: MANY }, () => board.post('flow', {})))
    await batch.seal()
    await observer.claim(ids, session)
    for (const id of ids) expect(await observer.settle([id], session, kind)).toBeLessThan(5 * FEW)
    const failed = kind === 'trash' ? FEW : 0
    expect(await batch.progress()).toMatchObject({ open: others, failed, generation: 1 })
  },
)

test('a heartbeat reads a few sessions of a board, whatever the number of sessions', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using _board = await place.open()
  await using observer = await Observer.open(server.uri, place.schema)
  const session = Number(await observer.ask("SELECT @.open_session((SELECT max(id) FROM @.boards), 'observer', 60000)"))
  await observer.renew(session)
  await place.query('VACUUM ANALYZE @.sessions')
  await place.query(
    `INSERT INTO @.sessions (board, who, backend, backend_start, server_start, ttl, heartbeat_at)
     SELECT max(id), 'other', 0, now(), now(), '1 h', now() FROM @.boards, generate_series(1, $1) GROUP BY generate_series`,
    [MANY],
  )
  // The plans of this connection, and those of a later one.
  await using later = await Observer.open(server.uri, place.schema)
  const second = Number(await later.ask("SELECT @.open_session((SELECT max(id) FROM @.boards), 'later', 60000)"))
  for (let times = 0; times < 10; times += 1) {
    expect(await observer.renew(session)).toBeLessThan(FEW)
    expect(await later.renew(second)).toBeLessThan(FEW)
  }
})

/** One connection, whose transactions count what they read. */
class Observer implements AsyncDisposable {
  readonly #connection: PostgresConnection
  readonly #schema: string

  private constructor(connection: PostgresConnection, schema: string) {
    this.#connection = connection
    this.#schema = schema
  }

  static async open(server: string, schema: string): Promise<Observer> {
    return new Observer(await PostgresConnection.open(parsePostgresLocation(parseUri(server, 'board'))), schema)
  }

  async ask(text: string, values: readonly unknown[] = []): Promise<unknown> {
    const { rows } = await this.#connection.query(text.replaceAll('@', this.#schema), [...values])
    return Object.values(rows[0] ?? {})[0]
  }

  async ids(): Promise<number[]> {
    return (await this.ask('SELECT json_agg(id ORDER BY id) FROM @.jobs')) as number[]
  }

  /** @returns how many rows were fetched of the table of jobs */
  claim(ids: readonly number[], session: number): Promise<number> {
    return this.#counted(
      `SELECT @.claim(NULL, NULL, (SELECT max(id) FROM @.boards), $1, $2::bigint[], array_fill(0, ARRAY[$3::integer]),
        array_fill('w'::text, ARRAY[$3]), '', array_fill(0, ARRAY[$3]), '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')`,
      [session, ids, ids.length],
    )
  }

  settle(ids: readonly number[], session: number, kind = 'consume'): Promise<number> {
    return this.#counted(
      `SELECT @.settle(NULL, NULL, (SELECT max(id) FROM @.boards), $1, $2::bigint[], array_fill(1, ARRAY[$3::integer]),
        array_fill($4::text, ARRAY[$3]), '', array_fill(0, ARRAY[$3]), array_fill(NULL::float8, ARRAY[$3]),
        array_fill('w'::text, ARRAY[$3]),
        array_fill('why'::text, ARRAY[$3]), array_fill(NULL::bytea, ARRAY[$3]), false, '{}', '', '{}', NULL)`,
      [session, ids, ids.length, kind],
    )
  }

  /** @returns how many rows were fetched of the table of sessions, and of the others */
  renew(session: number): Promise<number> {
    return this.#counted('SELECT @.renew_session($1)', [session])
  }

  async #counted(text: string, values: readonly unknown[]): Promise<number> {
    await this.ask('BEGIN')
    const before = await this.#read()
    const answer = await this.ask(text, values)
    const after = await this.#read()
    await this.ask('COMMIT')
    expect(answer).not.toHaveProperty('refused.0')
    expect(answer).not.toHaveProperty('lost')
    return after - before
  }

  /** So far, in this transaction and, perhaps, in those before it. */
  async #read(): Promise<number> {
    const text = `SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)
      FROM pg_stat_xact_user_tables WHERE relid IN ('@.jobs'::regclass, '@.dependencies'::regclass, '@.batches'::regclass, '@.batch_posts'::regclass,
        '@.sessions'::regclass)`
    return Number(await this.ask(text))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close()
  }
}
