/** Redis with sentinels, and as a cluster. */
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { openBoard } from '../../../../src/board/index.ts'
import { startRedisCluster } from '../../../support/redis-cluster.ts'
import { startWatchedRedis } from '../../../support/redis-sentinel.ts'
import { variant } from '../../../variant.ts'
import { nextEvent } from '../../events.ts'
import { claimed, namesOn } from '../../jobs.ts'
import { exerciseBoard } from './life.ts'

variant('a board on a master that sentinels name goes on, on the new master, after a fail-over', async () => {
  await using watched = await startWatchedRedis()
  const uri = `redis+sentinel://${watched.sentinel}/${watched.name}/0?prefix=board&ttl=60s`
  await using board = await openBoard(uri, { who: 'board' })
  await using other = await openBoard(uri, { who: 'other' })
  await expect(openBoard(`redis://${watched.sentinel}/0?prefix=board`)).rejects.toThrow(
    /this is a sentinel, not a Redis/,
  )
  for (const name of ['held', 'waiting']) await board.post('flow', {}, { name })
  const claim = await claimed(board, 'held')
  const back = [board, other].map(async (each) => {
    await nextEvent(each, 'state', ({ state }) => state === 'disconnected')
    await nextEvent(each, 'state', ({ state }) => state === 'connected')
  })
  const former = new Redis(watched.master.uri)
  // What a replica has of this write, it has of all before it: else the claim may be lost with the master, as it should be then.
  await former.set('replicated', 'yes')
  expect(await former.wait(1, 30_000)).toBe(1)
  await watched.failOver()
  await Promise.all(back)
  if (claim.lost.aborted) throw claim.lost.reason
  await claim.consume()
  expect(await namesOn(other)).toEqual(['waiting'])
  await (await claimed(other, 'waiting')).consume()
  // Where it was before, nothing of it is written any more.
  while (!(await former.info('replication')).includes('role:slave')) await former.ping()
  former.disconnect()
})

variant('a board on a cluster lies in one slot, and goes on where that is moved to', async () => {
  await using cluster = await startRedisCluster()
  const key = '{board}:board'
  const before = await cluster.masterOf(key)
  await exerciseBoard(`redis+cluster://${cluster.hosts}?prefix=board&ttl=60s`, async () => {
    await cluster.moveSlotOf(key)
  })
  expect(await cluster.masterOf(key)).not.toBe(before)
})
