/**
 * What processes cost that are attached to a board and do nothing: life cycles of jobs (post, claim, consume) by one process
 * that posts and one that works, on every backend, with and without idle boards and conductors attached; and how long it takes
 * to open a long board to post one job. Each round measures everything once, and ratios compare within a round.
 */
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { type Part, startPart } from './part.ts'
import { processorTime } from './processor-time.ts'
import { median, spread } from './spread.ts'

const CHILD = join(ROOT, 'test/bench/attached-child.ts')
const JOBS = times(20_000, 300)
/** Jobs before each measurement: what is attached has seen by then that the board is busy, as it has in a service that runs for days. */
const WARM_UP_JOBS = times(3_000, 100)
const ROUNDS = times(5, 2)
const WAITING = times(100_000, 1_000)
const OPENINGS = times(20, 3)
/** `max_connections`, enough for 128 boards; the default is 100. */
const POSTGRES_CONNECTIONS = 2_000

/** The same on every backend, and long enough that a process which waits for a processor loses no session. */
const SESSION = '30s'

/** What is attached and does nothing. */
interface Idlers {
  readonly what: string
  readonly role: 'post' | 'conduct'
  readonly count: number
  readonly perProcess: number
  /** The least part of the throughput without them. */
  readonly goal?: number
}

const IDLERS: readonly Idlers[] = [
  ...[times(8, 2), times(32, 3), times(128, 4)].map((count, size) => ({
    what: `${count} idle posting boards`,
    role: 'post' as const,
    count,
    perProcess: times(16, 2),
    ...(size === 1 ? { goal: 0.95 } : {}),
  })),
  ...[times(8, 2), times(32, 3)].map((count, size) => ({
    what: `${count} idle conductors`,
    role: 'conduct' as const,
    count,
    perProcess: times(8, 2),
    ...(size === 1 ? { goal: 0.6 } : {}),
  })),
]
const NONE: Idlers = { what: 'none', role: 'post', count: 0, perProcess: 1 }
const ALL = [NONE, ...IDLERS]
const MOST_BOARDS = IDLERS[2]

interface Place {
  readonly what: string
  /** Of its server. */
  readonly pid: number
  uriOf(board: string): string
  /** The most microseconds per job for one attached process with the most boards. */
  readonly attachedGoal?: number
}

/** One run. */
interface Measured {
  readonly perSecond: number
  /** Microseconds of the server's processor time per job; not a number where it cannot be seen. */
  readonly server: number
  /** Microseconds of an attached process's processor time per job. */
  readonly attached: number
}

export default async function attached(): Promise<void> {
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres({ config: { max_connections: String(POSTGRES_CONNECTIONS) } })
  const version = /version: ([\d.]+)/.exec(await zookeeper.fourLetter('srvr'))?.[1]
  const places: Place[] = [
    {
      what: `ZooKeeper ${version}, fsync`,
      pid: zookeeper.pid,
      uriOf: (board) => `zookeeper://${zookeeper.hosts}/${board}?sessionTimeout=${SESSION}`,
      attachedGoal: 1,
    },
    {
      what: `Postgres ${postgres.version}, fsync`,
      pid: postgres.pid,
      uriOf: (board) => `${postgres.uri}?board=${board}&sessionTimeout=${SESSION}`,
    },
    {
      what: `Redis ${redis.version}, no fsync`,
      pid: redis.pid,
      uriOf: (board) => `${redis.uri}/0?prefix=${board}&ttl=${SESSION}`,
    },
  ]
  console.log(
    `Node ${process.version}, ${cpus().length} processors; Postgres with max_connections = ${POSTGRES_CONNECTIONS}`,
  )
  const goals: Goal[] = []
  for (const place of places) {
    goals.push(...(await throughput(place)))
    goals.push(await openings(place))
  }
  printGoals(goals)
}

async function throughput(place: Place): Promise<Goal[]> {
  const all = new Map(ALL.map((idlers) => [idlers, [] as Measured[]]))
  const load = loadavg()[0]?.toFixed(1)
  await lifeCycles(place, NONE, 'warm-up')
  for (let round = 0; round < ROUNDS; round += 1) {
    const first = round % ALL.length
    for (const idlers of [...ALL.slice(first), ...ALL.slice(0, first)]) {
      const board = `round-${round}-${idlers.role}-${idlers.count}`
      all.get(idlers)?.push(await lifeCycles(place, idlers, board))
    }
  }
  console.log(
    `\nlife cycles of ${JOBS} jobs on ${place.what}; load ${load} at the start; the median of ${ROUNDS} rounds (range)`,
  )
  const none = all.get(NONE) ?? []
  for (const [{ what, count }, measured] of all) {
    const ratios = ratiosTo(none, measured)
    const columns = [
      `${spread(
        measured.map(({ perSecond }) => perSecond),
        0,
      )} /s`,
      `× ${spread(ratios, 2)}`,
      `server ${spread(
        measured.map(({ server }) => server),
        0,
      )} µs`,
      ...(count > 0
        ? [
            `each attached process ${spread(
              measured.map((each) => each.attached),
              1,
            )} µs`,
          ]
        : []),
    ]
    console.log(`  ${what.padEnd(26)} ${columns.join('  ')}`)
  }
  console.log('  times are processor time per job')
  return goalsOf(place, all)
}

