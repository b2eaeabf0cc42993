/**
 * What a board in Postgres costs the other transactions of its database: transactions of 64 clients, without a post and with one in each, how long
 * they take, and how many of them wait for locks.
 */
import { cpus } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { ROOT } from '../support/build.ts'
import { startPostgres } from '../support/postgres.ts'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { type Part, startPart } from './part.ts'
import { type Transacted, WARM_UP } from './postgres-child.ts'
import { processorTime } from './processor-time.ts'

const CHILD = join(ROOT, 'test/bench/postgres-child.ts')
const CLIENTS = 64
const FOR_MS = times(6_000, 400)
const SAMPLE_MS = 5

interface Case {
  readonly what: string
  readonly posts: boolean
  /** What another process does on the board meanwhile. */
  readonly beside?: 'view' | 'work'
}

interface Waits {
  readonly samples: number
  /** The number of transactions that waited, of all samples, by the type of the lock. */
  readonly byType: ReadonlyMap<string, number>
}

const CASES: readonly Case[] = [
  { what: 'without a post', posts: false },
  { what: 'with a post, which nobody views', posts: true },
  { what: 'with a post, beside a viewer', posts: true, beside: 'view' },
  { what: 'with a post, beside a worker', posts: true, beside: 'work' },
]

export default async function postgres(): Promise<void> {
  await using server = await startPostgres({ config: { max_connections: '200' } })
  const observer = new pg.Client({ connectionString: server.uri })
  await observer.connect()
  await observer.query('CREATE TABLE orders (id bigserial PRIMARY KEY, what text NOT NULL)')
  console.log(
    `Node ${process.version}, ${cpus().length} processors, Postgres ${server.version} with fsync; ${CLIENTS} clients side by side`,
  )
  const waited: number[] = []
  for (const [index, each] of CASES.entries()) {
    const uri = `${server.uri}?board=case${index}`
    await using beside = each.beside ? await startPart(CHILD, [each.beside, uri]) : undefined
    const ending = beside?.go()
    const before = await processorTime(server.pid)
    const [measured, waits] = await measure(uri, each, observer)
    const usedMs = Number(await processorTime(server.pid)) - Number(before)
    beside?.end()
    const done = (await ending)?.said
    printCase(each, { measured, waits, usedMs, done })
    if (each.posts) waited.push(waits.byType.get('object') ?? 0)
  }
  await observer.end()
  const value = waited.reduce((sum, one) => sum + one, 0)
  printGoals([{ what: 'waits for locks of type object:', value, goal: { atMost: 0 } }])
}

async function measure(uri: string, { posts }: Case, observer: pg.Client): Promise<[Transacted, Waits]> {
  await using part: Part = await startPart(CHILD, ['transact', uri, CLIENTS, FOR_MS, posts ? 1 : 0].map(String))
  const going = part.go()
  const sampling = sampleWaits(observer)
  return [(await going).said as Transacted, await sampling]
}

/** Samples who waits for a lock, for as long as transactions are measured. */
async function sampleWaits(observer: pg.Client): Promise<Waits> {
  const byType = new Map<string, number>()
  const text =
    "SELECT wait_event AS type, count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock' GROUP BY 1"
  await new Promise((resolve) => setTimeout(resolve, FOR_MS * WARM_UP))
  const end = performance.now() + FOR_MS * (1 - WARM_UP)
  let samples = 0
  while (performance.now() < end) {
    const pause = new Promise((resolve) => setTimeout(resolve, SAMPLE_MS))
    const { rows } = await observer.query<{ type: string; waiting: number }>(text)
    for (const { type, waiting } of rows) byType.set(type, (byType.get(type) ?? 0) + waiting)
    samples += 1
    await pause
  }
  return { samples, byType }
}

function printCase(
  { what }: Case,
  { measured, waits, usedMs, done }: { measured: Transacted; waits: Waits; usedMs: number; done: unknown },
): void {
  const { perSecond, p50, p99 } = measured
  const server = (usedMs * 1_000_000) / (perSecond * FOR_MS)
  const types = [...waits.byType].map(([type, count]) => `${type} ${count}`).join(', ')
  console.log(
    `  ${what.padEnd(36)} ${perSecond.toFixed(0).padStart(6)} /s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, server ${server.toFixed(0)} µs each; ` +
      `waits in ${waits.samples} samples: ${types || 'none'}${typeof done === 'number' ? `; ${done} jobs done` : ''}`,
  )
}
