/**
 * Measures how long work pauses while a Postgres board is upgraded under load. In each round, the processes of an older release work; one of the
 * newer release starts beside them; then comes the schema of a release after it, with a column, all functions and an index of the table of jobs. A
 * transaction that has posted a job is open all the time, but for a moment. At the end, a process of the older release starts once more.
 *
 * The older release is this one, or the built package whose folder `JOBBOARD_FORMER` names: `JOBBOARD_FORMER=../older/dist npm run bench -- upgrade`.
 */
import { join, resolve } from 'node:path'
import pg from 'pg'
import { boardMigrations } from '../../src/board/backends/postgres/store/schema.ts'
import { parseUri } from '../../src/core/uri.ts'
import { finishIndexes, type Migrations, migrate, parsePostgresLocation } from '../../src/postgres/index.ts'
import { ROOT } from '../support/build.ts'
import { startPostgres } from '../support/postgres.ts'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { type Done, startPart } from './part.ts'
import { now } from './part-child.ts'
import { spread } from './spread.ts'
import type { Worked } from './upgrade-child.ts'

const ROUNDS = times(Number(process.env['JOBBOARD_ROUNDS'] ?? 50), 1)
const GOAL_MS = 100
/** How long the older release works alone, for comparison, and how long each step is left to show what it does. */
const STEADY_MS = times(500, 300)

const CHILD = join(ROOT, 'test/bench/upgrade-child.ts')
const LIBRARY = join(ROOT, 'dist')
const FORMER = resolve(ROOT, process.env['JOBBOARD_FORMER'] ?? LIBRARY)

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))

/** Returns the schema of a release after this one. */
function nextRelease(schema: string): Migrations {
  const { steps, indexes = [], ...migrations } = boardMigrations(schema)
  const column = `ALTER TABLE ${schema}.jobs ADD COLUMN IF NOT EXISTS bench integer NOT NULL DEFAULT 0;`
  return { ...migrations, indexes, steps: [...steps, column, steps.at(-1) ?? ''] }
}

/** What happens one after the other. The first is for comparison. */
const PHASES = {
  alone: 'the older release alone',
  starting: 'the newer release starts, and replaces all functions',
  column: 'a step adds a column, and is tried again until a transaction ends',
  index: 'an index is built, and waits for a transaction',
  returning: 'a process of the older release starts',
} as const
type Phase = keyof typeof PHASES

interface Round {
  /** The longest time between two jobs that were done, in milliseconds. */
  readonly gaps: Readonly<Record<Phase, number>>
  /** The longest time until a post was answered. */
  readonly post: number
  readonly lost: number
  readonly twice: number
  /** Whether the process of the older release that has started at the end has done jobs. */
  readonly hasReturned: boolean
}

export default async function upgrade(): Promise<void> {
  await using server = await startPostgres()
  const pool = new pg.Pool({ connectionString: server.uri, max: 2 })
  const rounds: Round[] = []
  for (let number = 1; number <= ROUNDS; number += 1) {
    const round = await runRound(server.uri, pool, number)
    const gaps = Object.values(round.gaps).map((gap) => gap.toFixed(0))
    console.log(
      `${number}: ${gaps.join(', ')} ms without a job done in the phases; ${round.post.toFixed(0)} ms for a post`,
    )
    rounds.push(round)
  }
  const { rows } = await pool.query('SELECT sum(deadlocks)::int AS deadlocks FROM pg_stat_database')
  await pool.end()
  const posts = rounds.map(({ post }) => post)
  const gapsOf = (phase: Phase) => rounds.map(({ gaps }) => gaps[phase])
  const longest = Math.max(...(Object.keys(PHASES) as Phase[]).filter((phase) => phase !== 'alone').flatMap(gapsOf))
  const sum = (key: 'lost' | 'twice') => rounds.reduce((total, round) => total + round[key], 0)
  console.log(`\n${ROUNDS} upgrades of a board at 100 jobs/s, beside an open transaction; ms, median (least to most)`)
  for (const [phase, what] of Object.entries(PHASES))
    console.log(`  longest time without a job done, while ${what}: ${spread(gapsOf(phase as Phase), 0)}`)
  console.log(`  longest time until a post was answered: ${spread(posts, 0)}`)
  printGoals([
    { what: 'longest time without a job done during an upgrade, in ms:', value: longest, goal: { atMost: GOAL_MS } },
    { what: 'longest time until a post was answered, in ms:', value: Math.max(...posts), goal: { atMost: GOAL_MS } },
    { what: 'jobs lost or done twice:', value: sum('lost') + sum('twice'), goal: { atMost: 0 } },
    { what: 'deadlocks:', value: rows[0]?.deadlocks, goal: { atMost: 0 } },
    {
      what: 'processes of the older release that work when they are started after the upgrade:',
      value: rounds.filter(({ hasReturned }) => hasReturned).length,
      goal: { atLeast: ROUNDS },
    },
  ])
}

