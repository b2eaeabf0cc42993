/**
 * What limits cost: life cycles of jobs (post, claim, consume) by one process that posts and one that works, without limits, beside very many
 * jobs that wait for a limit, and with limits that have room; eight workers that share one limited key; and how soon a free slot is used.
 */
import { cpus } from 'node:os'
import { join } from 'node:path'
import { openBoard } from 'jobboard'
import { ROOT } from '../support/build.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { measureWakeUps } from './limits-wake-ups.ts'
import { startPart } from './part.ts'
import { median, spread } from './spread.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'

const CHILD = join(ROOT, 'test/bench/limits-child.ts')
const JOBS = times(10_000, 300)
const WAITING = times(100_000, 1_000)
/** A goal of 5 % needs more rounds than the others: one round differs from the next by 10 % on a small machine. */
const PAIRED_ROUNDS = times(9, 1)
const ROUNDS = times(3, 1)
const RACERS = times(8, 2)
const RACED_JOBS = times(2_000, 50)
const SESSION = '30s'

interface Place {
  readonly what: string
  /** Whether the goals are those of this board. */
  readonly hasGoals: boolean
  uriOf(board: string): string
}

/** What is set, and what the measured jobs name. */
interface Case {
  readonly what: string
  readonly keys: string
  /** Whether very many jobs wait for a limit on the board. */
  readonly isCrowded?: boolean
  /** The queues of the jobs, which one process serves by equal weights. */
  readonly queues?: string
}

const NONE: Case = { what: 'no limits', keys: '' }
const CROWDED: Case = { what: `beside ${WAITING} jobs that wait for one limit`, keys: '', isCrowded: true }
const SLOTS: Case = { what: 'with a slot each', keys: 'slots' }
const IN_QUEUES: Case = { what: 'with a slot each, in two queues', keys: 'slots', queues: 'one,two' }
const CASES: readonly Case[] = [NONE, CROWDED, SLOTS, IN_QUEUES, { what: 'with a token each', keys: 'tokens' }]

export default async function limits(): Promise<void> {
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres({ config: { max_connections: '500' } })
  await using folder = await benchFolder()
  const places: readonly Place[] = [
    {
      what: 'ZooKeeper, fsync',
      hasGoals: true,
      uriOf: (name) => `zookeeper://${zookeeper.hosts}/${name}?sessionTimeout=${SESSION}`,
    },
    {
      what: 'Postgres, fsync',
      hasGoals: true,
      uriOf: (name) => `${postgres.uri}?board=${name}&sessionTimeout=${SESSION}`,
    },
    {
      what: 'Redis, no fsync',
      hasGoals: true,
      uriOf: (name) => `${redis.uri}/0?prefix=${name}&ttl=${SESSION}`,
    },
    {
      what: 'an SQLite file, fsync',
      hasGoals: false,
      uriOf: (name) => `${sqliteUri(folder.path, name)}?sessionTimeout=${SESSION}`,
    },
  ]
  console.log(`Node ${process.version}, ${cpus().length} processors`)
  const goals: Goal[] = []
  for (const place of places) {
    const cost = await costs(place)
    await races(place)
    const wakeUps = await measureWakeUps(place.what, place.uriOf('wake-ups'))
    if (place.hasGoals) goals.push(...cost, ...wakeUps)
  }
  printGoals(goals)
}

