/**
 * Conductors on a ZooKeeper that fsyncs: jobs of a flow of two tasks per second, from the claim to the consumed job, with
 * each kind of logbook, and beside them TaskFlow's conductor with the same flow on the same server; how soon an idle
 * conductor begins a job; and what more conductors bring where jobs wait for something.
 */

import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openBoard } from 'jobboard'
import { ROOT } from '../support/build.ts'
import { exists } from '../support/install.ts'
import { startPostgres } from '../support/postgres.ts'
import { PYTHON } from '../support/taskflow.ts'
import type { ZooKeeperServer } from '../support/zookeeper.ts'
import { sideBySide } from './board-child.ts'
import { startBenchServer, transactions } from './board-processes.ts'
import { startPart } from './part.ts'
import { apart, now } from './part-child.ts'
import { printRates, type Rate } from './rates.ts'

const CHILD = join(ROOT, 'test/bench/conductor-child.ts')
const THEIR_SCRIPT = join(ROOT, 'test/bench/conductor-taskflow.py')
const JOBS = 10_000
/** Jobs side by side in one conductor. */
const SLOTS = 128
const WIDTH = 512
const STARTS = 300
const WARM_UPS = 20
/** Milliseconds from one of those to the next. */
const GAP = 20
/** Where more conductors share the work: the slots of each, and how many jobs there are for each. */
const SHARED = [
  { slots: 1, jobs: 200 },
  { slots: 4, jobs: 600 },
] as const

interface Place {
  readonly what: string
  readonly ours: string
  /** TaskFlow's, and how many jobs it is given: it would take all night. */
  readonly theirs?: { readonly what: string; readonly arguments: readonly string[]; readonly jobs: number }
  readonly goal: number
}

export default async function conductor(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-bench-'))
  await using server = await startBenchServer()
  await using postgres = await startPostgres()
  try {
    const directory = { what: 'directory', arguments: ['directory', join(folder, 'theirs')], jobs: 100 }
    const sqlite = { what: 'SQLite', arguments: ['sqlite', join(folder, 'theirs.db')], jobs: 50 }
    const places: Place[] = [
      { what: 'memory', ours: 'memory:', theirs: { what: 'memory', arguments: ['memory'], jobs: 400 }, goal: 100 },
      { what: 'directory', ours: `directory:${join(folder, 'ours')}`, theirs: directory, goal: 10 },
      { what: 'postgres', ours: postgres.uri, theirs: sqlite, goal: 100 },
    ]
    for (const place of places) await throughput(server, place)
    await starts(server)
    for (const share of SHARED) await scaling(server, share)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function throughput(server: ZooKeeperServer, { what, ours, theirs, goal }: Place): Promise<void> {
  const rates: Rate[] = []
  if (theirs && (await exists('/usr/lib/python3/dist-packages/taskflow'))) {
    const perSecond = await theirRate(server, theirs)
    rates.push({ what: `TaskFlow's conductor, logbooks in ${theirs.what}`, perSecond })
  }
  const uri = `zookeeper://${server.hosts}/conduct-${what}`
  // The first round warms the server and the disk.
  let best = { perSecond: 0, note: '' }
  for (let round = 0; round < 3; round += 1) {
    await post(uri, 'two', JOBS)
    await using part = await startPart(CHILD, ['conduct', uri, ours, String(JOBS), String(SLOTS)])
    const before = await transactions(server)
    const begin = performance.now()
    const { at, cpu } = await part.go()
    const perSecond = (JOBS * 1_000) / (at - begin)
    const each = ((await transactions(server)) - before) / JOBS
    const note = `${each.toFixed(3)} transactions and ${(cpu / JOBS).toFixed(0)} µs of processor time per job`
    if (perSecond > best.perSecond) best = { perSecond, note }
  }
  rates.push({ what: `one conductor, logbooks in ${what}`, ...best })
  printRates(`jobs of a flow of two tasks (goal: ${goal} times)`, rates)
}

async function theirRate(server: ZooKeeperServer, theirs: NonNullable<Place['theirs']>): Promise<number> {
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

/** From before the post to the first line of the first task. */
async function starts(server: ZooKeeperServer): Promise<void> {
  const uri = `zookeeper://${server.hosts}/starts`
  await using board = await openBoard(uri)
  const jobs = STARTS + WARM_UPS
  await using part = await startPart(CHILD, ['wait', uri, 'memory:', String(jobs), '8'])
  const going = part.go()
  await apart(jobs, GAP, () => board.post('timed', { at: now() }))
  const { said } = await going
  const took = (said as number[]).slice(WARM_UPS).sort((a, b) => a - b)
  const at = (share: number) => (took[Math.floor(share * (took.length - 1))] ?? Number.NaN).toFixed(1)
  console.log(`\nfrom before the post to the first line of a task, ${STARTS} jobs, one every ${GAP} ms`)
  console.log(`  median ${at(0.5)} ms (goal: 3), p99 ${at(0.99)} ms (goal: 20)`)
}

/**
 * Jobs that wait and do not conflict: conductors do not get into each other's way. How many of the machine's processors were
 * busy with the conductors alone tells whether it was they who were waited for.
 */
async function scaling(server: ZooKeeperServer, share: (typeof SHARED)[number]): Promise<void> {
  const rates: Rate[] = []
  for (const conductors of [1, 2, 4, 8]) {
    const uri = `zookeeper://${server.hosts}/share-${share.slots}-${conductors}`
    const jobs = share.jobs * conductors
    await post(uri, 'io', jobs)
    const role = ['share', uri, 'memory:', '0', String(share.slots)]
    const parts = await Promise.all(Array.from({ length: conductors }, () => startPart(CHILD, role)))
    const begin = now()
    const results = await Promise.all(parts.map((part) => part.go()))
    const said = results.map((result) => result.said as { jobs: number; last: number })
    const took = Math.max(...said.map((each) => each.last)) - begin
    const counts = said.map((each) => each.jobs).sort((a, b) => a - b)
    const busy = results.reduce((sum, { cpu }) => sum + cpu / 1_000, 0) / took
    const note = `${counts[0]} to ${counts.at(-1)} jobs each, ${busy.toFixed(1)} of ${cpus().length} processors`
    rates.push({
      what: `${conductors} with ${plural(share.slots, 'slot')} each`,
      perSecond: (jobs * 1_000) / took,
      note,
    })
  }
  printRates(`jobs that wait for 20 ms (goal: 8 conductors 7 times as many as one)`, rates)
}

function plural(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`
}
