/**
 * Isolated tasks, which run in child processes: tasks that do nothing, with two children, beside Celery (prefork, two processes)
 * and RQ (two workers, a process per task) on the same Redis, in turns of one run; what isolation costs per task; and the limits
 * of `pool-limits.ts`.
 *
 * A life cycle is the same for all: a client posts a task, a worker runs it, and the client has learned that it is done. Of ours,
 * the client and the conductor are two processes, and results are in the conductor's memory; Celery and RQ store them in Redis.
 * A task of a large flow has no life cycle of its own: it is recorded in the logbook of its flow.
 */
import { cpus, loadavg } from 'node:os'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { TASKS } from './pool-large-flows.ts'
import { measureLimits } from './pool-limits.ts'
import { type PoolPart, startPoolPart } from './pool-part.ts'
import { type PythonQueue, providePythonQueues, startPythonQueue } from './python-queues.ts'
import { printRates } from './rates.ts'
import { median, spread } from './spread.ts'

const ROUNDS = times(3, 1)
const CHILDREN = 2

/** What takes its turn in each round. */
interface Contender {
  readonly what: string
  /** Returns tasks per second. */
  rate(round: number): Promise<number>
}

type Rates = ReadonlyMap<Contender, readonly number[]>

export default async function pool(): Promise<void> {
  const withPeers = await providePythonQueues()
  console.log(`Node ${process.version}, ${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)} at the start`)
  const goals = [...(await besidePeers({ withPeers })), ...(await measureLimits())]
  printGoals(goals)
}

async function besidePeers({ withPeers }: { readonly withPeers: boolean }): Promise<Goal[]> {
  await using redis = await startRedis()
  await using peers = await startPeers(redis, { withPeers })
  const { celery, rq } = peers
  const jobs = { count: times(5_000, 100), warmUp: times(500, 20) }
  const large = { module: 'pool-large-flows', count: times(10, 1), warmUp: 1, tasks: TASKS } as const
  const many = ours(`tasks of a flow of ${TASKS}`, { flow: 'many isolated', ...large })
  const inMemory = ours('jobs of one task, board in memory', { flow: 'isolated', ...jobs })
  const onRedis = oursOn(redis, 'jobs of one task, board on Redis', { flow: 'isolated', ...jobs })
  const fresh = oursOn(redis, 'jobs of one fresh task, board on Redis', {
    ...{ flow: 'fresh', count: times(40, 6), warmUp: 2 },
  })
  const row = ours(`a row of ${TASKS} tasks`, { flow: 'row isolated', ...large })
  const rowHere = ours('a row without isolation', { flow: 'row here', ...large })
  const manyHere = ours('a flow without isolation', { flow: 'many here', ...large })
  const here = ours('jobs without isolation', { flow: 'here', ...jobs })

  const contenders = [celery, rq, onRedis, inMemory, many, fresh, row, rowHere, manyHere, here].filter(
    (each) => each !== undefined,
  )
  const rates = await measure(contenders)
  printTable(`isolated tasks that do nothing, two children`, [celery, rq, onRedis, inMemory, many], rates)
  printTable('a process per task', [rq, fresh], rates)
  printOverheads(
    [
      { what: 'one after the other (a row)', isolated: row, here: rowHere },
      { what: 'two at once, side by side in one flow', isolated: many, here: manyHere },
      { what: 'two at once, a job each, board in memory', isolated: inMemory, here },
    ],
    rates,
  )
  const goal = (one: Contender, other: Contender | undefined, atLeast: number): Goal => ({
    what: `${one.what}, isolated, per second, times ${other?.what ?? 'a peer that was left out'}:`,
    value: other && median(ratios(one, other, rates)),
    goal: { atLeast },
  })
  return [goal(many, celery, 1.5), goal(onRedis, celery, 1.5), goal(many, rq, 10), goal(onRedis, rq, 10)]
}