async function costs(place: Place): Promise<readonly Goal[]> {
  const took = new Map(CASES.map((each) => [each, [] as number[]]))
  await prepare(place.uriOf('plain'), { isCrowded: false })
  await prepare(place.uriOf('crowded'), { isCrowded: true })
  for (const each of CASES) await lifeCycles(place, each, JOBS / 10)
  for (let round = 0; round < PAIRED_ROUNDS; round += 1) {
    // The second measurement is slower on some machines, so the order alternates.
    const pair = round % 2 === 0 ? [NONE, CROWDED] : [CROWDED, NONE]
    const cases = round < ROUNDS ? [...pair, ...CASES.slice(2)] : pair
    for (const each of cases) took.get(each)?.push(await lifeCycles(place, each, JOBS))
  }
  console.log(
    `\nlife cycles of ${JOBS} jobs on ${place.what}; the median (range) of ${PAIRED_ROUNDS} rounds, and of ${ROUNDS} for slots, queues and tokens`,
  )
  const plain = took.get(NONE) ?? []
  for (const [{ what }, all] of took) {
    const perSecond = all.map((ms) => (JOBS * 1_000) / ms)
    const extra = all.map((ms, round) => ((ms - (plain[round] ?? Number.NaN)) * 1_000) / JOBS)
    console.log(`  ${what.padEnd(44)} ${spread(perSecond, 0)} /s  ${spread(extra, 0)} µs more per job`)
  }
  const ratioOf = (measured: Case, to: Case) => {
    const base = took.get(to) ?? []
    return median((took.get(measured) ?? []).map((ms, round) => (base[round] ?? Number.NaN) / ms))
  }
  return [
    {
      what: `jobs per second beside ${WAITING} jobs that wait for one limit on ${place.what}, times without:`,
      value: ratioOf(CROWDED, NONE),
      goal: { atLeast: 0.95 },
    },
    {
      what: `jobs per second of one limit in two queues on ${place.what}, times in one:`,
      value: ratioOf(IN_QUEUES, SLOTS),
      goal: { atLeast: 0.9 },
    },
  ]
}

async function prepare(uri: string, { isCrowded }: { readonly isCrowded: boolean }): Promise<void> {
  await using board = await openBoard(uri)
  await board.limits.set('slots', { concurrency: 100_000 })
  await board.limits.set('tokens', { rate: { limit: 1_000_000, per: '1s', burst: 1_000_000 } })
  await board.limits.set('full', { concurrency: 0 })
  if (!isCrowded) return
  await using filler = await startPart(CHILD, ['produce', String(WAITING), uri, 'full'])
  await filler.go()
}

async function lifeCycles(place: Place, { keys, isCrowded, queues = '' }: Case, jobs: number): Promise<number> {
  const uri = place.uriOf(isCrowded ? 'crowded' : 'plain')
  await using first = await startPart(CHILD, ['produce', '1', uri, keys, queues])
  await first.go()
  await using consumer = await startPart(CHILD, ['consume', String(jobs), uri, '', queues])
  await using producer = await startPart(CHILD, ['produce', String(jobs), uri, keys, queues])
  const consuming = consumer.go()
  const begin = performance.now()
  const [{ at }] = await Promise.all([consuming, producer.go()])
  return at - begin
}

/** Workers that share one key: with a slot for each second one of them, and with more tokens than they take. */
async function races(place: Place): Promise<void> {
  console.log(`\n${RACERS} workers with 4 slots each and one key, ${RACED_JOBS} jobs on ${place.what}`)
  for (const key of ['', 'few', 'tokens']) {
    const uri = place.uriOf(`race-${key}`)
    await using board = await openBoard(uri)
    await board.limits.set('few', { concurrency: RACERS / 2 })
    await board.limits.set('tokens', { rate: { limit: 1_000_000, per: '1s', burst: 1_000_000 } })
    await using producer = await startPart(CHILD, ['produce', String(RACED_JOBS), uri, key])
    await producer.go()
    const racers = await Promise.all(Array.from({ length: RACERS }, () => startPart(CHILD, ['race', '4', uri])))
    try {
      const all = (await Promise.all(racers.map((racer) => racer.go()))).flatMap(({ said }) => said as number[])
      const ms = Math.max(...all) - Math.min(...all)
      const what = key === '' ? 'no limit' : key === 'few' ? `${RACERS / 2} at once` : 'a token each'
      console.log(`  ${what.padEnd(16)} ${Math.round((all.length * 1_000) / ms)} /s, ${all.length} done`)
    } finally {
      for (const racer of racers) await racer[Symbol.asyncDispose]()
    }
  }
}
