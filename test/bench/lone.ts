/**
 * Jobs that come one at a time, 40 a second, on each board and on BullMQ: how long it takes from the post to the first line of the task in an idle
 * conductor, what a job costs the process that posts it and the process that works on it, and how often these wake up for it.
 *
 * Each system runs several rounds in turn with the others, in new processes. One further round comes after 4,000 jobs: then V8 has compiled what a job
 * runs, as in a worker that has been at work for minutes. A last round counts what the two processes do, with async hooks and strace: they slow it down, so
 * its times do not count.
 */
import { cpus } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import { ensureInstalled } from '../support/npm-folder.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { hasStrace } from '../support/strace.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { type LoneWork, MANY_WARM_UPS } from './lone-child.ts'
import { startPart } from './part.ts'
import { peerVersion } from './peer-queues.ts'
import { PEERS } from './peers-folder.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'

const CHILD = join(ROOT, 'test/bench/lone-child.ts')
const ROUNDS = times(2, 1)
const JOBS = times(160, 20)
const COUNTED_JOBS = times(100, 10)
/** Milliseconds from one job to the next. */
const GAP = 25
/** How long idle workers are watched, in milliseconds. */
const IDLE_MS = times(5_000, 500)

interface System {
  readonly what: string
  readonly kind: 'board' | 'bullmq'
  /** @param queue a name that this system has not used before */
  uri(queue: string): string
}

interface Round {
  readonly poster: LoneWork
  readonly worker: LoneWork
}

export default async function lone(): Promise<void> {
  await ensureInstalled(PEERS, { because: 'the benchmark compares with BullMQ' })
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  await using folder = await benchFolder()
  const bullmq: System = { what: `BullMQ ${await peerVersion('bullmq')}`, kind: 'bullmq', uri: () => redis.uri }
  const boards = [
    { what: 'ZooKeeper', uri: (queue: string) => `zookeeper://${zookeeper.hosts}/${queue}` },
    { what: 'Redis', uri: (queue: string) => `${redis.uri}/0?prefix=${queue}` },
    { what: 'Postgres', uri: (queue: string) => `${postgres.uri}?board=${queue}` },
    { what: 'SQLite', uri: (queue: string) => sqliteUri(folder.path, queue) },
  ].map((place): System => ({ ...place, kind: 'board' }))
  const systems = [...boards, bullmq]
  console.log(`Node ${process.version}, ${cpus().length} processors; ${ROUNDS * JOBS} jobs, one every ${GAP} ms`)
  const all = new Map<System, Round[]>(systems.map((system) => [system, []]))
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const system of [...systems.slice(round), ...systems.slice(0, round)])
      all.get(system)?.push(await run(system, `lone-${round}`, JOBS))
  }
  for (const [system, rounds] of all) printRounds(system, rounds)
  console.log(`\nafter ${MANY_WARM_UPS} jobs; no goal counts these figures`)
  const warm = new Map<System, Round>()
  for (const system of systems) warm.set(system, await run(system, 'lone-warm', ROUNDS * JOBS, 'warm'))
  for (const [system, round] of warm) printRounds(system, [round])
  if (await hasStrace()) {
    for (const system of systems) printCounts(system, await run(system, 'lone-counts', COUNTED_JOBS, 'counts'))
  }
  console.log('\na worker that has nothing to do, for one second')
  for (const [index, idle] of (await Promise.all(systems.map(runIdle))).entries()) {
    const [switches, cpu] = [idle.switches, idle.cpu / 1_000].map((figure) => (figure * 1_000) / IDLE_MS)
    const what = systems[index]?.what.padEnd(16)
    console.log(`  ${what} wakes ${switches?.toFixed(1)} times, ${cpu?.toFixed(2)} ms of processor time`)
  }
  printGoals(boards.flatMap((board) => goalsOf(board.what, all.get(board) ?? [], all.get(bullmq) ?? [])))
}

async function run({ kind, uri }: System, queue: string, jobs: number, ...more: readonly string[]): Promise<Round> {
  const args = [kind, uri(queue), queue, String(jobs), String(GAP), ...more]
  await using worker = await startPart(CHILD, ['work', ...args])
  await using poster = await startPart(CHILD, ['post', ...args])
  const [worked, posted] = await Promise.all([worker.go(), poster.go()])
  return { worker: worked.said as LoneWork, poster: posted.said as LoneWork }
}

async function runIdle({ kind, uri }: System): Promise<LoneWork> {
  const queue = 'lone-idle'
  await using worker = await startPart(CHILD, ['work', kind, uri(queue), queue, String(IDLE_MS), '0', 'idle'])
  return (await worker.go()).said as LoneWork
}

function printRounds({ what }: System, rounds: readonly Round[]): void {
  const [line, answer] = [spreadOf(rounds, 'worker'), spreadOf(rounds, 'poster')]
  console.log(
    `\n${what}: post to first line, median ${line.median.toFixed(2)} ms, p99 ${line.p99.toFixed(2)} ms; to the answer of the post ${answer.median.toFixed(2)} ms`,
  )
  for (const who of ['poster', 'worker'] as const) {
    const works = rounds.map((round) => round[who])
    const each = works.map((work) => toMilliseconds([work]).toFixed(2))
    const [switches, turns] = [perJob(works, 'switches'), perJob(works, 'turns')].map((figure) => figure.toFixed(1))
    console.log(
      `  ${who}: ${toMilliseconds(works).toFixed(2)} ms of processor time a job (${each.join(', ')}); the main thread waits ${switches} times, in ${turns} turns`,
    )
  }
}

function printCounts({ what }: System, round: Round): void {
  for (const who of ['poster', 'worker'] as const) {
    const { counts, jobs } = round[who]
    const each = Object.entries(counts)
      .map(([name, count]) => ({ name, count: count / jobs }))
      .filter(({ count }) => count >= 0.05)
      .sort((a, b) => b.count - a.count)
      .map(({ name, count }) => `${name} ${count.toFixed(1)}`)
    console.log(`\n${what}, ${who}, for one job: ${each.join(', ')}`)
  }
}

function goalsOf(what: string, ours: readonly Round[], theirs: readonly Round[]): Goal[] {
  const [own, peer] = [spreadOf(ours, 'worker'), spreadOf(theirs, 'worker')]
  const cpu = toMilliseconds(ours.map(({ worker }) => worker))
  const line = `post to first line on ${what}`
  return [
    { what: `${line}, median, times BullMQ's:`, value: own.median / peer.median, goal: { atMost: 1.8 } },
    { what: `${line}, p99, times BullMQ's:`, value: own.p99 / peer.p99, goal: { atMost: 2.5 } },
    { what: `processor time of the conductor for a job on ${what}, in ms:`, value: cpu, goal: { atMost: 1.5 } },
  ]
}

function spreadOf(rounds: readonly Round[], who: keyof Round): { readonly median: number; readonly p99: number } {
  const took = rounds.flatMap((round) => round[who].took).sort((a, b) => a - b)
  const at = (share: number) => took[Math.floor(share * (took.length - 1))] ?? Number.NaN
  return { median: at(0.5), p99: at(0.99) }
}

/** Returns the processor time of one job, in milliseconds. */
function toMilliseconds(works: readonly LoneWork[]): number {
  return perJob(works, 'cpu') / 1_000
}

function perJob(works: readonly LoneWork[], figure: 'cpu' | 'switches' | 'turns'): number {
  const jobs = works.reduce((sum, work) => sum + work.jobs, 0)
  return works.reduce((sum, work) => sum + work[figure], 0) / jobs
}
