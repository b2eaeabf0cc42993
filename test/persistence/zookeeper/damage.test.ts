/** Znodes that somebody has written into logbooks by hand: a flow is read or refused with an error, and nobody looks for ever. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { decode, encode } from '../../../src/core/codec.ts'
import { StorageFailure } from '../../../src/core/errors.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { Layout } from '../../../src/persistence/zookeeper/layout.ts'
import type { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { connected } from '../../zookeeper/clients.ts'

interface Scene {
  readonly witness: ZooKeeper
  readonly book: string
  readonly flow: string
}

const DAMAGE: readonly (readonly [what: string, damage: (scene: Scene) => Promise<unknown>, isRead: boolean])[] = [
  ['a term that is not there', ({ witness, flow }) => removeTerm(witness, flow), false],
  ['an atom at no position', ({ witness, flow }) => witness.create(`${flow}/x`, null), true],
  ['an atom at a position with a zero in front', ({ witness, flow }) => witness.create(`${flow}/01`, null), true],
  [
    'an atom at a position of many digits',
    ({ witness, flow }) => witness.create(`${flow}/${'9'.repeat(400)}`, null),
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
    await using witness = await connected({ hosts: zookeeperHosts })
    const layout = new Layout(path)
    await damage({ witness, book: layout.book(book), flow: layout.flow(book, flow) })
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
    await using witness = await connected({ hosts: zookeeperHosts })
    const node = new Layout(path).flow(odd, odd)
    const record = Object(decode((await witness.getData(node)).data ?? new Uint8Array(), 'msgpack'))
    await witness.setData(node, encode({ ...record, term: 'a\u0001b' }, 'msgpack'))
    const outcomes = await Promise.allSettled([first, odd, second].map((uuid) => persistence.acquire(request(uuid, 2))))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('znodes below an atom is not removed, and says so', { timeout: 8_000 }, async () => {
    const path = namespace('logbooks')
    const book = randomUUID()
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await persistence.createBook({ uuid: book, name: 'b' })
    await using witness = await connected({ hosts: zookeeperHosts })
    await witness.mkdirp(`${new Layout(path).book(book)}/flow/0/below`)
    await expect(persistence.destroyBook(book)).rejects.toThrow('it contains znodes that do not belong to a logbook')
  })
})

async function removeTerm(witness: ZooKeeper, flow: string): Promise<void> {
  const { names } = await witness.getChildren(flow)
  await witness.delete(`${flow}/${names.find((name) => name.startsWith('t-'))}`)
}