async function runRound(server: string, pool: pg.Pool, number: number): Promise<Round> {
  const schema = `upgrade${number}`
  const uri = `${server}?schema=${schema}`
  const start = (role: string, folder: string) => startPart(CHILD, [role, folder, uri])
  const older = await Promise.all([start('conductor', FORMER), start('poster', FORMER), start('outbox', FORMER)])
  const newer = await Promise.all([start('conductor', LIBRARY), start('poster', LIBRARY)])
  const late = await start('conductor', FORMER)
  const [olderConductor, olderPoster, outbox] = older
  const [newerConductor, newerPoster] = newer
  const until = async (question: string) => {
    while ((await pool.query(question)).rows.length === 0) await pause(5)
  }
  const hasPosted = (name: string) =>
    until(
      `SELECT FROM pg_stat_activity WHERE application_name = '${name}' AND state = 'idle in transaction' AND query LIKE '%.post(%'`,
    )
  const hasEnded = (name: string) =>
    until(`SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '${name}')`)
  const haveOpened = (role: string, count: number) =>
    until(`SELECT FROM ${schema}.sessions WHERE who LIKE '${role} %' HAVING count(*) = ${count}`)
  const working: Record<'conductors' | 'posters', Promise<Done>[]> = { conductors: [], posters: [] }

  // One after the other: the first one makes the schema.
  working.conductors.push(olderConductor.go())
  await until(`SELECT WHERE to_regprocedure('${schema}.heartbeat(integer)') IS NOT NULL`)
  working.posters.push(olderPoster.go())
  await haveOpened('poster', 1)
  const transactions = outbox.go()
  await hasPosted('outbox1')
  await pause(STEADY_MS)
  const begins: number[] = [now()]
  await pause(STEADY_MS)

  begins.push(now())
  working.conductors.push(newerConductor.go())
  working.posters.push(newerPoster.go())
  await haveOpened('conductor', 2)
  await haveOpened('poster', 2)
  await pause(STEADY_MS)

  begins.push(now())
  // The step that adds a column is tried again and again, until the transaction ends.
  const migrating = migrate(pool, nextRelease(schema))
  await pause(2 * STEADY_MS)
  outbox.end()
  await migrating
  await hasEnded('outbox1')

  begins.push(now())
  // The index waits for the second transaction, in the background.
  outbox.end()
  await hasPosted('outbox2')
  const index = { name: 'jobs_bench', table: 'jobs', definition: '(bench, id)' }
  const missing = await migrate(pool, { ...nextRelease(schema), indexes: [index] })
  if (missing.length !== 1) throw new Error('the index was built although a transaction is open')
  const location = parsePostgresLocation(parseUri(uri, 'board'))
  const { signal } = new AbortController()
  const finished = finishIndexes(missing, { location, signal, pauses: { firstPauseMs: 10, maxPauseMs: 100 } })
  await until("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'CREATE INDEX CONCURRENTLY%'")
  await pause(STEADY_MS)
  outbox.end()
  await finished
  await hasEnded('outbox2')
  outbox.end()

  begins.push(now())
  working.conductors.push(late.go())
  await haveOpened('conductor', 3)
  await pause(STEADY_MS)
  begins.push(now())
  // The last process does the rest alone.
  for (const each of [olderConductor, newerConductor]) each.end()
  await haveOpened('conductor', 1)
  await pause(STEADY_MS)
  for (const each of [olderPoster, newerPoster]) each.end()
  const posted = (await Promise.all([...working.posters, transactions])).map(({ said }) => said as Worked)
  await until(`SELECT FROM ${schema}.jobs HAVING count(*) = 0`)
  late.end()
  const done = (await Promise.all(working.conductors)).map(({ said }) => said as Worked)
  await pool.query(`DROP SCHEMA ${schema} CASCADE`)

  const names = done.flatMap((each) => each.names)
  const at = done.flatMap((each) => each.at)
  const doneOnce = new Set(names)
  return {
    gaps: gapsBetween(at, begins),
    // The first posts of a process wait until it has started.
    post: Math.max(...posted.flatMap(({ took }) => took.slice(took.length > 10 ? 10 : 0))),
    lost: posted.flatMap((each) => each.names).filter((name) => !doneOnce.has(name)).length,
    twice: names.length - doneOnce.size,
    hasReturned: (done.at(-1)?.names.length ?? 0) > 0,
  }
}

/** Returns the longest time without a job done in each phase. */
function gapsBetween(at: readonly number[], begins: readonly number[]): Record<Phase, number> {
  const sorted = at.toSorted((a, b) => a - b)
  const gapIn = (phase: number) => {
    const [begin = 0, end = 0] = begins.slice(phase)
    const inside = [begin, ...sorted.filter((each) => each > begin && each < end), end]
    return Math.max(...inside.slice(1).map((each, index) => each - (inside[index] ?? each)))
  }
  return { alone: gapIn(0), starting: gapIn(1), column: gapIn(2), index: gapIn(3), returning: gapIn(4) }
}
