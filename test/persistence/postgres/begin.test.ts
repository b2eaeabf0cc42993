/** Flows that are made by their first write: the same record as after an acquire, in one transaction, and the same refusals. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { defineServices, service, startConductor } from '../../../src/conductor/index.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import type { HeldBackWrite } from '../../../src/core/async/held-back-write.ts'
import { ClaimLost, Fenced, InvalidPosting, InvalidState, NotFound, StorageFailure } from '../../../src/core/errors.ts'
import { fillScript } from '../../../src/core/script-file.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import {
  type AcquireRequest,
  type FlowDetail,
  openPersistence,
  openPersistenceOver,
  type Persistence,
} from '../../../src/persistence/index.ts'
import { toBytes } from '../../../src/persistence/sql-rows.ts'
import { migrate, type SqlDriver } from '../../../src/postgres/index.ts'
import { createDatabase, type PostgresDatabase } from '../../support/postgres-database.ts'
import { startProxy } from '../../support/proxy.ts'
import { atom, requestOf } from '../flows.ts'

let server: PostgresDatabase
let schema: string

beforeAll(async () => {
  server = await createDatabase()
})

afterAll(() => server.stop())

beforeEach(() => {
  schema = `test_${randomUUID().replaceAll('-', '')}`
})

const open = () => openPersistence(`${server.uri}?schema=${schema}`)

function through({ port }: { readonly port: number }): string {
  const uri = new URL(server.uri)
  uri.port = String(port)
  return `${uri}?schema=${schema}`
}

/** The first run of a job, which begins at once. */
function firstRun(uuid: string, claim = `claim ${randomUUID()}`): AcquireRequest {
  return { ...requestOf(uuid, 1, claim), beginsAtOnce: true }
}

const BEGUN = {
  state: 'RUNNING',
  atoms: [atom('one', { state: 'RUNNING' }), atom('two', { state: 'PENDING' })],
} as const

async function flowOf(persistence: Persistence, uuid: string): Promise<FlowDetail | undefined> {
  return (await persistence.getBook(uuid)).flows[0]
}

/** A pool that notes its statements. */
function notingDriver() {
  const pool = new pg.Pool({ connectionString: server.uri })
  pool.on('error', () => undefined)
  const statements: string[] = []
  const driver: SqlDriver = {
    query: (text, values) => {
      statements.push(text)
      return pool.query(text, values)
    },
  }
  return { driver, statements, [Symbol.asyncDispose]: () => pool.end() }
}

test('the first write makes the flow with one statement, and all is recorded that an acquire and a write record', async () => {
  await using pool = notingDriver()
  await using persistence = await openPersistenceOver(pool.driver, { schema })
  pool.statements.length = 0
  const book = { uuid: 'at once', name: 'book', meta: { board: 'a board' } }
  const log = await persistence.acquire({ ...firstRun('at once', 'claim'), book })
  expect(pool.statements).toEqual([])
  await expect(persistence.getBook('at once')).rejects.toThrow(NotFound)
  pool.statements.length = 0
  await log.write(BEGUN)
  expect(pool.statements).toHaveLength(1)
  const acquired = await persistence.acquire({
    ...requestOf('acquired', 1, 'claim'),
    book: { ...book, uuid: 'acquired' },
  })
  await acquired.write(BEGUN)
  for (const each of [log, acquired]) {
    await each.write({ atoms: [atom('one', { result: { at: new Date(7) } }), atom('two', { state: 'RUNNING' })] })
    await each.write({ state: 'SUCCESS', meta: { done: true }, atoms: [atom('two')] })
  }
  const [one, other] = [await persistence.getBook('at once'), await persistence.getBook('acquired')]
  const timeless = (value: unknown) =>
    JSON.parse(JSON.stringify(value), (key, each) => (/^(at|createdAt|updatedAt)$/.test(key) ? typeof each : each))
  expect(timeless({ ...one.flows[0], uuid: 'acquired' })).toEqual(timeless(other.flows[0]))
  expect(one).toMatchObject({ name: 'book', meta: { board: 'a board' } })
  expect(one.flows[0]?.createdAt).toEqual(one.flows[0]?.states[0]?.at)
  expect(one.flows[0]?.atoms[0]).toMatchObject({ updatedAt: new Date(1_700_000_000_123), result: { at: new Date(7) } })
})

