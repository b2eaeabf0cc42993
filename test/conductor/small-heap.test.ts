/** A conductor with a heap of 128 MB (256 MB where there are many), next to records that would take gigabytes if it kept all of them decoded. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { count } from '../support/counts.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startNode } from '../support/node-process.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startZooKeeper, type ZooKeeperServer } from '../support/zookeeper.ts'

/** 60 KB that take 3.8 MB once they are decoded. */
const LARGE = { list: Array.from({ length: 60_000 }, () => ({})) }
const CHILD = new URL('./small-heap-child.ts', import.meta.url)

let postgres: PostgresServer
let redis: RedisServer
/** A server that has room for the large number of jobs: the shared one has a small heap itself. */
let zookeeper: ZooKeeperServer | undefined

beforeAll(async () => {
  const large = count({ test: false, long: true }) && zookeeperHosts !== ''
  ;[postgres, redis, zookeeper] = await Promise.all([
    startPostgres(),
    startRedis(),
    large ? startZooKeeper({ java: ['-Xmx3g'] }) : undefined,
  ])
})
afterAll(() => Promise.all([postgres?.stop(), redis?.stop(), zookeeper?.stop()]))

const PLACES: Readonly<Record<string, () => string>> = {
  Postgres: () => `${postgres.uri}?sessionTimeout=60s&schema=s_${randomUUID().replaceAll('-', '')}`,
  Redis: () => `${redis.uri}/0?ttl=60s&prefix=heap-${randomUUID().slice(0, 13)}`,
  ZooKeeper: () => `zookeeper://${zookeeper?.hosts ?? zookeeperHosts}${namespace('small-heap')}`,
}

describe.each(Object.entries(PLACES))('on %s', (_, place) => {
  test(
    'runs its own jobs before, between and after postings of a flow that it does not know',
    async () => {
      const uri = place()
      await using board = await openBoard(uri)
      const total = count({ test: 30, long: 5_000 })
      const postUnknown = async (jobs: number) => {
        for (let n = 0; n < jobs; n += 10)
          await Promise.all(Array.from({ length: 10 }, () => board.post('unknown', LARGE)))
      }
      await board.post('own', { n: 1 })
      await postUnknown(total)
      await board.post('own', { n: 2 })
      await postUnknown(total)
      await board.post('own', { n: 3 })
      await using conductor = await startNode(CHILD, [uri], {
        flags: [`--max-old-space-size=${count({ test: 128, long: 256 })}`],
      })
      for (const n of [1, 2, 3]) await conductor.says(`ran ${n}`)
      await board.post('own', { n: 4 })
      await conductor.says('ran 4')
      conductor.signal('SIGTERM')
      expect(await conductor.ended).toBe(0)
    },
    count({ test: 120_000, long: 1_200_000 }),
  )
})
