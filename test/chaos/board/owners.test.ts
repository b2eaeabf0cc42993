/** Owners on ZooKeeper that die, and one that only seems to. A client of ZooKeeper sees every job go. */
import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { zookeeperPlace } from '../../board/boards.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { everyJobOnce, type RemovalCounter } from './exactly-once.ts'

describe.skipIf(!zookeeperHosts)('owners that die, and one that only seems to', () => {
  test('every job is consumed exactly once', async () => {
    await using place = await zookeeperPlace()
    await using poster = await place.open({ who: 'poster' })
    await using gone = await goneCounter(place.path)
    await everyJobOnce({ poster, ownersUri: `${place.uri}?sessionTimeout=4s`, gone })
    expect(await place.jobNodes()).toEqual([])
    expect(await place.trashNodes()).toEqual([])
  })
})

/** Sees the znodes of jobs go. */
async function goneCounter(path: string): Promise<RemovalCounter & AsyncDisposable> {
  const zookeeper = new ZooKeeper({ hosts: zookeeperHosts })
  await zookeeper.connect()
  const gone = new Map<string, number>()
  const missed: string[] = []
  let wanted = Number.POSITIVE_INFINITY
  const enough = createDeferred()
  await zookeeper.watch(
    path,
    { mode: 'recursive' },
    {
      events: (batch) => {
        for (const event of batch) {
          const name = event.path.slice(path.length + 1)
          if (event.type === 'deleted' && /^job\d+$/.test(name)) gone.set(name, (gone.get(name) ?? 0) + 1)
        }
        if (gone.size >= wanted) enough.resolve()
      },
      gap: () => missed.push('the observer was not connected all the time'),
    },
  )
  return {
    reached: async (jobs) => {
      wanted = jobs
      if (gone.size < wanted) await enough.promise
    },
    twice: () => [...missed, ...[...gone].filter(([, times]) => times > 1).map(([name]) => name)],
    [Symbol.asyncDispose]: () => zookeeper.close(),
  }
}
