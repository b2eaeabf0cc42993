/**
 * A board on Postgres alone, and beside a transaction that was forgotten: while a REPEATABLE READ transaction is open, no row that is deleted or replaced
 * after its snapshot can be removed. Rounds of jobs (post, claim, consume) on one board, with one process that posts and another that works: first alone,
 * then beside the open transaction 720,000 jobs (800 a second for 15 minutes), then alone again. The same two processes do all rounds; the first one is a
 * warm-up. The speed beside the transaction is measured in the last quarter of the rounds, when most dead rows are there. Opening the board and its view,
 * which reads the dead rows, is measured apart.
 */
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openBoard } from '../../src/board/open.ts'
import { ROOT } from '../support/build.ts'
import { startPostgres } from '../support/postgres.ts'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { type RepeatedPart, startRepeatedPart } from './part.ts'
import { processorTime } from './processor-time.ts'
import { median, spread } from './spread.ts'

const CHILD = join(ROOT, 'test/bench/idle-transaction-child.ts')
const JOBS_PER_ROUND = times(40_000, 500)
/** The rounds alone, before the transaction and after it. */
const ROUNDS_ALONE = times(4, 1)
const ROUNDS_BESIDE = times(18, 4)

interface Round {
  readonly perSecond: number
  /** Microseconds of processor time for each job; of the server, undefined where it cannot be seen. */
  readonly clients: number
  readonly server: number | undefined
}

export default async function idleTransaction(): Promise<void> {
  await using server = await startPostgres()
  console.log(`Node ${process.version}, ${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)} at the start`)
  console.log(`Postgres ${server.version}, fsync; rounds of ${JOBS_PER_ROUND} jobs on one board`)
  const uri = `${server.uri}?board=idle`
  await using worker = await startRepeatedPart(CHILD, ['work', uri, String(JOBS_PER_ROUND)])
  await using poster = await startRepeatedPart(CHILD, ['post', uri, String(JOBS_PER_ROUND)])
  const rounds = async (count: number) => {
    const done: Round[] = []
    for (let n = 0; n < count; n += 1) done.push(await round({ worker, poster }, server.pid))
    return done
  }
  await rounds(1)
  // The first opening loads what the others use.
  await openView(uri)
  const alone = await rounds(ROUNDS_ALONE)
  const stranger = new pg.Client({ connectionString: server.uri })
  await stranger.connect()
  await stranger.query('VACUUM')
  await stranger.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await stranger.query('SELECT count(*) FROM pg_class')
  const beside = await rounds(ROUNDS_BESIDE)
  const dead = await readDeadRows(stranger)
  const opened = { beside: await openView(uri), alone: Number.NaN }
  await stranger.query('COMMIT')
  await stranger.query('VACUUM')
  await stranger.end()
  alone.push(...(await rounds(ROUNDS_ALONE)))
  opened.alone = await openView(uri)
  const last = beside.slice(-Math.ceil(beside.length / 4))
  for (const [what, some] of [
    ['alone', alone],
    ['beside the open transaction', beside],
    ['the last of these', last],
  ] as const)
    printRounds(what, some)
  const jobs = ROUNDS_BESIDE * JOBS_PER_ROUND
  console.log(`\ndead rows after ${jobs} jobs beside the transaction, by the server's count`)
  for (const { table, rows, megabytes } of dead)
    console.log(
      `  ${table.padEnd(16)} ${String(rows).padStart(9)}  ${(rows / jobs).toFixed(3)} a job, ${megabytes} MB with indexes`,
    )
  console.log(
    `\nopening the board and its view takes ${opened.alone.toFixed(0)} ms, beside the dead rows ${opened.beside.toFixed(0)} ms`,
  )
  const speed = (some: readonly Round[]) => median(some.map(({ perSecond }) => perSecond))
  printGoals([
    {
      what: `life cycles per second in the last quarter of ${jobs} jobs beside an idle transaction, times those alone:`,
      value: speed(last) / speed(alone),
      goal: { atLeast: 0.95 },
    },
  ])
}

async function round(
  { worker, poster }: { readonly worker: RepeatedPart; readonly poster: RepeatedPart },
  pid: number | undefined,
): Promise<Round> {
  const before = await usedBy(pid)
  const begin = performance.now()
  const [worked, posted] = await Promise.all([worker.go(), poster.go()])
  const perSecond = (JOBS_PER_ROUND * 1_000) / (worked.at - begin)
  const after = await usedBy(pid)
  const server = before === undefined || after === undefined ? undefined : ((after - before) * 1_000) / JOBS_PER_ROUND
  return { perSecond, clients: (worked.cpu + posted.cpu) / JOBS_PER_ROUND, server }
}

/** Opens the board and its view in this process; returns how many milliseconds it took. */
async function openView(uri: string): Promise<number> {
  const begin = performance.now()
  await using board = await openBoard(uri)
  using _view = await board.view()
  return performance.now() - begin
}

function usedBy(pid: number | undefined): Promise<number | undefined> {
  return pid === undefined ? Promise.resolve(undefined) : processorTime(pid)
}

function printRounds(what: string, rounds: readonly Round[]): void {
  const figures = (of: (round: Round) => number | undefined, digits = 0) =>
    spread(
      rounds.map((each) => of(each) ?? Number.NaN),
      digits,
    )
  console.log(`\n${what}: ${rounds.map(({ perSecond }) => perSecond.toFixed(0)).join(', ')} life cycles per second`)
  console.log(
    `  processor time of a job: clients ${figures(({ clients }) => clients)} µs, server ${figures(({ server }) => server)} µs`,
  )
}

async function readDeadRows(
  client: pg.Client,
): Promise<{ readonly table: string; readonly rows: number; readonly megabytes: number }[]> {
  const { rows } = await client.query<{ relname: string; dead: string; bytes: string }>(
    `SELECT relname, n_dead_tup AS dead, pg_total_relation_size(relid) AS bytes FROM pg_stat_user_tables WHERE n_dead_tup > 0 ORDER BY 2 DESC`,
  )
  return rows.map(({ relname, dead, bytes }) => ({
    table: relname,
    rows: Number(dead),
    megabytes: Math.round(Number(bytes) / 2 ** 20),
  }))
}
