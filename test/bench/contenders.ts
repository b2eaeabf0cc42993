/** What is compared in `bench -- peers`: how each is called, and how the processes that work on it are started. */
import { join } from 'node:path'
import type { PostgresServer } from '../support/postgres.ts'
import type { RedisServer } from '../support/redis.ts'
import type { ZooKeeperServer } from '../support/zookeeper.ts'
import { type Part, startPart } from './part.ts'
import { type PeerName, peerVersion } from './peer-queues.ts'

const BOARD_CHILD = join(import.meta.dirname, 'board-child.ts')
const PEERS_CHILD = join(import.meta.dirname, 'peers-child.ts')

/** Played in the same way on the board and on its peers. */
export type Role = 'produce' | 'consume' | 'postApart' | 'consumeOneByOne'

export interface Contender {
  /** With versions, and what a power cut would do. */
  readonly what: string
  /** How many times the life cycles of this one the board is to reach. */
  readonly goal?: number
  /** @param queue the name of one that this contender has not used yet, or that the other process uses too */
  start(role: Role, queue: string, ...numbers: readonly number[]): Promise<Part>
}

export interface Servers {
  readonly zookeeper: ZooKeeperServer
  readonly redis: RedisServer
  readonly postgres: PostgresServer
}

/** The board first. */
export async function contendersOn({ zookeeper, redis, postgres }: Servers): Promise<readonly Contender[]> {
  const zookeeperVersion = /version: ([\d.]+)/.exec(await zookeeper.fourLetter('srvr'))?.[1]
  return [
    {
      what: `this board on ZooKeeper ${zookeeperVersion}, fsync`,
      start: (role, queue, ...numbers) =>
        startPart(BOARD_CHILD, [role, `zookeeper://${zookeeper.hosts}/${queue}`, ...numbers.map(String)]),
    },
    {
      what: `BullMQ ${await peerVersion('bullmq')} on Redis ${redis.version}, no fsync`,
      goal: 2,
      start: peer('bullmq', redis.uri),
    },
    {
      what: `graphile-worker ${await peerVersion('graphile-worker')} on Postgres ${postgres.version}, fsync`,
      goal: 1.2,
      start: peer('graphile-worker', postgres.uri),
    },
  ]
}

function peer(name: PeerName, uri: string): Contender['start'] {
  return (role, queue, ...numbers) => startPart(PEERS_CHILD, [name, role, uri, queue, ...numbers.map(String)])
}
