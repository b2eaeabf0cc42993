/** Books that are destroyed and created again while another process acquires or reads: their znodes have the versions of the former ones. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { openPersistence, type Persistence } from '../../../src/persistence/index.ts'
import { acquireFlow } from '../../../src/persistence/zookeeper/acquire.ts'
import { LogbookCommitter } from '../../../src/persistence/zookeeper/committer.ts'
import { LogbookLayout } from '../../../src/persistence/zookeeper/layout.ts'
import { readWholeFlow } from '../../../src/persistence/zookeeper/reader.ts'
import type { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { connected } from '../../zookeeper/clients.ts'
import { atom } from '../flows.ts'

function requestFor(uuid: string, run: number) {
  const flow = { uuid, name: 'f', version: '1.0' }
  return { book: { uuid, name: 'b' }, flow, run, claim: `claim ${run}` }
}

/** Destroys the book and creates it again, with a flow that was written as often as the former one. */
async function recreate(persistence: Persistence, uuid: string, atoms: readonly string[]): Promise<void> {
  await persistence.destroyBook(uuid)
  await using log = await persistence.acquire(requestFor(uuid, 1))
  if (atoms.length > 0) await log.write({ atoms: atoms.map((name) => atom(name)) })
}

/** Returns a client that calls `before` once, before its first call of the method. */
function interrupted(client: ZooKeeper, method: 'getChildren' | 'multi', before: () => Promise<void>): ZooKeeper {
  let isFirst = true
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return async (...given: unknown[]) => {
        if (name === method && isFirst) {
          isFirst = false
          await before()
        }
        return value.apply(target, given)
      }
    },
  })
}

describe.skipIf(!zookeeperHosts)('a book that is created again', () => {
  test('while another process acquires its flow is acquired, and is not taken for a damaged one', async () => {
    const [path, uuid] = [namespace('logbooks'), randomUUID()]
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await (await persistence.acquire(requestFor(uuid, 1))).close()
    await using client = await connected({ hosts: zookeeperHosts })
    const zookeeper = interrupted(client, 'multi', () => recreate(persistence, uuid, []))
    const place = { zookeeper, layout: new LogbookLayout(path), committer: new LogbookCommitter(zookeeper) }
    const acquired = await acquireFlow(place, requestFor(uuid, 2), randomUUID())
    expect(acquired.flow.run).toBe(2)
  })

  test('while another process reads its flow is read whole: no atom of the new one beside the state of the old one', async () => {
    const [path, uuid] = [namespace('logbooks'), randomUUID()]
    await using persistence = await openPersistence(`zookeeper://${zookeeperHosts}${path}`)
    await using old = await persistence.acquire(requestFor(uuid, 1))
    await old.write({ atoms: [atom('old')] })
    const { createdAt } = (await persistence.getBook(uuid)).flows[0] ?? {}
    await using client = await connected({ hosts: zookeeperHosts })
    const zookeeper = interrupted(client, 'getChildren', () => recreate(persistence, uuid, ['new']))
    const flow = await readWholeFlow(zookeeper, new LogbookLayout(path).flow(uuid, uuid))
    expect(flow?.atoms.map(({ name }) => name)).toEqual(['new'])
    expect(flow?.createdAt).not.toEqual(createdAt)
  })
})
