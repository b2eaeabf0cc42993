/**
 * What queues cost: jobs of one queue beside many of another, which the worker does not serve; jobs in a queue beside jobs in none; and two
 * queues by weight beside one.
 *
 * Each figure is the time in which one board object claims and consumes the jobs, from its opening. The shapes take turns in each round.
 */
import { cpus } from 'node:os'
import { type JobBoard, openBoard, type ServedQueues } from 'jobboard'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { median, spread } from './spread.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'

const JOBS = times(5_000, 100)
/** The jobs of the queue that the worker does not serve. */
const OTHERS = times(100_000, 500)
const ROUNDS = times(5, 1)
const AT_ONCE = 64

interface Shape {
  readonly what: string
  /** The queue of each job; undefined for none. */
  readonly queueOf: (index: number) => string | undefined
  readonly queues?: ServedQueues
  /** Whether the jobs of another queue wait on the board. */
  readonly hasOthers?: true
}

const PLAIN: Shape = { what: 'no queue', queueOf: () => undefined }
const ONE: Shape = { what: 'one queue', queueOf: () => 'urgent', queues: Object.freeze(['urgent']) }
const TWO: Shape = {
  what: 'two queues, 3 to 1',
  queueOf: (index) => (index % 4 === 0 ? 'bulk' : 'urgent'),
  queues: Object.freeze({ urgent: 3, bulk: 1 }),
}
const BESIDE: Shape = { ...ONE, what: `one queue, beside ${OTHERS} jobs of another`, hasOthers: true }
const SHAPES: readonly Shape[] = [PLAIN, ONE, TWO, BESIDE]

interface Place {
  readonly what: string
  readonly uriOf: (name: string) => string
  /** Whether a worker reads no postings of queues that it does not serve. */
  readonly readsOwnOnly: boolean
}

export default async function queues(): Promise<void> {
  console.log(`Node ${process.version}, ${cpus().length} processors, ${JOBS} jobs, median of ${ROUNDS} rounds`)
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  await using folder = await benchFolder()
  const places: readonly Place[] = [
    { what: 'Redis', uriOf: (name) => `${redis.uri}/0?prefix=${name}`, readsOwnOnly: true },
    { what: 'Postgres', uriOf: (name) => `${postgres.uri}?board=${name}`, readsOwnOnly: true },
    { what: 'SQLite', uriOf: (name) => sqliteUri(folder.path, name), readsOwnOnly: true },
    { what: 'ZooKeeper', uriOf: (name) => `zookeeper://${zookeeper.hosts}/${name}`, readsOwnOnly: false },
  ]
  const goals: Goal[] = []
  for (const place of places) goals.push(...(await measure(place)))
  printGoals(goals)
}

async function measure({ what, uriOf, readsOwnOnly }: Place): Promise<readonly Goal[]> {
  console.log(`\n${what}`)
  {
    await using board = await openBoard(uriOf('beside'))
    await postAll(board, OTHERS, () => 'other')
  }
  const ratios = new Map<Shape, number[]>(SHAPES.map((shape) => [shape, []]))
  const rates = new Map<Shape, number[]>(SHAPES.map((shape) => [shape, []]))
  // The first round warms up.
  for (let round = -1; round < ROUNDS; round += 1) {
    const took = new Map<Shape, number>()
    for (const shape of SHAPES) took.set(shape, await workOff(uriOf(shape.hasOthers ? 'beside' : 'alone'), shape))
    if (round < 0) continue
    for (const [shape, ms] of took) {
      const beside = shape.hasOthers ? ONE : PLAIN
      rates.get(shape)?.push(JOBS / (ms / 1_000))
      ratios.get(shape)?.push((took.get(beside) ?? Number.NaN) / ms)
    }
  }
  for (const shape of SHAPES)
    console.log(
      `  ${shape.what.padEnd(44)} ${spread(rates.get(shape) ?? [], 0)} jobs/s, ${spread(ratios.get(shape) ?? [], 2)} ×`,
    )
  const ratioOf = (shape: Shape) => median(ratios.get(shape) ?? [])
  const besideGoal = {
    what: `${what}: ${BESIDE.what}, × one queue alone`,
    value: ratioOf(BESIDE),
    goal: { atLeast: 0.95 },
  }
  return [
    { what: `${what}: one queue, × no queue`, value: ratioOf(ONE), goal: { atLeast: 0.9 } },
    { what: `${what}: two queues by weight, × no queue`, value: ratioOf(TWO), goal: { atLeast: 0.9 } },
    ...(readsOwnOnly ? [besideGoal] : []),
  ]
}

/** Posts the jobs, then claims and consumes them with a board object of its own. Returns the milliseconds from its opening. */
async function workOff(uri: string, { queueOf, queues }: Shape): Promise<number> {
  {
    await using poster = await openBoard(uri)
    await postAll(poster, JOBS, queueOf)
  }
  const since = performance.now()
  await using board = await openBoard(uri)
  for (let done = 0; done < JOBS; ) {
    const claims = await board.claimNext({ max: AT_ONCE, ...(queues ? { queues } : {}) })
    await Promise.all(claims.map((claim) => claim.consume()))
    done += claims.length
  }
  return performance.now() - since
}

async function postAll(board: JobBoard, jobs: number, queueOf: Shape['queueOf']): Promise<void> {
  const items = Array.from({ length: jobs }, (_, index) => {
    const queue = queueOf(index)
    return { flow: 'work', store: { n: index }, ...(queue === undefined ? {} : { queue }) }
  })
  await board.postMany(items)
}
