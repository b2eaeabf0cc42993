/** The official C client, as a driver, and as a witness for ours: what one writes the other reads alike. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { InvalidArgument } from '../../../src/core/errors.ts'
import {
  ACL,
  NATIVE_CAPABILITIES,
  NativeZooKeeper,
  ZooKeeper,
  type ZooKeeperDriver,
} from '../../../src/zookeeper/index.ts'
import { driverContract } from '../../contract/zookeeper.ts'
import { isAnswered } from '../../support/answered-socket.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { COMPILING_LIMIT_MS, nativeLeftOut, nativePackage } from '../../support/native-package.ts'
import { connected, failureOf, portOf, text } from '../clients.ts'

describe.skipIf(!zookeeperHosts || nativeLeftOut)('the native driver', () => {
  let zookeeperPackage: unknown

  beforeAll(async () => {
    zookeeperPackage = await nativePackage()
  }, COMPILING_LIMIT_MS)

  const native = async (): Promise<NativeZooKeeper> => {
    const client = new NativeZooKeeper({ hosts: zookeeperHosts, package: zookeeperPackage })
    await client.connect()
    return client
  }

  driverContract({
    name: 'the C client',
    capabilities: NATIVE_CAPABILITIES,
    make: (options) => new NativeZooKeeper({ ...options, package: zookeeperPackage }),
  })

  test('refuses a package that is another', async () => {
    const client = new NativeZooKeeper({ hosts: zookeeperHosts, package: { default: 'something else' } })
    const error = await failureOf(client.connect())
    expect(error).toBeInstanceOf(InvalidArgument)
    expect(String(error)).toContain('zookeeper@7.3.0')
    expect(client.state).toBe('closed')
  })

  test('understands hosts as our own client does', async () => {
    await using theirs = new NativeZooKeeper({
      hosts: ` ${zookeeperHosts} , ${zookeeperHosts}/`,
      package: zookeeperPackage,
    })
    await theirs.connect()
    expect(await theirs.exists('/')).toBeDefined()
  })

  test('reads that there are no data, though it cannot write none', async () => {
    await using ours = await connected()
    await using theirs = await native()
    const path = namespace()
    await ours.create(path, null)
    expect((await theirs.getData(path)).data).toBeNull()
  })

  test('a process that was held up for most of a session keeps it, and every socket that it opens then is polled', async () => {
    await using client = new NativeZooKeeper({
      hosts: zookeeperHosts,
      package: zookeeperPackage,
      sessionTimeout: 2_500,
    })
    await client.connect()
    const session = client.session?.id
    const states: string[] = []
    const back = createDeferred()
    const answers = createDeferred<readonly Promise<boolean>[]>()
    client.on('state', ({ state }) => {
      states.push(state)
      if (state === 'connected') back.resolve()
      if (state !== 'suspended') return
      // As many sockets as there may be free numbers up to the one that was the C client's. They send when it has another.
      const open = () => isAnswered(portOf(zookeeperHosts), { after: back.promise })
      answers.resolve(Array.from({ length: 16 }, open))
    })
    await client.sync('/')
    const end = performance.now() + 1_800
    while (performance.now() < end);
    expect(await Promise.all(await answers.promise)).toEqual(Array.from({ length: 16 }, () => true))
    expect(states).toEqual(['suspended', 'connected'])
    expect(client.session?.id).toBe(session)
  })

  for (const [what, writerFirst] of [
    ['ours writes, theirs reads', true],
    ['theirs writes, ours reads', false],
  ] as const) {
    test(`${what}: the same data, names and Stat, to the last field`, async () => {
      await using ours = await connected()
      await using theirs = await native()
      const [writer, reader]: ZooKeeperDriver[] = writerFirst ? [ours, theirs] : [theirs, ours]
      if (!writer || !reader) throw new Error('there are two drivers')
      const path = namespace()
      await writer.create(path, Buffer.from('Grüße'))
      await writer.create(`${path}/ephemeral`, Buffer.alloc(300, 7), { ephemeral: true })
      const { path: numbered } = await writer.create(`${path}/日本-`, new Uint8Array(), { sequential: true })
      await writer.create(`${path}/container`, new Uint8Array(), { container: true })
      await writer.setData(path, Buffer.from('twice'))
      await writer.setData(path, Buffer.from('thrice'), { version: 1 })
      await reader.sync(path)

      for (const each of [path, `${path}/ephemeral`, numbered, `${path}/container`]) {
        const [mine, yours] = [await writer.getData(each), await reader.getData(each)]
        expect(Buffer.compare(Buffer.from(mine.data ?? []), Buffer.from(yours.data ?? []))).toBe(0)
        expect(yours.stat).toEqual(mine.stat)
        expect(await reader.exists(each)).toEqual(mine.stat)
      }
      const [mine, yours] = [await writer.getChildren(path), await reader.getChildren(path)]
      expect(yours.names.sort()).toEqual(mine.names.sort())
      expect(yours.stat).toEqual(mine.stat)
      expect(text((await reader.getData(path)).data)).toBe('thrice')
      const { stat } = await reader.getData(`${path}/ephemeral`)
      expect(stat.ephemeralOwner).toBe(writer.session?.id)
    })
  }
})

test('a package that is not installed is asked for, by name and version', async () => {
  const client = new NativeZooKeeper({ hosts: '127.0.0.1:1' })
  const error = await failureOf(client.connect())
  expect(error).toBeInstanceOf(InvalidArgument)
  expect(String(error)).toContain('npm install zookeeper@7.3.0')
})

test.each([
  [{ tls: {} }, 'UnsupportedCapability'],
  [{ sasl: { username: 'bob', password: 'x' } }, 'UnsupportedCapability'],
  [{ acl: ACL.read }, 'UnsupportedCapability'],
  [{ readOnly: true }, 'InvalidArgument'],
  [{ sessionTimeout: '30d' }, 'InvalidArgument'],
] as const)('%j is refused by the C client, rather than left out', (options, name) => {
  const make = () => new NativeZooKeeper({ hosts: 'a', ...options })
  expect(make).toThrow(expect.objectContaining({ name }))
})

test('the two clients are distinguished by their capabilities', () => {
  expect(new ZooKeeper({ hosts: 'a' }).capabilities.multi).toBe(true)
  expect(new NativeZooKeeper({ hosts: 'a' }).capabilities.multi).toBe(false)
})
