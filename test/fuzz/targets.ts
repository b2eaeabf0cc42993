/** What bytes are written into, one target for each kind of store: how each is written raw, and which conductor reads it. */
import { type PostgresPlace, postgresPlaceOn } from '../board/backends/postgres/boards.ts'
import { type RedisPlace, redisPlace } from '../board/backends/redis/places.ts'
import { type SqlitePlace, sqlitePlace } from '../board/backends/sqlite/boards.ts'
import { type ZooKeeperPlace, zookeeperPlace } from '../board/boards.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import type { Random } from '../support/random.ts'
import { directoryLogbooks, postgresLogbooks, zookeeperLogbooks } from './logbooks.ts'
import { damageBoardRow, plantRows } from './postgres.ts'
import type { RecordMaker } from './records.ts'
import { damageBoardHash, plantFields, publishForged } from './redis.ts'
import { plantFileRows } from './sqlite.ts'
import { damageBoardNodes, plantZnodes } from './zookeeper.ts'

/** A store beside which a conductor runs. */
export interface Setup extends AsyncDisposable {
  readonly board: string
  /** Where the conductor keeps its logbooks; in its memory by default. */
  readonly logbooks?: string
  /** Writes a record, or a few that belong together. */
  plant(make: RecordMaker): Promise<unknown>
  /**
   * Restores what every job needs. Only where {@link plant} damages that: then innocent jobs are to be done once it is
   * restored, and before that the process only has to live.
   */
  mend?(): Promise<unknown>
}

export interface Servers {
  readonly postgres: string
  readonly redis: string
}

export interface Target {
  readonly name: string
  /** The server that it needs. */
  readonly on: 'nothing' | 'zookeeper' | keyof Servers
  readonly encoding?: 'json'
  open(servers: Servers, random: Random): Promise<Setup>
}

export const TARGETS: readonly Target[] = [
  {
    name: 'postings in memory',
    on: 'nothing',
    // The process writes them itself.
    open: async () => ({
      board: 'memory:fuzz',
      plant: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    }),
  },
  {
    name: 'records of a board on ZooKeeper',
    on: 'zookeeper',
    open: async (_, random) => onZooKeeper((place, make) => plantZnodes(place, make, random)),
  },
  {
    name: 'records of a board on ZooKeeper, shared with TaskFlow',
    on: 'zookeeper',
    encoding: 'json',
    open: async (_, random) => onZooKeeper((place, make) => plantZnodes(place, make, random), '?encoding=json'),
  },
  {
    name: 'what a board on ZooKeeper is',
    on: 'zookeeper',
    open: async () => {
      const place = await onZooKeeper(async () => undefined)
      return { ...place, ...(await damageBoardNodes(place.place)) }
    },
  },
  {
    name: 'records of a board on Postgres',
    on: 'postgres',
    open: async (servers, random) => onPostgres(servers, (place, make) => plantRows(place, make, random)),
  },
  {
    name: 'what a board on Postgres is',
    on: 'postgres',
    open: async (servers, random) => {
      const place = await onPostgres(servers, async () => undefined)
      return { ...place, ...(await damageBoardRow(place.place, random)) }
    },
  },
  {
    name: 'records of a board on Redis',
    on: 'redis',
    open: async (servers, random) => onRedis(servers, (place, make) => plantFields(place, make, random)),
  },
  {
    name: 'records of a board in a file',
    on: 'nothing',
    open: async (_, random) => onFile((place, make) => plantFileRows(place, make, random)),
  },
  {
    name: 'publications on Redis',
    on: 'redis',
    open: async (servers, random) => onRedis(servers, (place, make) => publishForged(place, make, random)),
  },
  {
    name: 'what a board on Redis is',
    on: 'redis',
    open: async (servers, random) => {
      const place = await onRedis(servers, async () => undefined)
      return { ...place, ...(await damageBoardHash(place.place, random)) }
    },
  },
  {
    name: 'logbooks in a directory',
    on: 'redis',
    open: async (servers, random) => {
      const { place, ...setup } = await onRedis(servers, async () => undefined)
      return withLogbooks(setup, await directoryLogbooks(place, random))
    },
  },
  {
    name: 'logbooks in Postgres',
    on: 'postgres',
    open: async (servers, random) => {
      const { place, ...setup } = await onPostgres(servers, async () => undefined)
      return withLogbooks(setup, await postgresLogbooks(place, { server: servers.postgres, random }))
    },
  },
  {
    name: 'logbooks in ZooKeeper',
    on: 'zookeeper',
    open: async (_, random) => {
      const { place, ...setup } = await onZooKeeper(async () => undefined)
      return withLogbooks(setup, await zookeeperLogbooks(place, random))
    },
  },
]

type Plant<P> = (place: P, make: RecordMaker) => Promise<unknown>

async function onZooKeeper(
  plant: Plant<ZooKeeperPlace>,
  parameters = '',
): Promise<Setup & { readonly place: ZooKeeperPlace }> {
  const place = await zookeeperPlace()
  await (await place.openAt(zookeeperHosts, { parameters })).close()
  return setup(place, { board: `${place.uri}${parameters}`, plant })
}

async function onPostgres(
  { postgres }: Servers,
  plant: Plant<PostgresPlace>,
): Promise<Setup & { readonly place: PostgresPlace }> {
  const place = await postgresPlaceOn(postgres)
  await (await place.open()).close()
  return setup(place, { board: place.uri, plant })
}

async function onFile(plant: Plant<SqlitePlace>): Promise<Setup & { readonly place: SqlitePlace }> {
  const place = await sqlitePlace()
  await (await place.open()).close()
  return setup(place, { board: place.uri, plant })
}

async function onRedis({ redis }: Servers, plant: Plant<RedisPlace>): Promise<Setup & { readonly place: RedisPlace }> {
  // A command has a third of the ttl to be answered: on a busy machine the usual one is too short for a board with so many records.
  const place = await redisPlace({ uri: redis }, { parameters: '&ttl=60s' })
  await (await place.open()).close()
  return setup(place, { board: place.uri, plant })
}

function setup<P extends AsyncDisposable>(
  place: P,
  { board, plant }: { readonly board: string; readonly plant: Plant<P> },
): Setup & { readonly place: P } {
  return {
    place,
    board,
    plant: (make) => plant(place, make),
    [Symbol.asyncDispose]: () => Promise.resolve(place[Symbol.asyncDispose]()),
  }
}

function withLogbooks(board: Setup, logbooks: Pick<Setup, 'logbooks' | 'plant'> & AsyncDisposable): Setup {
  return {
    ...board,
    ...logbooks,
    [Symbol.asyncDispose]: async () => {
      await logbooks[Symbol.asyncDispose]()
      await board[Symbol.asyncDispose]()
    },
  }
}