/** Returns how each of some runs compares with the one of the same round. */
function ratiosTo(none: readonly Measured[], measured: readonly Measured[]): number[] {
  return measured.map(({ perSecond }, round) => perSecond / (none[round]?.perSecond ?? Number.NaN))
}

function goalsOf({ what: where, attachedGoal }: Place, all: ReadonlyMap<Idlers, readonly Measured[]>): Goal[] {
  const goals: Goal[] = []
  for (const [idlers, measured] of all) {
    const { what, goal } = idlers
    if (goal !== undefined) {
      const value = median(ratiosTo(all.get(NONE) ?? [], measured))
      goals.push({ what: `jobs per second with ${what} on ${where}, times with none:`, value, goal: { atLeast: goal } })
    }
    if (attachedGoal !== undefined && idlers === MOST_BOARDS) {
      const value = median(measured.map(({ attached }) => attached))
      const subject = `processor time of a process with ${idlers.perProcess} of ${what} on ${where}, in µs per job:`
      goals.push({ what: subject, value, goal: { atMost: attachedGoal } })
    }
  }
  return goals
}

async function lifeCycles(place: Place, idlers: Idlers, board: string): Promise<Measured> {
  const uri = place.uriOf(board)
  await using attached = await attach(uri, idlers)
  await produceAndConsume(uri, WARM_UP_JOBS)
  const idling = attached.parts.map((part) => part.go())
  const before = await processorTime(place.pid)
  const took = await produceAndConsume(uri, JOBS)
  const after = await processorTime(place.pid)
  for (const part of attached.parts) part.end()
  const idled = await Promise.all(idling)
  return {
    perSecond: (JOBS * 1_000) / took,
    server: (((after ?? Number.NaN) - (before ?? Number.NaN)) * 1_000) / JOBS,
    attached: idled.reduce((sum, { cpu }) => sum + cpu, 0) / idled.length / JOBS,
  }
}

/** Posts so many jobs in one process, and claims and consumes them in another. Returns how many milliseconds it took. */
async function produceAndConsume(uri: string, jobs: number): Promise<number> {
  await using consumer = await startPart(CHILD, ['consume', String(jobs), uri])
  await using producer = await startPart(CHILD, ['produce', String(jobs), uri])
  const begin = performance.now()
  const [{ at }] = await Promise.all([consumer.go(), producer.go()])
  return at - begin
}

async function attach(uri: string, { role, count, perProcess }: Idlers): Promise<AsyncDisposable & { parts: Part[] }> {
  const parts: Part[] = []
  const dispose = async () => {
    for (const part of parts) await part[Symbol.asyncDispose]()
  }
  try {
    for (let left = count; left > 0; left -= perProcess)
      parts.push(await startPart(CHILD, [role, String(Math.min(left, perProcess)), uri]))
  } catch (error) {
    await dispose()
    throw error
  }
  return { parts, [Symbol.asyncDispose]: dispose }
}

/** A board with many jobs beside an empty one, in turn in one process. */
async function openings({ what, uriOf }: Place): Promise<Goal> {
  const [empty, long] = [uriOf('empty'), uriOf('long')]
  await using filler = await startPart(CHILD, ['fill', String(WAITING), long])
  await filler.go()
  await using opener = await startPart(CHILD, ['open', String(OPENINGS), empty, long])
  const [few = [], many = []] = (await opener.go()).said as number[][]
  console.log(`\nopening a board on ${what} and posting one job; the median of ${OPENINGS} times (range)`)
  console.log(`  ${'an empty board'.padEnd(26)} ${spread(few, 1)} ms`)
  console.log(`  ${`a board of ${WAITING} jobs`.padEnd(26)} ${spread(many, 1)} ms`)
  return {
    what: `time to open a board of ${WAITING} jobs and post one on ${what}, times that of an empty one:`,
    value: median(many) / median(few),
    goal: { atMost: 2 },
  }
}
