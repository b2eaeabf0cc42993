/**
 * Bytes of others beside a living conductor, on each kind of board: whatever they are, an innocent job beside them is done.
 *
 * A run is told by its seed, which is in the name of what fails; JOBBOARD_SEED repeats it, JOBBOARD_FUZZ_SECONDS says how long
 * each kind of board is tried (a second or two by default, ten minutes in `npm run test:long -- fuzz`).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodePlain } from '../../src/core/codec.ts'
import { type ZooKeeperPlace, zookeeperPlace } from '../board/boards.ts'
import { postgresPlaceOn } from '../board/postgres-boards.ts'
import { redisPlace } from '../board/redis/places.ts'
import { count } from '../support/counts.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type NodeProcess, startNode } from '../support/node-process.ts'
import { postingRecord } from '../support/poison.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { randomly } from '../support/random.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { type RecordMaker, recordMaker } from './records.ts'

const SECONDS = Number(process.env['JOBBOARD_FUZZ_SECONDS'] ?? count({ test: 1.5, long: 600 }))
/** Generous: it tells a process that hangs from one that is slow. */
const PATIENCE_MS = 45_000
const AT_ONCE = 8

interface Target {
  readonly uri: string
  /** Writes one record of others. */
  readonly plant: (maker: RecordMaker) => Promise<unknown>
}

const random = randomly()
const maker = (encoding: 'msgpack' | 'json') => recordMaker(random, encoding)

async function fuzz({ uri, plant }: Target, encoding: 'msgpack' | 'json' = 'msgpack'): Promise<void> {
  await using target = await startNode(new URL('./target.ts', import.meta.url), [uri, String(random.seed)])
  await doneAfter(target, 0)
  const make = maker(encoding)
  for (const until = Date.now() + SECONDS * 1_000; Date.now() < until; ) {
    for (let planted = 0; planted < AT_ONCE; planted += 1) await plant(make)
    // The one under way may have been posted before.
    await doneAfter(target, doneBy(target) + 1)
  }
}

function doneBy({ lines }: NodeProcess): number {
  return Number(lines.findLast((line) => line.startsWith('done '))?.slice('done '.length) ?? 0)
}

async function doneAfter(target: NodeProcess, done: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`seed ${random.seed}: the innocent job was not done; the process hangs`)
    timer = setTimeout(() => reject(error), PATIENCE_MS)
  })
  const said = target.says(new RegExp(`^done ${done + 1}$`)).catch((error: Error) => {
    throw new Error(`seed ${random.seed}: ${error.message.slice(-2_000)}`)
  })
  await Promise.race([said, late]).finally(() => clearTimeout(timer))
}

describe(`bytes of others (JOBBOARD_SEED=${random.seed})`, { timeout: SECONDS * 1_000 + 2 * PATIENCE_MS }, () => {
  test('beside a board in memory', async () => {
    await fuzz({ uri: 'memory:fuzz', plant: async () => undefined })
  })

  test.skipIf(!zookeeperHosts).each([
    ['ZooKeeper', '', 'msgpack'],
    ['ZooKeeper, shared with TaskFlow', '?encoding=json', 'json'],
  ] as const)('beside a board on %s', async (_, parameters, encoding) => {
    await using place = await zookeeperPlace()
    const board = await place.openAt(zookeeperHosts, { parameters })
    await board.close()
    await fuzz({ uri: `${place.uri}${parameters}`, plant: (make) => plantZnode(place, make) }, encoding)
  })

  describe('on servers of their own', () => {
    let [postgres, redis]: [PostgresServer?, RedisServer?] = []
    beforeAll(async () => {
      ;[postgres, redis] = await Promise.all([startPostgres({ config: { fsync: 'off' } }), startRedis()])
    })
    afterAll(() => Promise.all([postgres?.stop(), redis?.stop()]))

    test('beside a board on Postgres', async () => {
      await using place = await postgresPlaceOn(postgres?.uri ?? '')
      await (await place.open()).close()
      await fuzz({ uri: place.uri, plant: (make) => place.putRaw(make.posting()) })
    })

    test('beside a board on Redis', async () => {
      await using place = await redisPlace({ uri: redis?.uri ?? '' })
      await (await place.open()).close()
      const beside = async (make: RecordMaker) => {
        const id = await place.putRaw(make.posting())
        const trashed = Buffer.concat([Buffer.from(`${random.between(0, 1e9)}:`), make.record(TRASH)])
        await place.witness.hset(place.key('trash'), id, trashed)
        await place.witness.zadd(place.key('trashed'), random.between(0, 1e9), id)
        await place.witness.hset(place.key('entities'), id, Buffer.concat([Buffer.from('x:y:'), make.record(ENTITY)]))
      }
      await fuzz({ uri: place.uri, plant: beside })
    })
  })
})

const ENTITY = { kind: 'conductor', name: 'odd', instance: 'i', metadata: { flows: ['innocent'], versions: {} } }
const TRASH = {
  ...{ format: 1, who: 'somebody', at: new Date(0), reason: 'none', posting: encodePlain(postingRecord(), 'msgpack') },
  failure: { name: 'Error', message: 'broken', causes: [{ name: 'Error', message: 'm' }] },
}

async function plantZnode(place: ZooKeeperPlace, make: RecordMaker): Promise<void> {
  const { witness, path } = place
  const id = await place.putRaw(make.posting())
  await witness.create(`${path}/.trash/${id}`, make.record(TRASH))
  if (random.next() < 0.3) await witness.create(`${path}/.cancel/${id}`, make.record({ who: 'w', reason: 'r' }))
  if (random.next() < 0.3) await witness.create(`${path}/.keys/${id}`, make.record({ uuid: 'u' }))
  if (random.next() < 0.3) await witness.create(`${path}/.entities/conductor/${id}`, make.record(ENTITY))
}

test('the seed is one that can be given again', () => {
  expect(Number.isSafeInteger(random.seed)).toBe(true)
})
