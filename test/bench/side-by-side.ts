/**
 * Boards and queues in one run: life cycles of jobs (post or add, pick up, complete) with one process that posts and another
 * that works, and how soon a job is picked up when there is nothing else to do. They take turns, several rounds after one
 * that does not count, each on a queue that it has not used before. The processes of a round are new: a good part of its few seconds is V8's compiler. So
 * there is one long round, too, with a backlog that no view of ours holds as a whole.
 */
import { cpus, loadavg } from 'node:os'
import { ensureInstalled } from '../support/npm-folder.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import type { Comparison, Contender, Servers, Target } from './contenders.ts'
import { type Goal, printGoals } from './goals.ts'
import { PEERS } from './peers-folder.ts'
import { printRates } from './rates.ts'
import { benchFolder } from './sqlite-places.ts'

const JOBS = times(40_000, 1_000)
const ROUNDS = times(3, 1)
/** Jobs of the long round. */
const MANY_JOBS = times(160_000, 2_000)
const PICK_UPS = times(100, 20)
/** Before those, so that programs and processes have run once through what is measured. */
const WARM_UPS = 20
/** Milliseconds from one of those to the next. */
const GAP = 20

interface Round {
  readonly perSecond: number
  /** Microseconds of processor time per job. */
  readonly producer: number
  readonly consumer: number
}

/** What was measured of each contender, over all rounds. */
interface Measured {
  /** Of life cycles; one per round. */
  readonly rounds: Round[]
  long?: Round
  /** Milliseconds, one figure per job. */
  readonly pickUps: number[]
}

/** @param choose who is compared */
export async function compare(choose: (servers: Servers) => Promise<Comparison>): Promise<void> {
  await ensureInstalled(PEERS, { because: 'the benchmark compares with BullMQ and graphile-worker' })
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  await using folder = await benchFolder()
  const { contenders, targets } = await choose({ zookeeper, redis, postgres, folder: folder.path })
  const all = new Map<Contender, Measured>(contenders.map((each) => [each, { rounds: [], pickUps: [] }]))
  console.log(`Node ${process.version}, ${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)} at the start`)
  // ZooKeeper compiles itself while it works; a server that has been up for a minute is what people have.
  for (const contender of contenders) await lifeCycles(contender, 'warm-up')
  for (let round = 0; round < ROUNDS; round += 1) {
    // Each goes first once: what came before is still felt by the disk.
    for (const contender of [...contenders.slice(round), ...contenders.slice(0, round)]) {
      all.get(contender)?.rounds.push(await lifeCycles(contender, `cycles${round}`))
      all.get(contender)?.pickUps.push(...(await pickUps(contender, `idle${round}`)))
    }
  }
  for (const contender of contenders) {
    const measured = all.get(contender)
    if (measured) measured.long = await lifeCycles(contender, 'long', MANY_JOBS)
  }
  printLifeCycles(all)
  printLongRound(all)
  printPickUps(all)
  printGoals(targets.flatMap((target) => goalsOf(target, all)))
}

async function lifeCycles(contender: Contender, queue: string, jobs = JOBS): Promise<Round> {
  await using consumer = await contender.start('consume', queue, jobs)
  await using producer = await contender.start('produce', queue, jobs)
  const begin = performance.now()
  const [consumed, produced] = await Promise.all([consumer.go(), producer.go()])
  const perSecond = (jobs * 1_000) / (consumed.at - begin)
  return { perSecond, producer: produced.cpu / jobs, consumer: consumed.cpu / jobs }
}

/** @returns how long each took */
async function pickUps(contender: Contender, queue: string): Promise<readonly number[]> {
  await using consumer = await contender.start('consumeOneByOne', queue, WARM_UPS + PICK_UPS)
  await using producer = await contender.start('postApart', queue, WARM_UPS + PICK_UPS, GAP)
  const [{ said }] = await Promise.all([consumer.go(), producer.go()])
  return (said as { result: number[] }).result.slice(WARM_UPS)
}

function printLifeCycles(all: ReadonlyMap<Contender, Measured>): void {
  const rates = [...all].map(([{ what }, { rounds }]) => {
    const figures = (of: keyof Round) => rounds.map((round) => round[of])
    const each = figures('perSecond').map((rate) => rate.toFixed(0))
    const cpu = [figures('producer'), figures('consumer')].map((times) => at(0.5, times).toFixed(0))
    const note = `(${each.join(', ')})  ${cpu.join(' + ')} µs`
    return { what, perSecond: at(0.5, figures('perSecond')), note }
  })
  printRates(`life cycles of ${JOBS} jobs; the median of ${ROUNDS} rounds`, rates)
  console.log('  in brackets each round; then processor time per job, in the producer and in the consumer process')
}

function printLongRound(all: ReadonlyMap<Contender, Measured>): void {
  const rates = [...all].flatMap(([{ what }, { long }]) => {
    if (!long) return []
    return { what, perSecond: long.perSecond, note: `${long.producer.toFixed(0)} + ${long.consumer.toFixed(0)} µs` }
  })
  printRates(`life cycles of ${MANY_JOBS} jobs; one round`, rates)
}

function goalsOf({ ours, theirs, rate, cpu }: Target, all: ReadonlyMap<Contender, Measured>): Goal[] {
  const ratio = (figure: (round: Round) => number): number => {
    const [one, other] = [ours, theirs].map((each) => at(0.5, (all.get(each)?.rounds ?? []).map(figure)))
    return (one ?? Number.NaN) / (other ?? Number.NaN)
  }
  const goals: Goal[] = []
  const compared = (what: string) => `${what}, ${ours.what}, times ${theirs.what}:`
  if (rate !== undefined) {
    const value = ratio(({ perSecond }) => perSecond)
    goals.push({ what: compared('life cycles per second'), value, goal: { atLeast: rate } })
    const long = [ours, theirs].map((each) => all.get(each)?.long?.perSecond ?? Number.NaN)
    const longValue = (long[0] ?? Number.NaN) / (long[1] ?? Number.NaN)
    goals.push({
      what: compared('life cycles per second in the long round'),
      value: longValue,
      goal: { atLeast: rate },
    })
  }
  if (cpu !== undefined) {
    const value = ratio(({ producer, consumer }) => producer + consumer)
    goals.push({ what: compared('processor time per job'), value, goal: { atMost: cpu } })
  }
  return goals
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
