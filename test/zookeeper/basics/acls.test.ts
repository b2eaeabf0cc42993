/** Who may do what, and who one is. */
import { describe, expect, test } from 'vitest'
import * as zk from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy } from '../../support/proxy.ts'
import { bytes, connected, failureOf, NO_DATA, portOf, reaches } from '../clients.ts'

describe.skipIf(!zookeeperHosts)('who may do what', () => {
  test('an ACL is kept, counted and obeyed', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path, NO_DATA)
    expect((await client.getACL(path)).acl).toEqual(zk.ACL.open)
    const acl = [{ permissions: zk.PERMISSION.READ | zk.PERMISSION.ADMIN, scheme: 'world', id: 'anyone' }]
    await client.setACL(path, acl, { aversion: 0 })
    const after = await client.getACL(path)
    expect([after.acl, after.stat.aversion]).toEqual([acl, 1])
    expect(await failureOf(client.setACL(path, acl, { aversion: 0 }))).toBeInstanceOf(zk.BadVersion)
    expect(await failureOf(client.setData(path, NO_DATA))).toBeInstanceOf(zk.NoAuth)
    expect(await failureOf(client.create(`${path}/child`, NO_DATA))).toBeInstanceOf(zk.NoAuth)
    expect(await failureOf(client.setACL(path, []))).toBeInstanceOf(zk.InvalidAcl)
  })

  test('who one is, is sent to the server on every connection', async () => {
    const auth = [{ scheme: 'digest', auth: 'ada:secret' }]
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using ada = await connected({ auth, hosts: proxy.hosts })
    await using stranger = await connected()
    const path = namespace()
    await ada.create(path, bytes('private'))
    const own = [{ permissions: zk.PERMISSION.ALL, ...zk.digestId('ada', 'secret') }]
    await ada.setACL(path, own)
    expect(await failureOf(stranger.getData(path))).toBeInstanceOf(zk.NoAuth)
    expect((await ada.getData(path)).stat.aversion).toBe(1)
    expect((await ada.getACL(path)).acl).toEqual(own)
    const suspended = reaches(ada, 'suspended')
    proxy.resetAll()
    await suspended
    expect((await ada.getData(path)).stat.aversion).toBe(1)
  })
})
