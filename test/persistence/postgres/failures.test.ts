/** Postgres that is away, goes in the middle, or does not answer: nothing is recorded twice, half, or by who may not. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { startConductor } from '../../../src/conductor/index.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { ClaimLost, InvalidArgument, StorageFailure } from '../../../src/core/errors.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { openPersistence, openPersistenceOver, type Persistence } from '../../../src/persistence/index.ts'
import type { SqlDriver } from '../../../src/postgres/index.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { startProxy } from '../../support/proxy.ts'
import { usual as test, variant } from '../../variant.ts'
import { atom, atomNames, requestOf } from '../flows.ts'

let server: PostgresServer
let schema: string

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.stop())

beforeEach(() => {
  schema = `test_${randomUUID().replaceAll('-', '')}`
})

const open = (parameters = '') => openPersistence(`${server.uri}?schema=${schema}${parameters}`)

variant(
  '100 flows under way rest while Postgres is killed and comes back: each step is done once and recorded once',
  async () => {
    const FLOWS = 100
    const executed = new Map<string, number>()
    let done = 0
    const half = createDeferred()
    const killed = createDeferred()
    const step = (name: string) =>
      task(name, {
        execute: async (_: object, ctx) => {
          const key = `${ctx.job?.uuid} ${name}`
          executed.set(key, (executed.get(key) ?? 0) + 1)
          done += 1
          if (done === FLOWS * 2) half.resolve()
          // What comes after this is recorded while there is no database.
          if (name === 'three') await killed.promise
        },
      })
    const steps = ['one', 'two', 'three', 'four'].map(step)
    const [one, two, three, four] = steps
    if (!one || !two || !three || !four) throw new Error('there are four steps')
    const flow = linear('walk', input<object>(), one, two, three, four)
    await using board = await openBoard('memory:')
    await using persistence = await open()
    const jobs = await Promise.all(Array.from({ length: FLOWS }, () => board.post(flow, {})))
    await using conductor = await startConductor({ board, persistence, flows: [flow], concurrency: FLOWS })
    const settled: string[] = []
    conductor.on('settled', (event) => settled.push(event.settled))
    await half.promise
    await server.kill()
    killed.resolve()
    await server.restart()
    expect(await Promise.all(jobs.map((job) => job.wait()))).toEqual(Array(FLOWS).fill('COMPLETE'))
    // A job leaves the board before its conductor emits `settled`.
    await conductor.stop()
    expect(settled.toSorted()).toEqual(Array(FLOWS).fill('consumed'))
    expect([...executed.values()]).toEqual(Array(FLOWS * 4).fill(1))
    for (const { uuid } of jobs) {
      const [record] = (await persistence.getBook(uuid)).flows
      expect(record).toMatchObject({ state: 'SUCCESS', run: 1 })
      expect(record?.states.map(({ state }) => state)).toEqual(['PENDING', 'RUNNING', 'SUCCESS'])
      const atoms = record?.atoms.map(({ name, states }) => [name, ...(states ?? []).map(({ state }) => state)])
      // A task that starts when the one before it has succeeded was never recorded as waiting.
      for (const [name, ...states] of atoms ?? []) {
        expect(['one', 'two', 'three', 'four']).toContain(name)
        expect(states.filter((state) => state !== 'PENDING')).toEqual(['RUNNING', 'SUCCESS'])
      }
    }
  },
)

test('a write whose answer was lost is done once', async () => {
  await using proxy = await startProxy({ port: server.port })
  await using direct = await open()
  const through = `postgres://postgres@127.0.0.1:${proxy.port}/postgres?schema=${schema}`
  await using persistence = await openPersistence(through)
  const log = await persistence.acquire(requestOf('uuid', 1))
  for (const number of [0, 1, 2]) {
    proxy.mode = 'swallow-replies'
    const writing = log.write({ state: number % 2 ? 'SUSPENDED' : 'RUNNING', atoms: [atom(`a${number}`)] })
    await untilAtoms(direct, number + 1)
    proxy.mode = 'pass'
    proxy.resetAll()
    await writing
  }
  await log.write({ state: 'SUCCESS' })
  const [flow] = (await direct.getBook('uuid')).flows
  expect(flow?.states.map(({ state }) => state)).toEqual(['PENDING', 'RUNNING', 'SUSPENDED', 'RUNNING', 'SUCCESS'])
  expect(flow?.atoms.map(({ name, states }) => [name, states?.length])).toEqual([
    ['a0', 1],
    ['a1', 1],
    ['a2', 1],
  ])
})

test('a write that waits for the database is refused when a newer run has come meanwhile', async () => {
  await using proxy = await startProxy({ port: server.port })
  await using direct = await open()
  await using cut = await openPersistence(`postgres://postgres@127.0.0.1:${proxy.port}/postgres?schema=${schema}`)
  const zombie = await cut.acquire(requestOf('uuid', 1))
  proxy.mode = 'drop-requests'
  const writing = zombie.write({ atoms: [atom('late')] }).catch((error: unknown) => error)
  await proxy.nextRequest()
  const nextOwner = await direct.acquire(requestOf('uuid', 2))
  proxy.mode = 'pass'
  proxy.resetAll()
  expect(await writing).toBeInstanceOf(ClaimLost)
  await expect(zombie.write({ atoms: [atom('later')] })).rejects.toThrow(ClaimLost)
  await nextOwner.write({ atoms: [atom('mine')] })
  expect(atomNames(await direct.getBook('uuid'))).toEqual(['mine'])
})

test('an acquire whose answer was lost is repeated', async () => {
  await using proxy = await startProxy({ port: server.port })
  await using direct = await open()
  await using persistence = await openPersistence(
    `postgres://postgres@127.0.0.1:${proxy.port}/postgres?schema=${schema}`,
  )
  await persistence.createBook({ uuid: 'other', name: 'connects' })
  proxy.mode = 'swallow-replies'
  const acquiring = persistence.acquire(requestOf('uuid', 1))
  await until(async () => (await direct.getBook('uuid')).flows.length === 1)
  proxy.mode = 'pass'
  proxy.resetAll()
  const log = await acquiring
  await log.write({ atoms: [atom('one')] })
  expect(atomNames(await direct.getBook('uuid'))).toEqual(['one'])
})

test('a database that stays away is a StorageFailure that says so, and a closed one ends the waiting', async () => {
  await using proxy = await startProxy({ port: server.port })
  const address = `postgres://postgres:hidden@127.0.0.1:${proxy.port}/postgres?schema=${schema}`
  await using brief = await openPersistence(`${address}&retryFor=1s`)
  await using long = await openPersistence(`${address}&retryFor=1d`)
  const [one, other] = [await brief.acquire(requestOf('one', 1)), await long.acquire(requestOf('other', 1))]
  const repeated: string[] = []
  const off = brief.onRetry?.(({ message }) => repeated.push(message))
  proxy.mode = 'refuse'
  proxy.resetAll()
  const failure: unknown = await one.write({ state: 'RUNNING' }).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(StorageFailure)
  expect(failure).toMatchObject({ retryable: true })
  expect(String(failure)).not.toContain('hidden')
  expect(repeated).toContainEqual(expect.stringMatching(/^the logbooks at postgres:/))
  off?.()
  // Whether it was done is open: nothing may be built upon it.
  proxy.mode = 'pass'
  await expect(one.write({ state: 'RUNNING' })).rejects.toThrow(StorageFailure)
  proxy.mode = 'refuse'
  proxy.resetAll()
  const writing = other.write({ state: 'RUNNING' }).catch((error: unknown) => error)
  await long.close()
  expect(await writing).toBeInstanceOf(StorageFailure)
})

test('a primary that becomes a standby is left for the new one: no connection to the old is kept', async () => {
  const pool = new pg.Pool({ connectionString: server.uri })
  pool.on('error', () => undefined)
  const database = `of_${schema}`
  await pool.query(`CREATE DATABASE ${database}`)
  const uri = server.uri.replace(/postgres$/, database)
  await using persistence = await openPersistence(`${uri}?poolSize=1`)
  const log = await persistence.acquire(requestOf('uuid', 1))
  // What a new connection meets until then only reads, and would only read as long as it lives.
  await pool.query(`ALTER DATABASE ${database} SET default_transaction_read_only = on`)
  await pool.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [database])
  await using reader = await openPersistence(`${uri}?poolSize=1`, { create: false })
  const refusal: unknown = await (async () => {
    await using brief = await openPersistence(`${uri}?poolSize=1&retryFor=50ms`)
    return await brief.createBook({ uuid: 'other', name: 'other' }).catch((error: unknown) => error)
  })()
  expect(refusal).toMatchObject({ code: StorageFailure.code, retryable: true })
  expect(String(refusal)).toContain('25006')
  const writing = log.write({ atoms: [atom('one')] })
  expect(atomNames(await reader.getBook('uuid'))).toEqual([])
  await pool.query(`ALTER DATABASE ${database} SET default_transaction_read_only = off`)
  await writing
  expect(atomNames(await reader.getBook('uuid'))).toEqual(['one'])
  await pool.end()
})

test('what waits for a connection when logbooks are closed is done before they are', async () => {
  const persistence = await openPersistence(`${server.uri}?schema=${schema}&poolSize=1`)
  const uuids = ['a', 'b', 'c', 'd']
  const making = uuids.map((uuid) => persistence.createBook({ uuid, name: uuid }))
  await persistence.close()
  expect(await Promise.all(making)).toEqual([true, true, true, true])
})

test('a right that is taken away is no fault of a job, and is waited for', async () => {
  const pool = new pg.Pool({ connectionString: server.uri })
  const role = `limited_${schema}`.slice(0, 60)
  await using direct = await open()
  await pool.query(`CREATE ROLE ${role} LOGIN`)
  await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`)
  await pool.query(`GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
  const uri = `${server.uri.replace('postgres@', `${role}@`)}?schema=${schema}`
  await using brief = await openPersistence(`${uri}&retryFor=50ms`)
  await using patient = await openPersistence(uri)
  const [one, other] = [await brief.acquire(requestOf('one', 1)), await patient.acquire(requestOf('uuid', 1))]
  await pool.query(`REVOKE UPDATE ON ALL TABLES IN SCHEMA ${schema} FROM ${role}`)
  await expect(one.write({ atoms: [atom('a')] })).rejects.toMatchObject({ code: StorageFailure.code, retryable: true })
  const writing = other.write({ atoms: [atom('a')] })
  await pool.query(`GRANT UPDATE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
  await writing
  expect(atomNames(await direct.getBook('uuid'))).toEqual(['a'])
  await pool.end()
})

test('a wrong user is reported at once when the logbooks are opened, and a schema may be called as a word of SQL is', async () => {
  const wrong = `${server.uri.replace('postgres@', 'nobody@')}?retryFor=1d`
  await expect(openPersistence(wrong)).rejects.toThrow('role "nobody" does not exist')
  for (const name of ['user', 'order']) {
    await using persistence = await openPersistence(`${server.uri}?schema=${name}`)
    const log = await persistence.acquire(requestOf('uuid', 1))
    await log.write({ atoms: [atom('one')] })
    for await (const { uuid } of persistence.listBooks({ name: 'book' })) expect(uuid).toBe('uuid')
    await using reader = await openPersistence(`${server.uri}?schema=${name}`, { create: false })
    expect(atomNames(await reader.getBook('uuid'))).toEqual(['one'])
  }
  await expect(openPersistence(`${server.uri}?schema=information_schema`)).rejects.toThrow(InvalidArgument)
})

test('what the database refuses of one flow fails that flow, and none of its neighbours', async () => {
  await using persistence = await open()
  const logs = await Promise.all(['a', 'b', 'c', 'd'].map((uuid) => persistence.acquire(requestOf(uuid, 1))))
  // Too long for an index, and it cannot be compressed to fit.
  const name = Array.from({ length: 20_000 }, () => randomUUID().slice(0, 1)).join('')
  const outcomes = await Promise.allSettled(
    logs.map((log, index) => log.write({ atoms: [atom(index === 2 ? name : 'fine')] })),
  )
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(outcomes[2]).toMatchObject({ reason: { code: StorageFailure.code, retryable: false } })
  for (const uuid of ['a', 'b', 'd']) expect(atomNames(await persistence.getBook(uuid))).toEqual(['fine'])
  expect(atomNames(await persistence.getBook('c'))).toEqual([])
})

test('what is written side by side shares a transaction, and a zombie among them is refused alone', async () => {
  const FLOWS = 100
  const pool = new pg.Pool({ connectionString: server.uri })
  pool.on('error', () => undefined)
  const statements: string[] = []
  const driver: SqlDriver = {
    query: (text, values) => {
      statements.push(text)
      return pool.query(text, values)
    },
  }
  await using persistence = await openPersistenceOver(driver, { schema })
  statements.length = 0
  const uuids = Array.from({ length: FLOWS }, (_, number) => `flow ${number}`)
  const logs = await Promise.all(uuids.map((uuid) => persistence.acquire(requestOf(uuid, 1))))
  expect(statements).toHaveLength(1)
  statements.length = 0
  await Promise.all(logs.map((log) => log.write({ state: 'RUNNING', atoms: [atom('one')] })))
  expect(statements).toHaveLength(1)
  const nextOwner = await persistence.acquire(requestOf('flow 7', 2))
  statements.length = 0
  const writes = [...logs, nextOwner].map((log) => log.write({ atoms: [atom('two', { result: log.flow.run })] }))
  const outcomes = await Promise.allSettled(writes)
  expect(outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([7])
  expect(outcomes[7]).toMatchObject({ reason: { code: ClaimLost.code } })
  // One that writes, and one that finds out about who was refused.
  expect(statements).toHaveLength(2)
  expect((await persistence.getBook('flow 7')).flows[0]?.atoms.map(({ result }) => result)).toEqual([undefined, 2])
  await persistence.close()
  await pool.query('SELECT 1')
  await pool.end()
})

test('what a log has queued behind a write that failed is refused, and what other flows have queued is written', async () => {
  const pool = new pg.Pool({ connectionString: server.uri })
  pool.on('error', () => undefined)
  const sent = createDeferred()
  const failing = createDeferred()
  let updates = 0
  const driver: SqlDriver = {
    query: async (text, values) => {
      if (text.startsWith('SELECT') && text.includes('write_flows')) updates += 1
      if (updates === 1) {
        sent.resolve()
        await failing.promise
      }
      return pool.query(text, values)
    },
  }
  await using persistence = await openPersistenceOver(driver, { schema })
  const log = await persistence.acquire(requestOf('one', 1))
  const other = await persistence.acquire(requestOf('other', 1))
  const writing = [log.write({ atoms: [atom('first')] })]
  await sent.promise
  writing.push(log.write({ atoms: [atom('second')] }), other.write({ atoms: [atom('first')] }))
  failing.reject(Object.assign(new Error('value too long'), { code: '22001' }))
  const outcomes = await Promise.allSettled(writing)
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
  expect(atomNames(await persistence.getBook('one'))).toEqual([])
  expect(atomNames(await persistence.getBook('other'))).toEqual(['first'])
  await persistence.close()
  await pool.end()
})

async function untilAtoms(persistence: Persistence, count: number): Promise<void> {
  await until(async () => atomNames(await persistence.getBook('uuid')).length === count)
}

/** Asks until it is so: nothing tells when another has written. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo().catch(() => false))) await new Promise((resolve) => setImmediate(resolve))
}

test('of two writes of a flow that are under way at once, the second is not done after the first was refused for good', async () => {
  const pool = new pg.Pool({ connectionString: server.uri })
  pool.on('error', () => undefined)
  const driver: SqlDriver = {
    query: async (text, values) => {
      if (text.includes('write_flows') && JSON.stringify(values).includes('refused'))
        throw Object.assign(new Error('invalid byte sequence'), { code: '22021' })
      return pool.query(text, values)
    },
  }
  const persistence = await openPersistenceOver(driver, { schema })
  const log = await persistence.acquire(requestOf('one', 1))
  const writing = [log.write({ atoms: [atom('refused')] }), log.write({ atoms: [atom('second')] })]
  const outcomes = await Promise.allSettled(writing)
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(atomNames(await persistence.getBook('one'))).toEqual([])
  await persistence.close()
  await pool.end()
})
