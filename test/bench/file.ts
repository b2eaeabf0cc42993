/**
 * A board in a file and the event loop of its process: how long the loop is held up, and what a lone step pays for not holding it up while the disk
 * works.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { openBoard } from '../../src/board/index.ts'
import { SqliteConnection } from '../../src/sqlite/connection.ts'
import { openSqliteFile } from '../../src/sqlite/index.ts'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { apart, sideBySide } from './part-child.ts'
import { type BenchFolder, benchFolder, sqliteUri } from './sqlite-places.ts'

const STEPS = times(1_000, 50)
const JOBS = times(20_000, 500)
const CALM_JOBS = times(1_000, 50)
/** Claimed at once, and posted side by side. */
const WIDTH = 256
/** Milliseconds from one post to the next on a calm board. */
const GAP = 5

export default async function file(): Promise<void> {
  await using folder = await benchFolder()
  const step = await stepsInTurn(folder)
  console.log(`${STEPS} lone steps, one row each, on the disk before the answer; they take turns`)
  console.log(`  waiting for the disk beside the event loop   median ${step.beside.toFixed(3)} ms`)
  console.log(`  waiting inside COMMIT, as SQLite does        median ${step.inside.toFixed(3)} ms`)
  const calm = await delayOf(folder, 'calm', (post) => apart(CALM_JOBS, GAP, post))
  const busy = await delayOf(folder, 'busy', (post) => sideBySide(JOBS, WIDTH, post))
  console.log('\ndelays of the event loop of a process that posts and consumes')
  console.log(`  ${CALM_JOBS} jobs, one every ${GAP} ms    p99 ${calm.toFixed(1)} ms`)
  console.log(`  ${JOBS} jobs, as fast as it can  p99 ${busy.toFixed(1)} ms`)
  printGoals([
    {
      what: 'a lone step, ms slower than one that holds up the loop',
      value: step.beside - step.inside,
      goal: { atMost: 0.1 },
    },
    { what: 'delay of the event loop, calm, ms, p99', value: calm, goal: { atMost: 10 } },
    { what: 'delay of the event loop, busy, ms, p99', value: busy, goal: { atMost: 10 } },
  ])
}

/** Returns the median times of both ways to commit one row, in milliseconds. */
async function stepsInTurn({ path }: BenchFolder): Promise<{ readonly beside: number; readonly inside: number }> {
  const location = { path: `${path}/steps.db`, synchronous: 'FULL', create: true } as const
  const opened = await openSqliteFile(location)
  const plain = new SqliteConnection(`${path}/plain.db`)
  plain.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0')
  for (const each of [opened.connection, plain]) each.exec('CREATE TABLE steps (number INTEGER PRIMARY KEY)')
  const insert = (connection: SqliteConnection) => connection.insert('INSERT INTO steps DEFAULT VALUES')
  const took: Record<'beside' | 'inside', number[]> = { beside: [], inside: [] }
  for (let step = 0; step < STEPS; step += 1) {
    took.beside.push(await timed(() => opened.run(() => insert(opened.connection))))
    took.inside.push(await timed(async () => plain.transact(() => insert(plain))))
  }
  plain.close()
  await opened.close()
  return { beside: median(took.beside), inside: median(took.inside) }
}

/** Returns the 99th percentile of the delays while all jobs are posted and consumed, in milliseconds. */
async function delayOf(
  { path }: BenchFolder,
  name: string,
  postAll: (post: () => Promise<unknown>) => Promise<unknown>,
): Promise<number> {
  await using board = await openBoard(sqliteUri(path, name))
  const stop = new AbortController()
  const consuming = consume(board, stop.signal)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const posted: Promise<unknown>[] = []
  delay.enable()
  await postAll(async () => {
    const job = await board.post('flow', { n: 1 })
    posted.push(job.wait())
  })
  await Promise.all(posted)
  delay.disable()
  stop.abort()
  await consuming
  // The monitor counts the time between two of its timers, which are a millisecond apart without any delay.
  return delay.percentile(99) / 1e6 - 1
}

async function consume(board: Awaited<ReturnType<typeof openBoard>>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const claims = await board.claimNext({ max: WIDTH, signal }).catch(() => [])
    await Promise.all(claims.map((claim) => claim.consume()))
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[figures.length >> 1] ?? Number.NaN
}
