/** What networks do between a client and its server. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { op, type WatchEvent, type ZooKeeper } from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy, type TcpProxy } from '../../support/proxy.ts'
import { connected, failureOf, portOf, reaches, sessionOf, text } from '../../zookeeper/clients.ts'
import { forEachBelow } from './each.ts'
import { statesOf } from './observed.ts'

const proxied = () => startProxy({ port: portOf(zookeeperHosts) })
const UNKNOWN = { name: 'ConnectionLoss', outcome: 'unknown' }

/** Does it with a proxy and a client of its own for each number, some at a time. */
async function forEach(numbers: number, attempt: (at: number, proxy: TcpProxy, client: ZooKeeper) => Promise<void>) {
  await forEachBelow(numbers, async (at) => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts })
    await attempt(at, proxy, client)
  })
}

describe.skipIf(!zookeeperHosts).concurrent('a connection on which', () => {
  test.each([
    ['nothing gets through', 'blackhole', null],
    ['nothing gets to the server', 'drop-requests', null],
    ['nothing comes back', 'swallow-replies', 'written'],
  ] as const)('%s is given up, and the session goes on over the next one', async (_, mode, written) => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: '6s' })
    await using observer = await connected()
    const path = namespace()
    await client.create(path, null, { ephemeral: true })
    const session = sessionOf(client)
    const states = statesOf(client)
    client.on('state', ({ state }) => {
      if (state === 'suspended') proxy.mode = 'pass'
    })
    const again = reaches(client, 'connected')
    proxy.mode = mode
    const underWay = failureOf(client.setData(path, Buffer.from('written')))
    await again
    expect(await underWay).toMatchObject(UNKNOWN)
    expect(states).toEqual(['suspended', 'connected'])
    const { data, stat } = await observer.getData(path)
    expect(stat.ephemeralOwner).toBe(session)
    expect(text(data)).toBe(written)
  })

  test('events still come, but nothing gets to the server, does not keep a session', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: '3s' })
    await using observer = await connected()
    const path = namespace()
    await observer.create(path)
    await client.create(`${path}/owner`, null, { ephemeral: true })
    let events = 0
    let over = false
    let believed: Promise<unknown> | undefined
    const told = (batch: readonly WatchEvent[]) => {
      events += batch.length
    }
    await client.watch(path, { mode: 'persistent' }, { events: told, gap: () => undefined })
    const lost = reaches(client, 'lost')
    client.on('state', ({ state }) => {
      if (state !== 'lost') return
      over = true
      believed = observer.exists(`${path}/owner`)
      proxy.mode = 'pass'
    })
    proxy.mode = 'drop-requests'
    while (!over) await observer.setData(path, null)
    expect((await lost).reason).toMatchObject({ name: 'SessionExpired' })
    expect(await believed).toBeDefined()
    expect(events).toBeGreaterThan(100)
    await reaches(client, 'connected')
  })

  test('everything is slow is kept by pings', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts, sessionTimeout: '1s' })
    const states = statesOf(client)
    proxy.manner = { delay: 5, pieces: () => 3 }
    for (let ping = 0; ping < 4; ping++) await proxy.nextRequest()
    await client.sync('/')
    expect(states).toEqual([])
  })
})

describe.skipIf(!zookeeperHosts)('an answer that is lost', () => {
  test.each<[string, (client: ZooKeeper, path: string) => Promise<unknown>]>([
    ['create', (client, path) => client.create(`${path}/new`)],
    ['setData', (client, path) => client.setData(`${path}/old`, Buffer.from('written'))],
    ['delete', (client, path) => client.delete(`${path}/old`)],
    ['multi', (client, path) => client.multi([op.create(`${path}/new`, null), op.delete(`${path}/old`)])],
  ])('(to a %s) makes the outcome unknown, and it was done', async (_, ask) => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    await client.multi([op.create(path, null), op.create(`${path}/old`, null)])
    const before = await seen(client, path)
    const cut = proxy.cutAfter(0, { from: 'server' })
    expect(await failureOf(ask(client, path))).toMatchObject(UNKNOWN)
    await cut
    expect(await seen(client, path)).not.toEqual(before)
  })
})

