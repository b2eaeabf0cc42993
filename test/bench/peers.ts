/**
 * The board beside the fastest queues that Node has, in one run: life cycles of jobs (post or add, pick up, complete)
 * with one process that posts and another that works, and how soon a job is picked up when there is nothing else to do.
 * They take turns, several rounds, each on a queue that it has not used before.
 */
import { cpus, loadavg } from 'node:os'
import { ensureInstalled } from '../support/npm-folder.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { type Contender, contendersOn } from './contenders.ts'
import { PEERS } from './peers-folder.ts'
import { printRates } from './rates.ts'

const JOBS = 40_000
const ROUNDS = 3
const PICK_UPS = 100
/** Before those, so that programs and processes have run once through what is measured. */
const WARM_UPS = 20
/** Milliseconds from one of those to the next. */
const GAP = 20

/** What was measured of each contender, over all rounds. */
interface Measured {
  /** Life cycles per second, one figure per round. */
  readonly rates: number[]
  /** Milliseconds, one figure per job. */
  readonly pickUps: number[]
}

export default async function peers(): Promise<void> {
  await ensureInstalled(PEERS, { because: 'the benchmark compares with BullMQ and graphile-worker' })
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  const contenders = await contendersOn({ zookeeper, redis, postgres })
  const all = new Map<Contender, Measured>(contenders.map((each) => [each, { rates: [], pickUps: [] }]))
  console.log(`Node ${process.version}, ${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)} at the start`)
  for (let round = 0; round < ROUNDS; round += 1) {
    // Each goes first once: what came before is still felt by the disk.
    for (const contender of [...contenders.slice(round), ...contenders.slice(0, round)]) {
      all.get(contender)?.rates.push(await lifeCycles(contender, `cycles${round}`))
      all.get(contender)?.pickUps.push(...(await pickUps(contender, `idle${round}`)))
    }
  }
  printLifeCycles(all)
  printPickUps(all)
}

/** @returns how many per second */
async function lifeCycles(contender: Contender, queue: string): Promise<number> {
  await using consumer = await contender.start('consume', queue, JOBS)
  await using producer = await contender.start('produce', queue, JOBS)
  const begin = performance.now()
  const [{ at }] = await Promise.all([consumer.go(), producer.go()])
  return (JOBS * 1_000) / (at - begin)
}

/** @returns how long each took */
async function pickUps(contender: Contender, queue: string): Promise<readonly number[]> {
  await using consumer = await contender.start('consumeOneByOne', queue, WARM_UPS + PICK_UPS)
  await using producer = await contender.start('postApart', queue, WARM_UPS + PICK_UPS, GAP)
  const [{ said }] = await Promise.all([consumer.go(), producer.go()])
  return (said as { result: number[] }).result.slice(WARM_UPS)
}

function printLifeCycles(all: ReadonlyMap<Contender, Measured>): void {
  const rates = [...all].map(([{ what, goal }, measured]) => {
    const note = `(${measured.rates.map((each) => each.toFixed(0)).join(', ')})`
    return { what, goal, perSecond: at(0.5, measured.rates), note }
  })
  printRates(
    `life cycles of ${JOBS} jobs, one producer and one consumer process; the median of ${ROUNDS} rounds`,
    rates,
  )
  const ours = rates[0]?.perSecond ?? Number.NaN
  for (const { what, goal, perSecond } of rates) {
    if (goal) console.log(`  this board: ${(ours / perSecond).toFixed(2)} times ${what} (goal: ${goal})`)
  }
}

function printPickUps(all: ReadonlyMap<Contender, Measured>): void {
  console.log(`\nfrom before a job is posted until it is picked up, ${ROUNDS * PICK_UPS} jobs, one every ${GAP} ms`)
  for (const [{ what }, { pickUps: took }] of all) {
    const [median, worst] = [0.5, 0.99].map((part) => at(part, took).toFixed(1).padStart(6))
    console.log(`  ${what.padEnd(60)} median ${median} ms, p99 ${worst} ms`)
  }
}

/** The figure that so large a part of them does not exceed. */
function at(part: number, figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(part * (figures.length - 1))] ?? Number.NaN
}
