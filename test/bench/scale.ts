/**
 * How the costs of a board grow, for `docs/guides/scale.md`: with the size of the postings, with the length of the board, with the number
 * of conductors and slots, and with the servers of an ensemble. `bench -- attached` measures processes that only are attached.
 */
import { cpus } from 'node:os'
import { join } from 'node:path'
import { openBoard } from 'jobboard'
import { ROOT } from '../support/build.ts'
import { startEnsemble } from '../support/ensemble.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { SERVER_JAVA, startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { startPart } from './part.ts'
import { now, sideBySide } from './part-child.ts'
import { processorTime } from './processor-time.ts'
import { median } from './spread.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'

const CHILD = join(ROOT, 'test/bench/scale-child.ts')
const CONDUCTOR = join(ROOT, 'test/bench/conductor-child.ts')
const ROUNDS = times(3, 1)

/** The bytes of a posting's store, and the number of jobs of that size. */
const SIZES = [
  { bytes: 100, jobs: times(20_000, 300) },
  { bytes: 1_000, jobs: times(20_000, 300) },
  { bytes: 10_000, jobs: times(5_000, 100) },
  { bytes: 100_000, jobs: times(500, 20) },
] as const
const LENGTHS = [0, times(1_000, 50), times(10_000, 100), times(100_000, 200)] as const
const SLOTS = [1, 8, 64] as const
const CONDUCTORS = [1, 2, 4, 8] as const
/** The milliseconds that each job of the flow `io` waits. */
const IO_MS = 20

interface Place {
  readonly what: string
  /** The process ids of the servers; none for a file. */
  readonly pids: readonly number[]
  uriOf(board: string): string
  /** Returns the URI of the logbooks of a board's conductors. */
  logbooksOf(board: string): string
}

export default async function scale(): Promise<void> {
  console.log(
    `Node ${process.version}, ${cpus().length} processors; the median of ${ROUNDS} rounds; times are processor time`,
  )
  {
    await using zookeeper = await startBenchServer()
    await using redis = await startRedis()
    await using postgres = await startPostgres()
    await using folder = await benchFolder()
    const logbooksOf = () => 'memory:'
    const onZooKeeper: Place = {
      ...{ what: 'ZooKeeper', pids: [zookeeper.pid], logbooksOf },
      uriOf: (board) => `zookeeper://${zookeeper.hosts}/${board}`,
    }
    const inFile: Place = {
      ...{ what: 'SQLite', pids: [] },
      uriOf: (board) => sqliteUri(folder.path, board),
      logbooksOf: (board) => sqliteUri(folder.path, board),
    }
    const places: readonly Place[] = [
      onZooKeeper,
      {
        ...{ what: 'Postgres', pids: [postgres.pid], logbooksOf },
        uriOf: (board) => `${postgres.uri}?board=${board}`,
      },
      { what: 'Redis', pids: [redis.pid], logbooksOf, uriOf: (board) => `${redis.uri}/0?prefix=${board}` },
      inFile,
    ]
    for (const place of places) await sizes(place)
    for (const place of places) await lengths(place)
    await conductors(onZooKeeper, 'logbooks in memory')
    await conductors(inFile, 'logbooks in the same file')
    await servers('one server', onZooKeeper)
    await servers('a file, synchronous=FULL', inFile)
  }
  await using ensemble = await startEnsemble({ config: { forceSync: 'yes' }, java: SERVER_JAVA })
  const pids = ensemble.servers.map(({ pid }) => pid)
  // Around the proxies, which this process would have to carry.
  const hosts = ensemble.servers.map((server) => server.hosts).join(',')
  await servers('an ensemble of three on the same disk', {
    ...{ what: 'ZooKeeper', pids, logbooksOf: () => 'memory:' },
    uriOf: (board) => `zookeeper://${hosts}/${board}`,
  })
}

interface LifeCycles {
  readonly perSecond: number
  /** Microseconds of processor time per job, of all servers, and of the process that posts and the one that works. */
  readonly server: number
  readonly poster: number
  readonly worker: number
}

async function lifeCycles({ pids }: Place, uri: string, { jobs, bytes }: (typeof SIZES)[number]): Promise<LifeCycles> {
  await using worker = await startPart(CHILD, ['consume', uri, String(jobs)])
  await using poster = await startPart(CHILD, ['produce', uri, String(jobs), String(bytes)])
  const before = await usedBy(pids)
  const begin = performance.now()
  const [worked, posted] = await Promise.all([worker.go(), poster.go()])
  const server = (((await usedBy(pids)) - before) * 1_000) / jobs
  const perSecond = (jobs * 1_000) / (worked.at - begin)
  return { perSecond, server, poster: posted.cpu / jobs, worker: worked.cpu / jobs }
}

