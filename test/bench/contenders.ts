/** What is compared in `bench -- peers` and `bench -- boards`: how each is called, and how the processes that work on it are started. */

import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import type { PostgresServer } from '../support/postgres.ts'
import type { RedisServer } from '../support/redis.ts'
import type { ZooKeeperServer } from '../support/zookeeper.ts'
import { type Part, startPart } from './part.ts'
import { type PeerName, peerVersion } from './peer-queues.ts'

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

/** So many times the life cycles of another are to be reached. */
export interface Goal {
  readonly ours: Contender
  readonly theirs: Contender
  readonly times: number
}

export interface Comparison {
  readonly contenders: readonly Contender[]
  readonly goals: readonly Goal[]
}

export interface Servers {
  readonly zookeeper: ZooKeeperServer
  readonly redis: RedisServer
  readonly postgres: PostgresServer
}

/** The board on ZooKeeper beside the fastest queues that Node has. */
export async function peersOn(servers: Servers): Promise<Comparison> {
  const [ours, { bullmq, graphile }] = [await onZooKeeper(servers), await peersOf(servers)]
  const goals = [
    { ours, theirs: bullmq, times: 2 },
    { ours, theirs: graphile, times: 1.2 },
  ]
  return { contenders: [ours, bullmq, graphile], goals }
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
  const goals = [
    { ours: onRedis, theirs: bullmq, times: 1 },
    { ours: onPostgres, theirs: graphile, times: 1 },
  ]
  return { contenders: [await onZooKeeper(servers), onRedis, bullmq, onPostgres, graphile], goals }
}

async function onZooKeeper({ zookeeper }: Servers): Promise<Contender> {
  const version = /version: ([\d.]+)/.exec(await zookeeper.fourLetter('srvr'))?.[1]
  return boardAt(`this board on ZooKeeper ${version}, fsync`, (queue) => `zookeeper://${zookeeper.hosts}/${queue}`)
}

async function peersOf({ redis, postgres }: Servers): Promise<{ bullmq: Contender; graphile: Contender }> {
  return {
    bullmq: {
      what: `BullMQ ${await peerVersion('bullmq')} on Redis ${redis.version}, no fsync`,
      start: peer('bullmq', redis.uri),
    },
    graphile: {
      what: `graphile-worker ${await peerVersion('graphile-worker')} on Postgres ${postgres.version}, fsync`,
      start: peer('graphile-worker', postgres.uri),
    },
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
