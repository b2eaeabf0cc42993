/** What is known of a request that was not answered. */
import { describe, expect, test } from 'vitest'
import * as zk from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy } from '../../support/proxy.ts'
import { bytes, connected, failureOf, NO_DATA, portOf, reaches, sessionOf } from '../clients.ts'

describe.skipIf(!zookeeperHosts)('outcomes', () => {
  test('a request whose answer is lost is unknown, and may have happened', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    await using observer = await connected()
    const path = namespace()
    proxy.mode = 'swallow-replies'
    const sent = proxy.nextRequest()
    const lost = failureOf(client.create(path, bytes('done')))
    await sent
    // The server takes requests in order over all connections, so it has this one when it answers the observer.
    await observer.create(`${path}-observer`)
    proxy.mode = 'pass'
    proxy.resetAll()
    const error = await lost
    expect(error).toBeInstanceOf(zk.ConnectionLoss)
    expect(error).toMatchObject({ outcome: 'unknown', path })
    expect(await client.exists(path)).toBeDefined()
  })

  test('nothing is taken before connect and after close', async () => {
    const client = new zk.ZooKeeper({ hosts: zookeeperHosts })
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
    await client.connect()
    const asked = client.create(namespace(), bytes('in time'))
    await client.close()
    expect((await asked).path).toContain('/test-')
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
  })

  test('what waits for a connection is rejected as not sent when the session is lost', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: 1_500 })
    const suspended = reaches(client, 'suspended')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    const error = await failureOf(client.create(namespace(), NO_DATA))
    expect(error).toBeInstanceOf(zk.SessionExpired)
    expect(error).toMatchObject({ outcome: 'not-sent' })
  })

  test('a request may be bound to a session', async () => {
    await using client = await connected()
    const path = namespace()
    const session = sessionOf(client)
    await client.create(path, NO_DATA, { session })
    const again = new Promise((resolve) => client.on('session', resolve))
    await expireSession(zookeeperHosts, session)
    await again
    const error = await failureOf(client.setData(path, bytes('late'), { session }))
    expect(error).toBeInstanceOf(zk.SessionExpired)
    expect(error).toMatchObject({ outcome: 'not-sent' })
    expect((await client.exists(path))?.version).toBe(0)
  })

  test('a request is given up when its signal says so', async () => {
    await using client = await connected()
    const path = namespace()
    const reason = new Error('enough')
    expect(await failureOf(client.create(path, NO_DATA, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(await client.exists(path)).toBeUndefined()
    const controller = new AbortController()
    const reading = failureOf(client.exists(path, { signal: controller.signal }))
    controller.abort(reason)
    expect(await reading).toBe(reason)
  })
})