async function usedBy(pids: readonly number[]): Promise<number> {
  const used = await Promise.all(pids.map(processorTime))
  return used.reduce<number>((sum, each) => sum + (each ?? Number.NaN), 0)
}

/** Repeats a measurement on a new board each time, and prints the medians. */
async function measure(label: string, run: (round: number) => Promise<LifeCycles>): Promise<void> {
  const rounds: LifeCycles[] = []
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await run(round))
  const middle = (field: keyof LifeCycles) => median(rounds.map((each) => each[field])).toFixed(0)
  const costs = `server ${middle('server')} µs, poster ${middle('poster')} µs, worker ${middle('worker')} µs per job`
  console.log(`  ${label.padEnd(34)} ${middle('perSecond').padStart(7)} /s  ${costs}`)
}

async function sizes(place: Place): Promise<void> {
  console.log(`\nlife cycles of jobs with a store of so many bytes, on ${place.what}`)
  await lifeCycles(place, place.uriOf('warm-up'), SIZES[0])
  for (const size of SIZES)
    await measure(`${size.bytes} bytes`, (round) => lifeCycles(place, place.uriOf(`size-${size.bytes}-${round}`), size))
}

async function lengths(place: Place): Promise<void> {
  console.log(`\nlife cycles beside so many jobs that wait, on ${place.what}`)
  for (const length of LENGTHS) {
    const uri = place.uriOf(`length-${length}`)
    {
      await using filler = await startPart(CHILD, ['fill', uri, String(length)])
      await filler.go()
    }
    await measure(`${length} jobs wait`, () => lifeCycles(place, uri, SIZES[0]))
    const views: { readonly took: number; readonly heap: number }[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      await using viewer = await startPart(CHILD, ['view', uri])
      views.push((await viewer.go()).said as { took: number; heap: number })
    }
    const took = median(views.map((view) => view.took)).toFixed(0)
    const heap = (median(views.map((view) => view.heap)) / 1e6).toFixed(1)
    console.log(`  ${''.padEnd(34)} to view it takes ${took} ms, and ${heap} MB of the heap`)
  }
}

async function conductors(place: Place, logbooks: string): Promise<void> {
  console.log(
    `\njobs that wait for ${IO_MS} ms, on ${place.what}, ${logbooks}: per second, and processors that all conductors kept busy`,
  )
  for (const slots of SLOTS) {
    for (const count of CONDUCTORS) {
      const name = `conductors-${slots}-${count}`
      const uri = place.uriOf(name)
      const jobs = times(Math.min(400 * slots * count, 6_000), 10 * count)
      {
        await using board = await openBoard(uri)
        await sideBySide(jobs, 512, () => board.post('io', {}))
      }
      const role = ['share', uri, place.logbooksOf(name), '0', String(slots)]
      const parts = await Promise.all(Array.from({ length: count }, () => startPart(CONDUCTOR, role)))
      const begin = now()
      const results = await Promise.all(parts.map((part) => part.go()))
      const shares = results.map(({ said }) => said as { jobs: number; last: number })
      const done = shares.reduce((sum, each) => sum + each.jobs, 0)
      // A conductor that stops does not count its last jobs.
      if (done < 0.9 * jobs) throw new Error(`${count} conductors with ${slots} slots did ${done} of ${jobs} jobs`)
      const end = Math.max(...shares.map(({ last }) => last))
      const cpu = results.reduce((sum, each) => sum + each.cpu / 1_000, 0)
      const perSecond = ((done * 1_000) / (end - begin)).toFixed(0)
      const most = ((count * slots * 1_000) / IO_MS).toFixed(0)
      const note = `of at most ${most}; ${(cpu / (end - begin)).toFixed(1)} processors, ${((cpu * 1_000) / done).toFixed(0)} µs per job`
      console.log(`  ${`${count} with ${slots} slots each`.padEnd(34)} ${perSecond.padStart(7)} /s  ${note}`)
    }
  }
}

/** Life cycles as fast as they go, and how long a post takes when little happens. */
async function servers(what: string, place: Place): Promise<void> {
  console.log(`\n${place.what}: ${what}`)
  await lifeCycles(place, place.uriOf('servers-warm-up'), SIZES[0])
  await measure('life cycles', (round) => lifeCycles(place, place.uriOf(`servers-${round}`), SIZES[0]))
  await using poster = await startPart(CHILD, ['postApart', place.uriOf('posts'), String(times(300, 20)), '20'])
  const took = ((await poster.go()).said as number[]).toSorted((a, b) => a - b)
  const at = (share: number) => (took[Math.floor(share * (took.length - 1))] ?? Number.NaN).toFixed(1)
  console.log(`  ${'a post, one every 20 ms'.padEnd(34)} median ${at(0.5)} ms, p99 ${at(0.99)} ms`)
}
