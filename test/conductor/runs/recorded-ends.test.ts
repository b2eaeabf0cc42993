/**
 * The end of a flow and the settlement of its job in one transaction of Postgres: what happens when the claim is lost in between, when the answer
 * is lost, when the process is killed, and where the two are not in one schema.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import {
  type Conductor,
  type ConductorEvents,
  type FlowDetail,
  openBoard,
  openPersistence,
  type Persistence,
  startConductor,
} from '../../../src/index.ts'
import { compiled } from '../../support/compiled.ts'
import { createDatabase, type PostgresDatabase } from '../../support/postgres-database.ts'
import { startProxy } from '../../support/proxy.ts'
import { usual as test, variant } from '../../variant.ts'
import { twoSteps } from './recorded-flow.ts'

let server: PostgresDatabase
let client: pg.Client
let schema: string

beforeAll(async () => {
  server = await createDatabase()
  client = new pg.Client({ connectionString: server.uri })
  client.on('error', () => undefined)
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await server.stop()
})

beforeEach(() => {
  schema = `s_${randomUUID().replaceAll('-', '')}`
})

/** Board and logbooks are at one URI: they are in one schema. */
function place(parameters: string, port = new URL(server.uri).port): string {
  const uri = new URL(server.uri)
  uri.port = port
  return `${uri}?schema=${schema}${parameters}`
}

async function flowOf(persistence: Persistence, uuid: string): Promise<FlowDetail | undefined> {
  return (await persistence.getBook(uuid)).flows[0]
}

/** Returns the states that the steps went through, each with its run. */
function pastOf(flow: FlowDetail | undefined): Record<string, string[]> {
  const past = (states: FlowDetail['atoms'][number]['states'] = []) => states.map(({ state, run }) => `${state} ${run}`)
  return Object.fromEntries((flow?.atoms ?? []).map(({ name, states }) => [name, past(states)]))
}

