import { describe, expect, test } from 'vitest'
import { InvalidArgument, InvalidState, NotConnected } from '../../src/core/errors.ts'
import * as zk from '../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { freePort } from '../support/ports.ts'
import { connected, failureOf, sessionOf, text } from './clients.ts'

describe.skipIf(!zookeeperHosts)('operations', () => {
  test('create, read, write and delete a znode', async () => {
    await using client = await connected()
    const path = namespace()
    const created = await client.create(path, Buffer.from('one'))
    expect(created.path).toBe(path)
    expect(created.stat).toMatchObject({ version: 0, dataLength: 3, numChildren: 0, ephemeralOwner: 0n })
    expect(created.stat.czxid).toBe(created.stat.mzxid)

    const written = await client.setData(path, Buffer.from('two!'), { version: 0 })
    expect(written).toMatchObject({ version: 1, dataLength: 4, czxid: created.stat.czxid })
    expect(written.mzxid).toBeGreaterThan(created.stat.mzxid)
    const read = await client.getData(path)
    expect([text(read.data), read.stat]).toEqual(['two!', written])
    expect(await client.exists(path)).toEqual(written)

    await client.delete(path, { version: 1 })
    expect(await client.exists(path)).toBeUndefined()
  })

  test('distinguish no data from empty data', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    expect((await client.getData(path)).data).toBeNull()
    await client.setData(path, new Uint8Array())
    expect((await client.getData(path)).data).toHaveLength(0)
    await client.setData(path, null)
    expect((await client.getData(path)).data).toBeNull()
  })

  test('list children', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    await Promise.all(['b', 'a', 'ü'].map((name) => client.create(`${path}/${name}`)))
    const { names, stat } = await client.getChildren(path)
    expect(names.sort()).toEqual(['a', 'b', 'ü'])
    expect(stat.numChildren).toBe(3)
  })

  test('create sequential znodes in order', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    const created = await Promise.all(
      Array.from({ length: 12 }, () => client.create(`${path}/n-`, null, { sequential: true })),
    )
    const digits = created.map((each) => each.path.slice(`${path}/n-`.length))
    expect(digits).toEqual(Array.from({ length: 12 }, (_, index) => String(index).padStart(10, '0')))
    expect((await client.create(`${path}/`, null, { sequential: true })).path).toBe(`${path}/0000000012`)
  })

  test('create ephemeral znodes, which go with the session', async () => {
    await using observer = await connected()
    const client = await connected()
    const path = namespace()
    const { stat } = await client.create(path, null, { ephemeral: true })
    expect(stat.ephemeralOwner).toBe(sessionOf(client))
    expect(await failureOf(client.create(`${path}/child`))).toBeInstanceOf(zk.NoChildrenForEphemerals)
    await client.close()
    await observer.sync(path)
    expect(await observer.exists(path)).toBeUndefined()
  })

  test('answer in the order in which they were asked', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    const order: number[] = []
    const asked = Array.from({ length: 300 }, async (_, index) => {
      await (index % 3 === 0 ? client.setData(path, null) : index % 3 === 1 ? client.exists(path) : client.sync(path))
      order.push(index)
    })
    await Promise.all(asked)
    expect(order).toEqual(Array.from({ length: 300 }, (_, index) => index))
    expect((await client.exists(path))?.version).toBe(100)
  })

  test('keep an ACL', async () => {
    await using client = await connected()
    const path = namespace()
    const acl = [{ permissions: zk.PERMISSION.READ | zk.PERMISSION.DELETE, scheme: 'world', id: 'anyone' }]
    await client.create(path, null, { acl })
    expect(await failureOf(client.setData(path, null))).toBeInstanceOf(zk.NoAuth)
    expect(await failureOf(client.create(`${path}/child`))).toBeInstanceOf(zk.NoAuth)
    expect(await failureOf(client.create(namespace(), null, { acl: [] }))).toBeInstanceOf(zk.InvalidAcl)
  })

  test('count what is below, at any depth', async () => {
    await using client = await connected()
    const path = namespace()
    await client.mkdirp(`${path}/a/b/c`)
    await client.create(`${path}/d`)
    expect(await client.getAllChildrenNumber(path)).toBe(4)
    expect(await client.getAllChildrenNumber(`${path}/d`)).toBe(0)
    expect(await failureOf(client.getAllChildrenNumber(`${path}/none`))).toBeInstanceOf(zk.NoNode)
  })

  test('list the ephemeral znodes of this session', async () => {
    await using client = await connected()
    await using other = await connected()
    const path = namespace()
    await client.mkdirp(`${path}/a`)
    for (const each of [`${path}/a/1`, `${path}/ab`, `${path}/2`]) await client.create(each, null, { ephemeral: true })
    await other.create(`${path}/a/other`, null, { ephemeral: true })
    expect((await client.getEphemerals()).sort()).toEqual([`${path}/2`, `${path}/a/1`, `${path}/ab`])
    expect(await client.getEphemerals({ under: `${path}/a` })).toEqual([`${path}/a/1`])
    expect(await client.getEphemerals({ under: `${path}/ab` })).toEqual([`${path}/ab`])
    expect(await client.getEphemerals({ under: `${path}/none` })).toEqual([])
    expect(await failureOf(client.getEphemerals({ under: 'a' }))).toBeInstanceOf(InvalidArgument)
  })

  test('are refused with an error per meaning', async () => {
    await using client = await connected()
    const path = namespace()
    await client.mkdirp(`${path}/child`)
    const refusals: [Promise<unknown>, typeof zk.ZooKeeperError, number][] = [
      [client.create(path), zk.NodeExists, -110],
      [client.create(`${path}/no/parent`), zk.NoNode, -101],
      [client.delete(path), zk.NotEmpty, -111],
      [client.delete(`${path}/child`, { version: 7 }), zk.BadVersion, -103],
      [client.setData(path, null, { version: 7 }), zk.BadVersion, -103],
      [client.setData(`${path}/none`, null), zk.NoNode, -101],
      [client.getData(`${path}/none`), zk.NoNode, -101],
      [client.getChildren(`${path}/none`), zk.NoNode, -101],
    ]
    for (const [promise, type, zkCode] of refusals) {
      const error = await failureOf(promise)
      expect(error).toBeInstanceOf(type)
      expect(error).toMatchObject({ zkCode, outcome: 'refused' })
    }
  })

  test('refuse malformed paths here', async () => {
    await using client = await connected()
    for (const path of ['a', '/a/', '/a//b', '/..']) {
      expect(await failureOf(client.exists(path))).toBeInstanceOf(InvalidArgument)
      expect(await failureOf(client.multi([zk.op.delete(path)]))).toBeInstanceOf(InvalidArgument)
      expect(await failureOf(client.multiRead([zk.op.getData(path)]))).toBeInstanceOf(InvalidArgument)
      expect(await failureOf(client.getData(path, { watch: () => undefined }))).toBeInstanceOf(InvalidArgument)
    }
  })

  test('make and delete whole trees', async () => {
    await using client = await connected()
    const path = namespace()
    await Promise.all([client.mkdirp(`${path}/a/b/c`), client.mkdirp(`${path}/a/b/d`)])
    await client.mkdirp(`${path}/a/b`)
    await Promise.all(Array.from({ length: 1_200 }, (_, index) => client.create(`${path}/a/n${index}`)))
    expect(await failureOf(client.deleteRecursive(path, { limit: 100 }))).toBeInstanceOf(InvalidState)
    expect((await client.getChildren(`${path}/a`)).names).toHaveLength(1_201)
    expect(await client.deleteRecursive(path)).toBe(1_205)
    expect(await client.exists(path)).toBeUndefined()
    expect(await client.deleteRecursive(path)).toBe(0)
    expect(await failureOf(client.deleteRecursive('/'))).toBeInstanceOf(InvalidArgument)
  })

  test('see only what is under the chroot', async () => {
    await using outside = await connected()
    const path = namespace()
    await using client = await connected({ hosts: `${zookeeperHosts}${path}` })
    await client.mkdirp('/')
    const told: zk.WatchEvent[] = []
    await client.watch('/', { mode: 'recursive' }, { events: (batch) => told.push(...batch), gap: () => undefined })
    expect((await client.create('/a', null, { sequential: true })).path).toBe('/a0000000000')
    const { results } = await client.multi([zk.op.create('/b', Buffer.from('x')), zk.op.check('/a0000000000')])
    expect(results).toEqual([{ path: '/b' }, undefined])
    expect(told.slice(0, 2)).toEqual([
      { type: 'created', path: '/a0000000000' },
      { type: 'created', path: '/b' },
    ])
    const below = await client.create('/', null, { sequential: true, ephemeral: true })
    expect(below.path).toMatch(/^\/\d{10}$/)
    await client.delete(below.path)
    expect((await outside.getChildren(path)).names.sort()).toEqual(['a0000000000', 'b'])
    const seen: zk.WatchEvent[] = []
    const watch: zk.OneShotHandler = (event) => event.type !== 'lost' && seen.push(event)
    await client.exists('/e', { watch })
    await client.create('/e', null, { ephemeral: true })
    await client.getChildren('/b', { watch })
    await client.delete('/b')
    await outside.create(`${path}x`, null, { ephemeral: true })
    expect(seen).toEqual([
      { type: 'created', path: '/e' },
      { type: 'deleted', path: '/b' },
    ])
    expect(await client.getEphemerals()).toEqual(['/e'])
    expect(await client.getAllChildrenNumber('/')).toBe(2)
    expect((await client.getACL('/e')).acl).toEqual(zk.ACL.open)
    expect((await client.multiRead([zk.op.getChildren('/')])).results[0].names?.sort()).toEqual(['a0000000000', 'e'])
    // The configuration is the ensemble's, not the chroot's.
    expect(await client.getConfig()).toEqual(await outside.getConfig())
  })

  test('name paths in their errors as the caller knows them', async () => {
    const path = namespace()
    await using client = await connected({ hosts: `${zookeeperHosts}${path}`, maxRequestBytes: 1_000 })
    await client.mkdirp('/a')
    const none = { path: '/none', message: 'getData /none: there is no such znode' }
    expect(await failureOf(client.getData('/none'))).toMatchObject(none)
    const multi = client.multi([zk.op.check('/a'), zk.op.delete('/none')])
    expect(await failureOf(multi)).toMatchObject({ path: '/none', index: 1 })
    const { results } = await client.multiRead([zk.op.getData('/none')])
    expect(results[0].error).toMatchObject({ path: '/none' })
    expect(await failureOf(client.create('/a', new Uint8Array(2_000)))).toMatchObject({ path: '/a' })
    const large = client.deleteRecursive('/', { limit: 1 })
    expect(await failureOf(large)).toMatchObject({ message: expect.stringMatching(/^\/ holds more than 1 /) })
    await client.close()
    expect(await failureOf(client.exists('/a'))).toMatchObject({ path: '/a' })
  })
})

