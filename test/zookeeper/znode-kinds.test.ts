import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { QuotaExceeded, type Stat, Unimplemented, type ZooKeeper } from '../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startZooKeeper, type ZooKeeperServer } from '../support/zookeeper.ts'
import { connected, failureOf, text } from './clients.ts'

/** The next time that the znode is deleted. */
function deletion(client: ZooKeeper, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const watch = ({ type }: { type: string }) => (type === 'deleted' ? resolve() : void look())
    const look = () => client.exists(path, { watch }).then((stat) => stat ?? resolve(), reject)
    void look()
  })
}

describe.skipIf(!zookeeperHosts)('znodes that servers delete by themselves', () => {
  let server: ZooKeeperServer
  beforeAll(async () => {
    server = await startZooKeeper({ java: ['-Dznode.container.checkIntervalMs=20'], config: { enforceQuota: true } })
  })
  afterAll(() => server?.stop())

  test('containers go after their last child, and not before they had one', async () => {
    await using client = await connected({ hosts: server.hosts })
    const path = namespace()
    const created = await client.create(path, Buffer.from('c'), { container: true })
    expect(created).toMatchObject({ path, stat: { dataLength: 1, ephemeralOwner: 0n } })
    const gone = deletion(client, path)
    await client.create(`${path}/child`)
    expect(text((await client.getData(path)).data)).toBe('c')
    await client.delete(`${path}/child`)
    await gone
  })

  test('those with a TTL go when it is over, sequential or not', async () => {
    await using client = await connected({ hosts: server.hosts })
    const path = namespace()
    const created = await client.create(path, null, { ttl: 1 })
    expect(created).toMatchObject({ path, stat: { ephemeralOwner: 0n } })
    const lasting = await client.create(`${path}-`, null, { ttl: '1h', sequential: true })
    expect(lasting.path).toMatch(/-\d{10}$/)
    await deletion(client, path)
    expect(await client.exists(lasting.path)).toBeDefined()
  })

  test('and no others can be asked for', async () => {
    await using client = await connected({ hosts: server.hosts })
    const wrong: object = { container: true, ephemeral: true }
    expect(await failureOf(client.create(namespace(), null, wrong))).toBeInstanceOf(InvalidArgument)
    expect(await failureOf(client.create(namespace(), null, { ttl: 0 }))).toBeInstanceOf(InvalidArgument)
  })

  test('a quota that is enforced is an error of its own', async () => {
    await using client = await connected({ hosts: server.hosts })
    const path = namespace()
    await client.create(path)
    const quota = `/zookeeper/quota${path}`
    await client.mkdirp(quota)
    await client.create(`${quota}/zookeeper_limits`, Buffer.from('count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=2'))
    await client.create(`${quota}/zookeeper_stats`, Buffer.from('count=1,bytes=0'))
    await client.create(`${path}/one`)
    expect(await failureOf(client.create(`${path}/two`))).toBeInstanceOf(QuotaExceeded)
    expect(await failureOf(client.setData(path, Buffer.from('too long')))).toMatchObject({ outcome: 'refused' })
  })
})

describe.skipIf(!zookeeperHosts)('a server that was not set up for TTLs', () => {
  test('does not know the operation', async () => {
    await using server = await startZooKeeper({ config: { extendedTypesEnabled: false } })
    await using client = await connected({ hosts: server.hosts })
    expect(await failureOf(client.create('/a', null, { ttl: 5 }))).toBeInstanceOf(Unimplemented)
    // Containers need no setting.
    const { stat }: { stat: Stat } = await client.create('/b', null, { container: true })
    expect(stat.numChildren).toBe(0)
  })
})