async function startPeers(redis: RedisServer, { withPeers }: { readonly withPeers: boolean }) {
  const names = ['celery', 'rq'] as const
  const counts = { celery: times(3_000, 50), rq: times(150, 10) }
  const queues: PythonQueue[] = []
  // Database 0 is that of our boards.
  if (withPeers)
    for (const [n, name] of names.entries()) queues.push(await startPythonQueue(name, { redis, database: n + 1 }))
  const [celery, rq] = queues.map((queue, n): Contender => {
    const count = counts[names[n] ?? 'rq']
    return { what: queue.what, rate: () => queue.rate(count) }
  })
  const end = async () => void (await Promise.all(queues.map((queue) => queue[Symbol.asyncDispose]())))
  return { celery, rq, [Symbol.asyncDispose]: end }
}

interface Posted extends Pick<PoolPart, 'module'> {
  readonly flow: string
  /** Jobs. */
  readonly count: number
  /** Jobs before the measurement. */
  readonly warmUp: number
  /** Of each job. */
  readonly tasks?: number
}

/** In one process, which posts and has the conductor, with the board in memory. */
function ours(what: string, { tasks = 1, ...posted }: Posted): Contender {
  const rate = async () => {
    await using part = await startPoolPart('alone', { ...posted, board: 'memory:', children: CHILDREN })
    return (posted.count * tasks * 1_000) / Number((await part.go()).said)
  }
  return { what, rate }
}

/** In two processes, one that posts and one with the conductor. */
function oursOn(redis: RedisServer, what: string, posted: Posted): Contender {
  const { flow, count } = posted
  const rate = async (round: number) => {
    const board = `${redis.uri}/0?prefix=${flow}${round}`
    await using conductor = await startPoolPart('conduct', { ...posted, board, children: CHILDREN })
    const conducting = conductor.go()
    await using poster = await startPoolPart('post', { ...posted, board, children: 0 })
    const { said } = await poster.go()
    conductor.end()
    await conducting
    return (count * 1_000) / Number(said)
  }
  return { what, rate }
}

/** Measures each contender in each round; another one begins in each, as what came before is still felt by the machine. */
async function measure(contenders: readonly Contender[]): Promise<Rates> {
  const rates = new Map(contenders.map((each): [Contender, number[]] => [each, []]))
  for (let round = 0; round < ROUNDS; round += 1) {
    const first = round % contenders.length
    for (const each of [...contenders.slice(first), ...contenders.slice(0, first)])
      rates.get(each)?.push(await each.rate(round))
  }
  return rates
}

function printTable(title: string, contenders: readonly (Contender | undefined)[], rates: Rates): void {
  const measured = contenders.filter((each) => each !== undefined)
  const lines = measured.map((each) => {
    const figures = rates.get(each) ?? []
    return {
      what: each.what,
      perSecond: median(figures),
      note: `(${figures.map((rate) => rate.toFixed(0)).join(', ')})`,
    }
  })
  printRates(`${title}; the median of ${ROUNDS} rounds`, lines)
}

interface Overhead {
  readonly what: string
  readonly isolated: Contender
  readonly here: Contender
}

function printOverheads(overheads: readonly Overhead[], rates: Rates): void {
  console.log(
    `\nmicroseconds per task with isolation, without, and the difference; the median of ${ROUNDS} rounds (range)`,
  )
  const micros = (contender: Contender) => (rates.get(contender) ?? []).map((perSecond) => 1e6 / perSecond)
  for (const { what, isolated, here } of overheads) {
    const [one, other] = [micros(isolated), micros(here)]
    const difference = one.map((each, round) => each - (other[round] ?? Number.NaN))
    console.log(`  ${what.padEnd(44)} ${[one, other, difference].map((each) => spread(each, 1).padEnd(24)).join('')}`)
  }
}

/** Returns how two compare in each round. */
function ratios(one: Contender, other: Contender, rates: Rates): number[] {
  const others = rates.get(other) ?? []
  return (rates.get(one) ?? []).map((rate, round) => rate / (others[round] ?? Number.NaN))
}