/** Returns whether the job ended in the transaction that wrote the end of its flow. */
async function isOneTransaction(logbooks = schema): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT f.xmin = h.xmin AS one FROM ${logbooks}.flows f, ${schema}.history h WHERE f.state = 'SUCCESS'`,
  )
  expect(rows).toHaveLength(1)
  return rows[0].one === true
}

/** Frees a job as the takeover by another process does. The notification has not arrived yet: its owner finds the change with its next answer. */
async function free(uuid: string): Promise<void> {
  const freed = `UPDATE ${schema}.jobs SET session = NULL, who = NULL WHERE uuid = $1 RETURNING board, id`
  const text = `WITH freed AS (${freed}) INSERT INTO ${schema}.changes (board, kind, jobs) SELECT board, 'freed', ARRAY[id] FROM freed`
  await client.query(text, [uuid])
}

/** Steps that count how often they were executed. */
function counted(beforeReturn?: (job: string, run: number) => Promise<unknown>) {
  const executed: string[] = []
  const flow = twoSteps({
    executed: (step, run) => executed.push(`${step} ${run}`),
    ...(beforeReturn ? { beforeReturn } : {}),
  })
  return { executed, flow }
}

/** Resolves with the first end of a run that `isMeant` accepts. */
function nextSettled(
  conductor: Conductor,
  isMeant: (event: ConductorEvents['settled']) => boolean = () => true,
): Promise<ConductorEvents['settled']> {
  return new Promise((resolve) => {
    conductor.on('settled', (event) => {
      if (isMeant(event)) resolve(event)
    })
  })
}

test('in one schema the end of the flow and the settlement of the job are one transaction', async () => {
  const { executed, flow } = counted()
  await using board = await openBoard(place(''))
  await using persistence = await openPersistence(place(''))
  const job = await board.post(flow, {})
  await using conductor = await startConductor({ board, persistence, flows: [flow] })
  const settled = nextSettled(conductor)
  expect(await job.wait()).toBe('COMPLETE')
  expect(await settled).toMatchObject({ settled: 'consumed', run: 1 })
  expect(await isOneTransaction()).toBe(true)
  const record = await flowOf(persistence, job.uuid)
  expect(record).toMatchObject({ state: 'SUCCESS', atoms: [{ result: 'what one has made' }, { result: 17 }] })
  expect(pastOf(record)).toEqual({ one: ['RUNNING 1', 'SUCCESS 1'], two: ['PENDING 1', 'RUNNING 1', 'SUCCESS 1'] })
  expect(executed).toEqual(['one 1', 'two 1'])
})

variant('in another schema, or another database, the flow ends first and the job is settled then', async () => {
  const { flow } = counted()
  const logbooks = `${schema}_l`
  await using board = await openBoard(place(''))
  await using other = await createDatabase()
  for (const uri of [place('').replace(schema, logbooks), `${other.uri}?schema=${schema}`]) {
    await using persistence = await openPersistence(uri)
    const job = await board.post(flow, {})
    await using _conductor = await startConductor({ board, persistence, flows: [flow] })
    expect(await job.wait()).toBe('COMPLETE')
    expect(await flowOf(persistence, job.uuid)).toMatchObject({ state: 'SUCCESS', atoms: [{}, { result: 17 }] })
    if (uri.includes(logbooks)) expect(await isOneTransaction(logbooks)).toBe(false)
  }
})

test('an owner that lost its claim after the last step records nothing of it: the next run does the step again, and no other', async () => {
  const recorded: unknown[] = []
  await using persistence = await openPersistence(place(''))
  const { executed, flow } = counted(async (uuid, run) => {
    // The second run finds what the first has left.
    if (run === 2) recorded.push(pastOf(await flowOf(persistence, uuid)))
    else {
      await client.query(`DELETE FROM ${schema}.sessions`)
      await free(uuid)
    }
  })
  await using board = await openBoard(place(''))
  const job = await board.post(flow, {})
  await using _conductor = await startConductor({ board, persistence, flows: [flow] })
  expect(await job.wait()).toBe('COMPLETE')
  expect(executed).toEqual(['one 1', 'two 1', 'two 2'])
  expect(recorded).toEqual([{ one: ['RUNNING 1', 'SUCCESS 1'], two: ['PENDING 1', 'RUNNING 1'] }])
  const record = await flowOf(persistence, job.uuid)
  expect(pastOf(record)['two']).toEqual(['PENDING 1', 'RUNNING 1', 'SUCCESS 2'])
})

test('of settlements in one group only the claim that is lost records nothing', async () => {
  const waiting: (() => void)[] = []
  await using persistence = await openPersistence(place(''))
  await using board = await openBoard(place(''))
  const { executed, flow } = counted(async (uuid, run) => {
    if (run > 1) return
    await new Promise<void>((resolve) => {
      waiting.push(resolve)
      if (waiting.length < 3) return
      void free(uuid).then(() => {
        for (const proceed of waiting) proceed()
      })
    })
  })
  const jobs = await Promise.all([1, 2, 3].map(() => board.post(flow, {})))
  await using _conductor = await startConductor({ board, persistence, flows: [flow], concurrency: 3 })
  expect(await Promise.all(jobs.map((job) => job.wait()))).toEqual(['COMPLETE', 'COMPLETE', 'COMPLETE'])
  expect(executed.toSorted()).toEqual(['one 1', 'one 1', 'one 1', 'two 1', 'two 1', 'two 1', 'two 2'])
  const ends = await Promise.all(jobs.map(async ({ uuid }) => pastOf(await flowOf(persistence, uuid))['two']?.at(-1)))
  expect(ends.toSorted()).toEqual(['SUCCESS 1', 'SUCCESS 1', 'SUCCESS 2'])
})

test('a flow that a newer run has acquired is neither ended nor is its job settled; its neighbours are', async () => {
  const waiting: (() => void)[] = []
  await using persistence = await openPersistence(place(''))
  await using board = await openBoard(place(''))
  const { executed, flow } = counted(async (uuid, run) => {
    if (run > 1) return
    await new Promise<void>((resolve) => {
      waiting.push(resolve)
      if (waiting.length < 3) return
      const flowOfJob = { uuid, name: 'two-steps', version: '1.0' }
      const request = { book: { uuid, name: 'book' }, flow: flowOfJob, run: 2, claim: randomUUID() }
      void persistence.acquire(request).then(() => {
        for (const proceed of waiting) proceed()
      })
    })
  })
  const jobs = await Promise.all([1, 2, 3].map(() => board.post(flow, {})))
  await using conductor = await startConductor({ board, persistence, flows: [flow], concurrency: 3 })
  const fenced = nextSettled(conductor, ({ settled }) => settled !== 'consumed')
  expect(await fenced).toMatchObject({ settled: 'abandoned', run: 1 })
  expect(await Promise.all(jobs.map((job) => job.wait()))).toEqual(['COMPLETE', 'COMPLETE', 'COMPLETE'])
  expect(executed.filter((each) => each.startsWith('one'))).toEqual(['one 1', 'one 1', 'one 1'])
  expect(executed.filter((each) => each.startsWith('two'))).toHaveLength(4)
})

variant('a flow whose logbook is removed during the last step begins anew', async () => {
  await using persistence = await openPersistence(place(''))
  await using board = await openBoard(place(''))
  const { executed, flow } = counted(async (uuid, run) => run > 1 || persistence.destroyBook(uuid))
  const job = await board.post(flow, {})
  await using _conductor = await startConductor({ board, persistence, flows: [flow] })
  expect(await job.wait()).toBe('COMPLETE')
  expect(executed).toEqual(['one 1', 'two 1', 'one 2', 'two 2'])
  expect(await flowOf(persistence, job.uuid)).toMatchObject({ state: 'SUCCESS', run: 2 })
})

variant(
  'a database without the function for both records the end and settles the job one after the other',
  async () => {
    await using persistence = await openPersistence(place(''))
    await using board = await openBoard(place(''))
    const { executed, flow } = counted(async () => {
      const { rows } = await client.query(`SELECT oid::regprocedure AS name FROM pg_proc
      WHERE proname = 'settle_recorded' AND pronamespace = '${schema}'::regnamespace`)
      await client.query(`DROP FUNCTION ${rows[0].name}`)
    })
    const job = await board.post(flow, {})
    await using conductor = await startConductor({ board, persistence, flows: [flow] })
    const settled = nextSettled(conductor)
    expect(await settled).toMatchObject({ settled: 'consumed' })
    expect(await isOneTransaction()).toBe(false)
    expect(await flowOf(persistence, job.uuid)).toMatchObject({ state: 'SUCCESS', run: 1 })
    expect(executed).toEqual(['one 1', 'two 1'])
  },
)

test.each([
  ['was done', 'swallow-replies'],
  ['was not done', 'drop-requests'],
] as const)(
  'when the answer is lost and the transaction %s, the flow ends once and the job is consumed',
  async (_what, mode) => {
    await using proxy = await startProxy({ port: Number(new URL(server.uri).port) })
    const uri = place('', String(proxy.port))
    await using direct = await openPersistence(place(''))
    await using persistence = await openPersistence(uri)
    await using board = await openBoard(uri)
    const { executed, flow } = counted(async () => {
      proxy.mode = mode
    })
    const job = await board.post(flow, {})
    await using conductor = await startConductor({ board, persistence, flows: [flow] })
    const settled = nextSettled(conductor)
    if (mode === 'swallow-replies') await until(async () => (await flowOf(direct, job.uuid))?.state === 'SUCCESS')
    else {
      await until(async () => executed.length === 2)
      await proxy.nextRequest()
    }
    proxy.mode = 'pass'
    proxy.resetAll()
    expect(await settled).toMatchObject({ settled: 'consumed', run: 1 })
    expect(await isOneTransaction()).toBe(true)
    expect(pastOf(await flowOf(direct, job.uuid))['two']).toEqual(['PENDING 1', 'RUNNING 1', 'SUCCESS 1'])
    expect(executed).toEqual(['one 1', 'two 1'])
  },
)

variant.each([
  ['just before the transaction, the next owner does the last step again', 'drop-requests', ['two 2']],
  ['just after it, nothing is left to do', 'swallow-replies', []],
] as const)('when the process is killed %s', async (_what, mode, again) => {
  await using proxy = await startProxy({ port: Number(new URL(server.uri).port) })
  const [near, far] = [place('&sessionTimeout=3s'), place('&sessionTimeout=3s', String(proxy.port))]
  const [logbooks, farLogbooks] = [place(''), place('', String(proxy.port))]
  await using persistence = await openPersistence(logbooks)
  await using board = await openBoard(near)
  const { executed, flow } = counted()
  const job = await board.post(flow, {})
  const program = await compiled(join(import.meta.dirname, 'recorded-child.ts'))
  const doomed = spawn(process.execPath, [program, far, farLogbooks], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(doomed, 'exit')
  await once(createInterface({ input: doomed.stdout }), 'line')
  proxy.mode = mode
  const sent = proxy.nextRequest()
  doomed.stdin.write('go\n')
  await sent
  if (mode === 'swallow-replies') await until(async () => (await flowOf(persistence, job.uuid))?.state === 'SUCCESS')
  doomed.kill('SIGKILL')
  await exit
  proxy.resetAll()
  await using _nextOwner = await startConductor({ board, persistence, flows: [flow] })
  expect(await job.wait()).toBe('COMPLETE')
  expect(executed).toEqual(again)
  expect(await isOneTransaction()).toBe(true)
  const { state, atoms } = (await flowOf(persistence, job.uuid)) ?? {}
  expect([state, atoms?.map((atom) => atom.state)]).toEqual(['SUCCESS', ['SUCCESS', 'SUCCESS']])
})

/** Asks until it is so: nothing tells when another has written. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo().catch(() => false))) await new Promise((resolve) => setImmediate(resolve))
}
