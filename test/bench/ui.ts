/**
 * What the dashboard costs: jobs per second of a board that nobody serves, that a dashboard serves at which nobody looks, and one with ten people
 * who look; the size of what a browser loads; the first page of a long board; memory while many jobs change.
 */
import { readFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ROOT } from '../support/build.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { startPart } from './part.ts'
import { median, spread } from './spread.ts'

const CHILD = join(ROOT, 'test/bench/ui-child.ts')
const JOBS = times(5_000, 200)
/** A goal of 3 % needs many: one round differs from the next by 10 % on a small machine. */
const ROUNDS = times(11, 1)
const VIEWERS = 10
const LONG_BOARD = times(100_000, 1_000)
const ASKS = times(20, 2)
/** Ten jobs in each second of an hour. */
const HOUR_OF_JOBS = times(36_000, 400)

/** The number of people who look; undefined without a dashboard. */
const CASES: Readonly<Record<string, { readonly viewers?: number; readonly goal?: number }>> = {
  'no dashboard': {},
  'nobody looks': { viewers: 0, goal: 0.97 },
  'ten people look': { viewers: VIEWERS, goal: 0.8 },
}

export default async function ui(): Promise<void> {
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  const places: Readonly<Record<string, (board: string) => string>> = {
    ZooKeeper: (board) => `zookeeper://${zookeeper.hosts}/${board}?sessionTimeout=30s`,
    Postgres: (board) => `${postgres.uri}?board=${board}`,
    Redis: (board) => `${redis.uri}/0?prefix=${board}`,
  }
  console.log(`Node ${process.version}, ${cpus().length} processors`)
  const goals: Goal[] = []
  for (const [where, uriOf] of Object.entries(places)) goals.push(...(await throughput(where, uriOf)))
  goals.push(await bundle())
  const longBoards = {
    memory: 'memory:',
    ...Object.fromEntries(Object.entries(places).map(([where, uriOf]) => [where, uriOf('long')])),
  }
  for (const [where, uri] of Object.entries(longBoards)) goals.push(...(await firstPage(where, uri)))
  goals.push(await memory())
  printGoals(goals)
}

async function throughput(where: string, uriOf: (board: string) => string): Promise<Goal[]> {
  const names = Object.keys(CASES)
  const all = new Map(names.map((name) => [name, [] as Measured[]]))
  await measure(uriOf('warm-up'), undefined)
  for (let round = 0; round < ROUNDS; round += 1) {
    const first = round % names.length
    for (const name of [...names.slice(first), ...names.slice(0, first)])
      all.get(name)?.push(await measure(uriOf(`r${round}-${names.indexOf(name)}`), CASES[name]?.viewers))
  }
  console.log(`\n${JOBS} jobs, posted and done by one process, on ${where}; the median of ${ROUNDS} rounds (range)`)
  const bare = all.get('no dashboard') ?? []
  return [...all].flatMap(([name, measured]): Goal[] => {
    const ratios = measured.map(({ perSecond }, round) => perSecond / (bare[round]?.perSecond ?? Number.NaN))
    const rate = spread(
      measured.map(({ perSecond }) => perSecond),
      0,
    )
    const busy = spread(
      measured.map((each) => each.busy * 100),
      1,
    )
    console.log(
      `  ${name.padEnd(16)} ${rate} jobs/s, × ${spread(ratios, 2)}, the dashboard's process busy for ${busy} % of the time`,
    )
    const goal = CASES[name]?.goal
    if (goal === undefined) return []
    const what = `jobs per second on ${where} while ${name}, times those without a dashboard:`
    return [{ what, value: median(ratios), goal: { atLeast: goal } }]
  })
}

interface Measured {
  readonly perSecond: number
  /** The part of the time for which the dashboard's process used a processor. */
  readonly busy: number
}

async function measure(uri: string, viewers: number | undefined): Promise<Measured> {
  await using worker = await startPart(CHILD, ['work', uri, String(JOBS)])
  if (viewers === undefined) return { perSecond: (JOBS * 1_000) / Number((await worker.go()).said), busy: 0 }
  await using server = await startPart(CHILD, ['serve', uri, String(viewers)])
  const serving = server.go()
  const begin = performance.now()
  const { said } = await worker.go()
  const took = performance.now() - begin
  server.end()
  const { cpu } = await serving
  return { perSecond: (JOBS * 1_000) / Number(said), busy: cpu / 1_000 / took }
}

async function bundle(): Promise<Goal> {
  const folder = join(ROOT, 'dist/ui/page')
  const { script, style } = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
  const files = await Promise.all([script, style].map((name) => readFile(join(folder, name))))
  const value = files.reduce((sum, file) => sum + gzipSync(file).length, 0) / 1_000
  return { what: 'size of the script and the style of the page, in kB of gzip:', value, goal: { atMost: 60 } }
}

async function firstPage(where: string, uri: string): Promise<Goal[]> {
  if (uri !== 'memory:') {
    // Another process posts, as usual: one that has posted 100,000 jobs has their garbage to collect.
    await using filler = await startPart(CHILD, ['fill', uri, String(LONG_BOARD)])
    await filler.go()
  }
  await using part = await startPart(CHILD, ['firstPage', uri, String(LONG_BOARD), String(ASKS)])
  const [first = Number.NaN, ...later] = (await part.go()).said as number[]
  const answered = `${later.length + 1} of ${ASKS} answered`
  console.log(
    `\nfirst page of ${LONG_BOARD} jobs, ${where}: at first ${first.toFixed(0)} ms, then ${spread(later, 0)} ms (${answered})`,
  )
  const what = `the first page of ${LONG_BOARD} jobs, ${where}, in ms,`
  return [
    { what: `${what} at the first look:`, value: first, goal: { atMost: 300 } },
    { what: `${what} the slowest of those after it:`, value: Math.max(...later), goal: { atMost: 300 } },
  ]
}

async function memory(): Promise<Goal> {
  await using part = await startPart(CHILD, ['hour', String(HOUR_OF_JOBS), String(VIEWERS)])
  const { before, after, messages } = (await part.go()).said as Record<string, number>
  console.log(
    `\n${HOUR_OF_JOBS} jobs with ${VIEWERS} people who look (${messages} messages): heap ${before?.toFixed(1)} MB, then ${after?.toFixed(1)} MB`,
  )
  const value = (after ?? Number.NaN) - (before ?? Number.NaN)
  return { what: `growth of the heap over ${HOUR_OF_JOBS} jobs, in MB:`, value, goal: { atMost: 20 } }
}
