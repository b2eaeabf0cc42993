/** Values in the history and among the entities that no release has written: lists leave them out, and each is reported once. */
import { expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { createDatabase } from '../../support/postgres-database.ts'
import { startRedis } from '../../support/redis.ts'
import { zookeeperPlace } from '../boards.ts'
import { postgresPlaceOn } from './postgres/boards.ts'
import { redisPlace } from './redis/places.ts'

const BYTES = Buffer.from('no record')

/** @param damage writes unreadable values, and returns the lists that have them */
async function checkLeftOut(board: JobBoard, damage: () => Promise<readonly string[]>): Promise<void> {
  const errors: string[] = []
  board.on('error', ({ error }) => errors.push(error.message))
  await using _entity = await board.registerEntity({ kind: 'conductor', name: 'good', metadata: {} })
  const job = await board.post('flow', {})
  await (await board.claim(job)).consume()
  const lists = await damage()
  for (const _read of [1, 2]) {
    expect((await board.history()).map(({ uuid }) => uuid)).toEqual([job.uuid])
    expect((await board.entities('conductor')).map(({ name }) => name)).toEqual(['good'])
  }
  const reported = lists.map((list) => expect.stringMatching(new RegExp(`^${list}: "[^"]+" is left out`)))
  expect(errors).toEqual(reported)
}

test.skipIf(!zookeeperHosts)('on ZooKeeper', async () => {
  await using place = await zookeeperPlace()
  await using board = await place.open()
  await checkLeftOut(board, async () => {
    const { path, observer } = place
    const folder = `${path.replace(/([^/]+)$/, '.$1-sessions')}/.history`
    const { names } = await observer.getChildren(folder)
    const digits = String(Number(names[0]?.split('-')[1]) + 1).padStart(10, '0')
    await observer.create(`${folder}/1-${digits}`, BYTES)
    await observer.create(`${path}/.entities/conductor/bad`, BYTES)
    return ['history', 'entities']
  })
})

test('on Redis', async () => {
  await using server = await startRedis()
  await using place = await redisPlace(server)
  await using board = await place.open()
  await checkLeftOut(board, async () => {
    const { observer, key } = place
    await observer.hset(key('history'), 'bad', BYTES)
    await observer.zadd(key('ended'), 1, 'bad')
    await observer.hset(key('entities'), 'bad', Buffer.from('owner:bad'))
    return ['history', 'entities']
  })
})

test('on Postgres', async () => {
  await using server = await createDatabase()
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  await checkLeftOut(board, async () => {
    await place.query(
      `INSERT INTO @.history (board, uuid, record, who, posted_at, ended_at)
       SELECT board, 'bad', $1, 'who', posted_at, ended_at FROM @.history`,
      [BYTES],
    )
    return ['history']
  })
})
