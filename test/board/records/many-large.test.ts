/** Lists of records that would take gigabytes if all of them were decoded at once; and limits that are too large. */
import { describe, expect, test } from 'vitest'
import { encodeEntity } from '../../../src/board/backends/zookeeper/store/encoding.ts'
import { encodeRecordNode } from '../../../src/board/backends/zookeeper/store/record-nodes.ts'
import { encodePlain } from '../../../src/core/codec.ts'
import { InvalidPosting, LimitReached, PayloadTooLarge } from '../../../src/core/errors.ts'
import { openBoard } from '../../../src/index.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { startNode } from '../../support/node-process.ts'
import { zookeeperPlace } from '../boards.ts'
import { rejectionOf } from '../events.ts'

/** Takes twenty times as much memory as its bytes. */
const emptyObjects = (count: number) => ({ list: Array.from({ length: count }, () => ({})) })
const CHILD = new URL('./many-large-child.ts', import.meta.url)

describe.skipIf(!zookeeperHosts)('a board on ZooKeeper', () => {
  test('is listed by a process of 128 MB next to batches and entities that would take four times as much', async () => {
    await using place = await zookeeperPlace()
    await using board = await openBoard(place.uri)
    for (let n = 0; n < 60; n += 20)
      await Promise.all(Array.from({ length: 20 }, () => board.batch({ name: 'large', meta: emptyObjects(60_000) })))
    await using _first = await board.registerEntity({ kind: 'worker', name: 'small', metadata: { n: 1 } })
    const metadata = emptyObjects(100_000)
    for (let n = 0; n < 40; n += 1) {
      const entity = { kind: 'worker', name: `large-${n}`, instance: '1', metadata }
      await place.observer.create(`${place.path}/.entities/worker/${entity.name}`, encodeEntity(entity, 'msgpack'))
    }
    await using child = await startNode(CHILD, [place.uri], { flags: ['--max-old-space-size=128'] })
    expect(await child.ended).toBe(0)
    expect(child.lines).toEqual(['60 batches, the newest with 60000 items', '41 entities, 40 without metadata'])
  })

  test('starts no job of a key whose limit or hold is larger than 16 KB', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    await board.limits.set('large/*', { concurrency: 5 })
    const held = await board.post('flow', {}, { limits: ['large/a'] })
    const path = `${place.path}/.records/limit/${(await place.observer.getChildren(`${place.path}/.records/limit`)).names[0]}`
    const value = { concurrency: 5, by: 'ada', at: 0, padding: 'x'.repeat(20_000) }
    await place.observer.setData(path, encodeRecordNode('large/*', encodePlain({ format: 1, value }, 'msgpack')))
    await board.limits.set('other', { concurrency: 1 })
    const [large] = await board.limits.list()
    expect(large?.error).toBeInstanceOf(InvalidPosting)
    expect(String(large?.error)).toContain('more than 16384')
    expect(await rejectionOf(board.claim(held))).toBeInstanceOf(LimitReached)
    expect(await rejectionOf(board.limits.stop('more', { reason: 'x'.repeat(20_000) }))).toBeInstanceOf(PayloadTooLarge)
  })
})

test('an entity whose metadata takes more than a megabyte of memory is refused', async () => {
  await using board = await openBoard('memory:')
  const refused = await rejectionOf(board.registerEntity({ kind: 'worker', name: 'a', metadata: emptyObjects(20_000) }))
  expect(refused).toBeInstanceOf(PayloadTooLarge)
  expect(String(refused)).toContain('worker a: its metadata takes')
  await using entity = await board.registerEntity({ kind: 'worker', name: 'a', metadata: {} })
  expect(await rejectionOf(entity.update(emptyObjects(20_000)))).toBeInstanceOf(PayloadTooLarge)
})