async function seen(client: ZooKeeper, path: string) {
  const { names } = await client.getChildren(path)
  const read = await Promise.all(names.map((name) => client.getData(`${path}/${name}`)))
  return names.map((name, at) => `${name}=${text(read[at]?.data ?? null)}`)
}

describe.skipIf(!zookeeperHosts)('a frame that is cut, at whatever byte,', () => {
  const HEADERS = 4 + 16
  const WELCOME = 4 + 37

  test('(the answer to attaching) is followed by another attempt', async () => {
    await forEachBelow(WELCOME + HEADERS, async (at) => {
      await using proxy = await proxied()
      const cut = proxy.cutAfter(at, { from: 'server' })
      await using client = await connected({ hosts: proxy.hosts })
      await cut
      expect(await client.exists('/')).toBeDefined()
    })
  })

  test('(an answer) is unknown to the one who asked, and no other client notices', async () => {
    await forEach(HEADERS + 68, async (at, proxy, client) => {
      const session = sessionOf(client)
      const cut = proxy.cutAfter(at, { from: 'server' })
      const asked = failureOf(client.exists('/'))
      await cut
      expect(await asked).toMatchObject(UNKNOWN)
      expect(await client.exists('/')).toBeDefined()
      expect(sessionOf(client)).toBe(session)
    })
  })

  test('(a request) was not done', async () => {
    const path = namespace()
    await using measuring = await proxied()
    await using first = await connected({ hosts: measuring.hosts })
    await first.create(path)
    const before = measuring.received
    await first.create(`${path}/000`)
    await forEach(measuring.received - before, async (at, proxy, client) => {
      const mine = `${path}/${100 + at}`
      const cut = proxy.cutAfter(at, { from: 'client' })
      const asked = failureOf(client.create(mine))
      await cut
      expect(await asked).toMatchObject(UNKNOWN)
      expect(await client.exists(mine)).toBeUndefined()
    })
  })

  test('(an event) is reported as a gap', async () => {
    const path = namespace()
    await using observer = await connected()
    await observer.create(path)
    const event = HEADERS + 4 + 4 + 4 + `${path}/000`.length
    await forEach(event, async (at, proxy, client) => {
      const mine = `${path}/${100 + at}`
      const told: string[] = []
      const gap = new Promise<void>((resolve) => {
        const events = () => void told.push('events')
        const gap = () => resolve(void told.push('gap'))
        void client.watch(mine, { mode: 'persistent' }, { gap, events })
      })
      await client.sync(mine)
      void proxy.cutAfter(at, { from: 'server' })
      await observer.create(mine)
      await gap
      await client.sync(mine)
      expect(told).toEqual(['gap'])
    })
  })
})

describe.skipIf(!zookeeperHosts)('bytes that arrive in whatever pieces', () => {
  test('mean the same', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 }), async (sizes) => {
        let piece = 0
        proxy.manner = { pieces: () => sizes[piece++ % sizes.length] ?? 1 }
        const path = namespace()
        const events: string[] = []
        const handler = {
          gap: () => undefined,
          events: (batch: readonly WatchEvent[]) => void events.push(...batch.map(({ type }) => type)),
        }
        const watch = await client.watch(path, { mode: 'recursive' }, handler)
        const data = Buffer.alloc(200, 'x')
        const [, , multi, , read, list] = await Promise.all([
          client.create(path, data),
          client.create(`${path}/a`),
          client.multi([op.create(`${path}/b`, null), op.setData(path, data)]),
          failureOf(client.create(path)),
          client.getData(path),
          client.getChildren(path),
        ])
        expect(multi.results).toMatchObject([{ path: `${path}/b` }, { version: 1 }])
        expect(text(read.data)).toBe(String(data))
        expect(list.names.sort()).toEqual(['a', 'b'])
        expect(events).toEqual(['created', 'created', 'created', 'dataChanged'])
        await watch.remove()
      }),
      { numRuns: 12, examples: [[[1]]] },
    )
  })
})
