/** How a client comes to a session, keeps it, loses it and ends it. */
import { describe, expect, test } from 'vitest'
import { InvalidState } from '../../../src/core/errors.ts'
import * as zk from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { freePort } from '../../support/ports.ts'
import { startProxy } from '../../support/proxy.ts'
import { connected, failureOf, NO_DATA, portOf, reaches, sessionOf, statesOf } from '../clients.ts'

describe.skipIf(!zookeeperHosts)('sessions', () => {
  test('a client says how it is, from its making to its end', async () => {
    const client = new zk.ZooKeeper({ hosts: zookeeperHosts, sessionTimeout: 7_000 })
    const states = statesOf(client)
    const sessions: zk.SessionEvent[] = []
    client.on('session', (event) => sessions.push(event))
    expect([client.state, client.session]).toEqual(['new', undefined])
    await client.connect()
    expect(client.state).toBe('connected')
    expect(client.session).toMatchObject({ timeout: 7_000 })
    expect(sessions).toEqual([{ session: sessionOf(client) }])
    expect(await failureOf(client.connect())).toBeInstanceOf(InvalidState)
    await Promise.all([client.close(), client.close()])
    await client.close()
    expect(states).toEqual(['connecting', 'connected', 'closed'])
    expect(client.session).toBeUndefined()
  })

  test('the session survives its connection', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    await client.create(path, NO_DATA, { ephemeral: true })
    const session = sessionOf(client)
    const states = statesOf(client)
    const suspended = reaches(client, 'suspended')
    const back = reaches(client, 'connected')
    proxy.resetAll()
    expect((await suspended).reason).toBeInstanceOf(Error)
    // What is asked meanwhile waits for the connection.
    expect((await client.exists(path))?.ephemeralOwner).toBe(session)
    expect((await back).session).toBe(session)
    expect(states).toEqual(['suspended', 'connected'])
    // The C client blocks this process while it closes a session, and with it the proxy that its answer would come by.
    await proxy.close()
  })

  test('a connection that goes silent is given up while its session can still be saved', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: 2_500 })
    const session = sessionOf(client)
    const states = statesOf(client)
    const suspended = reaches(client, 'suspended')
    const back = reaches(client, 'connected')
    proxy.mode = 'blackhole'
    const asked = failureOf(client.exists('/'))
    await suspended
    proxy.mode = 'pass'
    expect((await back).session).toBe(session)
    expect(states).toEqual(['suspended', 'connected'])
    expect(await asked).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
    // The C client blocks this process while it closes a session, and with it the proxy that its answer would come by.
    await proxy.close()
  })

  test('a lease goes on over another connection: attaching and a write prove it', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    using hold = client.holdLease()
    const { until } = await hold.proven()
    const suspended = reaches(client, 'suspended')
    const back = reaches(client, 'connected')
    proxy.resetAll()
    await Promise.all([suspended, back])
    await client.create(namespace(), NO_DATA)
    expect(client.session?.leaseUntil).toBeGreaterThan(until)
    // The C client blocks this process while it closes a session, and with it the proxy that its answer would come by.
    await proxy.close()
  })

  test('a session that has expired is followed by another', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path, NO_DATA, { ephemeral: true })
    const previous = sessionOf(client)
    const announced = new Promise<zk.SessionEvent>((resolve) => client.on('session', resolve))
    const lost = reaches(client, 'lost')
    await expireSession(zookeeperHosts, previous)
    expect((await lost).reason).toBeInstanceOf(zk.SessionExpired)
    const { session } = await announced
    expect(await announced).toEqual({ session, previous })
    expect(session).not.toBe(previous)
    expect([client.state, sessionOf(client)]).toEqual(['connected', session])
    expect(await client.exists(path)).toBeUndefined()
  })

  test('no other session follows where none is wanted', async () => {
    await using client = await connected({ newSession: 'never' })
    const lost = reaches(client, 'lost')
    await expireSession(zookeeperHosts, sessionOf(client))
    await lost
    expect(client.session).toBeUndefined()
    const error = await failureOf(client.exists('/'))
    expect(error).toBeInstanceOf(zk.SessionExpired)
    expect(error).toMatchObject({ outcome: 'not-sent' })
    await client.close()
    expect(client.state).toBe('closed')
  })

  test('a session that no server can be reached for is given up', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: 1_500 })
    const session = sessionOf(client)
    const lost = reaches(client, 'lost')
    const again = reaches(client, 'connected')
    proxy.mode = 'refuse'
    proxy.resetAll()
    expect((await lost).reason).toBeInstanceOf(zk.SessionExpired)
    proxy.mode = 'pass'
    expect((await again).session).not.toBe(session)
  })

  test('connecting is given up when the signal says so', async () => {
    const client = new zk.ZooKeeper({ hosts: `127.0.0.1:${await freePort()}` })
    const reason = new Error('enough')
    expect(await failureOf(client.connect({ signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(client.state).toBe('closed')
  })
})
