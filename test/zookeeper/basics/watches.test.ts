/** Watches that are told of one change. */
import { describe, expect, test } from 'vitest'
import * as zk from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy } from '../../support/proxy.ts'
import { bytes, connected, failureOf, NO_DATA, portOf, reaches, sessionOf } from '../clients.ts'

type Told = Parameters<zk.OneShotHandler>[0]

/** A handler, and what it is told first. It fails the test when it is called twice. */
function createHandler(): { handler: zk.OneShotHandler; told: Promise<Told>; calls: Told[] } {
  const calls: Told[] = []
  let hear: (event: Told) => void = () => undefined
  const told = new Promise<Told>((resolve) => {
    hear = resolve
  })
  const handler = (event: Told) => {
    calls.push(event)
    hear(event)
  }
  return { handler, told, calls }
}

describe.skipIf(!zookeeperHosts)('one-shot watches', () => {
  test('a watch is notified of one change, of what was read', async () => {
    await using client = await connected()
    await using other = await connected()
    const path = namespace()
    const [born, written, gone, child] = [createHandler(), createHandler(), createHandler(), createHandler()]
    expect(await client.exists(path, { watch: born.handler })).toBeUndefined()
    await other.create(path, NO_DATA)
    expect(await born.told).toEqual({ type: 'created', path })

    await client.getData(path, { watch: written.handler })
    await client.getChildren(path, { watch: child.handler })
    await other.create(`${path}/child`, NO_DATA)
    expect(await child.told).toEqual({ type: 'childrenChanged', path })
    await other.setData(path, bytes('one'))
    await other.setData(path, bytes('two'))
    expect(await written.told).toEqual({ type: 'dataChanged', path })

    await client.exists(`${path}/child`, { watch: gone.handler })
    await other.delete(`${path}/child`)
    expect(await gone.told).toEqual({ type: 'deleted', path: `${path}/child` })
    // Whatever the server says is told before an answer that comes after it.
    await client.sync(path)
    for (const { calls } of [born, written, gone, child]) expect(calls).toHaveLength(1)
  })

  test('a watch is not set by a read that is refused', async () => {
    await using client = await connected()
    const path = namespace()
    const refused = createHandler()
    expect(await failureOf(client.getData(path, { watch: refused.handler }))).toBeInstanceOf(zk.NoNode)
    await client.create(path, NO_DATA)
    await client.setData(path, bytes('x'))
    await client.sync(path)
    expect(refused.calls).toEqual([])
  })

  test('a watch survives the connection, and is notified of what happened in between', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    await using other = await connected()
    const path = namespace()
    await other.create(path, NO_DATA)
    const during = createHandler()
    const after = createHandler()
    await client.getData(path, { watch: during.handler })
    await client.getChildren(path, { watch: after.handler })
    const suspended = reaches(client, 'suspended')
    const back = reaches(client, 'connected')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    await other.setData(path, bytes('meanwhile'))
    proxy.mode = 'pass'
    await back
    expect(await during.told).toEqual({ type: 'dataChanged', path })
    await other.create(`${path}/child`, NO_DATA)
    expect(await after.told).toEqual({ type: 'childrenChanged', path })
    // The C client blocks this process while it closes a session, and with it the proxy that its answer would come by.
    await proxy.close()
  })

  test('a watch ends with the session, and says so', async () => {
    await using client = await connected()
    const path = namespace()
    const first = createHandler()
    await client.exists(path, { watch: first.handler })
    await expireSession(zookeeperHosts, sessionOf(client))
    const told = await first.told
    expect(told).toMatchObject({ type: 'lost', path })
    expect('reason' in told && told.reason).toBeInstanceOf(zk.SessionExpired)
  })
})
