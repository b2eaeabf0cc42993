/**
 * Life cycles of jobs (post, claim, consume) on a ZooKeeper that fsyncs: one process posts, another claims and consumes.
 * How many per second, in how many transactions, how quickly a job is picked up, and what 100,000 waiting jobs change.
 */
import { openBoard } from '../../src/board/index.ts'
import type { ZooKeeperServer } from '../support/zookeeper.ts'
import { PARKED } from './board-child.ts'
import { startBenchServer, startWorker, transactions } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { sideBySide } from './part-child.ts'
import { printRates, type Rate } from './rates.ts'

const JOBS = times(20_000, 1_000)
const ROUNDS = times(3, 1)
const PICK_UPS = times(500, 20)
const FEW = times(1_000, 100)
const MANY = times(100_000, 2_000)
const WIDTH = 1_024

interface LifeCycles extends Rate {
  /** The server's transactions per job. */
  readonly each: number
}

export default async function board(): Promise<void> {
  await using server = await startBenchServer()
  const empty = await lifeCycles(server, '/empty', { what: 'an empty board' })
  const idle = await pickUps(server, '/idle')
  await park(server, '/few', FEW)
  const few = await lifeCycles(server, '/few', { what: `${FEW} jobs waiting` })
  await park(server, '/many', MANY)
  const many = await lifeCycles(server, '/many', { what: `${MANY} jobs waiting` })
  printRates(`life cycles of ${JOBS} jobs; the median of ${ROUNDS} rounds`, [empty, few, many])
  const bytes = await weigh(server)
  printGoals([
    ...[empty, few, many].map(({ what, each }) => ({
      what: `transactions per job, ${what},`,
      value: each,
      goal: { atMost: 0.2 },
    })),
    { what: 'transactions per job, one after the other,', value: idle, goal: { atMost: 3 } },
    {
      what: `cost of a job with ${MANY} jobs waiting, times that with ${FEW},`,
      value: few.perSecond / many.perSecond,
      goal: { atMost: 1.3 },
    },
    { what: 'bytes of heap of a waiting job in another process,', value: bytes, goal: { atMost: 1_024 } },
  ] satisfies Goal[])
}

async function lifeCycles(server: ZooKeeperServer, path: string, { what }: { what: string }): Promise<LifeCycles> {
  const uri = `zookeeper://${server.hosts}${path}`
  const rounds: { perSecond: number; each: number }[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    await using producer = await startWorker('produce', uri, JOBS)
    await using consumer = await startWorker('consume', uri, JOBS)
    const before = await transactions(server)
    const begin = performance.now()
    await Promise.all([consumer.go(), producer.go()])
    const perSecond = (JOBS * 1_000) / (performance.now() - begin)
    rounds.push({ perSecond, each: ((await transactions(server)) - before) / JOBS })
  }
  rounds.sort((a, b) => a.perSecond - b.perSecond)
  const { perSecond, each } = rounds[(ROUNDS - 1) / 2] ?? { perSecond: Number.NaN, each: Number.NaN }
  return { what, perSecond, each, note: `${each.toFixed(3)} transactions per job` }
}

/** Returns how many transactions each job took. */
async function pickUps(server: ZooKeeperServer, path: string): Promise<number> {
  const uri = `zookeeper://${server.hosts}${path}`
  await using consumer = await startWorker('consumeOneByOne', uri, PICK_UPS)
  await using producer = await startWorker('postOneByOne', uri, PICK_UPS)
  const before = await transactions(server)
  const [{ result }] = await Promise.all([consumer.go(), producer.go()])
  const took = (result as number[]).sort((a, b) => a - b)
  const at = (part: number) => (took[Math.floor(part * (took.length - 1))] ?? Number.NaN).toFixed(1)
  const each = ((await transactions(server)) - before) / PICK_UPS
  console.log(`\nfrom before the post until the claim, ${PICK_UPS} jobs one after the other`)
  console.log(`  median ${at(0.5)} ms, p99 ${at(0.99)} ms; ${each.toFixed(2)} transactions per job`)
  return each
}

async function park(server: ZooKeeperServer, path: string, count: number): Promise<void> {
  await using board = await openBoard(`zookeeper://${server.hosts}${path}`)
  const post = () => board.post('flow', { n: 1 }, { name: PARKED, priority: 'VERY_LOW' })
  await sideBySide(count, WIDTH, post)
}

/** Returns bytes. */
async function weigh(server: ZooKeeperServer): Promise<number> {
  await using few = await startWorker('weigh', `zookeeper://${server.hosts}/few`)
  await using many = await startWorker('weigh', `zookeeper://${server.hosts}/many`)
  const heap = async (worker: typeof few) => {
    const { before, result } = await worker.go()
    return Number(result) - before
  }
  const each = ((await heap(many)) - (await heap(few))) / (MANY - FEW)
  console.log(`\nmemory of a waiting job in another process: ${each.toFixed(0)} bytes of heap, its payload included`)
  return each
}
