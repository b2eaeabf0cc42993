/**
 * Jobs that depend on each other: see `many-shapes.ts`. And many posts with one call: `postMany` beside the bulk calls of other queues, on the same servers, in one process that does nothing else. The
 * others are given as many jobs at a time as is fastest for them; `postMany` is given all of them. The board in an SQLite file is beside the one on Postgres.
 */
import { cpus } from 'node:os'
import { openBoard } from 'jobboard'
import { ensureInstalled } from '../support/npm-folder.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer, transactions } from './board-processes.ts'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { measureShapes } from './many-shapes.ts'
import { BATCH, openPgBoss, PEER_QUEUES, type PeerName, peerVersion } from './peer-queues.ts'
import { PEERS } from './peers-folder.ts'
import { median, spread } from './spread.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'

const JOBS = times(20_000, 2_000)
const ROUNDS = times(5, 1)

/** One call, or several, that post so many jobs. */
interface Poster extends AsyncDisposable {
  readonly what: string
  /** The poster of which it is a multiple; undefined for those that are compared with. */
  readonly beside?: string
  postAll(): Promise<unknown>
}

export default async function many(): Promise<void> {
  await ensureInstalled(PEERS, { because: 'the benchmark compares with BullMQ, graphile-worker and pg-boss' })
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  await using folder = await benchFolder()
  console.log(`Node ${process.version}, ${cpus().length} processors, ${JOBS} jobs, median of ${ROUNDS} rounds`)
  const [bullmq, graphile, boss] = await Promise.all([
    peer('bullmq', `${redis.uri}/1`),
    peer('graphile-worker', postgres.uri),
    pgBoss(postgres.uri),
  ])
  const onPostgres = await board('this board on Postgres, fsync', `${postgres.uri}?board=many`, graphile.what)
  const posters = [
    bullmq,
    await board('this board on Redis, no fsync', `${redis.uri}/0?prefix=many`, bullmq.what),
    graphile,
    boss,
    onPostgres,
    await board('this board in an SQLite file, fsync', sqliteUri(folder.path, 'many'), onPostgres.what),
    await board('this board on ZooKeeper, fsync', `zookeeper://${zookeeper.hosts}/many`, bullmq.what),
  ]
  const rates = new Map<Poster, number[]>(posters.map((poster) => [poster, []]))
  for (const poster of posters) await poster.postAll()
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [poster, figures] of rates) {
      const since = performance.now()
      await poster.postAll()
      figures.push(JOBS / ((performance.now() - since) / 1_000))
    }
  }
  const medians = new Map([...rates].map(([{ what }, figures]) => [what, median(figures)]))
  for (const [{ what, beside }, figures] of rates) {
    const ratio =
      beside === undefined ? '' : `, ${(median(figures) / (medians.get(beside) ?? 1)).toFixed(2)} × ${beside}`
    console.log(`${what}: ${spread(figures, 0)} jobs/s${ratio}`)
  }
  for (const poster of posters) await poster[Symbol.asyncDispose]()
  // The goals of shapes are those of the boards on servers.
  await measureShapes({ what: 'an SQLite file, fsync', uriOf: (name) => sqliteUri(folder.path, name) })
  printGoals([
    ...(await measureShapes({
      what: 'ZooKeeper, fsync',
      uriOf: (name) => `zookeeper://${zookeeper.hosts}/${name}`,
      transactions: () => transactions(zookeeper),
    })),
    ...(await measureShapes({ what: 'Postgres, fsync', uriOf: (name) => `${postgres.uri}?board=${name}` })),
    ...(await measureShapes({ what: 'Redis, no fsync', uriOf: (name) => `${redis.uri}/0?prefix=${name}` })),
  ])
}

async function board(what: string, uri: string, beside: string): Promise<Poster> {
  const opened = await openBoard(uri)
  return {
    what,
    beside,
    postAll: async () => {
      const results = await opened.postMany(Array.from({ length: JOBS }, (_, n) => ({ flow: 'job', store: { n } })))
      const refused = results.find((result) => 'error' in result)
      if (refused) throw new Error(`${what}: a job was not posted`, { cause: refused })
    },
    [Symbol.asyncDispose]: () => opened.close(),
  }
}

async function peer(name: PeerName, uri: string): Promise<Poster> {
  const producer = await PEER_QUEUES[name].produce(uri, 'many')
  return {
    what: `${name} ${await peerVersion(name)}`,
    postAll: () => inBatches((payloads) => producer.addAll(payloads)),
    [Symbol.asyncDispose]: async () => {
      await producer.close()
    },
  }
}

async function pgBoss(uri: string): Promise<Poster> {
  const boss = await openPgBoss(uri)
  return {
    what: `pg-boss ${await peerVersion('pg-boss')}`,
    postAll: () => inBatches((payloads) => boss.insert(payloads.map((data) => ({ name: 'many', data })))),
    [Symbol.asyncDispose]: () => boss.stop(),
  }
}

async function inBatches(add: (payloads: readonly { n: number }[]) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < JOBS; from += BATCH) {
    await add(Array.from({ length: Math.min(BATCH, JOBS - from) }, (_, n) => ({ n: from + n })))
  }
}
