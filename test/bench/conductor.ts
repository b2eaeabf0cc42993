/**
 * Conductors on a ZooKeeper that fsyncs: jobs of a flow of two tasks per second, from the claim to the consumed job, with
 * each kind of logbook, and beside them TaskFlow's conductor with the same flow on the same server; how soon an idle
 * conductor begins a job, beside BullMQ; and what more conductors bring where jobs wait for something. The same with board and
 * logbooks in one SQLite file.
 */

import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openBoard } from 'jobboard'
import { ROOT } from '../support/build.ts'
import { ensureInstalled } from '../support/npm-folder.ts'
import { startPostgres } from '../support/postgres.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { PYTHON, provideTaskFlow } from '../support/taskflow.ts'
import type { ZooKeeperServer } from '../support/zookeeper.ts'
import { startBenchServer, transactions } from './board-processes.ts'
import { times } from './brief.ts'
import { bullMqOn, type Contender } from './contenders.ts'
import { type Goal, printGoals } from './goals.ts'
import { startPart } from './part.ts'
import { apart, now, sideBySide } from './part-child.ts'
import { PEERS } from './peers-folder.ts'
import { printRates, type Rate } from './rates.ts'
import { type BenchFolder, benchFolder, sqliteUri } from './sqlite-places.ts'

const CHILD = join(ROOT, 'test/bench/conductor-child.ts')
const THEIR_SCRIPT = join(ROOT, 'test/bench/conductor-taskflow.py')
const JOBS = times(10_000, 500)
const ROUNDS = times(3, 1)
/** Jobs side by side in one conductor. */
const SLOTS = 128
const WIDTH = 512
const STARTS = times(300, 20)
const WARM_UPS = times(20, 5)
/** Milliseconds from one of those to the next. */
const GAP = 20
/** Where more conductors share the work: the slots of each, and how many jobs there are for each. */
const SHARED = [
  { slots: 1, jobs: times(200, 10) },
  { slots: 4, jobs: times(600, 20) },
] as const

/** A board with its logbooks. */
interface Place {
  readonly what: string
  readonly board: string
  readonly logbooks: string
  /** Returns how many transactions the server has done; undefined where nothing counts them. */
  transactions?(): Promise<number>
}

/** A place with logbooks that is compared with TaskFlow. */
interface ComparedPlace extends Place {
  /** TaskFlow's, and how many jobs it is given: it would take all night. */
  readonly theirs: { readonly what: string; readonly arguments: readonly string[]; readonly jobs: number }
  /** So many times TaskFlow's. */
  readonly goal: number
}

export default async function conductor(): Promise<void> {
  await ensureInstalled(PEERS, { because: 'the benchmark compares with BullMQ' })
  const withTaskFlow = await provideTaskFlow({ sql: true })
  await using folder = await benchFolder()
  await using server = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  const directory = { what: 'directory', arguments: ['directory', join(folder.path, 'theirs')], jobs: times(100, 10) }
  const sqlite = { what: 'SQLite', arguments: ['sqlite', join(folder.path, 'theirs.db')], jobs: times(50, 5) }
  const memory = { what: 'memory', arguments: ['memory'], jobs: times(400, 40) }
  const onServer = (what: string, logbooks: string) => ({
    what: `logbooks in ${what}`,
    board: `zookeeper://${server.hosts}/conduct-${what}`,
    logbooks,
    transactions: () => transactions(server),
  })
  const places: readonly ComparedPlace[] = [
    { ...onServer('memory', 'memory:'), theirs: memory, goal: 80 },
    { ...onServer('directory', `directory:${join(folder.path, 'ours')}`), theirs: directory, goal: 15 },
    { ...onServer('postgres', postgres.uri), theirs: sqlite, goal: 250 },
  ]
  const goals: Goal[] = []
  for (const place of places) goals.push(await beside(server, place, { withTaskFlow }))
  printRates('jobs of a flow of two tasks', [await throughput(inFile(folder, 'conduct'))])
  goals.push(...(await starts(server, redis, inFile(folder, 'starts'))))
  for (const share of SHARED) {
    const zookeeper = (conductors: number): Place => ({
      what: 'ZooKeeper',
      board: `zookeeper://${server.hosts}/share-${share.slots}-${conductors}`,
      logbooks: 'memory:',
    })
    const scaled = await scaling(share, zookeeper)
    goals.push({
      what: `jobs that wait for 20 ms, 8 conductors with ${plural(share.slots, 'slot')} each, times one:`,
      value: scaled,
      goal: { atLeast: 7 },
    })
    await scaling(share, (conductors) => inFile(folder, `share-${share.slots}-${conductors}`))
  }
  printGoals(goals)
}