test('flows that begin at the same moment are made together, also in one book', async () => {
  await using pool = notingDriver()
  await using persistence = await openPersistenceOver(pool.driver, { schema })
  pool.statements.length = 0
  const uuids = Array.from({ length: 100 }, (_, number) => `flow ${number}`)
  const book = { uuid: 'shared', name: 'book', meta: { first: true } }
  const logs = await Promise.all(
    uuids.map((uuid, number) => persistence.acquire({ ...firstRun(uuid), ...(number % 2 ? { book } : {}) })),
  )
  await Promise.all(logs.map((log) => log.write(BEGUN)))
  expect(pool.statements).toHaveLength(1)
  await Promise.all(logs.map((log) => log.write({ state: 'SUCCESS', atoms: [atom('one'), atom('two')] })))
  expect(pool.statements).toHaveLength(2)
  const shared = await persistence.getBook('shared')
  expect(shared).toMatchObject({ meta: { first: true } })
  expect(shared.flows).toHaveLength(50)
  expect(await flowOf(persistence, 'flow 0')).toMatchObject({
    state: 'SUCCESS',
    atoms: [{ name: 'one' }, { name: 'two' }],
  })
})

test('a first write whose answer was lost is done once', async () => {
  await using proxy = await startProxy({ port: Number(new URL(server.uri).port) })
  await using direct = await open()
  await using persistence = await openPersistence(through(proxy))
  await persistence.createBook({ uuid: 'other', name: 'connects' })
  const log = await persistence.acquire(firstRun('uuid'))
  proxy.mode = 'swallow-replies'
  const writing = log.write(BEGUN)
  await until(async () => (await flowOf(direct, 'uuid')) !== undefined)
  proxy.mode = 'pass'
  proxy.resetAll()
  await writing
  await log.write({ state: 'SUCCESS', atoms: [atom('one')] })
  const flow = await flowOf(direct, 'uuid')
  expect(flow?.states.map(({ state }) => state)).toEqual(['PENDING', 'RUNNING', 'SUCCESS'])
  expect(flow?.atoms.map(({ name, states }) => [name, states?.length])).toEqual([
    ['one', 2],
    ['two', 1],
  ])
})

test('a first write whose answer was lost is refused when the next run has acquired the flow, which finds it begun', async () => {
  await using proxy = await startProxy({ port: Number(new URL(server.uri).port) })
  await using direct = await open()
  await using persistence = await openPersistence(through(proxy))
  await persistence.createBook({ uuid: 'other', name: 'connects' })
  const log = await persistence.acquire(firstRun('uuid'))
  proxy.mode = 'swallow-replies'
  const writing = log.write(BEGUN).catch((error: unknown) => error)
  await until(async () => (await flowOf(direct, 'uuid')) !== undefined)
  const next = await direct.acquire(requestOf('uuid', 2))
  expect(next.flow).toMatchObject({ state: 'RUNNING', atoms: [{ name: 'one', state: 'RUNNING' }, { name: 'two' }] })
  proxy.mode = 'pass'
  proxy.resetAll()
  expect(await writing).toBeInstanceOf(Fenced)
  await expect(log.write({ atoms: [atom('late')] })).rejects.toThrow(Fenced)
  await next.write({ state: 'SUCCESS' })
  expect(await flowOf(direct, 'uuid')).toMatchObject({
    run: 2,
    state: 'SUCCESS',
    atoms: [{ name: 'one' }, { name: 'two' }],
  })
})

test('of two claims of one run the first to write has the flow, and the other one is fenced and changes nothing', async () => {
  await using persistence = await open()
  const logs = await Promise.all([firstRun('uuid'), firstRun('uuid')].map((request) => persistence.acquire(request)))
  const outcomes = await Promise.allSettled(logs.map((log) => log.write(BEGUN)))
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  expect(outcomes[1]).toMatchObject({ reason: { code: Fenced.code, newestRun: 1 } })
  await logs[0]?.write({ state: 'SUCCESS' })
  expect(await flowOf(persistence, 'uuid')).toMatchObject({ claim: logs[0]?.flow.claim, state: 'SUCCESS' })
})

test('a run that comes after a newer one is fenced by its first write', async () => {
  await using persistence = await open()
  const late = await persistence.acquire(firstRun('uuid'))
  const newer = await persistence.acquire(requestOf('uuid', 2))
  await newer.write({ state: 'RUNNING', atoms: [atom('mine')] })
  await expect(late.write(BEGUN)).rejects.toMatchObject({ code: Fenced.code, newestRun: 2 })
  await newer.write({ state: 'SUCCESS' })
  expect(await flowOf(persistence, 'uuid')).toMatchObject({ run: 2, state: 'SUCCESS', atoms: [{ name: 'mine' }] })
})

