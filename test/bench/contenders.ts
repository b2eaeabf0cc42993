/** What is compared in `bench -- peers` and `bench -- boards`: how each is called, and how the processes that work on it are started. */

import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import type { PostgresServer } from '../support/postgres.ts'
import type { RedisServer } from '../support/redis.ts'
import type { ZooKeeperServer } from '../support/zookeeper.ts'
import { type Part, startPart } from './part.ts'
import { type PeerName, peerVersion } from './peer-queues.ts'
import { sqliteUri } from './sqlite-places.ts'

const BOARD_CHILD = join(ROOT, 'test/bench/board-child.ts')
const PEERS_CHILD = join(ROOT, 'test/bench/peers-child.ts')

/** Played in the same way on the board and on its peers. */
export type Role = 'produce' | 'consume' | 'postApart' | 'consumeOneByOne'

export interface Contender {
  /** With versions, and what a power cut would do. */
  readonly what: string
  /** @param queue the name of one that this contender has not used yet, or that the other process uses too */
  start(role: Role, queue: string, ...numbers: readonly number[]): Promise<Part>
}

/** How one is to compare with another; what is not given has no goal. */
export interface Target {
  readonly ours: Contender
  readonly theirs: Contender
  /** At least so many times the life cycles per second. */
  readonly rate?: number
  /** At most so many times the processor time per job, producer and consumer together. */
  readonly cpu?: number
}

export interface Comparison {
  readonly contenders: readonly Contender[]
  readonly targets: readonly Target[]
}

export interface Servers {
  readonly zookeeper: ZooKeeperServer
  readonly redis: RedisServer
  readonly postgres: PostgresServer
  /** A folder for files, on the disk of the servers. */
  readonly folder: string
}

/** The board on ZooKeeper beside the fastest queues that Node has. */
export async function peersOn(servers: Servers): Promise<Comparison> {
  const [ours, { bullmq, graphile }] = [await onZooKeeper(servers), await peersOf(servers)]
  const targets = [
    { ours, theirs: bullmq, rate: 0.8, cpu: 1.1 },
    { ours, theirs: graphile, rate: 1.2 },
  ]
  return { contenders: [ours, bullmq, graphile], targets }
}

/** Every board, and the queues on the same servers. */
export async function boardsOn(servers: Servers): Promise<Comparison> {
  const { redis, postgres } = servers
  const { bullmq, graphile } = await peersOf(servers)
  const onRedis = boardAt(`this board on Redis ${redis.version}, no fsync`, (queue) => `${redis.uri}/0?prefix=${queue}`)
  const onPostgres = boardAt(
    `this board on Postgres ${postgres.version}, fsync`,
    (queue) => `${postgres.uri}?board=${queue}`,
  )
  const inFile = boardAt('this board in an SQLite file, fsync', (queue) => sqliteUri(servers.folder, queue))
  const ours = await onZooKeeper(servers)
  const targets = [
    { ours, theirs: bullmq, rate: 0.8, cpu: 1.1 },
    { ours: inFile, theirs: onPostgres, rate: 1 },
    { ours: onRedis, theirs: bullmq, rate: 1.3 },
    { ours: onPostgres, theirs: graphile, rate: 0.55 },
  ]
  return { contenders: [ours, onRedis, bullmq, onPostgres, graphile, inFile], targets }
}

async function onZooKeeper({ zookeeper }: Servers): Promise<Contender> {
  const version = /version: ([\d.]+)/.exec(await zookeeper.fourLetter('srvr'))?.[1]
  return boardAt(`this board on ZooKeeper ${version}, fsync`, (queue) => `zookeeper://${zookeeper.hosts}/${queue}`)
}

async function peersOf({ redis, postgres }: Servers): Promise<{ bullmq: Contender; graphile: Contender }> {
  return {
    bullmq: await bullMqOn(redis),
    graphile: {
      what: `graphile-worker ${await peerVersion('graphile-worker')} on Postgres ${postgres.version}, fsync`,
      start: peer('graphile-worker', postgres.uri),
    },
  }
}

export async function bullMqOn(redis: RedisServer): Promise<Contender> {
  return {
    what: `BullMQ ${await peerVersion('bullmq')} on Redis ${redis.version}, no fsync`,
    start: peer('bullmq', redis.uri),
  }
}

function boardAt(what: string, uriOf: (queue: string) => string): Contender {
  return {
    what,
    start: (role, queue, ...numbers) => startPart(BOARD_CHILD, [role, uriOf(queue), ...numbers.map(String)]),
  }
}

function peer(name: PeerName, uri: string): Contender['start'] {
  return (role, queue, ...numbers) => startPart(PEERS_CHILD, [name, role, uri, queue, ...numbers.map(String)])
}