function inFile(folder: BenchFolder, name: string): Place {
  const uri = sqliteUri(folder.path, name)
  return { what: 'board and logbooks in one SQLite file', board: uri, logbooks: uri }
}

async function beside(
  server: ZooKeeperServer,
  { theirs, goal, ...place }: ComparedPlace,
  { withTaskFlow }: { withTaskFlow: boolean },
): Promise<Goal> {
  const taskflow = withTaskFlow ? await theirRate(server, theirs) : undefined
  const rates: Rate[] =
    taskflow === undefined ? [] : [{ what: `TaskFlow's conductor, logbooks in ${theirs.what}`, perSecond: taskflow }]
  const ours = await throughput(place)
  printRates('jobs of a flow of two tasks', [...rates, ours])
  const compared = `jobs per second with ${place.what}, times TaskFlow's with ${theirs.what}:`
  return { what: compared, value: taskflow && ours.perSecond / taskflow, goal: { atLeast: goal } }
}

/** Returns the rate of the best round. */
async function throughput({ what, board, logbooks, transactions }: Place): Promise<Rate> {
  // The first round warms the server and the disk.
  let best = { perSecond: 0, note: '' }
  for (let round = 0; round < ROUNDS; round += 1) {
    await post(board, 'two', JOBS)
    await using part = await startPart(CHILD, ['conduct', board, logbooks, String(JOBS), String(SLOTS)])
    const before = await transactions?.()
    const begin = performance.now()
    const { at, cpu } = await part.go()
    const perSecond = (JOBS * 1_000) / (at - begin)
    const after = await transactions?.()
    const each =
      before === undefined || after === undefined ? '' : `${((after - before) / JOBS).toFixed(3)} transactions and `
    const note = `${each}${(cpu / JOBS).toFixed(0)} µs of processor time per job`
    if (perSecond > best.perSecond) best = { perSecond, note }
  }
  return { what: `one conductor, ${what}`, ...best }
}

async function theirRate(server: ZooKeeperServer, theirs: ComparedPlace['theirs']): Promise<number> {
  const [where = '', ...rest] = theirs.arguments
  const path = `/theirs-${where}`
  const args = [THEIR_SCRIPT, server.hosts, path, where, String(theirs.jobs), ...rest]
  const child = spawn(PYTHON, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout })) {
    child.kill('SIGKILL')
    return Number(line)
  }
  throw new Error(`TaskFlow's conductor ended without a result`)
}

async function post(uri: string, flow: string, jobs: number): Promise<void> {
  await using board = await openBoard(uri)
  await sideBySide(jobs, WIDTH, () => board.post(flow, {}))
}

interface Spread {
  readonly median: number
  readonly p99: number
}

/** Returns how long it took from before the post to the first line of the first task. */
async function measureStarts({ board: uri, logbooks }: Place): Promise<Spread> {
  await using board = await openBoard(uri)
  const jobs = STARTS + WARM_UPS
  await using part = await startPart(CHILD, ['wait', uri, logbooks, String(jobs), '8'])
  const going = part.go()
  await apart(jobs, GAP, () => board.post('timed', { at: now() }))
  const { said } = await going
  return spreadOf(said as number[])
}