test('a flow that its poster has made is begun, and keeps its meta; of another flow it is refused', async () => {
  await using persistence = await open()
  const { run: _none, claim: _nobody, ...request } = requestOf('uuid', 1)
  await persistence.createFlow({ ...request, meta: { from: 'poster' } })
  const log = await persistence.acquire(firstRun('uuid'))
  await log.write(BEGUN)
  await log.write({ atoms: [atom('one')] })
  const begun = {
    run: 1,
    state: 'RUNNING',
    meta: { from: 'poster' },
    atoms: [{ state: 'SUCCESS' }, { state: 'PENDING' }],
  }
  expect(await flowOf(persistence, 'uuid')).toMatchObject(begun)
  await persistence.createFlow({
    ...request,
    book: { uuid: 'other', name: 'book' },
    flow: { ...request.flow, uuid: 'other', name: 'another' },
  })
  const other = await persistence.acquire(firstRun('other'))
  await expect(other.write(BEGUN)).rejects.toThrow(InvalidPosting)
  expect(await flowOf(persistence, 'other')).toMatchObject({ name: 'another', state: 'PENDING', atoms: [] })
})

test('writes behind the first one are done in their order, and refused with it', async () => {
  await using persistence = await open()
  const log = await persistence.acquire(firstRun('uuid'))
  const done = { state: 'SUCCESS', atoms: [atom('one', { result: 1 })] } as const
  await Promise.all([log.write(BEGUN), log.write({ atoms: [atom('one')] }), log.write(done)])
  expect(await flowOf(persistence, 'uuid')).toMatchObject({
    state: 'SUCCESS',
    atoms: [{ result: 1 }, { state: 'PENDING' }],
  })
  const fenced = await persistence.acquire(firstRun('uuid'))
  const outcomes = await Promise.allSettled([fenced.write(BEGUN), fenced.write(BEGUN)])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('a flow whose book is destroyed after its first write is not made again', async () => {
  await using persistence = await open()
  const log = await persistence.acquire(firstRun('uuid'))
  await log.write(BEGUN)
  await persistence.destroyBook('uuid')
  await expect(log.write({ atoms: [atom('one')] })).rejects.toThrow(ClaimLost)
  await expect(persistence.getBook('uuid')).rejects.toThrow(NotFound)
})

test('what the database refuses of one first write fails that flow, and none of its neighbours', async () => {
  await using persistence = await open()
  const logs = await Promise.all(['a', 'b', 'c'].map((uuid) => persistence.acquire(firstRun(uuid))))
  // Too long for an index, and it cannot be compressed to fit.
  const name = Array.from({ length: 20_000 }, () => randomUUID().slice(0, 1)).join('')
  const outcomes = await Promise.allSettled(
    logs.map((log, index) => log.write({ state: 'RUNNING', atoms: [atom(index === 1 ? name : 'fine')] })),
  )
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(outcomes[1]).toMatchObject({ reason: { code: StorageFailure.code, retryable: false } })
  await expect(persistence.getBook('b')).rejects.toThrow(NotFound)
})

test('logbooks that are closed before the first write are away: nothing has run', async () => {
  const persistence = await open()
  const log = await persistence.acquire(firstRun('uuid'))
  await persistence.close()
  await expect(log.write(BEGUN)).rejects.toMatchObject({ code: StorageFailure.code, retryable: true })
})

test('a conductor records a job of two tasks with three statements, the first of which comes before any code of it', async () => {
  await using pool = notingDriver()
  await using persistence = await openPersistenceOver(pool.driver, { schema })
  const seen: number[] = []
  const note = (name: string) => task(name, { execute: () => void seen.push(pool.statements.length) })
  const flow = linear('flow', input<object>(), note('one'), note('two'))
  await using board = await openBoard('memory:')
  const job = await board.post(flow, {})
  pool.statements.length = 0
  await using _conductor = await startConductor({ board, persistence, flows: [flow] })
  expect(await job.wait()).toBe('COMPLETE')
  expect(seen).toEqual([1, 2])
  expect(pool.statements).toHaveLength(3)
  const record = await flowOf(persistence, job.uuid)
  expect(record).toMatchObject({ state: 'SUCCESS', run: 1, atoms: [{ state: 'SUCCESS' }, { state: 'SUCCESS' }] })
})

test('while the services of a job are made, its logbook is there and its flow is pending', async () => {
  await using persistence = await open()
  const [made, proceed] = [createDeferred(), createDeferred()]
  const make = async () => {
    made.resolve()
    await proceed.promise
  }
  const services = defineServices({ tenant: service(make, { scope: 'job' }) })
  const flow = linear('flow', input<object>(), task('one', { execute: () => undefined }))
  await using board = await openBoard('memory:')
  const job = await board.post(flow, {})
  await using _conductor = await startConductor({ board, persistence, flows: [flow], services })
  await made.promise
  expect(await flowOf(persistence, job.uuid)).toMatchObject({ state: 'PENDING', run: 1 })
  proceed.resolve()
  expect(await job.wait()).toBe('COMPLETE')
})

test('a last write that is held back is done alone when it is sent, and nothing else is written after it', async () => {
  await using persistence = await open()
  const held: HeldBackWrite[] = []
  const holdBack = (write: HeldBackWrite) => held.push(write) > 0
  const log = await persistence.acquire({ ...firstRun('uuid'), holdBack })
  await log.write(BEGUN)
  await log.write({ state: 'SUCCESS', atoms: [atom('one', { result: 7 })] })
  await log.write({ atoms: [atom('one', { state: 'RUNNING', meta: { progress: 1 } })] })
  await expect(log.write({ state: 'RUNNING' })).rejects.toThrow(InvalidState)
  expect(await flowOf(persistence, 'uuid')).toMatchObject({ state: 'RUNNING', atoms: [{ state: 'RUNNING' }, {}] })
  await log.close()
  await held[0]?.send()
  await held[0]?.send()
  const ended = { state: 'SUCCESS', atoms: [{ state: 'SUCCESS', result: 7 }, { state: 'PENDING' }] }
  expect(await flowOf(persistence, 'uuid')).toMatchObject(ended)
  expect(held).toHaveLength(1)
})

test('a last write that nobody takes, that is the first, or that comes beside another, is done at once', async () => {
  await using persistence = await open()
  const refusing = await persistence.acquire({ ...requestOf('refusing', 1), holdBack: () => false })
  await refusing.write({ state: 'SUCCESS' })
  const taking = { holdBack: () => true }
  const first = await persistence.acquire({ ...firstRun('first'), ...taking })
  await first.write({ state: 'SUCCESS' })
  const beside = await persistence.acquire({ ...requestOf('beside', 1), ...taking })
  await Promise.all([beside.write({ state: 'RUNNING' }), beside.write({ state: 'SUCCESS' })])
  for (const uuid of ['refusing', 'first', 'beside'])
    expect(await flowOf(persistence, uuid)).toMatchObject({ state: 'SUCCESS' })
})

test('logbooks of the release before get the functions, and its flows go on', async () => {
  await using pool = notingDriver()
  const fill = (file: string) => fillScript(import.meta.url, file, { SCHEMA: schema })
  const tables = fill('../../../src/persistence/postgres/migrations/1-tables.sql')
  await migrate(pool.driver, { schema, part: 'logbooks', steps: [tables] })
  const insert = `WITH b AS (INSERT INTO ${schema}.books (uuid, name, meta, created_at, updated_at) VALUES ('uuid', 'book', $1, now(), now()) RETURNING id),
    f AS (INSERT INTO ${schema}.flows (book, uuid, name, version, state, meta, states, run, claim, term, writes, created_at, updated_at)
      SELECT id, 'uuid', 'flow', '1.0', 'RUNNING', $1, '[]', 1, 'claim', 1, 1, now(), now() FROM b RETURNING id)
    INSERT INTO ${schema}.atoms (flow, name, position, kind, version, state, intention, body, states, created_at, updated_at)
      SELECT id, 'one', 0, 'task', '1.0', 'RUNNING', 'EXECUTE', $2, '[]', now(), now() FROM f`
  await pool.driver.query(insert, [toBytes({}), toBytes({ meta: {} })])
  await using persistence = await open()
  const log = await persistence.acquire(requestOf('uuid', 2))
  expect(log.flow).toMatchObject({ state: 'RUNNING', run: 2, atoms: [{ name: 'one', state: 'RUNNING' }] })
  await log.write({ state: 'SUCCESS', atoms: [atom('one', { result: 7 }), atom('two')] })
  const ended = {
    state: 'SUCCESS',
    atoms: [
      { name: 'one', result: 7 },
      { name: 'two', state: 'SUCCESS' },
    ],
  }
  expect(await flowOf(persistence, 'uuid')).toMatchObject(ended)
})

test('a function that is missing for a while is waited for, as a missing right is', async () => {
  await using pool = notingDriver()
  await using persistence = await open()
  const rename = async (from: string, to: string) => {
    const text = 'SELECT oid::regprocedure AS name FROM pg_proc WHERE proname = $1 AND pronamespace = $2::regnamespace'
    const { rows } = await pool.driver.query(text, [from, schema])
    await pool.driver.query(`ALTER FUNCTION ${rows[0]?.['name']} RENAME TO ${to}`, [])
  }
  const repeated = createDeferred()
  persistence.onRetry?.(() => repeated.resolve())
  const log = await persistence.acquire(firstRun('uuid'))
  await rename('begin_flows', 'moved_away')
  const writing = log.write(BEGUN)
  await repeated.promise
  await rename('moved_away', 'begin_flows')
  await writing
  expect(await flowOf(persistence, 'uuid')).toMatchObject({ state: 'RUNNING' })
})

/** Asks until it is so: nothing tells when another has written. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo().catch(() => false))) await new Promise((resolve) => setImmediate(resolve))
}
