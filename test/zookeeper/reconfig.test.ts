import { describe, expect } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { BadArguments, BadVersion, NoAuth, ReconfigRefused } from '../../src/zookeeper/index.ts'
import { startEnsemble } from '../support/ensemble.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { freePort } from '../support/ports.ts'
import { usual as test, variant } from '../variant.ts'
import { connected, failureOf } from './clients.ts'

describe.skipIf(!zookeeperHosts)('the members of an ensemble', () => {
  variant('are read and changed while it runs', async () => {
    const config = { reconfigEnabled: true, standaloneEnabled: false, skipACL: 'yes' }
    await using ensemble = await startEnsemble({ servers: 1, config })
    await using client = await connected({ hosts: `${ensemble.hosts}/nowhere` })
    const before = await client.getConfig()
    expect(before.servers).toHaveLength(1)
    expect(before.version).toBeDefined()

    const observer = `server.9=127.0.0.1:${await freePort()}:${await freePort()}:observer;${await freePort()}`
    const joined = await client.reconfig({ joining: [observer], version: before.version ?? 0n })
    expect(joined.servers).toHaveLength(2)
    expect(joined.servers.join()).toContain('server.9=')
    expect(joined.version).toBeGreaterThan(before.version ?? 0n)
    expect(await client.getConfig()).toMatchObject({ servers: joined.servers, version: joined.version })

    const left = await client.reconfig({ leaving: [9] })
    expect(left.servers).toEqual(before.servers)
    const stale = client.reconfig({ joining: [observer], version: before.version ?? 0n })
    expect(await failureOf(stale)).toBeInstanceOf(BadVersion)
    expect(await failureOf(client.reconfig({ joining: ['nonsense'] }))).toBeInstanceOf(BadArguments)
    expect(await failureOf(client.reconfig({}))).toBeInstanceOf(InvalidArgument)
  })

  variant('are changed by those who may', async () => {
    await using ensemble = await startEnsemble({
      servers: 1,
      config: { reconfigEnabled: true, standaloneEnabled: false },
    })
    await using client = await connected({ hosts: ensemble.hosts })
    expect(await failureOf(client.reconfig({ leaving: [9] }))).toBeInstanceOf(NoAuth)
  })

  test('cannot be changed where the servers were not set up for it, and are none where there is one server', async () => {
    await using client = await connected()
    expect(await client.getConfig()).toMatchObject({ servers: [], version: undefined })
    expect(await failureOf(client.reconfig({ leaving: [2] }))).toBeInstanceOf(ReconfigRefused)
  })
})
