import { describe, expect, test } from 'vitest'
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { statesOf } from '../chaos/zookeeper/observed.ts'
import { expireSession } from '../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startProxy } from '../support/proxy.ts'
import { connected, failureOf, portOf, reaches, sessionOf } from './clients.ts'

describe.skipIf(!zookeeperHosts)('the life of a client', () => {
  test('goes through its states in order, and reports each change once', async () => {
    const client = new ZooKeeper({ hosts: zookeeperHosts })
    const states = statesOf(client)
    expect(client.state).toBe('new')
    await client.connect()
    const again = reaches(client, 'lost').then(() => reaches(client, 'connected'))
    await expireSession(zookeeperHosts, sessionOf(client))
    await again
    await client.close()
    await client.close()
    // It may notice that the connection is gone before it hears that the session is, and attach once more in between.
    const once = /^connecting connected( suspended connected)*( suspended)? lost connecting connected closed$/
    expect(states.join(' ')).toMatch(once)
  })

  test('is not disturbed by a listener that throws', async () => {
    await using client = new ZooKeeper({ hosts: zookeeperHosts })
    client.on('state', () => {
      throw new Error('a listener')
    })
    const faults: unknown[] = []
    client.on('error', (fault) => faults.push(fault))
    const states = statesOf(client)
    await client.connect()
    const again = reaches(client, 'lost').then(() => reaches(client, 'connected'))
    await expireSession(zookeeperHosts, sessionOf(client))
    await again
    expect(states.at(-1)).toBe('connected')
    expect(await client.exists('/')).toBeDefined()
    expect(faults[0]).toEqual({ error: new Error('a listener'), event: 'state' })
  })

  test('begins once', async () => {
    await using client = await connected()
    expect(await failureOf(Promise.resolve().then(() => client.connect()))).toMatchObject({ name: 'InvalidState' })
    expect(client.state).toBe('connected')
  })

  test('may be short: opened and closed at once, many at a time', async () => {
    const clients = Array.from({ length: 20 }, () => new ZooKeeper({ hosts: zookeeperHosts }))
    const outcomes = await Promise.allSettled(
      clients.flatMap((client) => {
        const connecting = client.connect()
        return [connecting, client.close()]
      }),
    )
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ name: 'NotConnected' })
    }
    expect(clients.map(({ state }) => state)).toEqual(clients.map(() => 'closed'))
  })

  test('may end while answers arrive: each request is answered or says what became of it', async () => {
    const path = namespace()
    const client = await connected()
    await client.create(path)
    const settled: string[] = []
    const asked = Array.from({ length: 500 }, async (_, at) => {
      try {
        await client.create(`${path}/${at}`)
        settled.push('done')
      } catch (error) {
        settled.push((error as { outcome?: string }).outcome ?? String(error))
      }
    })
    await asked[0]
    await Promise.all([client.close(), ...asked])
    expect(settled.filter((each) => !['done', 'unknown', 'not-sent'].includes(each))).toEqual([])
    expect(settled).toHaveLength(500)
  })

  test('gives each reason for refusing its own error', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    const client = new ZooKeeper({ hosts: proxy.hosts, sessionTimeout: '1s', newSession: 'never' })
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'NotSent' })
    await client.connect()
    const lost = reaches(client, 'lost')
    await expireSession(zookeeperHosts, sessionOf(client))
    await lost
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'SessionExpired', outcome: 'not-sent' })
    await client.close()
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'NotSent' })
  })

  test('goes on at other servers when it is given their names, with the same session', async () => {
    await using first = await startProxy({ port: portOf(zookeeperHosts) })
    await using second = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: first.hosts })
    const session = sessionOf(client)
    const again = reaches(client, 'connected')
    client.updateHosts(second.hosts)
    await again
    await client.sync('/')
    expect(sessionOf(client)).toBe(session)
    expect(second.accepted).toBe(1)
  })
})
