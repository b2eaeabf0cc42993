import { describe, expect, test } from 'vitest'
import { ACL, BadVersion, digestId, InvalidAcl, NoAuth, NoNode, op, PERMISSION } from '../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { connected, failureOf, text } from './clients.ts'

describe.skipIf(!zookeeperHosts)('an ACL', () => {
  test('is read and replaced, at the version that was seen', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    const before = await client.getACL(path)
    expect(before.acl).toEqual(ACL.open)
    expect(before.stat.aversion).toBe(0)
    const stat = await client.setACL(path, ACL.read, { aversion: 0 })
    expect(stat.aversion).toBe(1)
    expect((await client.getACL(path)).acl).toEqual(ACL.read)
    expect(await failureOf(client.setACL(path, ACL.open))).toBeInstanceOf(NoAuth)
    expect(await failureOf(client.setData(path, null))).toBeInstanceOf(NoAuth)
  })

  test('is refused at another version, empty, unknown, or of what is not there', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    const nobody = [{ permissions: PERMISSION.ALL, scheme: 'nothing', id: 'x' }]
    expect(await failureOf(client.setACL(path, ACL.open, { aversion: 3 }))).toBeInstanceOf(BadVersion)
    for (const acl of [[], nobody]) {
      expect(await failureOf(client.setACL(path, acl))).toBeInstanceOf(InvalidAcl)
      expect(await failureOf(client.create(namespace(), null, { acl }))).toBeInstanceOf(InvalidAcl)
    }
    expect(await failureOf(client.getACL(`${path}/none`))).toBeInstanceOf(NoNode)
    expect(await failureOf(client.setACL(`${path}/none`, ACL.open))).toBeInstanceOf(NoNode)
  })

  test('of the creator takes an identity, and keeps others out', async () => {
    await using ada = await connected()
    await using other = await connected()
    const path = namespace()
    expect(await failureOf(ada.create(path, null, { acl: ACL.creatorAll }))).toBeInstanceOf(InvalidAcl)
    await ada.addAuth('digest', 'ada:secret')
    await ada.create(path, Buffer.from('mine'), { acl: ACL.creatorAll })
    expect((await ada.getACL(path)).acl).toEqual([{ permissions: PERMISSION.ALL, ...digestId('ada', 'secret') }])
    expect(await failureOf(other.getData(path))).toBeInstanceOf(NoAuth)
    expect(await failureOf(other.getChildren(path))).toBeInstanceOf(NoAuth)
    expect(await other.exists(path)).toBeDefined()
    await other.addAuth('digest', 'ada:secret')
    expect(text((await other.getData(path)).data)).toBe('mine')
  })

  test('grants rights to a user by the digest of its password', async () => {
    await using bob = await connected()
    await using ada = await connected()
    const path = namespace()
    const acl = [{ permissions: PERMISSION.READ, ...digestId('bob', 'pass') }, ...ACL.creatorAll]
    await ada.addAuth('digest', 'ada:secret')
    await ada.create(path, Buffer.from('for bob'), { acl })
    await bob.addAuth('digest', 'bob:pass')
    expect(text((await bob.getData(path)).data)).toBe('for bob')
    expect(await failureOf(bob.setData(path, null))).toBeInstanceOf(NoAuth)
    const { acl: masked } = await bob.getACL(path)
    expect(masked.map(({ id }) => id)).toEqual(['bob:x', 'ada:x'])
  })

  test('is given to everything that mkdirp makes', async () => {
    await using client = await connected()
    const path = namespace()
    await client.mkdirp(`${path}/a`, {
      acl: [...ACL.read, { permissions: PERMISSION.CREATE, scheme: 'world', id: 'anyone' }],
    })
    expect((await client.getACL(path)).acl.map(({ permissions }) => permissions)).toEqual([1, 4])
    expect((await client.getACL(`${path}/a`)).acl.map(({ permissions }) => permissions)).toEqual([1, 4])
  })
})

describe.skipIf(!zookeeperHosts)("a client's ACL", () => {
  const auth = [{ scheme: 'digest', auth: 'ada:secret' }]
  const own = [{ permissions: PERMISSION.ALL, ...digestId('ada', 'secret') }]

  test('is that of everything it creates without another', async () => {
    await using client = await connected({ auth, acl: ACL.creatorAll })
    const path = namespace()
    await client.mkdirp(`${path}/a`)
    await client.create(`${path}/b`, null, { ephemeral: true })
    await client.create(`${path}/c`, null, { container: true })
    const { results } = await client.multi([
      op.create(`${path}/d-`, null, { sequential: true }),
      op.create(`${path}/e`, null, { container: true }),
      op.create(`${path}/mine`, null, { acl: ACL.open }),
    ])
    await client.create(`${path}/mine-too`, null, { acl: ACL.open })
    const paths = [path, ...['a', 'b', 'c', 'e'].map((name) => `${path}/${name}`), results[0].path]
    for (const each of paths) expect((await client.getACL(each)).acl, each).toEqual(own)
    for (const name of ['mine', 'mine-too']) expect((await client.getACL(`${path}/${name}`)).acl).toEqual(ACL.open)
  })

  test('is open without that option, and may be another from now on', async () => {
    await using client = await connected({ auth })
    const path = namespace()
    await client.create(path)
    client.acl = own
    await client.create(`${path}/a`)
    expect((await client.getACL(path)).acl).toEqual(ACL.open)
    expect((await client.getACL(`${path}/a`)).acl).toEqual(own)
  })
})

describe.skipIf(!zookeeperHosts)('whoAmI', () => {
  test('returns the identities that were added', async () => {
    await using client = await connected()
    expect(await client.whoAmI()).toEqual([{ scheme: 'ip', id: '127.0.0.1' }])
    await client.addAuth('digest', 'ada:secret')
    expect(await client.whoAmI()).toContainEqual({ scheme: 'digest', id: 'ada' })
  })
})
