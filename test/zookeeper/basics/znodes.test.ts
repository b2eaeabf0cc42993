/** Creating, reading, writing, listing and deleting. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import * as zk from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { bytes, connected, failureOf, NO_DATA, sessionOf, text } from '../clients.ts'

describe.skipIf(!zookeeperHosts)('znodes', () => {
  test('a znode is created, read, written and deleted, and versions are checked', async () => {
    await using client = await connected()
    const path = namespace()
    expect((await client.create(path, bytes('one'))).path).toBe(path)
    const first = await client.getData(path)
    expect(text(first.data)).toBe('one')
    expect(first.stat).toMatchObject({ version: 0, cversion: 0, aversion: 0, dataLength: 3, numChildren: 0 })
    expect(first.stat).toMatchObject({ ephemeralOwner: 0n, mzxid: first.stat.czxid, pzxid: first.stat.czxid })
    expect(first.stat.mtime).toBe(first.stat.ctime)

    const written = await client.setData(path, bytes('two!'), { version: 0 })
    expect(written).toMatchObject({ version: 1, dataLength: 4, czxid: first.stat.czxid, ctime: first.stat.ctime })
    expect(written.mzxid).toBeGreaterThan(first.stat.mzxid)
    expect(await client.getData(path)).toMatchObject({ stat: written })
    expect(await client.exists(path)).toEqual(written)
    expect((await client.setData(path, bytes('three'))).version).toBe(2)

    await client.delete(path, { version: 2 })
    expect(await client.exists(path)).toBeUndefined()
  })

  test('children are listed, by names of any language', async () => {
    await using client = await connected()
    const path = namespace()
    const names = ['a', 'ü', '日本語', 'mañana mañana', 'Ωmega', 'a.b']
    await client.create(path)
    await Promise.all(names.map((name) => client.create(`${path}/${name}`, bytes(name))))
    const { names: listed, stat } = await client.getChildren(path)
    expect(listed.sort()).toEqual(names.sort())
    expect(stat).toMatchObject({ numChildren: names.length, cversion: names.length })
    const contents = await Promise.all(names.map((name) => client.getData(`${path}/${name}`)))
    expect(contents.map(({ data }) => text(data))).toEqual(names)
    expect((await client.getChildren(`${path}/a`)).names).toEqual([])
  })

  test('what is neither bytes nor nothing is refused, and nothing is written', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path, bytes('as it was'))
    for (const data of ['a text', 5, [1, 2], new Float64Array([1.5]), {}]) {
      expect(await failureOf(client.create(`${path}/x`, data as never))).toBeInstanceOf(InvalidArgument)
      expect(await failureOf(client.setData(path, data as never))).toBeInstanceOf(InvalidArgument)
    }
    expect(await client.exists(`${path}/x`)).toBeUndefined()
    expect(text((await client.getData(path)).data)).toBe('as it was')
  })

  test('sequential znodes are counted', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    const options = { sequential: true } as const
    const created = await Promise.all(Array.from({ length: 12 }, () => client.create(`${path}/n-`, NO_DATA, options)))
    const expected = Array.from({ length: 12 }, (_, index) => `${path}/n-${String(index).padStart(10, '0')}`)
    expect(created.map((each) => each.path)).toEqual(expected)
    const both = await client.create(`${path}/`, NO_DATA, { ephemeral: true, sequential: true })
    expect(both.path).toBe(`${path}/0000000012`)
    expect((await client.exists(both.path))?.ephemeralOwner).toBe(sessionOf(client))
  })

  test('ephemeral znodes go with the session', async () => {
    await using observer = new zk.ZooKeeper({ hosts: zookeeperHosts })
    await observer.connect()
    const client = await connected()
    const path = namespace()
    await client.create(path, bytes('here'), { ephemeral: true })
    expect((await client.exists(path))?.ephemeralOwner).toBe(sessionOf(client))
    expect(await failureOf(client.create(`${path}/child`))).toBeInstanceOf(zk.NoChildrenForEphemerals)
    const gone = new Promise<void>((resolve) => {
      const events = (batch: readonly zk.WatchEvent[]) => batch.some(({ type }) => type === 'deleted') && resolve()
      void observer.watch(path, { mode: 'persistent' }, { events, gap: () => undefined })
    })
    await observer.sync(path)
    await client.close()
    await gone
    expect(await observer.exists(path)).toBeUndefined()
  })

  test('containers and znodes with a time to live are made', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path, NO_DATA, { container: true })
    await client.create(`${path}/soon`, bytes('gone'), { ttl: '1h' })
    const numbered = await client.create(`${path}/soon-`, NO_DATA, { ttl: '1h', sequential: true })
    expect(numbered.path).toBe(`${path}/soon-0000000001`)
    // Their owner is a number that says what they are, and servers show it as none.
    expect((await client.exists(path))?.ephemeralOwner).toBe(0n)
    expect(text((await client.getData(`${path}/soon`)).data)).toBe('gone')
  })

  test('empty data are data', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path, NO_DATA)
    expect((await client.getData(path)).data).toHaveLength(0)
    await client.setData(path, bytes('x'))
    await client.setData(path, NO_DATA)
    expect((await client.getData(path)).data).toHaveLength(0)
  })

  test('bytes of all kinds and large values come back as they were', async () => {
    await using client = await connected()
    const path = namespace()
    const large = randomBytes(1_000_000)
    const part = large.subarray(17, 273)
    await client.create(path, part)
    expect(Buffer.compare(Buffer.from((await client.getData(path)).data ?? []), part)).toBe(0)
    await client.setData(path, large)
    const [read, again] = await Promise.all([client.getData(path), client.getData(path)])
    for (const { data } of [read, again]) expect(Buffer.compare(Buffer.from(data ?? []), large)).toBe(0)
  })

  test('what is too large for a server is not sent, and does not disturb others', async () => {
    await using client = await connected()
    const path = namespace()
    const session = sessionOf(client)
    const neighbour = client.create(path, bytes('ours'))
    const error = await failureOf(client.create(`${path}-large`, new Uint8Array(1_048_576)))
    expect(error).toBeInstanceOf(zk.RequestTooLarge)
    expect(error).toMatchObject({ outcome: 'not-sent' })
    await neighbour
    expect([client.state, sessionOf(client)]).toEqual(['connected', session])
  })

  test('refusals have a class for each meaning', async () => {
    await using client = await connected()
    const path = namespace()
    await client.mkdirp(`${path}/child`)
    const refusals: [() => Promise<unknown>, typeof zk.ZooKeeperError, number][] = [
      [() => client.create(path), zk.NodeExists, -110],
      [() => client.create(`${path}/no/parent`), zk.NoNode, -101],
      [() => client.delete(path), zk.NotEmpty, -111],
      [() => client.delete(`${path}/none`), zk.NoNode, -101],
      [() => client.delete(`${path}/child`, { version: 7 }), zk.BadVersion, -103],
      [() => client.setData(path, NO_DATA, { version: 7 }), zk.BadVersion, -103],
      [() => client.setData(`${path}/none`, NO_DATA), zk.NoNode, -101],
      [() => client.getData(`${path}/none`), zk.NoNode, -101],
      [() => client.getChildren(`${path}/none`), zk.NoNode, -101],
    ]
    for (const [ask, type, zkCode] of refusals) {
      const error = await failureOf(ask())
      expect(error).toBeInstanceOf(type)
      expect(error).toMatchObject({ zkCode, outcome: 'refused' })
      expect(String(error)).toContain(path)
    }
  })

  test('malformed paths are refused here', async () => {
    await using client = await connected()
    for (const path of ['a', '/a/', '/a//b', '/..', '/a\u0000b', '']) {
      expect(await failureOf(client.exists(path))).toBeInstanceOf(InvalidArgument)
      expect(await failureOf(client.create(path))).toBeInstanceOf(InvalidArgument)
    }
  })

  test('a chroot is all there is', async () => {
    await using outside = await connected()
    const path = namespace()
    await outside.create(path)
    await using client = await connected({ hosts: `${zookeeperHosts}${path}` })
    expect((await client.create('/a', bytes('in'), { sequential: true })).path).toBe('/a0000000000')
    await client.mkdirp('/b/c')
    expect((await client.getChildren('/')).names.sort()).toEqual(['a0000000000', 'b'])
    expect((await outside.getChildren(path)).names.sort()).toEqual(['a0000000000', 'b'])
    expect(text((await outside.getData(`${path}/a0000000000`)).data)).toBe('in')
  })
})
