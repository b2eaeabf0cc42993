/**
 * Transitions recorded per second on each backend, one engine alone and 100 side by side; on Postgres beside one
 * transaction for each, and how many transactions a job takes.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import { openPersistence, openPersistenceOver, type Persistence } from '../../src/persistence/index.ts'
import type { SqlDriver } from '../../src/postgres/index.ts'
import { startPostgres } from '../support/postgres.ts'
import { startZooKeeper } from '../support/zookeeper.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { printRates, type Rate, rate } from './rates.ts'

/** What a flow of two tasks records: its start with the first task's, the second's, the end. */
const WRITES = 3

export default async function logbook(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-bench-'))
  await using postgres = await startPostgres()
  await using zookeeper = await startZooKeeper()
  try {
    const single = await unbatched(postgres.uri)
    const alone = await counted(postgres.uri, 1)
    const grouped = await counted(postgres.uri, 100)
    const rates: Rate[] = [single, alone, grouped]
    const uris = [`zookeeper://${zookeeper.hosts}/bench/logbooks`, `directory:${folder}`, 'memory:']
    for (const uri of uris) {
      for (const width of [1, 100]) {
        await using persistence = await openPersistence(uri)
        rates.push(await transitions(persistence, { what: `${uri.split(':')[0]}, ${width} side by side`, width }))
      }
    }
    printRates(`transitions of flows of two tasks, ${WRITES} and an acquire per flow`, rates)
    printGoals([
      {
        what: 'transitions of 100 engines on postgres, times those with a transaction each:',
        value: grouped.perSecond / single.perSecond,
        goal: { atLeast: 8 },
      },
      { what: 'transactions per job of 100 engines on postgres:', value: grouped.transactions, goal: { atMost: 0.2 } },
    ] satisfies Goal[])
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** 100 engines whose writes do not go out together: each has connections and commits of its own. */
async function unbatched(uri: string): Promise<Rate> {
  const pool = new pg.Pool({ connectionString: uri })
  const schema = `bench_${uuidv7().replaceAll('-', '')}`
  const opening = Array.from({ length: 100 }, () => openPersistenceOver(pool, { schema }))
  const persistences = await Promise.all(opening)
  const what = 'postgres, 100 side by side, a transaction each'
  const { perSecond } = await rate(what, { count: times(2_000, 200), width: 100 }, (n) => {
    const own = persistences[n % 100]
    return own ? record(own) : Promise.reject(new Error('there are a hundred'))
  })
  for (const persistence of persistences) await persistence.close()
  await pool.end()
  return { what, perSecond: perSecond * WRITES }
}

async function counted(uri: string, width: number): Promise<Rate & { readonly transactions: number }> {
  const pool = new pg.Pool({ connectionString: uri })
  let statements = 0
  const driver: SqlDriver = {
    query: (text, values) => {
      statements += 1
      return pool.query(text, values)
    },
  }
  const schema = `bench_${uuidv7().replaceAll('-', '')}`
  const persistence = await openPersistenceOver(driver, { schema })
  statements = 0
  const measured = await transitions(persistence, { what: `postgres, ${width} side by side`, width })
  await persistence.close()
  await pool.end()
  const transactions = statements / flowsOf(width)
  return { ...measured, transactions, note: `${transactions.toFixed(3)} transactions per job` }
}

const flowsOf = (width: number) => (width === 1 ? times(200, 20) : times(4_000, 400))

async function transitions(persistence: Persistence, options: { what: string; width: number }): Promise<Rate> {
  const { what, width } = options
  const { perSecond } = await rate(what, { count: flowsOf(width), width }, () => record(persistence))
  return { what, perSecond: perSecond * WRITES }
}

/** One flow of two tasks, as an engine records it. */
async function record(persistence: Persistence): Promise<void> {
  const uuid = uuidv7()
  const names = { name: 'bench', version: '1.0' }
  await using log = await persistence.acquire({
    book: { uuid, name: 'bench' },
    flow: { uuid, ...names },
    run: 1,
    claim: uuid,
  })
  const atom = (name: string, state: 'PENDING' | 'RUNNING' | 'SUCCESS') => {
    const result = state === 'SUCCESS' ? { result: `what ${name} has made` } : {}
    return {
      ...names,
      name,
      kind: 'task',
      state,
      intention: 'EXECUTE',
      meta: {},
      updatedAt: new Date(),
      ...result,
    } as const
  }
  await log.write({ state: 'RUNNING', atoms: [atom('one', 'RUNNING'), atom('two', 'PENDING')] })
  await log.write({ atoms: [atom('one', 'SUCCESS'), atom('two', 'RUNNING')] })
  await log.write({ state: 'SUCCESS', atoms: [atom('two', 'SUCCESS')] })
}
