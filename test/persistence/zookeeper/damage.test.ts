/** Znodes that somebody has written into logbooks by hand: a flow is read or refused with an error, and nobody looks for ever. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { decode, encode } from '../../../src/core/codec.ts'
import { StorageFailure } from '../../../src/core/errors.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { LogbookLayout } from '../../../src/persistence/zookeeper/layout.ts'
import type { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { connected } from '../../zookeeper/clients.ts'

interface Setup {
  readonly observer: ZooKeeper
  readonly book: string
  readonly flow: string
}

const DAMAGE: readonly (readonly [what: string, damage: (setup: Setup) => Promise<unknown>, isRead: boolean])[] = [
  ['a term that is not there', ({ observer, flow }) => removeTerm(observer, flow), false],
  ['an atom at no position', ({ observer, flow }) => observer.create(`${flow}/x`, null), true],
  ['an atom at a position with a zero in front', ({ observer, flow }) => observer.create(`${flow}/01`, null), true],
  [
    'an atom at a position of many digits',
    ({ observer, flow }) => observer.create(`${flow}/${'9'.repeat(400)}`, null),
    true,
  ],
]

describe.skipIf(!zookeeperHosts)('a flow with', () => {
  test.each(DAMAGE)('%s', { timeout: 8_000 }, async (_, damage, isRead) => {
    const path = namespace('logbooks')
    const [book, flow] = [randomUUID(), randomUUID()]
    const request = { book: { uuid: book, name: 'b' }, flow: { uuid: flow, name: 'f', version: '1.0' }, claim: 'c' }
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await (await persistence.acquire({ ...request, run: 1 })).close()
    await using observer = await connected({ hosts: zookeeperHosts })
    const layout = new LogbookLayout(path)
    await damage({ observer, book: layout.book(book), flow: layout.flow(book, flow) })
    const next = persistence.acquire({ ...request, run: 2 })
    if (isRead) await (await next).close()
    else await expect(next).rejects.toThrow(StorageFailure)
    expect((await persistence.getBook(book)).flows).toHaveLength(1)
    expect(await persistence.destroyBook(book)).toBe(true)
  })

  test('a term that is no part of a path fails no flow that is acquired beside it', { timeout: 8_000 }, async () => {
    const path = namespace('logbooks')
    const request = (uuid: string, run: number) => {
      return { book: { uuid, name: 'b' }, flow: { uuid, name: 'f', version: '1.0' }, run, claim: 'c' }
    }
    const [odd, first, second] = [randomUUID(), randomUUID(), randomUUID()]
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    for (const uuid of [odd, first, second]) await (await persistence.acquire(request(uuid, 1))).close()
    await using observer = await connected({ hosts: zookeeperHosts })
    const node = new LogbookLayout(path).flow(odd, odd)
    const record = Object(decode((await observer.getData(node)).data ?? new Uint8Array(), 'msgpack'))
    await observer.setData(node, encode({ ...record, term: 'a\u0001b' }, 'msgpack'))
    const outcomes = await Promise.allSettled([first, odd, second].map((uuid) => persistence.acquire(request(uuid, 2))))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('znodes below an atom is not removed, and says so', { timeout: 8_000 }, async () => {
    const path = namespace('logbooks')
    const book = randomUUID()
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await persistence.createBook({ uuid: book, name: 'b' })
    await using observer = await connected({ hosts: zookeeperHosts })
    await observer.mkdirp(`${new LogbookLayout(path).book(book)}/flow/0/below`)
    await expect(persistence.destroyBook(book)).rejects.toThrow('it contains znodes that do not belong to a logbook')
  })
})

async function removeTerm(observer: ZooKeeper, flow: string): Promise<void> {
  const { names } = await observer.getChildren(flow)
  await observer.delete(`${flow}/${names.find((name) => name.startsWith('t-'))}`)
}