/** Returns how long BullMQ takes from before the job is added. */
async function measureStartsOfBullMq(bullmq: Contender): Promise<Spread> {
  const jobs = STARTS + WARM_UPS
  await using worker = await bullmq.start('consumeOneByOne', 'starts', jobs)
  await using poster = await bullmq.start('postApart', 'starts', jobs, GAP)
  const [theirs] = await Promise.all([worker.go(), poster.go()])
  return spreadOf((theirs.said as { result: number[] }).result)
}

async function starts(server: ZooKeeperServer, redis: RedisServer, file: Place): Promise<Goal[]> {
  const place = { what: 'ZooKeeper', board: `zookeeper://${server.hosts}/starts`, logbooks: 'memory:' }
  const bullmq = await bullMqOn(redis)
  const [ours, inFile] = [await measureStarts(place), await measureStarts(file)]
  const peer = await measureStartsOfBullMq(bullmq)
  console.log(`\nfrom before the post to the first line of a task, ${STARTS} jobs, one every ${GAP} ms`)
  const all = { 'one conductor': ours, [`one conductor, ${file.what}`]: inFile, [bullmq.what]: peer }
  for (const [what, { median, p99 }] of Object.entries(all))
    console.log(`  ${what.padEnd(60)} median ${median.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`)
  const what = 'from the post to the first line of a task'
  return [
    { what: `${what}, median, in ms:`, value: ours.median, goal: { atMost: 3 } },
    { what: `${what}, p99, in ms:`, value: ours.p99, goal: { atMost: 20 } },
    { what: `${what}, median, times BullMQ's:`, value: ours.median / peer.median, goal: { atMost: 1.5 } },
    { what: `${what}, p99, times BullMQ's:`, value: ours.p99 / peer.p99, goal: { atMost: 2.5 } },
    { what: `${what}, ${file.what}, median, in ms:`, value: inFile.median, goal: { atMost: 5 } },
  ]
}

/** Of what came after the warm-up. */
function spreadOf(figures: readonly number[]): Spread {
  const took = figures.slice(WARM_UPS).sort((a, b) => a - b)
  const at = (share: number) => took[Math.floor(share * (took.length - 1))] ?? Number.NaN
  return { median: at(0.5), p99: at(0.99) }
}

/**
 * Jobs that wait and do not conflict: conductors do not get into each other's way. How many of the machine's processors were
 * busy with the conductors alone tells whether it was they who were waited for. Returns the rate of eight, times that of one.
 */
async function scaling(share: (typeof SHARED)[number], placeOf: (conductors: number) => Place): Promise<number> {
  const rates: Rate[] = []
  for (const conductors of [1, 2, 4, 8]) {
    const { board, logbooks, what } = placeOf(conductors)
    const jobs = share.jobs * conductors
    await post(board, 'io', jobs)
    const role = ['share', board, logbooks, '0', String(share.slots)]
    const parts = await Promise.all(Array.from({ length: conductors }, () => startPart(CHILD, role)))
    const begin = now()
    const results = await Promise.all(parts.map((part) => part.go()))
    const said = results.map((result) => result.said as { jobs: number; last: number })
    const took = Math.max(...said.map((each) => each.last)) - begin
    const counts = said.map((each) => each.jobs).sort((a, b) => a - b)
    const busy = results.reduce((sum, { cpu }) => sum + cpu / 1_000, 0) / took
    const note = `${counts[0]} to ${counts.at(-1)} jobs each, ${busy.toFixed(1)} of ${cpus().length} processors`
    const done = counts.reduce((sum, count) => sum + count, 0)
    rates.push({
      what: `${conductors} with ${plural(share.slots, 'slot')} each, ${what}`,
      // On a busy machine conductors may end before they have read the board. A conductor that stops does not count its last jobs.
      perSecond: done < 0.9 * jobs ? Number.NaN : (jobs * 1_000) / took,
      note,
    })
  }
  printRates('jobs that wait for 20 ms', rates)
  const [one, eight] = [rates[0], rates.at(-1)].map((each) => each?.perSecond ?? Number.NaN)
  return (eight ?? Number.NaN) / (one ?? Number.NaN)
}

function plural(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`
}
