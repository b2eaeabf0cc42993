/**
 * What schedules cost: how late jobs are posted, with one, a hundred and ten thousand schedules; how many transactions a firing takes with one, five
 * and fifty conductors, of which all but one are refused or see in time that another was faster; and how long ten thousand jobs take that are
 * due at one instant. Another process consumes the jobs. On ZooKeeper with fsync.
 */
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { openBoard, schedule } from '../../src/index.ts'
import { ROOT } from '../support/build.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { type Part, startPart } from './part.ts'

const CHILD = join(ROOT, 'test/bench/schedule-child.ts')
const MEASURED_MS = times(60_000, 3_000)
const SETTLE_MS = times(5_000, 500)
const MOST = times(10_000, 200)

interface Setup {
  readonly schedules: number
  /** The distance between two times of each schedule; their offsets are spread over it. */
  readonly everyMs: number
  readonly conductors: number
  readonly processes: number
  readonly latenessGoalMs?: number
  readonly transactionsGoal?: number
}

const SETUPS: readonly Setup[] = [
  { schedules: 1, everyMs: 1_000, conductors: 1, processes: 1 },
  { schedules: 100, everyMs: 10_000, conductors: 1, processes: 1 },
  { schedules: 100, everyMs: 10_000, conductors: 5, processes: 5 },
  { schedules: 100, everyMs: 10_000, conductors: 50, processes: 5, transactionsGoal: 1.2 },
  { schedules: MOST, everyMs: times(60_000, 4_000), conductors: 2, processes: 2, latenessGoalMs: 100 },
]

interface Measured {
  /** Milliseconds from the nominal time until a viewer of the board knows of the job, sorted. */
  readonly lateness: readonly number[]
  readonly fired: number
  readonly transactions: number
}

export default async function schedules(): Promise<void> {
  await using server = await startBenchServer()
  console.log(
    `Node ${process.version}, ${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)} at the start; ZooKeeper with fsync`,
  )
  console.log('\nmilliseconds from the nominal time until a viewer of the board knows of the job; transactions per job')
  const goals: Goal[] = []
  for (const [index, setup] of SETUPS.entries()) {
    const uri = `zookeeper://${server.hosts}/schedule-${index}?sessionTimeout=30s`
    goals.push(...(await fireFor(uri, setup)))
  }
  await atOneInstant(`zookeeper://${server.hosts}/schedule-instant?sessionTimeout=30s`)
  printGoals(goals)
}

async function fireFor(uri: string, setup: Setup): Promise<Goal[]> {
  const { schedules, everyMs, conductors, processes, latenessGoalMs, transactionsGoal } = setup
  await using board = await openBoard(uri)
  const lateness: number[] = []
  let isMeasured = false
  board.on('posted', ({ job }) => {
    const { nominal } = Object(job.details['schedule'])
    if (isMeasured) lateness.push(Date.now() - Date.parse(nominal))
  })
  const ids = Array.from({ length: schedules }, (_, n) => n)
  const put = (n: number) => {
    const spec = { every: everyMs, offset: Math.floor((n * everyMs) / schedules) }
    return board.schedules.put(schedule(`s${n}`, spec, 'tick', {}, { overlap: 'allow' }))
  }
  for (let first = 0; first < schedules; first += 100) await Promise.all(ids.slice(first, first + 100).map(put))
  const parts = await start(uri, { conductors, processes })
  await using consumer = await startPart(CHILD, ['consume', '1', uri])
  const consuming = consumer.go()
  await pause(SETTLE_MS)
  const running = parts.map((part) => part.go())
  isMeasured = true
  await pause(MEASURED_MS)
  isMeasured = false
  for (const part of [...parts, consumer]) part.end()
  await consuming
  const said = (await Promise.all(running)).map((done) => done.said as Pick<Measured, 'fired' | 'transactions'>)
  const sum = (key: 'fired' | 'transactions') => said.reduce((total, each) => total + each[key], 0)
  const sorted = lateness.sort((a, b) => a - b)
  const perFiring = sum('transactions') / sum('fired')
  const what = `${schedules} schedules every ${everyMs / 1_000} s, ${conductors} conductors`
  console.log(
    `  ${what.padEnd(50)} ${String(sum('fired')).padStart(6)} jobs  p50 ${quantile(sorted, 0.5)}, p99 ${quantile(sorted, 0.99)}, most ${quantile(sorted, 1)} ms  ${perFiring.toFixed(3)}`,
  )
  return [
    ...(latenessGoalMs === undefined
      ? []
      : [{ what: `${what}: lateness, p99, in ms`, value: quantile(sorted, 0.99), goal: { atMost: latenessGoalMs } }]),
    ...(transactionsGoal === undefined
      ? []
      : [{ what: `${what}: transactions per job`, value: perFiring, goal: { atMost: transactionsGoal } }]),
  ]
}

/** Measures how long the jobs take of many schedules that are due at one instant. */
async function atOneInstant(uri: string): Promise<void> {
  await using board = await openBoard(uri)
  const leadMs = times(20_000, 3_000)
  const parts = await start(uri, { conductors: 2, processes: 2 })
  const at = new Date(Math.ceil((Date.now() + leadMs) / 1_000) * 1_000)
  const ids = Array.from({ length: MOST }, (_, n) => n)
  for (let first = 0; first < MOST; first += 100)
    await Promise.all(
      ids
        .slice(first, first + 100)
        .map((n) => board.schedules.put(schedule(`s${n}`, { at }, 'tick', {}, { overlap: 'allow' }))),
    )
  let posted = 0
  const all = new Promise<void>((resolve) => {
    board.on('posted', () => {
      posted += 1
      if (posted === MOST) resolve()
    })
  })
  const running = parts.map((part) => part.go())
  await all
  const tookMs = Date.now() - at.getTime()
  for (const part of parts) part.end()
  await Promise.all(running)
  console.log(`  ${MOST} schedules at one instant, 2 conductors: the last job after ${tookMs} ms`)
}

async function start(
  uri: string,
  { conductors, processes }: { readonly conductors: number; readonly processes: number },
): Promise<Part[]> {
  const each = Math.ceil(conductors / processes)
  return Promise.all(
    Array.from({ length: processes }, (_, n) => startPart(CHILD, ['fire', String(each), uri, `p${n}`])),
  )
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