describe('a client that cannot connect', () => {
  test('says where it tried and what happened, and is closed', async () => {
    const hosts = `127.0.0.1:${await freePort()}`
    const client = new zk.ZooKeeper({ hosts })
    const error = await failureOf(client.connect({ timeout: 300 }))
    expect(error).toBeInstanceOf(NotConnected)
    expect(String(error)).toContain(hosts)
    expect(String(error)).toContain('ECONNREFUSED')
    expect(client.state).toBe('closed')
  })

  test('names the host that cannot be found', async () => {
    const client = new zk.ZooKeeper({ hosts: 'nowhere.invalid:2181' })
    expect(String(await failureOf(client.connect({ timeout: 500 })))).toContain('nowhere.invalid')
  })

  test('gives up when its signal fires', async () => {
    const client = new zk.ZooKeeper({ hosts: `127.0.0.1:${await freePort()}` })
    const reason = new Error('enough')
    const connecting = failureOf(client.connect({ signal: AbortSignal.abort(reason) }))
    expect(await connecting).toBe(reason)
    expect(client.state).toBe('closed')
  })

  test('takes no request before connect and none after close', async () => {
    const client = new zk.ZooKeeper({ hosts: '127.0.0.1:1' })
    expect(await failureOf(client.exists('/a'))).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
    await client.close()
    await client.close()
    expect(await failureOf(client.exists('/a'))).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
    expect(await failureOf(client.connect())).toBeInstanceOf(InvalidState)
  })
})
