import { afterAll, beforeAll, describe, expect } from 'vitest'
import { ReadOnlyServer, ZooKeeper } from '../../src/zookeeper/index.ts'
import { type Ensemble, type EnsembleServer, startEnsemble } from '../support/ensemble.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { usual as test, variant } from '../variant.ts'
import { failureOf, reaches, sessionOf, text } from './clients.ts'

describe.skipIf(!zookeeperHosts)('a server that has lost its quorum', () => {
  let ensemble: Ensemble
  let alone: EnsembleServer
  const path = namespace()

  beforeAll(async () => {
    ensemble = await startEnsemble({
      java: ['-Dreadonlymode.enabled=true'],
      config: { localSessionsEnabled: true, localSessionsUpgradingEnabled: true },
    })
    const [first, ...others] = ensemble.servers
    if (!first) throw new Error('there is no server')
    alone = first
    await using writer = new ZooKeeper({ hosts: ensemble.hosts })
    await writer.connect()
    await writer.create(path, Buffer.from('still there'))
    await writer.close()
    for (const server of others) await server.kill()
    while ((await alone.fourLetter('isro').catch(() => '')) !== 'ro') {
      await new Promise((resolve) => setImmediate(resolve))
    }
  })

  afterAll(() => ensemble?.stop())

  variant('is refused by a client that did not ask for it, with the possible reason', async () => {
    const client = new ZooKeeper({ hosts: alone.hosts })
    const error = await failureOf(client.connect({ timeout: '2s' }))
    expect(error).toMatchObject({ name: 'NotConnected', cause: { name: 'HungUp' } })
    expect(String(error)).toContain('no quorum')
    expect(client.counters().faults['hung-up']).toBeGreaterThan(2)
  })

  test('reads for who asked for it, until a server that writes is there', async () => {
    await using client = new ZooKeeper({ hosts: ensemble.hosts, readOnly: true, sessionTimeout: '6s' })
    await client.connect()
    expect(client.session).toMatchObject({ readOnly: true, leaseUntil: Number.NEGATIVE_INFINITY })
    const provisional = sessionOf(client)
    expect(text((await client.getData(path)).data)).toBe('still there')
    expect(await failureOf(client.setData(path, null))).toBeInstanceOf(ReadOnlyServer)
    expect(await failureOf(client.sync(path))).toBeInstanceOf(ReadOnlyServer)

    const lost = reaches(client, 'lost')
    const again = lost.then(() => reaches(client, 'connected'))
    const announced = new Promise((resolve) => client.on('session', resolve))
    await Promise.all(ensemble.servers.filter((server) => server !== alone).map((server) => server.restart()))
    expect((await lost).reason).toMatchObject({ name: 'SessionExpired' })
    await again
    expect(client.session?.readOnly).toBe(false)
    expect(await announced).toEqual({ session: sessionOf(client), previous: provisional })
    await client.setData(path, Buffer.from('and written'))
  })
})
