/** Redis with sentinels, and as a cluster. */
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { startRedis } from '../../support/redis.ts'
import { startWatchedRedis } from '../../support/redis-sentinel.ts'
import { next } from '../events.ts'
import { claimed, namesOn } from '../jobs.ts'

test('a board on a master that sentinels name goes on, on the new master, after a fail-over', async () => {
  await using watched = await startWatchedRedis()
  const uri = `redis+sentinel://${watched.sentinel}/${watched.name}/0?prefix=board&ttl=60s`
  await using board = await openBoard(uri, { who: 'board' })
  await using other = await openBoard(uri, { who: 'other' })
  for (const name of ['held', 'waiting']) await board.post('flow', {}, { name })
  const claim = await claimed(board, 'held')
  const away = [board, other].map((each) => next(each, 'state', ({ state }) => state === 'disconnected'))
  await watched.failOver()
  await Promise.all(away)
  const back = [board, other].map((each) => next(each, 'state', ({ state }) => state === 'connected'))
  await Promise.all(back)
  // Everything had got to the replica: its key is there, and so is the claim.
  expect(claim.lost.aborted).toBe(false)
  await claim.consume()
  expect(await namesOn(other)).toEqual(['waiting'])
  await (await claimed(other, 'waiting')).consume()
  const former = new Redis(watched.master.uri)
  // Where it was before, nothing of it is written any more.
  while (!(await former.info('replication')).includes('role:slave')) await former.ping()
  former.disconnect()
})

test('a board on a cluster lies in one slot, and is what it is elsewhere', async () => {
  await using server = await startRedis({ config: { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' } })
  const node = new Redis(server.uri)
  await node.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  while (!(await node.cluster('INFO')).includes('cluster_state:ok')) await node.ping()
  const uri = `redis+cluster://127.0.0.1:${server.port}?prefix=board`
  await using board = await openBoard(uri, { who: 'board' })
  await using other = await openBoard(uri, { who: 'other' })
  await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
  const resources = { exclusive: ['disk'] }
  for (const name of ['a', 'b']) await board.post('flow', {}, { name, key: name, resources })
  const [claim] = await other.claimNext()
  await claim.trash({ reason: 'why' })
  await (await claimed(board, 'b')).consume()
  expect(await namesOn(other)).toEqual([])
  expect(await other.entities('conductor')).toHaveLength(1)
  const keys = await node.keys('*')
  const slots = await Promise.all(keys.map((key) => node.cluster('KEYSLOT', key)))
  expect(keys.length).toBeGreaterThan(5)
  expect(new Set(slots).size).toBe(1)
  node.disconnect()
})
